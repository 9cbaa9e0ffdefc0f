"""The same problems by pmordinal and by the packages a user would pick instead: time and test NLP, in ratios.

    OPENBLAS_NUM_THREADS=1 python benchmarks/peers.py                    # n = 200, 500, 1000
    OPENBLAS_NUM_THREADS=1 python benchmarks/peers.py --sizes 200 --methods ep,laplace,sklearn-gpc

Labels drawn from a smooth function of four attributes, five classes, 1000 test rows. All methods run one after the
other in one process, CPU time of fit and prediction, the best of several runs; the ratio to the first method is what
survives on another machine. Packages that are not installed are skipped.
"""

import argparse

import numpy as np

from pmordinal.bench.base import Split
from pmordinal.bench.methods import method, missing_package

METHODS = "ep,laplace,plsor,sparse,linear,best,gpr,sklearn-gpc,mord,gpflow"


def make_split(n, m=1000, d=4, r=5, noise=0.3, seed=0):
    """Return a problem and the true classes of its test rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + m, d))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 0] * X[:, 1] + 0.3 * X[:, 2]
    f += noise * rng.normal(size=n + m)
    y = np.searchsorted(np.quantile(f, np.arange(1, r) / r), f)
    return Split(X[:n], y[:n], r, X[n:], 0, np.bincount(y[n:], minlength=r) / m), y[n:]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="200,500,1000")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    names = []
    for name in options.methods.split(","):
        if package := missing_package(name):
            print(f"{name}: skipped, {package} is not installed")
        else:
            names.append(name)
            method(name)(make_split(60, 10)[0])  # imports and compilation do not count
    print(f"{'n':>5} {'method':12}{'CPU s':>8}{'ratio':>8}{'NLP':>9}{'ratio':>8}{'errors':>9}")
    for n in map(int, options.sizes.split(",")):
        split, truth = make_split(n)
        first = None
        for name in names:
            found = [method(name)(split)[-1] for _ in range(options.repeats)]
            seconds = min(p.clock.cpu for p in found)
            nlp = -np.log(found[-1].probs[np.arange(truth.size), truth]).mean()
            wrong = np.mean(found[-1].probs.argmax(1) != truth)
            first = first or (seconds, nlp)
            ratios = seconds / first[0], nlp / first[1]
            print(
                f"{n:5} {name:12}{seconds:8.2f}{ratios[0]:8.2f}{nlp:9.4f}{ratios[1]:8.3f}{wrong:9.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
