"""Semi-supervised against supervised EP, as in section 4 of the SSGPOR paper (Srijith et al. 2013).

    python benchmarks/ssgpor.py synthetic                      # Table 1: 20 seeds, similar and shifted
    python benchmarks/ssgpor.py transductive --data ../shared/data --sets boston,stocks --labels 50,100

Results are appended to ``--out`` row by row, and rows that are there are not run again. The real sets do not come with
the project. Targets are cut into five bins of equal frequency; the paper's partitions are not published, ours are
random. The paper does not give the Gaussians of its synthetic sets either: see `synthetic`.
"""

import argparse
import csv
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import joblib
import numpy as np
import pandas as pd
from scipy.stats import ttest_rel

FILES = {
    "boston": "chu/boston.csv",
    "stocks": "chu/stocks.csv",
    "abalone": "chu/abalone.csv",
    "bank": "large/bank32nh.csv.gz",
    "california": "large/california_housing.csv.gz",
    "census": "large/census_house16H.csv.gz",
}
# [SSGPOR, Table 4]: zero-one EPGPOR, SSGPOR, absolute EPGPOR, SSGPOR
TABLE4 = {
    ("boston", 50): (0.3860, 0.3816, 0.4656, 0.4498),
    ("boston", 100): (0.3590, 0.3538, 0.4192, 0.4039),
    ("stocks", 50): (0.2732, 0.2503, 0.2894, 0.2669),
    ("stocks", 100): (0.2079, 0.1977, 0.2165, 0.2059),
    ("abalone", 50): (0.5764, 0.5643, 0.8834, 0.7947),
    ("abalone", 100): (0.5453, 0.5407, 0.7781, 0.7378),
    ("bank", 50): (0.6626, 0.6571, 1.1657, 1.0287),
    ("bank", 100): (0.6130, 0.6091, 0.9358, 0.8756),
    ("california", 50): (0.5253, 0.5141, 0.6998, 0.6649),
    ("california", 100): (0.4976, 0.4934, 0.6331, 0.6201),
    ("census", 50): (0.5837, 0.5823, 0.9028, 0.8566),
    ("census", 100): (0.5553, 0.5540, 0.8215, 0.7822),
}
TABLE1 = {"similar": (0.0456, 0.0267), "shifted": (0.1489, 0.0733)}
FIELDS = [
    *("set", "labels", "seed", "method", "pool", "zero_one", "zero_one_ss", "zero_one_q"),
    *("absolute", "absolute_ss", "absolute_q", "nlp", "nlp_ss", "switches", "evaluations"),
    *("seconds", "seconds_ss", "converged"),
]


def synthetic(kind: str, seed: int, labelled: int = 10, unlabelled: int = 100):
    """Three Gaussians in the plane, each with a mean and a covariance of its own.

    In the similar set labelled and unlabelled rows are drawn alike. In the shifted one the labelled rows of every
    class lie 1 further along the order of the classes, with 0.4 of the standard deviation: the gaps between the
    unlabelled clouds are inside those between the labelled ones, but not in their middle.
    """
    rng = np.random.default_rng(seed)
    means = np.array([[-3.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    roots = np.array(
        [[[0.8, 0.0], [0.3, 0.9]], [[0.7, 0.0], [-0.2, 0.8]], [[0.8, 0.0], [0.4, 0.6]]]
    )

    def draw(count, shift, size):
        z = rng.normal(size=(3, count, 2)) @ roots.transpose(0, 2, 1)
        return (means[:, None] + size * z + [shift, 0.0]).reshape(-1, 2)

    shift, size = (1.0, 0.4) if kind == "shifted" else (0.0, 1.0)
    X, Xu = draw(labelled, shift, size), draw(unlabelled, 0.0, 1.0)
    return X, np.repeat([1, 2, 3], labelled), Xu, np.repeat([1, 2, 3], unlabelled)


def real(folder: Path, name: str, labels: int, seed: int, pool: int):
    """Random labelled rows and a random pool of the others, equal-frequency bins of the target."""
    table = pd.read_csv(folder / FILES[name])
    target = table.pop("y").rank(method="first")  # ties, as in Bank's zeros, are cut by their order
    y = np.ceil(5 * target / len(table)).astype(int).to_numpy()
    X = pd.get_dummies(table.drop(columns=[c for c in table if c.startswith("y_")]), dtype=float)
    X = X.to_numpy(float)
    rows = np.random.default_rng(seed).permutation(len(X))
    mine, others = rows[:labels], rows[labels : labels + pool]
    return X[mine], y[mine], X[others], y[others]


def run(data, name: str, labels: int, seed: int, method: str, pool: int) -> dict:
    import pmordinal as pmo
    from pmordinal.errors import ConvergenceWarning

    if name in TABLE1:
        X, y, Xu, truth = synthetic(name, seed)
    else:
        X, y, Xu, truth = real(data, name, labels, seed, pool)
    objective = "bound" if "bound" in method else None
    both = np.concatenate([X, Xu])
    y_all = np.concatenate([y.astype(float), np.full(len(Xu), np.nan)])
    results, seconds = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        categories = range(1, truth.max() + 1)
        model = pmo.gp_model(both, y_all, engine="ep", categories=categories)
        gamma = np.bincount(truth, minlength=len(categories) + 1)[1:] / truth.size
        for semisupervised in (False, True):
            began = time.perf_counter()
            options = {"semisupervised": True} if semisupervised else {}
            if semisupervised and "gamma" in method:
                options["proportions"] = gamma
            elif semisupervised:
                warnings.filterwarnings("ignore", "no row is labelled", UserWarning)
            results.append(
                pmo.fit(model, objective, priors="flat" not in method, progressbar=False, **options)
            )
            seconds.append(time.perf_counter() - began)
    fit = results[1]
    row = {
        "set": name,
        "labels": len(y),
        "seed": seed,
        "method": method,
        "pool": len(Xu),
        "zero_one_q": np.mean(fit.unlabeled_codes + 1 != truth),
        "absolute_q": np.mean(np.abs(fit.unlabeled_codes + 1 - truth)),
        "switches": fit.path["switches"].sum(),
        "evaluations": fit.status.evaluations,
        "seconds": seconds[0],
        "seconds_ss": seconds[1],
        "converged": fit.status.converged,
    }
    for end, result in zip(("", "_ss"), results, strict=True):
        probs = result.predict(Xu).values
        guess = probs.argmax(1) + 1
        row["zero_one" + end] = np.mean(guess != truth)
        row["absolute" + end] = np.mean(np.abs(guess - truth))
        row["nlp" + end] = -np.mean(np.log(probs[np.arange(truth.size), truth - 1]))
    return row


def report(table: pd.DataFrame) -> None:
    """Print means, one-sided paired t-tests (Table 3) and the paper's numbers."""
    head = f"{'method':10}{'set':12}{'n':>4}{'runs':>5} | {'EP':>7}{'SS':>8}{'t':>7}{'p':>8}"
    print(f"{head}{'paper EP':>10}{'SS':>8} | q labels")
    for (method, name, labels), part in table.groupby(["method", "set", "labels"], sort=False):
        paper = TABLE4.get((name, labels)) or 2 * TABLE1.get(name, ())
        for i, error in enumerate(("zero_one", "absolute")):
            ours, theirs = part[error], part[error + "_ss"]
            same = len(part) < 2 or np.allclose(ours, theirs)
            test = (np.nan, np.nan) if same else ttest_rel(ours, theirs, alternative="greater")
            print(
                f"{method:10}{name:12}{labels:4}{len(part):5} | {ours.mean():7.4f} {theirs.mean():7.4f}"
                f" {test[0]:6.2f} {test[1]:7.4f}   {paper[2 * i]:7.4f} {paper[2 * i + 1]:7.4f} | "
                f"{part[error + '_q'].mean():.4f}  {error}"
            )
        print(
            f"{'':31} | {part['nlp'].mean():7.4f} {part['nlp_ss'].mean():7.4f}   NLP; "
            f"{part['seconds'].mean():.1f} s and {part['seconds_ss'].mean():.1f} s, "
            f"{part['evaluations'].mean():.0f} evaluations, "
            f"{part['switches'].mean():.0f} switches, {part['converged'].mean():.0%} converged"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("setting", choices=["synthetic", "transductive"])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", default=",".join(FILES))
    parser.add_argument("--labels", default="50,100")
    parser.add_argument(
        "--methods",
        default="map",
        help="map, flat (no priors), flat-bound; -gamma: true proportions",
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--pool", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("ssgpor.csv"))
    parser.add_argument("--report", action="store_true", help="only print what --out holds")
    options = parser.parse_args()
    if options.setting == "synthetic":
        sets, sizes = list(TABLE1), [30]
    else:
        sets, sizes = options.sets.split(","), [int(k) for k in options.labels.split(",")]
        if not (options.data.is_dir() or options.report):
            raise SystemExit(f"no data in {options.data}: this benchmark needs the paper's sets")
    done = set()
    if options.out.exists():
        with options.out.open() as file:
            done = {tuple(row[k] for k in FIELDS[:4]) for row in csv.DictReader(file)}
    tasks = [
        (s, n, seed, method)
        for seed in range(options.seeds)  # outermost: a stopped run has fewer seeds of everything
        for s in sets
        for n in sizes
        for method in options.methods.split(",")
        if (s, str(n), str(seed), method) not in done and not options.report
    ]
    parallel = joblib.Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    calls = (joblib.delayed(run)(options.data, *task, options.pool) for task in tasks)
    with options.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if file.tell() == 0:
            writer.writeheader()
        for row in parallel(calls):
            writer.writerow(row)
            file.flush()
    report(pd.read_csv(options.out))


if __name__ == "__main__":
    main()
