"""Tables behind figures of the papers that are not benchmarks of partitions: ``docs/tables/NAME.csv``.

``python benchmarks/figures.py [NAME ...]`` runs all or some: ``ratings`` (training sizes on synthetic ratings),
``genes`` (genes selected inside the training rows), ``truth``, ``noise``, ``blocks`` (MODL on synthetic pairs). A task
is appended when it is done; tasks that are there are not run again, so that a run that was stopped goes on, and one
with larger ``--repeats`` adds to it. The gene data are read from ``../shared/data`` (or ``$PMORDINAL_DATA``).
"""

import argparse
import csv
import os
import platform
import time
import warnings
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
from modl import block_pair
from scipy.stats import norm

import pmordinal as pmo
from pmordinal.modl import fit_grid, nlrpd_of_cdf

DATA = Path(os.environ.get("PMORDINAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
# This gene alone separates the three classes of all 24 samples, without overlap; no other does.
SEPARATING = "ILMN_1759232"
TABLES = Path(__file__).parents[1] / "docs" / "tables"


def run(name, keys, fields, tasks, function):
    """Append a line for each task that is not in the table yet."""
    path = TABLES / f"{name}.csv"
    if not path.exists():
        versions = ", ".join(f"{p} {version(p)}" for p in ("pmordinal", "pymc", "numpy", "scipy"))
        made = f"# {date.today()}; Python {platform.python_version()}, {versions}"
        path.write_text(
            f"{made}\n# python benchmarks/figures.py {name}\n{','.join(keys + fields)}\n"
        )
    done = set(pd.read_csv(path, comment="#", dtype=str)[keys].itertuples(index=False, name=None))
    for task in tasks:
        if tuple(map(str, task)) in done:
            continue
        began = time.process_time()
        lines = function(*task)
        with path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows(
                [*task, *(f"{v:.5g}" if isinstance(v, float) else v for v in line)]
                for line in lines
            )
        print(name, *task, f"{time.process_time() - began:.1f} CPU s", flush=True)


def errors(truth, probs):
    """Return zero-one error in per cent, absolute error and NLP."""
    with np.errstate(divide="ignore"):
        found = pmo.scores(truth, probs, categories=range(probs.shape[1]))
    return [100.0 * found["zero_one"], found["absolute"], found["nlp"]]


def fitted(*arguments, **options):
    with warnings.catch_warnings(action="ignore", category=pmo.ConvergenceWarning):
        return pmo.fit(pmo.gp_model(*arguments, **options), progressbar=False)


def ratings(repeat, size):
    """Fit one user's ratings of some films; the covariance is that of what the others thought of them."""
    rng = np.random.default_rng(repeat)
    films, users = rng.normal(size=(449, 2)), rng.normal(size=(301, 2))
    liking = (
        films @ users.T + 0.8 * rng.normal(size=449)[:, None] + 0.7 * rng.normal(size=(449, 301))
    )
    steps = np.sort(rng.normal(0.0, 1.2, size=(301, 5)), axis=1)
    stars = np.stack([np.digitize(liking[:, u], steps[u]) for u in range(301)], axis=1).astype(
        float
    )
    hers = np.digitize(liking[:, 0], [-2.4, -1.2, 0.0, 1.2, 2.4])
    others = np.where(rng.uniform(size=(449, 300)) < 0.4, stars[:, 1:], np.nan)
    rows = rng.permutation(449)
    seen, ahead = rows[:size, None], rows[size:, None]
    for missing in ("mean", "low-rank"):
        cov_func = pmo.PearsonRatings(others, missing, scale="mean")
        for engine in ("laplace", "ep"):
            options = {"engine": engine, "categories": range(6)}
            fit = fitted(seen, hers[seen[:, 0]], cov_func, **options)
            yield [missing, engine, *errors(hers[ahead[:, 0]], fit.predict(ahead).to_numpy())]


def genes(repeat, without):
    """Select genes on half of the samples, and predict the other half with each set of genes."""
    table = pd.read_csv(DATA / "gene" / "glmnetcr_diabetes.csv.gz")
    y = table.pop("y").astype("category").cat.codes.to_numpy()  # alphabetical, which is their order
    table = table.drop(columns=[] if without == "none" else without)
    order = np.random.default_rng(repeat).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    train, test = order[::2], order[1::2]  # half of each class
    X = table.iloc[train]
    kept = X.columns[X.std() > 0]
    with warnings.catch_warnings(action="ignore", category=pmo.ConvergenceWarning):
        steps = pmo.select_features(X[kept], y[train], keep=0.25, progressbar=False)
    for columns in steps["features"]:
        centre, scale = X[columns].mean(), X[columns].std()
        A, B = ((table.iloc[r][columns] - centre) / scale for r in (train, test))
        for engine in ("laplace", "ep"):
            with pm.Model() as model:
                weight = pm.LogNormal("weight", -np.log(len(columns)), 2.0)
                cov_func = weight * pm.gp.cov.Linear(len(columns), c=0.0)
                pmo.gp_model(A, y[train], cov_func, engine=engine, categories=range(3))
            with warnings.catch_warnings(action="ignore", category=pmo.ConvergenceWarning):
                fit = pmo.fit(model, progressbar=False)
            yield [len(columns), engine, *errors(y[test], fit.predict(B).to_numpy())]


def synthetic_pair(n, rng):
    """Draw the heteroscedastic set of [HB2007, section 5.1]; return x, y, and mean and sd of y given x."""
    x = rng.uniform(0.0, np.pi, n)
    mean = np.sin(2.5 * x) * np.sin(1.5 * x)
    sd = np.sqrt(0.01 + 0.25 * (1.0 - np.sin(2.5 * x)) ** 2)
    return x, rng.normal(mean, sd), mean, sd


def truth(n, n_test, sets, training):
    """Score the true distribution on new test sets, each with a training set of its own or all with the same one."""
    rng = np.random.default_rng([n, n_test])
    y_train = synthetic_pair(n, rng)[1]
    found = []
    for _ in range(sets):
        if training == "new":
            y_train = synthetic_pair(n, rng)[1]
        _, y, mean, sd = synthetic_pair(n_test, rng)

        def log_probability(low, high, mean=mean, sd=sd):
            a, b = (low - mean) / sd, (high - mean) / sd
            a, b = np.where(a > 0, -b, a), np.where(a > 0, -a, b)  # the tail that does not cancel
            la, lb = norm.logcdf(a), norm.logcdf(b)
            return lb + np.log1p(-np.exp(la - lb))

        found.append(nlrpd_of_cdf(log_probability, y_train, y).mean())
    yield [float(np.mean(found)), float(np.std(found, ddof=1))]


def blocks(n, noise, sets):
    """Count the intervals that are found in blocks with noise; noise 1 is noise alone."""
    rng = np.random.default_rng([n, round(100 * noise), sets])
    sizes = np.array(
        [(g.I, g.J) for g in (fit_grid(*block_pair(n, noise, rng)) for _ in range(sets))]
    )
    yield [*map(float, sizes.mean(0)), float(np.mean(sizes[:, 1] > 1))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--repeats", type=int, default=3, help="of ratings and genes")
    parser.add_argument(
        "--sets", type=int, default=100, help="of blocks; of noise 50 times as many"
    )
    options = parser.parse_args()
    scores = ["zero_one", "absolute", "nlp"]
    repeats = range(options.repeats)
    powers = [2**k for k in range(13)]
    jobs = {
        "ratings": (
            ["repeat", "size"],
            ["missing", "engine", *scores],
            [(r, n) for r in repeats for n in (50, 100, 150, 200, 250, 300)],
            ratings,
        ),
        "genes": (
            ["repeat", "without"],
            ["genes", "engine", *scores],
            [(r, without) for without in ("none", SEPARATING) for r in repeats],
            genes,
        ),
        "truth": (
            ["n", "n_test", "sets", "training"],
            ["nlrpd", "sd"],
            [
                *((n, m, 100, "new") for m in (1000, 10000) for n in powers[1:]),
                (384, 1024, 100, "same"),
            ],
            truth,
        ),
        "noise": (
            ["n", "noise", "sets"],
            ["I", "J", "found"],
            [(n, 1.0, (50 if n <= 128 else 10) * options.sets) for n in powers[2:11]],
            blocks,
        ),
        "blocks": (
            ["n", "noise", "sets"],
            ["I", "J", "found"],
            [
                (n, noise, options.sets)
                for n in powers[2:]
                for noise in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
            ],
            blocks,
        ),
    }
    for name in options.names or jobs:
        keys, fields, tasks, function = jobs[name]
        run(name, keys, fields, tasks, function)


if __name__ == "__main__":
    main()
