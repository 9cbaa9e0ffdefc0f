"""What sums of terms cost, as ratios to a single squared exponential covariance with ARD.

    python benchmarks/terms.py                   # n = 500, 1000, 2000
    python benchmarks/terms.py --n 1000

One EP evaluation: the matrix, the evidence and its gradient in all hyperparameters. One BLAS thread, CPU time, the best
of several runs that take turns: the ratio is what survives on another machine.
"""

import argparse
import time

import numpy as np
import pymc as pm
from threadpoolctl import threadpool_limits

from pmordinal.engines import EP
from pmordinal.engines.objectives import OBJECTIVES
from pmordinal.gram import Anova, Gram, Levels, lower
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.linalg.workspace import Workspace

D, R, GROUPS = 4, 5, 30
GROUP = {"active_dims": [D]}
COLUMNS = {"active_dims": list(range(D))}


def make_data(n, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, D)), rng.integers(0, GROUPS, n)])
    f = np.sin(X[:, 0]) + 0.5 * X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + noise * rng.normal(size=n)
    thresholds = np.quantile(f, np.arange(1, R) / R)
    return X, np.searchsorted(thresholds, f), OrdinalLikelihood(thresholds, noise)


def covariances(X):
    """Return the covariances by name: the first is what the others are compared with."""
    c, ls = pm.gp.cov, np.full(D, 1.5)
    smooth = np.float64(0.8) * c.ExpQuad(D + 1, ls=ls, **COLUMNS)
    linear = np.float64(0.1) * c.Linear(D + 1, c=0.0, **COLUMNS)
    group = np.float64(0.1) * Levels(D + 1, **GROUP)
    slope = np.float64(0.05) * c.Linear(D + 1, c=0.0, active_dims=[0]) * Levels(D + 1, **GROUP)
    by_group = np.float64(0.1) * c.ExpQuad(D + 1, ls=1.5, active_dims=[1]) * Levels(D + 1, **GROUP)
    rough = np.float64(0.1) * c.Matern12(D + 1, ls=ls, **COLUMNS)
    terms = D + D * (D - 1) // 2
    return {
        "ARD": np.float64(0.9) * c.ExpQuad(D + 1, ls=ls, **COLUMNS),
        "linear + smooth": linear + smooth,
        "linear + smooth + group": linear + smooth + group,
        "  … + slope by group": linear + smooth + group + slope,
        "  … + smooth by group": linear + smooth + group + by_group,
        "linear + smooth + rough": linear + smooth + rough,
        "ANOVA": Anova(D + 1, np.full(terms, 0.1), ls, X, **COLUMNS),
    }


def evaluations(n, repeats):
    X, y, likelihood = make_data(n)
    engine, runs = EP(tol=1e-5), {}
    for name, cov_func in covariances(X).items():
        kernel = lower(cov_func)
        values = [parameter.data for parameter in kernel.parameters]
        start = engine(Gram(kernel, X, [1.05 * value for value in values]), y, likelihood).start
        workspace = Workspace()

        def matrix(kernel=kernel, values=values, workspace=workspace):
            with workspace:
                gram = Gram(kernel, X, values)
                gram.pullback(gram.matrix)

        def evaluate(kernel=kernel, values=values, start=start, workspace=workspace):
            with workspace:
                OBJECTIVES["evidence"](engine(Gram(kernel, X, values), y, likelihood, start))

        runs[name] = matrix, evaluate
    taken = {name: [np.inf, np.inf] for name in runs}
    for _ in range(repeats):
        for name, functions in runs.items():
            for i, function in enumerate(functions):
                began = time.process_time()
                function()
                taken[name][i] = min(taken[name][i], time.process_time() - began)
    print(f"\nn = {n:<24}{'matrix ms':>12}{'all ms':>12}{'ratio':>8}")
    whole = taken["ARD"][1]
    for name, (matrix_seconds, all_seconds) in taken.items():
        print(
            f"{name:<28}{1e3 * matrix_seconds:>12.1f}{1e3 * all_seconds:>12.1f}{all_seconds / whole:>8.2f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    with threadpool_limits(1):
        for n in arguments.n:
            evaluations(n, arguments.repeats)
