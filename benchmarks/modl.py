"""Numbers of MODL: speed, optimality, detection rates, Adult, averaging, and Khiops beside them.

Run ``python benchmarks/modl.py`` for everything that takes seconds, or name sections:
``python benchmarks/modl.py speed gaps noise blocks adult averaging synthetic compile khiops``.
The data are read from ``../shared/data`` (or ``$PMORDINAL_DATA``); sections that need them are
skipped where the folder is missing, and so is Khiops where it is not installed. The paper's tables of test scores
and levels are ``pmordinal bench --suite modl``.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from pmordinal.modl import (
    RankRegressor,
    averaged_log_score,
    fit_grid,
    rank_predictors,
    sample_grids,
)

DATA = Path(os.environ.get("PMORDINAL_DATA", Path(__file__).parents[2] / "shared" / "data"))


def synthetic_pair(n, rng):
    """Draw the heteroscedastic set of [HB2007, section 5.1]."""
    x = rng.uniform(0, np.pi, n)
    variance = 0.01 + 0.25 * (1 - np.sin(2.5 * x)) ** 2
    return x, rng.normal(np.sin(2.5 * x) * np.sin(1.5 * x), np.sqrt(variance))


def block_pair(n, noise, rng):
    """Draw two diagonal blocks with a share of uniform noise."""
    x = rng.random(n)
    y = 0.5 * rng.random(n) + 0.5 * (x > 0.5)
    k = rng.random(n) < noise
    x[k], y[k] = rng.random(k.sum()), rng.random(k.sum())
    return x, y


def cpu(function, repeats):
    """Return the best process time of several runs and the last result."""
    best, result = np.inf, None
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        best = min(best, time.process_time() - start)
    return best, result


def needs(*files):
    missing = [f for f in files if not (DATA / f).exists()]
    if missing:
        print(f"  skipped: {', '.join(missing)} not found under {DATA}")
    return not missing


def boston():
    frame = pd.read_csv(DATA / "chu" / "boston.csv")
    return frame.drop(columns="y"), frame["y"].to_numpy()


def adult():
    # "?" is a label of its own; the paper's levels are those of the most frequent label in its place
    frame = pd.read_csv(DATA / "modl" / "adult.csv.gz", keep_default_na=False)
    return frame.drop(columns=["part", "y"]), frame["y"].to_numpy()


def section_speed():
    fit_grid(*synthetic_pair(300, np.random.default_rng(0)))
    for n, target, repeats in (
        (10**3, 0.05, 15),
        (10**4, 0.2, 7),
        (10**5, 1.0, 3),
        (10**6, 6.0, 1),
    ):
        x, y = synthetic_pair(n, np.random.default_rng(1))
        seconds, grid = cpu(lambda x=x, y=y: fit_grid(x, y), repeats)
        print(
            f"  N = {n:>8}: {seconds:7.3f} CPU s (target {target}), {grid.I} × {grid.J}, "
            f"cost {grid.cost:.1f}"
        )


def section_compile():
    code = (
        "import time, numpy as np; t = time.process_time();"
        "from pmordinal.modl import fit_grid, sample_grids; a = time.process_time();"
        "x = np.arange(300.0) % 97; fit_grid(x, x); b = time.process_time();"
        "fit_grid(x, x, categorical=True); c = time.process_time();"
        "sample_grids(x, x, draws=2, chains=1, n_jobs=1, progressbar=False);"
        "d = time.process_time();"
        "from pmordinal.modl import RankRegressor;"
        "RankRegressor().fit(x[:, None], x); e = time.process_time();"
        "print(f'  import {a-t:.2f}, numeric {b-a:.2f}, categorical {c-b:.2f}, chain {d-c:.2f}, "
        "regressor {e-d:.2f}, sum without import {e-a:.2f} CPU s')"
    )
    with tempfile.TemporaryDirectory() as cache:
        for state in ("first call (target 15)", "cached"):
            print(f"  {state}:")
            subprocess.run(
                [sys.executable, "-c", code],
                check=True,
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
            )


def section_gaps():
    """Gap to the best of 200 starts, all Boston predictors."""
    if not needs("chu/boston.csv"):
        return
    X, y = boston()
    gaps = []
    for name in X:
        many = fit_grid(X[name], y, starts=200, seed=99).cost
        few = [fit_grid(X[name], y, seed=s).cost for s in range(5)]
        gaps.append(np.mean(few) - min(many, *few))
    print(f"  Boston: mean gap {np.mean(gaps):.3f} nats (target 0.5), largest {np.max(gaps):.3f}")


def section_noise():
    rng = np.random.default_rng(2)
    for n, sets, target in ((32, 4000, 0.01), (128, 4000, 0.0035), (1024, 2000, 0.0001)):
        found = sum(not fit_grid(rng.random(n), rng.random(n)).is_null for _ in range(sets))
        print(
            f"  pure noise, N = {n:>4}: {found} of {sets} ({found / sets:.4%}; target ≤ {target:.2%})"
        )


def section_blocks():
    rng = np.random.default_rng(3)
    for noise, n, sets in (
        (0, 16, 400), (0, 32, 200), (0.4, 128, 100), (0.6, 256, 100), (0.8, 1024, 100), (0.8, 2048, 100)
    ):  # fmt: skip
        found = np.mean([not fit_grid(*block_pair(n, noise, rng)).is_null for _ in range(sets)])
        print(f"  blocks, noise {noise:.1f}, N = {n:>4}: found in {found:.1%} of {sets}")


def folds(n):
    fold = np.random.default_rng(0).permutation(n) % 5
    for k in range(5):
        yield fold != k, fold == k


def section_adult():
    if not needs("modl/adult.csv.gz"):
        return
    X, y = adult()
    seconds, ranking = cpu(lambda: rank_predictors(X, y, n_jobs=1, progressbar=False), 2)
    print(f"  {X.shape[1]} predictors, {len(y)} rows: {seconds:.2f} CPU s (target 10)")
    train, _ = next(folds(len(y)))
    fold = rank_predictors(X[train], y[train], n_jobs=1, progressbar=False)
    print("  level                  all rows   training fold")
    for name in ranking.index:
        print(f"  {name:20}{ranking.loc[name, 'level']:10.5f}{fold.loc[name, 'level']:12.5f}")


def section_averaging():
    """One grid against the posterior average over grids, held-out NLRPD."""
    rows = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        for n in (100, 400, 1600):
            rows.append(
                (f"synthetic, N = {n}", *synthetic_pair(n, rng), *synthetic_pair(2000, rng))
            )
    if needs("chu/boston.csv"):
        X, y = boston()
        for name in ("LSTAT", "RM", "CRIM"):
            x = X[name].to_numpy()
            rows += [(f"Boston {name}", x[a], y[a], x[b], y[b]) for a, b in folds(len(y))]
    table = {}
    for name, x, y, x_new, y_new in rows:
        grid = fit_grid(x, y)
        single = -np.log(grid.rank_density()[grid.part_of(x_new), grid.interval_of(y_new)]).mean()
        tree = sample_grids(x, y, draws=500, chains=2, pointwise=False, progressbar=False)
        table.setdefault(name, []).append((single, -averaged_log_score(tree, x_new, y_new).mean()))
    for name, pairs in table.items():
        single, average = np.mean(pairs, axis=0)
        better = np.mean([b < a for a, b in pairs])
        print(
            f"  {name:22} NLRPD: one grid {single:.3f}, average over grids {average:.3f}, "
            f"better in {better:.0%} of {len(pairs)}"
        )


def section_synthetic():
    """Section 5.1: size of the grid at N = 384, and NLRPD against the training size."""
    rng = np.random.default_rng(4)
    shapes = np.array(
        [(g.I, g.J) for g in (fit_grid(*synthetic_pair(384, rng)) for _ in range(30))]
    )
    print(f"  N = 384: mean size {shapes.mean(0)[0]:.1f} × {shapes.mean(0)[1]:.1f} (paper 7 × 5)")
    for n in (16, 64, 128, 384, 1024, 4096):
        scores = []
        for _ in range(10):
            x, y = synthetic_pair(n, rng)
            x_new, y_new = synthetic_pair(2000, rng)
            model = RankRegressor("univariate").fit(x[:, None], y)
            scores.append(model.nlrpd(x_new[:, None], y_new))
        print(f"  N = {n:>5}: NLRPD of the grid {np.mean(scores):.3f} (true density: about −0.945)")


def section_khiops():
    """Khiops on the same pair, in CPU seconds of its processes."""
    python = os.environ.get("KHIOPS_PYTHON", sys.executable)
    found = subprocess.run([python, "-c", "import khiops"], capture_output=True, check=False)
    if found.returncode:
        print("  skipped: Khiops is not installed (pip install khiops, or set KHIOPS_PYTHON)")
        return
    fit_grid(*synthetic_pair(300, np.random.default_rng(0)))
    code = (
        "import sys, resource, pandas as pd\n"
        "from khiops.sklearn import KhiopsRegressor\n"
        "d = pd.read_csv(sys.argv[1])\n"
        "def used():\n"
        "    r = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]\n"
        "    return sum(q.ru_utime + q.ru_stime for q in r)\n"
        "a = used()\n"
        "KhiopsRegressor(n_trees=0).fit(d[['x']], d['y'])\n"
        "print(used() - a)\n"
    )
    # Khiops looks for its own scripts on the path
    environment = {**os.environ, "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"}
    for n in (10**3, 10**4, 10**5):
        x, y = synthetic_pair(n, np.random.default_rng(1))
        seconds, _ = cpu(lambda x=x, y=y: fit_grid(x, y), 3)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pair.csv"
            pd.DataFrame({"x": x, "y": y}).to_csv(path, index=False)
            run = subprocess.run(
                [python, "-c", code, str(path)], capture_output=True, text=True, check=False,
                timeout=1800, env=environment,
            )  # fmt: skip
        if run.returncode:
            print(f"  N = {n}: Khiops failed: {run.stderr.strip().splitlines()[-1]}")
            continue
        theirs = float(run.stdout.split()[-1])
        print(
            f"  N = {n:>7}: ours {seconds:.3f}, Khiops {theirs:.1f} CPU s, ratio {theirs / seconds:.0f}"
        )


SECTIONS = {
    name.removeprefix("section_"): function
    for name, function in list(globals().items())
    if name.startswith("section_")
}


def main(names):
    unknown = sorted(set(names) - set(SECTIONS))
    if unknown:
        raise SystemExit(f"unknown sections {unknown}: choose from {', '.join(SECTIONS)}")
    for name in names or SECTIONS:
        print(name, flush=True)
        SECTIONS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
