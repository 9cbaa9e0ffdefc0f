"""What the engines cost, in Cholesky factorisations of the same order, and what whole fits take.

    python benchmarks/engines.py                 # n = 200, 500, 1000
    python benchmarks/engines.py --n 2000 --no-fits

One BLAS thread, CPU time, the best of several runs: the ratio is what survives on another machine.
Kernel and gradient are included in every figure; "loo" is the exact gradient on top of the posterior.
"""

import argparse
import time
import warnings

import numpy as np
import pymc as pm
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

import pmordinal as pmo
from pmordinal.engines import ENGINES, EP, Laplace
from pmordinal.engines.objectives import OBJECTIVES
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.linalg.workspace import Workspace

D, R = 4, 5


def make_data(n, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    f = np.sin(X[:, 0]) + 0.5 * X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + noise * rng.normal(size=n)
    thresholds = np.quantile(f, np.arange(1, R) / R)
    return X, np.searchsorted(thresholds, f), OrdinalLikelihood(thresholds, noise)


def best(function, repeats):
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


def cholesky_seconds(K, repeats):
    B = np.asfortranarray(np.eye(len(K)) + 5 * K)
    work = B.copy(order="F")

    def copy():
        work[...] = B

    def factorise():
        work[...] = B
        lapack.dpotrf(work, lower=1, clean=0, overwrite_a=1)

    return best(factorise, 3 * repeats) - best(copy, 3 * repeats)


def evaluations(n, repeats):
    """Print one row for each engine: cold, warm (5 % away), and the gradient of LOO on top."""
    X, y, likelihood = make_data(n)
    ls = np.full(D, 1.5)
    kernel = lower(pm.gp.cov.ExpQuad(D, ls=ls))
    near = Gram(kernel, X, [1.05 * ls])
    C = cholesky_seconds(near.matrix, repeats)
    workspace = Workspace()
    print(f"\nn = {n}: one Cholesky factorisation takes {1e3 * C:.2f} ms")
    print(f"{'engine':<14}{'cold':>8}{'warm':>8}{'+ loo':>8}   sweeps cold, warm")
    for engine in (Laplace(), EP(), EP(tol=1e-5)):
        start = engine(near, y, likelihood).start

        def run(objective="evidence", start=None, engine=engine):
            with workspace:  # as a fit does
                posterior = engine(Gram(kernel, X, [ls]), y, likelihood, start)
                OBJECTIVES[objective](posterior)
            return posterior

        cold = best(run, repeats) / C
        warm = best(lambda start=start: run(start=start), repeats) / C
        with workspace:
            posterior = run("loo")
            loo = best(posterior.loo_gradient, repeats) / C
        sweeps = [run(start=s).status.factorizations for s in (None, start)]
        name = engine.name + (f" {engine.tol:.0e}" if engine.name == "ep" else "")
        print(f"{name:<14}{cold:8.1f}{warm:8.1f}{loo:8.1f}   {sweeps[0]}, {sweeps[1]}")


def fits(n):
    """Print seconds and evaluations of whole fits, everything but imports included."""
    X, y, _ = make_data(n)
    C = cholesky_seconds(np.corrcoef(X @ X.T), 5)
    print(f"\nfits, n = {n}, d = {D}, ARD, r = {R}")
    print(f"{'engine':<10}{'objective':<11}{'wall s':>8}{'CPU s':>8}{'evals':>7}{'C/eval':>8}")
    for name in ENGINES:
        for objective in ENGINES[name].objectives:
            if objective == "bound":
                continue
            cpu, wall = time.process_time(), time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = pmo.gp_model(X, y, ard=True, engine=name)
                fit = pmo.fit(model, objective=objective, progressbar=False)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            count = fit.status.evaluations
            row = f"{wall:8.2f}{cpu:8.2f}{count:7d}{cpu / count / C:8.1f}"
            print(f"{name:<10}{objective:<11}{row}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, nargs="+", default=[200, 500, 1000])
    parser.add_argument("--fit-n", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--no-fits", action="store_true")
    parser.add_argument("--threads", type=int, default=1, help="BLAS threads of the fits")
    arguments = parser.parse_args()
    with threadpool_limits(1):
        for n in arguments.n:
            evaluations(n, arguments.repeats)
    if not arguments.no_fits:
        with threadpool_limits(arguments.threads):
            for n in arguments.fit_n:
                fits(n)


if __name__ == "__main__":
    main()
