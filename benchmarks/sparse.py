"""Time, memory and test scores of the sparse engine on a synthetic set (d = 4, r = 5), CPU seconds of one thread.

    OPENBLAS_NUM_THREADS=1 python benchmarks/sparse.py scaling --sizes 1000,10000,100000
    OPENBLAS_NUM_THREADS=1 python benchmarks/sparse.py fit --sizes 10000
    OPENBLAS_NUM_THREADS=1 python benchmarks/sparse.py ep --sizes 2000
    OPENBLAS_NUM_THREADS=1 python benchmarks/sparse.py refresh --sizes 500

`scaling` is one selection of the basis and one criterion with its gradient; `fit` three rounds of a fit; `ep` sets the
sparse fit beside expectation propagation on all rows; `refresh` sets sweeps over the sites of the basis beside none.
"""

import argparse
import time
import tracemalloc
import warnings

import numpy as np
import pymc as pm

import pmordinal as pmo
from pmordinal.errors import ConvergenceWarning
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood

TEST = 5000


def synthetic(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels: a smooth function of four attributes, noise 0.3, five equal classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    f = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.3 * X[:, 3]
    return X, np.searchsorted([-0.84, -0.26, 0.26, 0.84], f + 0.3 * rng.normal(size=n))


def scaling(sizes: list[int], s: int) -> None:
    print(f"{'n':>7} {'select s':>9} {'objective s':>11} {'slope':>6} {'peak / (n s doubles)':>21}")
    before = None
    for n in sizes:
        X, y = synthetic(n)
        gram = Gram(lower(pm.gp.cov.ExpQuad(4, ls=2.0)), X, [2.0])
        likelihood = OrdinalLikelihood([-0.84, -0.26, 0.26, 0.84], 0.3)
        pmo.SparseADF(n_basis=2)(Gram(gram.kernel, X[:50], [2.0]), y[:50], likelihood)  # compiles
        tracemalloc.start()
        began = time.process_time()
        engine = pmo.SparseADF(n_basis=s).select(gram, y, likelihood)
        chosen = time.process_time()
        engine(gram, y, likelihood).validation_gradient()
        ended = time.process_time()
        peak = tracemalloc.get_traced_memory()[1] / (8 * n * s)
        tracemalloc.stop()
        slope = ""
        if before is not None:
            slope = f"{(np.log(ended - began) - before[1]) / np.log(n / before[0]):.2f}"
        before = n, np.log(ended - began)
        print(
            f"{n:7} {chosen - began:9.2f} {ended - chosen:11.2f} {slope:>6} {peak:21.2f}",
            flush=True,
        )


def timed_fit(X, y, engine) -> tuple[pmo.OrdinalFit, float]:
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = pmo.fit(pmo.gp_model(X, y, "expquad", engine=engine), progressbar=False)
    return fit, time.process_time() - began


def line(name: str, fit: pmo.OrdinalFit, seconds: float) -> None:
    X, y = synthetic(TEST, seed=1)
    probs = fit.predict(X).values
    nlp = -np.log(probs[np.arange(TEST), y]).mean()
    error = np.mean(probs.argmax(1) != y)
    print(
        f"{name:28} n {fit.posterior.y.size:6} s {fit.posterior.support.size:5}  {seconds:7.1f} s  "
        f"{fit.status.evaluations:4} evaluations  test NLP {nlp:.4f}  zero-one {100 * error:.2f} %",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["scaling", "fit", "ep", "refresh"])
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--basis", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    sizes = [int(n) for n in options.sizes.split(",")]
    if options.what == "scaling":
        scaling(sizes, options.basis)
        return
    for n in sizes:
        if options.what == "refresh":
            for seed, sweeps in ((seed, k) for seed in range(options.seeds) for k in (0, 1, 3)):
                X, y = synthetic(n, seed=10 + seed)
                engine = pmo.SparseADF(n_basis=0.2, refresh=sweeps, seed=seed)
                line(f"sparse, seed {seed}, {sweeps} sweeps", *timed_fit(X, y, engine))
            continue
        X, y = synthetic(n)
        engine = pmo.SparseADF(n_basis=options.basis, rounds=options.rounds)
        line(f"sparse, {options.rounds} rounds", *timed_fit(X, y, engine))
        if options.what == "ep":
            line("ep", *timed_fit(X, y, "ep"))


if __name__ == "__main__":
    main()
