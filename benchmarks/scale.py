"""Time, memory and accuracy of the engine with inducing rows, as rows and inducing rows grow.

Usage: python benchmarks/scale.py [--rows 1000 10000 ...] [--inducing 100 200 ...] [--ep 2000] [--passes] [--csv FILE]

Labels are drawn from a smooth function of four attributes with known noise, so that the mean negative log probability
(NLP) of new labels can be compared with that of the truth, and with full expectation propagation where that runs. CPU
seconds are those of one thread; set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.

Each case runs in a process of its own, after a small fit that compiles. `peak_gib` is the largest resident memory of
that process during the fit, less what it held when the data had been made: compiled code and data are not counted.
The whole table takes some twenty minutes.
`--rows 20000000` works, too, given 1 GiB for the data and some hours. A file given by `--csv` is added to, so that
cases can be run one by one; slopes are those of all cases in it.
"""

import argparse
import itertools
import multiprocessing
import os
import resource
import time
from pathlib import Path

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
    """Return the largest resident memory of the process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def resident():
    """Return the resident memory of the process now, in GiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**30


def one_fit(n, engine):
    """Fit and predict; return a row of the table."""
    X, y, _ = sample(n)
    before, began = resident(), time.process_time()
    fit = pmo.fit(pmo.gp_model(X, y, ard=True, engine=engine), progressbar=False)
    seconds, most = time.process_time() - began, peak()
    X_new, y_new, truth = sample(20_000, seed=1)
    return {
        "rows": n,
        "engine": engine.name,
        "m": fit.status.notes.get("n_inducing", n),
        "cpu_s": round(seconds, 1),
        "evaluations": fit.status.evaluations,
        "data_gib": round((X.nbytes + y.nbytes) / 2**30, 3),
        "peak_gib": round(most - before, 2),
        "nlp": round(nlp(np.asarray(fit.predict(X_new)), y_new), 4),
        "truth": round(nlp(truth, y_new), 4),
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
        "pass_rows_per_s": round(n / (passed - began)),
        "gradient_rows_per_s": round(n / (time.process_time() - passed)),
        "pass_gflops": round(3e-9 * n * m * m / (passed - began), 1),
    }


def case(n, m, sites, whole):
    """Return a row of the table: a whole fit, and single passes of at most 100,000 rows; EP for m = None."""
    engine = pmo.EP() if m is None else pmo.Inducing(m, sites=sites)
    found = {"rows": n, "engine": engine.name, "m": n if m is None else m}
    if whole:
        X, y, _ = sample(300)
        pmo.fit(
            pmo.gp_model(X, y, ard=True, engine=engine if m is None else pmo.Inducing(20)),
            progressbar=False,
        )
        found |= one_fit(n, engine)
    return found if m is None else found | one_pass(min(n, 100_000), m)


def in_a_child(*arguments):
    """Return `case(*arguments)` of a process of its own, so that its peak of memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(case, arguments)


def slope(x, y):
    """Return the slope of log y over log x."""
    return float(np.polyfit(np.log(x), np.log(np.maximum(y, 1e-3)), 1)[0])


def print_slopes(table):
    """Print how the time grows with n and with m."""
    many = table[(table.engine == "inducing") & (table.rows >= 10_000)]
    for m, of_m in many.groupby("m"):
        of_m = of_m.sort_values("rows")
        if len(of_m) > 1:
            print(f"m = {m}: time grows like n^{slope(of_m.rows, of_m.cpu_s):.2f} in all")
        for (_, a), (_, b) in itertools.pairwise(of_m.iterrows()):
            pair = slope([a.rows, b.rows], [a.cpu_s, b.cpu_s])
            print(f"    from {a.rows} to {b.rows}: {b.cpu_s / a.cpu_s:.1f} times, n^{pair:.2f}")
    for n, of_n in many.groupby("rows"):
        if len(of_n) > 1:
            print(f"n = {n}: time grows like m^{slope(of_n.m, of_n.cpu_s):.2f}")


def print_against_ep(table):
    """Print time, NLP and evidence in relation to full EP, where that runs."""
    for _, full in table[table.engine == "ep"].iterrows():
        for _, row in table[(table.engine == "inducing") & (table.rows == full.rows)].iterrows():
            print(
                f"n = {row.rows}, m = {row.m}: {row.cpu_s / full.cpu_s:.2f} of the time of EP, "
                f"NLP {row.nlp - full.nlp:+.4f}, log evidence {row.evidence - full.evidence:+.2f}"
            )


def main():
    """Run the table, print slopes of the time and what is lost against full EP."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    rows = [1000, 2000, 10_000, 20_000, 100_000, 1_000_000]
    parser.add_argument("--rows", type=int, nargs="+", default=rows)
    parser.add_argument("--inducing", type=int, nargs="*", default=[100, 200, 500])
    parser.add_argument("--sites", default="ep", choices=["ep", "laplace"])
    parser.add_argument("--ep", type=int, default=2000, help="largest n for full EP")
    parser.add_argument("--passes", action="store_true", help="time single passes only")
    parser.add_argument("--csv", help="add the rows to this file")
    options = parser.parse_args()
    pd.set_option("display.width", 250, "display.max_columns", 30)
    found = []
    for n in options.rows:
        full = [None] if n <= options.ep and not options.passes else []
        for m in [*(m for m in options.inducing if m <= n), *full]:
            found.append(in_a_child(n, m, options.sites, not options.passes))
            print(found[-1], flush=True)
            if options.csv:
                path = Path(options.csv)
                before = pd.read_csv(path) if path.exists() else None
                pd.concat([before, pd.DataFrame(found[-1:])]).to_csv(path, index=False)
    table = pd.read_csv(options.csv) if options.csv else pd.DataFrame(found)
    print(table.drop(columns="stages", errors="ignore").to_string(index=False))
    if "cpu_s" in table:
        print_slopes(table)
        print_against_ep(table)


if __name__ == "__main__":
    main()
