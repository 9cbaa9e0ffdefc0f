"""Data classes of the benchmark: a task, the rows of its partition, a prediction, a line of results."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pmordinal.diagnostics.scoring import pointwise_means
from pmordinal.results.decisions import decide

KEY = ("suite", "set", "bins", "partition", "method")
SCORES = (
    *("zero_one", "absolute", "zero_one_median", "absolute_median"),
    *("nlp", "rps", "calibration", "nlrpd", "level"),
)
FIELDS = (
    *KEY,
    *("n_train", *SCORES),
    *("evaluations", "seconds", "cpu_seconds", "converged", "chosen", "error"),
)


@dataclass(frozen=True)
class Task:
    """One method on one partition (training and test rows) of one data set."""

    suite: str
    set: str
    bins: int
    partition: int
    method: str

    @property
    def key(self) -> tuple[str, ...]:
        """The fields that identify the task in the file of results."""
        return tuple(str(getattr(self, name)) for name in KEY)

    def __str__(self) -> str:
        """Return the task as one readable line."""
        return (
            f"{self.suite} {self.set}, {self.bins} bins, partition {self.partition}, {self.method}"
        )


@dataclass(frozen=True)
class Split:
    """The part of a partition that a method may see: no labels of the new rows.

    Attributes
    ----------
    X : ndarray, shape (n, d)
    y : ndarray of int, shape (n,)
        Class codes from zero.
    n_classes : int
    Xnew : ndarray, shape (m, d)
    seed : int
        Seed of a method's random draws.
    proportions : ndarray, shape (n_classes,)
        True class proportions of the unlabelled rows, for semi-supervised methods that are given them.
    pool : ndarray, shape (u, d), optional
        Unlabelled rows to learn from; the new rows where absent (transduction).
    """

    X: np.ndarray
    y: np.ndarray
    n_classes: int
    Xnew: np.ndarray
    seed: int
    proportions: np.ndarray = field(repr=False)
    pool: np.ndarray | None = field(default=None, repr=False)


@dataclass
class Clock:
    """Wall-clock and CPU seconds, added up over several blocks of code."""

    seconds: float = 0.0
    cpu: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Add the time that the ``with`` block takes."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.seconds += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu


@dataclass(frozen=True)
class Prediction:
    """Class probabilities of the new rows, and the time they took.

    Attributes
    ----------
    method : str
    probs : ndarray, shape (m, n_classes)
    clock : Clock
    evaluations : int, optional
        Evaluations of the objective.
    converged : bool
    chosen : str
        What the method chose itself, such as weights.
    is_hard : bool
        Whether `probs` are zeros and ones that stand for labels: then only errors are scored.
    """

    method: str
    probs: np.ndarray
    clock: Clock
    evaluations: int | None = None
    converged: bool = True
    chosen: str = ""
    is_hard: bool = False


def result(task: Task, prediction: Prediction, truth: np.ndarray, n_train: int) -> dict[str, Any]:
    """Return the line of results of a prediction: errors of both decision rules, and scores.

    ``zero_one`` (per cent) and ``absolute`` are those of the most probable class, those with ``_median`` of the median
    class. ``calibration`` is the mean gap between predicted and observed frequency of y ≤ k over ten bins of equal
    width, all k together, weighted by their counts (`pmordinal.scores`).
    """
    means = pointwise_means(prediction.probs, truth)
    median = decide(prediction.probs, "median")
    line = dict.fromkeys(FIELDS, "") | {name: getattr(task, name) for name in KEY}
    line |= {
        "method": prediction.method,
        "n_train": n_train,
        "zero_one": 100.0 * means["zero_one"],
        "absolute": means["absolute"],
        "zero_one_median": 100.0 * float(np.mean(median != truth)),
        "absolute_median": float(np.mean(np.abs(median - truth))),
        "evaluations": "" if prediction.evaluations is None else prediction.evaluations,
        "seconds": prediction.clock.seconds,
        "cpu_seconds": prediction.clock.cpu,
        "converged": prediction.converged,
        "chosen": prediction.chosen,
    }
    if not prediction.is_hard:
        line |= {name: means[name] for name in ("nlp", "rps", "calibration")}
    return line


def failure(task: Task, error: Exception) -> dict[str, Any]:
    """Return the line of results of a task that failed."""
    line = dict.fromkeys(FIELDS, "") | {name: getattr(task, name) for name in KEY}
    return line | {"error": " ".join(f"{type(error).__name__}: {error}".split())}
