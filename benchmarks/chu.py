"""Test errors on the nine sets of Chu and Ghahramani (2005), their own partitions, beside the papers'.

    python benchmarks/chu.py --data ../shared/data/chu --sets diabetes,machine --methods ep,ep:loo,plsor

A method is an engine, or engine:objective; ``-flat`` behind it leaves the priors out. Results are appended
to ``--out`` row by row, and rows that are there are not run again. The data do not come with the project.
"""

import argparse
import csv
import time
import warnings
from itertools import product
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

# mean ± sd of the zero-one error in per cent, and of the absolute error, by bins and set
PAPERS = {
    "MAP-GPOR": {
        5: """diabetes 54.23 13.78 .66 .14|pyrimidines 39.79 7.21 .43 .09|triazines 52.91 2.15 .69 .02
        |wisconsin 65.00 4.71 1.01 .09|machine 16.53 3.56 .19 .04|autompg 23.78 1.85 .24 .02
        |boston 24.88 2.02 .26 .02|stocks 11.99 2.34 .12 .02|abalone 21.50 .22 .23 .00""",
        10: """diabetes 83.46 5.73 2.14 .33|pyrimidines 55.42 8.01 .88 .18|triazines 63.72 4.34 1.20 .07
        |wisconsin 78.52 3.58 2.14 .18|machine 33.81 3.91 .48 .07|autompg 43.96 2.81 .50 .03
        |boston 41.53 2.77 .49 .03|stocks 19.90 1.72 .20 .02|abalone 42.60 .91 .51 .01""",
    },
    "EP-GPOR": {
        5: """diabetes 54.23 13.78 .67 .14|pyrimidines 36.46 6.47 .39 .07|triazines 52.62 2.66 .69 .03
        |wisconsin 65.16 4.65 1.01 .09|machine 16.78 3.88 .19 .04|autompg 23.75 1.74 .24 .02
        |boston 24.49 1.85 .26 .02|stocks 12.00 2.06 .12 .02|abalone 21.56 .36 .23 .01""",
        10: """diabetes 83.08 5.91 2.14 .33|pyrimidines 54.38 7.70 .83 .13|triazines 64.01 3.78 1.20 .07
        |wisconsin 78.52 3.51 2.14 .18|machine 33.73 3.64 .47 .08|autompg 43.88 2.60 .50 .03
        |boston 41.26 2.86 .49 .03|stocks 19.44 1.91 .20 .02|abalone 42.27 .46 .51 .01""",
    },
    "LOO-GPOR": {
        5: """diabetes 49.62 13.3 .65 .18|triazines 54.36 1.50 .70 .02|wisconsin 64.06 2.53 1.12 .07
        |machine 16.61 4.25 .19 .05|autompg 25.78 2.65 .27 .03|boston 24.85 2.90 .26 .03
        |stocks 10.60 1.69 .11 .02|abalone 21.85 .29 .24 .00""",
        10: """diabetes 71.54 10.9 1.20 .31|triazines 72.21 1.55 1.35 .04|wisconsin 75.94 2.45 2.74 .14
        |machine 34.24 3.19 .50 .07|autompg 44.30 2.26 .50 .03|boston 41.04 2.25 .50 .04
        |stocks 18.74 2.38 .19 .02|abalone 42.80 .49 .53 .01""",
    },
    "sparse GPOR": {
        5: """diabetes 52.69 12.30 .72 .23|triazines 56.74 4.09 .75 .05|wisconsin 64.06 4.67 1.10 .12
        |machine 16.61 4.06 .19 .06|autompg 25.44 2.13 .26 .02|boston 26.75 3.04 .29 .03
        |stocks 13.69 1.67 .14 .02|abalone 22.41 .42 .24 .01""",
        10: """diabetes 74.23 14.18 1.57 .92|triazines 71.63 3.17 1.38 .12|wisconsin 76.80 3.73 2.58 .21
        |machine 33.73 5.84 .46 .07|autompg 46.67 2.26 .58 .04|boston 42.48 3.29 .55 .05
        |stocks 22.46 1.97 .23 .02|abalone 43.91 .81 .54 .01""",
    },
    "PLSOR": {
        5: """diabetes 48.46 11.2 .62 .16|pyrimidines 39.37 9.41 .46 .19|triazines 54.42 3.43 .74 .063
        |wisconsin 65.70 3.23 1.24 .10|machine 18.39 3.45 .21 .05|autompg 25.76 2.19 .26 .02
        |boston 24.59 2.57 .26 .02|stocks 10.70 1.66 .11 .02|abalone 22.05 .30 .24 .00""",
        10: """diabetes 76.92 9.98 1.50 .37|pyrimidines 55.63 8.47 .89 .18|triazines 69.88 4.97 1.37 .20
        |wisconsin 75.94 1.86 2.94 .13|machine 35.17 3.64 .53 .08|autompg 46.35 2.48 .56 .04
        |boston 41.99 2.82 .51 .04|stocks 18.17 1.79 .19 .02|abalone 44.24 .68 .55 .01""",
    },
}
COLUMN = {
    "sparse": "sparse GPOR",
    "laplace": "MAP-GPOR",
    "ep": "EP-GPOR",
    "ep:bound": "EP-GPOR",
    "ep:loo": "LOO-GPOR",
    "plsor": "PLSOR",
}
SETS = "diabetes pyrimidines triazines wisconsin machine autompg boston stocks abalone".split()
FIELDS = [
    "set",
    "bins",
    "partition",
    "method",
    "zero_one",
    "absolute",
    "nlp",
    "evaluations",
    "seconds",
    "converged",
]


def run(folder: Path, name: str, bins: int, partition: int, method: str, starts: int = 1) -> dict:
    import pmordinal as pmo
    from pmordinal.errors import ConvergenceWarning

    X = pd.read_csv(folder / f"{name}.csv").drop(columns="y").to_numpy(float)
    split = pd.read_csv(folder / f"{name}_partitions.csv")
    y = split[f"y{bins}"].to_numpy()
    train = split[f"s{bins}_{partition}"].to_numpy() == 1
    engine, _, objective = method.removesuffix("-flat").partition(":")
    began = time.perf_counter()
    with joblib.parallel_config(n_jobs=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        categories = np.arange(1, bins + 1)
        model = pmo.gp_model(
            X[train], y[train], engine=engine, objective=objective or None, categories=categories
        )
        fit = pmo.fit(
            model,
            priors=not method.endswith("-flat"),
            starts=starts,
            seed=partition,
            progressbar=False,
        )
    seconds = time.perf_counter() - began
    probs = fit.predict(X[~train]).values
    guess = categories[probs.argmax(1)]
    truth = y[~train]
    return {
        "set": name,
        "bins": bins,
        "partition": partition,
        "method": method,
        "zero_one": 100 * np.mean(guess != truth),
        "absolute": np.mean(np.abs(guess - truth)),
        "nlp": -np.mean(np.log(probs[np.arange(truth.size), truth - 1])),
        "evaluations": fit.status.evaluations,
        "seconds": seconds,
        "converged": fit.status.converged,
    }


def published(method: str, bins: int) -> dict[str, list[float]]:
    rows = PAPERS[COLUMN[method.removesuffix("-flat")]][bins].replace("\n", " ").split("|")
    return {row.split()[0]: [float(v) for v in row.split()[1:]] for row in rows if row.strip()}


def report(table: pd.DataFrame) -> None:
    """Print ours beside theirs, and the difference in units of their standard deviation."""
    print(
        f"{'method':14}{'bins':>4} {'set':12}{'runs':>4}  {'zero-one %':>28}  {'absolute':>28}  {'NLP':>6} {'s':>6}"
    )
    for (method, bins), part in table.groupby(["method", "bins"], sort=False):
        theirs = published(method, bins)
        for name in [s for s in SETS if s in set(part["set"])]:
            rows = part[part["set"] == name]
            line = f"{method:14}{bins:4} {name:12}{len(rows):4}"
            for i, key in enumerate(("zero_one", "absolute")):
                ours = f"{rows[key].mean():6.2f} ± {rows[key].std():5.2f}"
                if name in theirs:
                    mean, sd = theirs[name][2 * i : 2 * i + 2]
                    gap = (rows[key].mean() - mean) / max(sd, 0.005 if i else 0.2)
                    ours += f" ({mean:6.2f} {gap:+5.1f})"
                line += f"  {ours:>28}"
            print(f"{line}  {rows['nlp'].mean():6.3f} {rows['seconds'].mean():6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data/chu"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--bins", default="5,10")
    parser.add_argument("--methods", default="laplace,ep,ep:loo,plsor")
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--starts", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("chu.csv"))
    parser.add_argument("--report", action="store_true", help="only print what --out holds")
    options = parser.parse_args()
    if not options.data.is_dir():
        raise SystemExit(f"no data in {options.data}: this benchmark needs the sets of the paper")
    done = set()
    if options.out.exists():
        with options.out.open() as file:
            done = {tuple(row[k] for k in FIELDS[:4]) for row in csv.DictReader(file)}
    tasks = [
        task
        for task in product(
            options.sets.split(","),
            options.bins.split(","),
            map(str, range(1, options.partitions + 1)),
            options.methods.split(","),
        )
        if task not in done and not options.report
    ]
    parallel = joblib.Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    calls = (
        joblib.delayed(run)(options.data, s, int(b), int(p), m, options.starts)
        for s, b, p, m in tasks
    )
    with options.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for row in parallel(calls):
            writer.writerow(row)
            file.flush()
    report(pd.read_csv(options.out))


if __name__ == "__main__":
    main()
