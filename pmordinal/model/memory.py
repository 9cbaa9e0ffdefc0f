"""Where an engine starts: its solution at new parameters, predicted from those that it has found.

A sampler asks for thousands of solutions, smooth functions of a few parameters. A Gaussian process through some
hundred of them (kriging) predicts the next one to three digits, where the last one has none.

What is found from a predicted start depends, in its last digits, on what was found before. So that a seed gives the
same draws again whatever runs beside a chain, each chain has a memory of its own.
"""

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

from pmordinal.engines import Engine
from pmordinal.linalg.workspace import Workspace
from pmordinal.posterior import Start

MOST = 240  # solutions kept
BATCH = 40  # new ones that are worth a new fit
RANGE = 3.0  # length-scale of the process, in standard deviations of the parameters
NUGGET = 1e-8  # what is added to a variance of one
LARGEST = 10_000  # numbers of a solution, above which it is too large to keep hundreds
MANY = 100  # parameters, above which there is nothing to predict from
FAR = 3.0  # distance to the nearest solution, in standard deviations, from which none is trusted
KEPT = 1024  # results, more than the steps of a trajectory
LONGEST = 8000  # bytes of parameters, above which results are too large to keep
FIRST = 16  # evaluations of a chain without memory, no fewer than the chains that may be told apart
CHAINS = 64  # threads whose memories are kept
SELECTING = threading.Lock()


class Starts:
    """Solutions of one problem, and the process through them.

    Only those that a prediction had missed are kept: where it is good, nothing is to be learned.

    Parameters
    ----------
    last : Start, optional
        The solution to start from until there are others.
    """

    def __init__(self, last: Start | None = None) -> None:
        self.last = last
        self._found: list[tuple[np.ndarray, np.ndarray]] = []  # parameters and solution
        self._waiting = 0
        self._process: tuple[np.ndarray, ...] | None = None

    def predict(self, parameters: np.ndarray) -> tuple[Start | None, bool]:
        """Return where to start, and whether that is a prediction.

        Parameters
        ----------
        parameters : ndarray
            On a scale on which solutions are smooth.
        """
        process, last = self._process, self.last  # threads may replace them
        if process is None or last is None:
            return last, False
        centre, scale, points, mean, weights = process
        away = points - (parameters - centre) / scale
        distances = np.einsum("ij,ij->i", away, away)
        if not distances.min() < FAR**2:
            return last, False
        return _unpack(mean + _covariances(distances) @ weights, last), True

    def add(self, parameters: np.ndarray, solution: Start, missed: bool) -> None:
        """Remember a solution; whether its prediction had missed it."""
        self.last = solution
        numbers = _pack(solution) if missed and parameters.size <= MANY else None
        if numbers is None or numbers.size > LARGEST:
            return
        found = self._found  # chains in threads share it
        if found and found[-1][1].size != numbers.size:  # another basis
            found = self._found = []
            self._process = None
        found.append((parameters, numbers))
        self._waiting += 1
        if self._waiting >= BATCH:
            self._fit(found)

    def _fit(self, found: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self._waiting = 0
        del found[:-MOST]
        points, solutions = map(np.array, zip(*found, strict=True))
        centre, scale = points.mean(axis=0), points.std(axis=0)
        scale[scale == 0.0] = 1.0
        points = (points - centre) / scale
        K = _covariances(((points[:, None] - points) ** 2).sum(axis=-1))
        K.flat[:: len(K) + 1] += NUGGET
        mean = solutions.mean(axis=0)
        _, weights, info = lapack.dposv(K, solutions - mean, lower=1)
        usable = info == 0 and np.isfinite(weights).all()
        self._process = (centre, scale, points, mean, weights) if usable else None


class Memory:
    """What was found for one vector of labels: solutions to start from, and results by their parameters.

    Parameters
    ----------
    last : Start, optional
        The solution to start from until there are others.
    """

    def __init__(self, last: Start | None = None) -> None:
        self.starts = Starts(last)
        self.workspace = Workspace()
        self.results: dict[bytes, Any] = {}
        self._labels: np.ndarray | None = None

    def of(self, labels: np.ndarray) -> "Memory":
        """Return the memory for these labels; what was found for others is forgotten."""
        if self._labels is not labels:
            if self._labels is not None and not np.array_equal(self._labels, labels):
                self.forget()
            self._labels = labels
        return self

    def forget(self) -> None:
        """Keep nothing but the last solution."""
        self.starts, self.results = Starts(self.starts.last), {}

    def recall(self, key: bytes) -> Any:
        """Return the result for these parameters, None if there is none."""
        return self.results.get(key)

    def keep(self, key: bytes, result: Any) -> None:
        """Keep a result for a while."""
        if len(key) <= LONGEST:
            if len(self.results) >= KEPT:
                self.results.clear()
            self.results[key] = result

    def predict(self, parameters: np.ndarray) -> tuple[Start | None, bool]:
        """Return where to start, and whether that is a prediction."""
        return self.starts.predict(parameters)

    def add(self, parameters: np.ndarray, solution: Start, missed: bool) -> None:
        """Remember a solution; whether its prediction had missed it."""
        self.starts.add(parameters, solution, missed)


class Found:
    """What a problem remembers: its engine with what that has selected, and the solutions.

    A copy and a pickle take along the engine alone: in another process nothing has been found yet.

    Parameters
    ----------
    engine : Engine, optional
        With what it has selected; None where nothing is selected yet.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine
        self._memory = Memory()

    def selected(self, select: Callable[[], Engine]) -> Engine:
        """Return the engine with what it has selected, which it does now if it has not before."""
        with SELECTING:  # chains that share the problem share what is selected
            if self.engine is None:
                self.engine = select()
            return self.engine

    def solutions(self, labels: np.ndarray) -> Memory:
        """Return what anybody has found for these labels."""
        return self._memory.of(labels)

    def begin_from(self, start: Start | None) -> None:
        """Forget the solutions but for this one, so that what comes next does not depend on them."""
        self._memory = Memory(start)

    def __reduce__(self):
        """Leave the solutions behind."""
        return Found, (self.engine,)


class ChainMemory(Memory):
    """The memory of one chain of a sampler, and in its place that of the next one.

    The first evaluations use no memory: their results are functions of the parameters alone. A sampler may try out the
    starts of all chains before. The first of them is then asked for again, and all that was asked for in between is
    where other chains begin. Where one begins, nothing found before counts.
    """

    def __init__(self) -> None:
        super().__init__()
        self.forget()

    def forget(self) -> None:
        """Keep nothing."""
        self._begun: dict[bytes, Any] = {}  # results at the starts of chains
        self._begin(0)

    def _begin(self, count: int) -> None:
        self.starts, self.results, self._count = Starts(), {}, count

    def recall(self, key: bytes) -> Any:
        """Return the result for these parameters, None if there is none."""
        result = self._begun.get(key)
        if result is None:
            return super().recall(key)
        if self._count <= FIRST and len(self._begun) < KEPT:
            self._begun |= self.results
        self._begin(1)
        return result

    def keep(self, key: bytes, result: Any) -> None:
        """Keep a result, the very first one for good."""
        self._count += 1
        if self._count > 1:
            super().keep(key, result)
        elif len(key) <= LONGEST:
            self._begun[key] = result

    def predict(self, parameters: np.ndarray) -> tuple[Start | None, bool]:
        """Return where to start, and whether that is a prediction."""
        return super().predict(parameters) if self._count >= FIRST else (None, False)

    def add(self, parameters: np.ndarray, solution: Start, missed: bool) -> None:
        """Remember a solution, but for the very first, which may have been found long before."""
        if self._count:
            super().add(parameters, solution, missed)


class Chains:
    """Memories of the chains that share a function: of threads each its own, and none from another process."""

    def __init__(self) -> None:
        self._memories: dict[tuple[int, int], ChainMemory] = {}

    def mine(self) -> ChainMemory:
        """Return the memory of this thread."""
        key = os.getpid(), threading.get_native_id()
        memory = self._memories.get(key)
        if memory is None:
            memory = self._memories[key] = ChainMemory()
            for old in list(self._memories)[:-CHAINS]:
                self._memories.pop(old, None)
        return memory

    def __reduce__(self):
        """Leave the memories behind."""
        return Chains, ()


def _covariances(distances: np.ndarray) -> np.ndarray:
    return np.exp(distances * (-0.5 / RANGE**2))


def _pack(start: Start) -> np.ndarray:
    """Return the numbers of a start in one vector: α, or cavities if there are any, variances by their logarithms."""
    if start.cavity is None:
        return start.alpha
    return np.concatenate([start.cavity[0], np.log(start.cavity[1])])


def _unpack(numbers: np.ndarray, like: Start) -> Start:
    if like.cavity is None:
        return Start(numbers)
    n = numbers.size // 2
    return Start(like.alpha, (numbers[:n], np.exp(numbers[n:])))
