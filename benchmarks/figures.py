"""Tables behind figures of the papers that are not benchmarks of partitions: ``docs/tables/NAME.csv``.

``python benchmarks/figures.py [NAME ...]`` runs all or some: ``ratings`` (training sizes on synthetic ratings),
``genes`` (genes selected inside the training rows), ``priors`` (California with 50 labels, without some of the priors),
``truth``, ``check``, ``noise``, ``blocks`` (MODL on synthetic pairs), ``workclass`` (counts of Adult). A task
is appended when it is done; tasks that are there are not run again, so that a run that was stopped goes on, and one
with larger ``--repeats`` adds to it. Above the lines of a run a comment has its date, versions and command. The data
are read from ``../shared/data`` (or ``$PMORDINAL_DATA``).
"""

import argparse
import csv
import os
import platform
import sys
import time
import warnings
from datetime import date
from importlib.metadata import version
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
from modl import block_pair
from scipy.stats import norm

import pmordinal as pmo
from pmordinal.bench.base import Task
from pmordinal.bench.suites import pooled
from pmordinal.modl import fit_grid, nlrpd_of_cdf

DATA = Path(os.environ.get("PMORDINAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
LABELS = (
    *("Federal-gov", "Local-gov", "Never-worked", "Private", "Self-emp-inc"),
    *("Self-emp-not-inc", "State-gov", "Without-pay", "?"),
)
# This gene alone separates the three classes of all 24 samples, without overlap; no other does.
SEPARATING = "ILMN_1759232"
TABLES = Path(__file__).parents[1] / "docs" / "tables"


def run(name, keys, fields, tasks, function):
    """Append a line for each task that is not in the table yet, below the command that ran it."""
    path = TABLES / f"{name}.csv"
    done, heading = set(), made(" ".join(sys.argv[1:]))
    if path.exists():
        table = pd.read_csv(path, comment="#", dtype=str)
        done = set(table[keys].itertuples(index=False, name=None))
        comments = [line for line in path.read_text().splitlines(True) if line.startswith("#")]
        heading = "" if "".join(comments[-2:]) == heading else heading
    else:
        heading += f"{','.join(keys + fields)}\n"
    for task in tasks:
        if tuple(map(str, task)) in done:
            continue
        began = time.process_time()
        lines = list(function(*task))
        with path.open("a", newline="") as file:
            file.write(heading)
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows(
                [*task, *(f"{v:.5g}" if isinstance(v, float) else v for v in line)]
                for line in lines
            )
        heading = ""
        print(name, *task, f"{time.process_time() - began:.1f} CPU s", flush=True)


def made(arguments, script="figures"):
    """Return comments with the date, the versions and the command."""
    versions = ", ".join(f"{p} {version(p)}" for p in ("pmordinal", "pymc", "numpy", "scipy"))
    return (
        f"# {date.today()}; Python {platform.python_version()}, {versions}\n"
        f"# python benchmarks/{script}.py {arguments}\n"
    )


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


# What a prior becomes that is left out: one that is flat where the optimiser moves.
FLAT = {
    "lengthscale": lambda: pm.LogNormal.dist(0.0, 1000.0),
    "noise": lambda: pm.LogNormal.dist(0.0, 1000.0),
    "thresholds": lambda: pmo.thresholds(
        "thresholds",
        5,
        kind="padded",
        first=pm.Normal("first", 0.0, 1000.0, initval=-0.6),
        gaps=pm.LogNormal("gaps", 0.0, 1000.0, shape=3, initval=np.full(3, 0.4)),
    ),
}
SUMS = ("recommended", "linear")  # no prior is left out; other covariances
WITHOUT = [
    "none",
    *("+".join(some) for k in (1, 2, 3) for some in combinations(FLAT, k)),
    *SUMS,
]


def priors(partition, without):
    """Fit 50 labelled rows of California, with some of the default priors left out."""
    split, y = pooled(Task("ssgpor", "california-50", 5, partition, "ep"), DATA)
    out = [] if without in ("none", *SUMS) else without.split("+")
    options = {"categories": range(5)}
    with pm.Model() as model:
        if without in SUMS:
            pmo.gp_model(split.X, split.y, without, **options)
        else:
            own = {name: FLAT[name]() for name in out}
            pmo.gp_model(split.X, split.y, "expquad", **options, **own)
    with warnings.catch_warnings(action="ignore", category=pmo.ConvergenceWarning):
        fit = pmo.fit(model, progressbar=False)
    lengthscale = np.nan if without in SUMS else float(fit.point["lengthscale"])
    scores = errors(y, fit.predict(split.Xnew).to_numpy())
    yield [*scores, fit.log_evidence, lengthscale, float(fit.noise), *map(float, fit.thresholds)]


def synthetic_pair(n, rng):
    """Draw the heteroscedastic set of [HB2007, section 5.1]; return x, y, and mean and sd of y given x."""
    x = rng.uniform(0.0, np.pi, n)
    mean = np.sin(2.5 * x) * np.sin(1.5 * x)
    sd = np.sqrt(0.01 + 0.25 * (1.0 - np.sin(2.5 * x)) ** 2)
    return x, rng.normal(mean, sd), mean, sd


def true_scores(y_train, n_test, rng):
    """Return the NLRPD of the true distribution on a new test set."""
    _, y, mean, sd = synthetic_pair(n_test, rng)

    def log_probability(low, high):
        a, b = (low - mean) / sd, (high - mean) / sd
        a, b = np.where(a > 0, -b, a), np.where(a > 0, -a, b)  # the tail that does not cancel
        la, lb = norm.logcdf(a), norm.logcdf(b)
        return lb + np.log1p(-np.exp(la - lb))

    return nlrpd_of_cdf(log_probability, y_train, y).mean()


def truth(n, n_test):
    """Score the true distribution on 100 test sets, each with a training set of its own."""
    rng = np.random.default_rng([n, n_test])
    found = [true_scores(synthetic_pair(n, rng)[1], n_test, rng) for _ in range(100)]
    yield [float(np.mean(found)), float(np.std(found, ddof=1))]


def check(repeat):
    """Score the true distribution on 100 test sets of 1024 rows, all with one training set of 384."""
    rng = np.random.default_rng(repeat)
    y_train = synthetic_pair(384, rng)[1]
    found = [true_scores(y_train, 1024, rng) for _ in range(100)]
    yield [float(np.mean(found)), float(np.std(found, ddof=1))]


def blocks(n, noise, sets):
    """Count the intervals that are found in blocks with noise; noise 1 is noise alone."""
    rng = np.random.default_rng([n, round(100 * noise), sets])
    yield intervals(n, noise, sets, rng)


def noise(n, repeat):
    """Count the intervals that are found in noise alone: over 5,000 sets, or over all orders of up to 8 rows."""
    if repeat != "all":
        yield intervals(n, 1.0, 5000, np.random.default_rng([n, repeat]))
        return
    yield sizes(fit_grid(np.arange(n), np.array(order)) for order in permutations(range(n)))


def intervals(n, noise, sets, rng):
    """Return the mean numbers of both sides' intervals, and the share of sets in which any are found."""
    return sizes(fit_grid(*block_pair(n, noise, rng)) for _ in range(sets))


def sizes(grids):
    """Return the mean numbers of both sides' intervals, and the share of grids that found any."""
    found = np.array([(g.I, g.J) for g in grids])
    return [*map(float, found.mean(0)), float(np.mean(found[:, 1] > 1))]


def workclass(label):
    """Count the rows of Adult with this workclass by age."""
    adult = pd.read_csv(DATA / "modl" / "adult.csv.gz")
    yield from adult["y"][adult["workclass"] == label].value_counts().sort_index().items()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--repeats", type=int, default=2, help="of ratings, genes and noise")
    parser.add_argument("--sets", type=int, default=100, help="of blocks")
    parser.add_argument("--sizes", type=int, nargs="+", help="of noise; by default 16 to 1024")
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
        "priors": (
            ["partition", "without"],
            [*scores, "log_evidence", "lengthscale", "noise", "b1", "b2", "b3", "b4"],
            [(p, without) for p in range(1, 21) for without in WITHOUT],
            priors,
        ),
        "truth": (
            ["n", "n_test"],
            ["nlrpd", "sd"],
            [(n, m) for m in (1000, 10000) for n in powers[1:]],
            truth,
        ),
        "check": (["repeat"], ["nlrpd", "sd"], [(r,) for r in range(100)], check),
        "noise": (
            ["n", "repeat"],
            ["I", "J", "found"],
            [(4, "all"), (8, "all")]
            + [(n, r) for r in repeats for n in options.sizes or powers[4:11]],
            noise,
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
        "workclass": (["workclass"], ["age", "rows"], [(name,) for name in LABELS], workclass),
    }
    for name in options.names or jobs:
        keys, fields, tasks, function = jobs[name]
        run(name, keys, fields, tasks, function)


if __name__ == "__main__":
    main()
