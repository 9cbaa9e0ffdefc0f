"""Coverage and size of 90 % prediction sets on the sets and partitions of Chu and Ghahramani (2005).

Held out: a quarter of the training rows calibrates the fit of the others. Leave-one-out: the fit of all training rows
is calibrated on its own labels. Plain: the smallest window with 90 % of the probability, no calibration. Prints means
over partitions::

    python benchmarks/prediction_sets.py ../shared/data --partitions 3
"""

import argparse
import warnings
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd

import pmordinal as pmo
from pmordinal.bench.base import Task
from pmordinal.bench.suites import CHU, _chu
from pmordinal.results.nested_sets import SCORES


def outcome(included: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the share of rows whose set holds the truth, that of the worst class, and the mean size."""
    covered = included[np.arange(truth.size), truth]
    return {
        "coverage": covered.mean(),
        "worst": pd.Series(covered).groupby(truth).mean().min(),
        "size": included.sum(1).mean(),
    }


def lines(split, truth: np.ndarray, coverage: float, seed: int):
    """Yield the outcome of each method on one partition."""
    model = pmo.gp_model(split.X, split.y, "expquad", categories=range(split.n_classes))
    whole = pmo.fit(model, progressbar=False)
    part = pmo.conformal(model, seed=seed, progressbar=False)
    probs = whole.predict(split.Xnew).to_numpy()
    yield {"method": "plain"} | outcome(SCORES["window"](probs) < coverage, truth)
    for score in SCORES:
        for by_class in (False, True):
            how = {"score": score, "by_class": by_class}
            name = f"{score}{' by class' if by_class else ''}"
            left_out = pmo.conformal(whole, **how).predict(split.Xnew, coverage=coverage)
            yield {"method": f"loo {name}"} | outcome(left_out["included"].values, truth)
            rows = part.rows.astype(int)
            again = pmo.conformal(part.fit, (split.X[rows], split.y[rows]), **how)
            sets = again.predict(split.Xnew, coverage=coverage)
            yield {"method": f"held out {name}"} | outcome(sets["included"].values, truth)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--bins", type=int, default=5)
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--sets", default=",".join(CHU))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    start = process_time()
    for name in options.sets.split(","):
        for partition in range(1, options.partitions + 1):
            split, truth = _chu(Task("gpor", name, options.bins, partition, ""), options.data)
            key = {"set": name, "train": len(split.y), "test": truth.size}
            found += [key | row for row in lines(split, truth, options.coverage, partition)]
    table = pd.DataFrame(found).groupby(["set", "train", "test", "method"], sort=False).mean()
    for column in ("coverage", "size", "worst"):
        print(f"\n{column}\n{table[column].unstack(sort=False).round(3).to_string()}")
    print(table.groupby("method", sort=False).mean().round(3).to_string())
    print(f"{process_time() - start:.0f} CPU seconds")


if __name__ == "__main__":
    main()
