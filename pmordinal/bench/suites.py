"""The suites: each is a paper's experiment, with its data sets, partitions, methods, and how a task runs.

``gpor``, ``plsor`` and ``loo`` share the nine sets of Chu and Ghahramani with their own twenty partitions and differ in
the methods; every ``chu/NAME.csv`` with a ``chu/NAME_partitions.csv`` is a set. ``ssgpor`` labels 50 or 100 random rows
and predicts the others, which its method sees; ``inductive`` labels a share of the training rows and predicts others,
which its method does not see. The paper's partitions are not published, ours are random. ``modl`` is repeated five-fold
cross-validation. The data do not come with the project.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from pmordinal import checks
from pmordinal.bench.base import FIELDS, KEY, Clock, Split, Task, result
from pmordinal.bench.methods import method
from pmordinal.data import tables

CHU = "diabetes pyrimidines triazines wisconsin machine autompg boston stocks abalone".split()
POOLED = {
    "boston": "chu/boston.csv",
    "stocks": "chu/stocks.csv",
    "abalone": "chu/abalone.csv",
    "bank": "large/bank32nh.csv.gz",
    "california": "large/california_housing.csv.gz",
    "census": "large/census_house16H.csv.gz",
}
LABELLED = (50, 100)
POOL = 2000  # largest number of unlabelled rows
# [SSGPOR, Table 2]: training rows. The sets with more than CAPPED have that many, so that a fit to all of their labels
# takes a minute; those of all rows are named by them, as bank-2000-5%.
TRAINING = dict(zip(POOLED, (300, 600, 1000, 2000, 3000, 4000), strict=True))
CAPPED = 1000
SHARES = (5, 10, 20, 40, 100)  # of the training rows that are labelled, in per cent
FEW = (5, 10)  # where all training rows of a large set are taken
TESTED = 5000  # largest number of test rows
GAUSSIANS = ("similar", "shifted")
OWN_BINS = dict.fromkeys(GAUSSIANS, (3,))
MODL_FILES = {
    "boston": "chu/boston.csv",
    "adult": "modl/adult.csv.gz",  # "?" is a label of its own
    "adult-imputed": "modl/adult.csv.gz",  # "?" is the most frequent label: the paper's levels
}
MODL_KINDS = ("univariate", "nb", "snb", "averaged")
MODL_METHODS = (
    *(f"modl-{kind}" for kind in MODL_KINDS),
    *(f"modl-{kind}-paper" for kind in MODL_KINDS[:3]),  # as in the paper
    "modl-snb-common",  # one partition of the target for all attributes
    "modl-averaged-common",
)
MODL_OPTIONS: dict[str, dict[str, Any]] = {
    "paper": {"smoothing": "paper", "selection": "paper"},
    "common": {"target": "common"},
}
MODL_SEED = 100  # not one of those whose folds the selection rule was chosen on


@dataclass(frozen=True)
class Suite:
    """An experiment of a paper.

    Attributes
    ----------
    name, paper : str
    sets : callable
        Takes the data folder and returns the sets that are there.
    methods : tuple of str
        Methods that run by default.
    bins : tuple of int
        Numbers of classes; zero where the target is continuous.
    partitions : int
        As in the paper.
    run : callable
        Takes a task and the data folder and returns its lines.
    check : callable
        Takes the name of a method and raises where there is none.
    """

    name: str
    paper: str
    sets: Callable[[Path], list[str]]
    methods: tuple[str, ...]
    bins: tuple[int, ...]
    partitions: int
    run: Callable[[Task, Path], list[dict[str, Any]]]
    check: Callable[[str], object] = method

    def tasks(
        self,
        folder: Path,
        sets: Sequence[str] | None = None,
        bins: Sequence[int] | None = None,
        partitions: int | None = None,
        methods: Sequence[str] | None = None,
    ) -> list[Task]:
        """Return the tasks ordered by partition: a run stopped early has a few partitions of every set and method."""
        there = self.sets(folder)
        if not there:
            raise FileNotFoundError(
                f"--data {folder} holds no set of the suite {self.name!r}: it needs chu/NAME.csv with "
                "chu/NAME_partitions.csv, large/… or modl/…"
            )
        for name in sets or ():
            checks.one_of("--sets", name, there)
        for number in bins or ():
            checks.one_of("--bins", number, list(self.bins))
        for chosen in methods or ():
            self.check(chosen)
        count = self.partitions if partitions is None else partitions
        return [
            Task(self.name, name, number, partition, chosen)
            for partition in range(1, checks.integer("--partitions", count, minimum=1) + 1)
            for name in sets or there
            for number in OWN_BINS.get(name) or bins or self.bins
            for chosen in methods or self.methods
        ]


def _chu_sets(folder: Path) -> list[str]:
    found = {p.name.removesuffix("_partitions.csv") for p in folder.glob("chu/*_partitions.csv")}
    return [*(s for s in CHU if s in found), *sorted(found - set(CHU))]


def _chu(task: Task, folder: Path) -> tuple[Split, np.ndarray]:
    """Return a published partition and the true classes of its test rows."""
    X = tables.read(folder / "chu" / f"{task.set}.csv").drop(columns="y").to_numpy(float)
    table = tables.read(folder / "chu" / f"{task.set}_partitions.csv")
    y = table[f"y{task.bins}"].to_numpy() - 1
    column = f"s{task.bins}_{task.partition}"
    if column not in table:
        raise ValueError(f"{task.set} has no partition {task.partition} of {task.bins} bins")
    train = table[column].to_numpy() == 1
    return _split(X[train], y[train], X[~train], y[~train], task)


def _split(
    X: np.ndarray, y: np.ndarray, Xnew: np.ndarray, truth: np.ndarray, task: Task
) -> tuple[Split, np.ndarray]:
    counts = np.bincount(truth, minlength=task.bins)
    return Split(X, y, task.bins, Xnew, task.partition, counts / truth.size), truth


def _pooled_sets(folder: Path) -> list[str]:
    files = [name for name, path in POOLED.items() if (folder / path).exists()]
    return [*GAUSSIANS, *(f"{name}-{labels}" for name in files for labels in LABELLED)]


def pooled(task: Task, folder: Path) -> tuple[Split, np.ndarray]:
    """Return random labelled rows and a pool of unlabelled ones, in classes of equal frequency."""
    if task.set in GAUSSIANS:
        X, y, Xnew, truth = gaussians(task.set, task.partition - 1)
        return _split(X, y, Xnew, truth, task)
    name, labels = task.set.rsplit("-", 1)
    X, y = _binned(folder, name, task.bins)
    rows = np.random.default_rng(task.partition - 1).permutation(len(X))
    mine, others = rows[: int(labels)], rows[int(labels) : int(labels) + POOL]
    return _split(X[mine], y[mine], X[others], y[others], task)


def _inductive_sets(folder: Path) -> list[str]:
    files = [name for name, path in POOLED.items() if (folder / path).exists()]
    large = [f"{name}-{TRAINING[name]}" for name in files if TRAINING[name] > CAPPED]
    return [
        *(f"{name}-{share}%" for name in files for share in SHARES),
        *(f"{name}-{share}%" for name in large for share in FEW),
    ]


def _inductive(task: Task, folder: Path) -> tuple[Split, np.ndarray]:
    """Return random training rows of which some have labels, and the test rows, which no method sees."""
    name, *size, share = task.set.removesuffix("%").split("-")
    X, y = _binned(folder, name, task.bins)
    rows = np.random.default_rng(task.partition - 1).permutation(len(X))
    n = TRAINING[name] if size else min(TRAINING[name], CAPPED)
    mine, pool, test = np.split(rows[: n + TESTED], [round(n * int(share) / 100), n])
    counts = np.bincount(y[pool], minlength=task.bins)
    proportions = counts / max(pool.size, 1)
    split = Split(X[mine], y[mine], task.bins, X[test], task.partition, proportions, X[pool])
    return split, y[test]


def _binned(folder: Path, name: str, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a set's attributes, and its target in classes of equal frequency."""
    table = tables.read(folder / POOLED[name])
    # ties, such as the zeros of bank, are split by row order
    target = table.pop("y").rank(method="first")
    y = np.ceil(bins * target.to_numpy() / len(table)).astype(int) - 1
    table = table.loc[:, ~table.columns.str.startswith("y_")]
    return pd.get_dummies(table, dtype=float).to_numpy(float), y


def gaussians(kind: str, seed: int, labelled: int = 10, unlabelled: int = 100) -> tuple:
    """Return three Gaussian classes in the plane, each with its own mean and covariance.

    In the similar set labelled and unlabelled rows are drawn alike. In the shifted one the labelled rows of every
    class lie 1 further along the order of the classes, with 0.4 of the standard deviation: the gaps between the
    unlabelled clouds are inside those between the labelled ones, but not in their middle. The paper does not give its
    Gaussians.
    """
    rng = np.random.default_rng(seed)
    means = np.array([[-3.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    roots = np.array(
        [[[0.8, 0.0], [0.3, 0.9]], [[0.7, 0.0], [-0.2, 0.8]], [[0.8, 0.0], [0.4, 0.6]]]
    )

    def draw(count: int, shift: float, size: float) -> np.ndarray:
        z = rng.normal(size=(3, count, 2)) @ roots.transpose(0, 2, 1)
        return (means[:, None] + size * z + [shift, 0.0]).reshape(-1, 2)

    shift, size = (1.0, 0.4) if kind == "shifted" else (0.0, 1.0)
    X, Xnew = draw(labelled, shift, size), draw(unlabelled, 0.0, 1.0)
    return X, np.repeat(np.arange(3), labelled), Xnew, np.repeat(np.arange(3), unlabelled)


def _run_chu(task: Task, folder: Path) -> list[dict[str, Any]]:
    return _scored(task, *_chu(task, folder))


def _run_pooled(task: Task, folder: Path) -> list[dict[str, Any]]:
    return _scored(task, *pooled(task, folder))


def _run_inductive(task: Task, folder: Path) -> list[dict[str, Any]]:
    return _scored(task, *_inductive(task, folder))


def _scored(task: Task, split: Split, truth: np.ndarray) -> list[dict[str, Any]]:
    predictions = method(task.method)(split)
    return [result(task, prediction, truth, split.y.size) for prediction in predictions]


def _run_modl(task: Task, folder: Path) -> list[dict[str, Any]]:
    """Return the score of an estimator on one fold and, for the univariate one, the level of every attribute."""
    from pmordinal.modl import RankRegressor, rank_predictors

    _, kind, *how = task.method.split("-")
    options: dict[str, Any] = MODL_OPTIONS[how[0]] if how else {}
    frame = tables.read(folder / MODL_FILES[task.set], labels=tables.MISSING)
    if task.set.endswith("-imputed"):
        frame = frame.mask(frame == "?").pipe(lambda known: known.fillna(known.mode().iloc[0]))
    y = frame.pop("y").to_numpy()
    X = frame.drop(columns="part", errors="ignore")
    repeat, k = divmod(task.partition - 1, 5)
    fold = np.random.default_rng(MODL_SEED + repeat).permutation(y.size) % 5
    train, test = fold != k, fold == k
    clock = Clock()
    with clock.running():
        model = RankRegressor(cast(Any, kind), **options).fit(X[train], y[train])
    line = dict.fromkeys(FIELDS, "") | {name: getattr(task, name) for name in KEY}
    line |= {"n_train": int(train.sum()), "seconds": clock.seconds, "cpu_seconds": clock.cpu}
    line |= {"converged": True, "nlrpd": model.nlrpd(X[test], y[test])}
    if task.method != "modl-univariate":
        return [line]
    ranking = rank_predictors(X[train], y[train], n_jobs=1, progressbar=False)
    attributes = [
        line
        | {"method": f"level of {name}", "nlrpd": "", "level": row.level}
        | {"chosen": f"{row.I} × {row.J}"}
        for name, row in ranking.iterrows()
    ]
    return [*attributes, line | {"level": ranking["level"].iloc[0]}]


def _modl_sets(folder: Path) -> list[str]:
    return [name for name, path in MODL_FILES.items() if (folder / path).exists()]


_GP = ("laplace", "ep", "ep:bound")
SUITES = {
    suite.name: suite
    for suite in (
        Suite("gpor", "Chu and Ghahramani (2005)", _chu_sets, _GP, (5, 10), 20, _run_chu),
        Suite(
            "plsor",
            "Srijith et al. (2012a)",
            _chu_sets,
            ("laplace", "ep", "plsor"),
            (5, 10),
            20,
            _run_chu,
        ),
        Suite(
            "loo",
            "Srijith et al. (2012b)",
            _chu_sets,
            ("laplace", "ep", "ep:loo", "sparse"),
            (5, 10),
            20,
            _run_chu,
        ),
        Suite("ssgpor", "Srijith et al. (2013)", _pooled_sets, ("ssgpor",), (5,), 20, _run_pooled),
        Suite(
            "inductive",
            "Srijith et al. (2013)",
            _inductive_sets,
            ("ssgpor",),
            (5,),
            10,
            _run_inductive,
        ),
        Suite(
            "modl",
            "Hue and Boullé (2007)",
            _modl_sets,
            MODL_METHODS,
            (0,),
            5,
            _run_modl,
            lambda name: checks.one_of("--engines", name, MODL_METHODS),
        ),
    )
}
