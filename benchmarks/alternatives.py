"""What a data scientist would take instead, on the sets and partitions of Chu and Ghahramani (2005).

scikit-learn's histogram gradient boosting, random forest and multinomial logit with their defaults, on the same
training and test rows as ``pmordinal bench --suite gpor``. Prints means over sets and partitions::

    python benchmarks/alternatives.py ../shared/data --partitions 20
"""

import argparse
import warnings
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pmordinal.bench.base import Task
from pmordinal.bench.suites import CHU, _chu
from pmordinal.diagnostics.scoring import pointwise_means
from pmordinal.results.decisions import decide

METHODS = {
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "random forest": lambda: RandomForestClassifier(500, random_state=0),
    "multinomial logit": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
}


def predicted(make, split) -> np.ndarray:
    """Return probabilities of all classes; those of a class without training rows are zero."""
    model = make().fit(split.X, split.y)
    probs = np.zeros((len(split.Xnew), split.n_classes))
    probs[:, model.classes_] = model.predict_proba(split.Xnew)
    return probs


def line(name: str, split, truth: np.ndarray) -> dict:
    """Return the scores of one method on one partition.

    A zero probability would make the mean infinite: the NLP is of probabilities mixed with one pseudo-row a class,
    which is in favour of the methods that give zeros.
    """
    start = process_time()
    probs = predicted(METHODS[name], split)
    seconds = process_time() - start
    n, r = len(split.y), split.n_classes
    mixed = (n * probs + 1.0) / (n + r)
    means = pointwise_means(probs, truth)
    gap = np.abs(decide(probs, "median") - truth).mean()
    scores = {"nlp": pointwise_means(mixed, truth)["nlp"], "rps": means["rps"]}
    errors = {"zero_one": 100 * means["zero_one"], "absolute": means["absolute"], "median": gap}
    return scores | errors | {"cpu_seconds": seconds}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--bins", type=int, default=5)
    parser.add_argument("--sets", default=",".join(CHU))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for name in options.sets.split(","):
        for partition in range(1, options.partitions + 1):
            task = Task("gpor", name, options.bins, partition, "")
            split, truth = _chu(task, options.data)
            key = {"set": name, "partition": partition}
            lines += [key | {"method": m} | line(m, split, truth) for m in METHODS]
    table = pd.DataFrame(lines).drop(columns="partition").groupby(["set", "method"]).mean()
    print(table["nlp"].unstack().round(3).to_string())
    print(table.groupby("method").mean().round(3).to_string())


if __name__ == "__main__":
    main()
