"""Time, memory and accuracy of the engine with inducing rows, as rows and inducing rows grow.

Usage: python benchmarks/scale.py [--rows 1000 10000 100000] [--inducing 100 200] [--ep 2000] [--passes] [--csv FILE]

Labels are drawn from a smooth function of four attributes with known noise, so that the mean negative log probability
(NLP) of new labels can be compared with that of the truth, and with full expectation propagation where that runs. CPU
seconds are those of one thread; set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.
"""

import argparse
import resource
import time

import numpy as np
import pandas as pd
from scipy.stats import norm

import pmordinal as pmo
from pmordinal.engines.inducing.blocks import blocks_of, over_blocks
from pmordinal.engines.inducing.passes import site_pass
from pmordinal.engines.inducing.pieces import State
from pmordinal.inference.density import Density

NOISE, CLASSES, COLUMNS = 0.3, 5, 4


def latent(X):
    """Return a smooth function of the attributes."""
    wave = np.sin(2.0 * X[:, 0]) + 0.8 * np.cos(1.5 * X[:, 1] + X[:, 2])
    return wave + 0.5 * X[:, 3]


def sample(n, seed=0):
    """Return attributes, labels, and the probabilities that the truth gives to each class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, COLUMNS))
    f = latent(X)
    edges = np.linspace(-1.2, 1.2, CLASSES - 1)
    y = np.searchsorted(edges, f + NOISE * rng.normal(size=n))
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    return X, y, np.diff(norm.cdf((ends - f[:, None]) / NOISE), axis=1)


def nlp(probs, y):
    """Return the mean negative log probability of labels."""
    return float(-np.log(np.maximum(probs[np.arange(y.size), y], 1e-300)).mean())


def peak():
    """Return the largest memory of the process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def one_fit(n, engine, test):
    """Fit and predict; return a row of the table."""
    X, y, _ = sample(n)
    before, began = peak(), time.process_time()
    fit = pmo.fit(pmo.gp_model(X, y, ard=True, engine=engine), progressbar=False)
    seconds = time.process_time() - began
    probs = np.asarray(fit.predict(test[0]))
    return {
        "rows": n,
        "engine": engine.name,
        "m": fit.status.notes.get("n_inducing", n),
        "cpu_s": round(seconds, 1),
        "evaluations": fit.status.evaluations,
        "peak_gib": round(peak() - before, 2),
        "nlp": round(nlp(probs, test[1]), 4),
        "truth": round(nlp(test[2], test[1]), 4),
        "noise": round(float(fit.noise), 3),
        "evidence": round(fit.log_evidence, 2),
        "residual": round(fit.status.notes.get("residual_over_noise", 0.0), 4),
        "stages": "; ".join(fit.status.stages),
    }


def one_pass(n, m):
    """Return the rows a second of one pass, and of a gradient, at the truth."""
    X, y, _ = sample(n)
    engine = pmo.Inducing(m, tol=1e-2)
    model = pmo.gp_model(X, y, lengthscale=2.0, noise=NOISE, engine=engine)
    problem = Density(model).problem
    values = [np.float64(2.0)]
    post = problem.posterior(values, np.linspace(-1.2, 1.2, CLASSES - 1), NOISE, problem.y)
    state = State(**post.shared.as_dict(), w=post.weights, C=post.state.C, exact=1e-6)
    blocks = blocks_of(post.gram.X, post.y, post.likelihood.rows)
    began = time.process_time()
    over_blocks(site_pass, blocks, state)
    passed = time.process_time()
    post.evidence_gradient()
    return {
        "rows": n,
        "m": m,
        "pass_rows_per_s": round(n / (passed - began)),
        "gradient_rows_per_s": round(n / (time.process_time() - passed)),
        "pass_gflops": round(3e-9 * n * m * m / (passed - began), 1),
    }


def slope(x, y):
    """Return the slope of log y over log x."""
    return float(np.polyfit(np.log(x), np.log(np.maximum(y, 1e-3)), 1)[0])


def main():
    """Run the table, and print slopes of the time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--inducing", type=int, nargs="+", default=[100, 200])
    parser.add_argument("--sites", default="ep", choices=["ep", "laplace"])
    parser.add_argument("--ep", type=int, default=2000, help="largest n for full EP")
    parser.add_argument("--passes", action="store_true", help="time single passes only")
    parser.add_argument("--csv", help="write rows, engine, m, seconds and scores to this file")
    options = parser.parse_args()
    pd.set_option("display.width", 200, "display.max_columns", 20, "display.max_colwidth", 120)
    if options.passes:
        rows = [one_pass(n, m) for n in options.rows for m in options.inducing]
        print(pd.DataFrame(rows).to_string(index=False))
        return
    test = sample(20_000, seed=1)
    one_fit(300, pmo.Inducing(20), test)  # compile
    found = []
    for n in options.rows:
        engines = [pmo.Inducing(m, sites=options.sites) for m in options.inducing if m <= n]
        for engine in [*engines, *([pmo.EP()] if n <= options.ep else [])]:
            found.append(one_fit(n, engine, test))
            print(found[-1], flush=True)
    table = pd.DataFrame(found)
    if options.csv:
        columns = ["rows", "engine", "m", "cpu_s", "nlp", "evidence", "peak_gib"]
        table[columns].to_csv(options.csv, index=False)
    print(table.drop(columns="stages").to_string(index=False))
    many = table[(table.engine == "inducing") & (table.rows >= 10_000)]
    for m, of_m in many.groupby("m"):
        if len(of_m) > 1:
            print(f"m = {m}: time grows like n^{slope(of_m.rows, of_m.cpu_s):.2f}")
    for n, of_n in many.groupby("rows"):
        if len(of_n) > 1:
            print(f"n = {n}: time grows like m^{slope(of_n.m, of_n.cpu_s):.2f}")


if __name__ == "__main__":
    main()
