"""Warm starts: predicts an engine's solution at new parameters from earlier ones, and keeps results.

A sampler needs thousands of solutions, which are smooth functions of a few parameters. A Gaussian process fitted to a
hundred or more of them (kriging) predicts the next one to about three digits.

The last digits of a solution depend on where the engine started, and so on earlier solutions. A seed must give the
same draws whatever runs beside a chain, so each chain has its own memory.
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

MOST = 240  # largest number of solutions kept
BATCH = 40  # the process is fitted again after so many new solutions
RANGE = 3.0  # length-scale of the process, in standard deviations of the parameters
NUGGET = 1e-8  # added to the variance of one
LARGEST = 10_000  # larger solutions, in numbers, are not kept
MANY = 100  # with more parameters there is no prediction
FAR = 3.0  # no prediction if the nearest solution is farther away, in standard deviations
KEPT = 1024  # largest number of results kept: more than the steps of a trajectory
LONGEST = 8000  # results with more bytes of parameters are not kept
FIRST = 16  # a chain's first evaluations use no memory; up to so many chains are recognised
CHAINS = 64  # largest number of threads whose memories are kept
SELECTING = threading.Lock()


class Starts:
    """Earlier solutions of one problem, and a Gaussian process that predicts the next.

    Only solutions that were not well predicted are kept: the others would add nothing.

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
        """Return a start, and whether it is a prediction.

        Parameters
        ----------
        parameters : ndarray
            Transformed so that solutions are smooth functions of them.
        """
        process, last = self._process, self.last  # read once: other threads may replace them
        # a state is carried over to these parameters by the engine itself
        if last is not None and last.state is not None:
            return last, True
        if process is None or last is None:
            return last, False
        centre, scale, points, mean, weights = process
        away = points - (parameters - centre) / scale
        distances = np.einsum("ij,ij->i", away, away)
        if not distances.min() < FAR**2:
            return last, False
        return _unpack(mean + _covariances(distances) @ weights, last), True

    def add(self, parameters: np.ndarray, solution: Start, missed: bool) -> None:
        """Remember a solution; `missed` says whether its prediction was poor."""
        self.last = solution
        numbers = _pack(solution) if missed and parameters.size <= MANY else None
        if numbers is None or numbers.size > LARGEST:
            return
        found = self._found  # threads share it
        if found and found[-1][1].size != numbers.size:  # the sparse engine has another basis
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
    """Memory for one vector of labels: solutions to start from, and results by parameters.

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
        """Return the memory for these labels; it is emptied if they have changed."""
        if self._labels is not labels:
            if self._labels is not None and not np.array_equal(self._labels, labels):
                self.forget()
            self._labels = labels
        return self

    def forget(self) -> None:
        """Forget everything except the last solution."""
        self.starts, self.results = Starts(self.starts.last), {}

    def recall(self, key: bytes) -> Any:
        """Return the result for these parameters; None if it is not known."""
        return self.results.get(key)

    def keep(self, key: bytes, result: Any) -> None:
        """Keep a result; all are dropped once there are too many."""
        if len(key) <= LONGEST:
            if len(self.results) >= KEPT:
                self.results.clear()
            self.results[key] = result

    def predict(self, parameters: np.ndarray) -> tuple[Start | None, bool]:
        """Return a start, and whether it is a prediction."""
        return self.starts.predict(parameters)

    def add(self, parameters: np.ndarray, solution: Start, missed: bool) -> None:
        """Remember a solution; `missed` says whether its prediction was poor."""
        self.starts.add(parameters, solution, missed)


class Found:
    """What a problem remembers: its engine after `Engine.select`, and the solutions found so far.

    Copies and pickles keep only the engine, not the solutions.

    Parameters
    ----------
    engine : Engine, optional
        The engine after `Engine.select`; None if that was not called yet.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine
        self._memory = Memory()

    def selected(self, select: Callable[[], Engine]) -> Engine:
        """Return the engine after `Engine.select`, which is called now if it was not before."""
        with SELECTING:  # once for all chains that share the problem
            if self.engine is None:
                self.engine = select()
            return self.engine

    def solutions(self, labels: np.ndarray) -> Memory:
        """Return the memory that all users of the problem share, for these labels."""
        return self._memory.of(labels)

    def begin_from(self, start: Start | None) -> None:
        """Forget all solutions except this one, so that later results do not depend on them."""
        self._memory = Memory(start)

    def __reduce__(self):
        """Pickle and copy without the solutions."""
        return Found, (self.engine,)


class ChainMemory(Memory):
    """The memory of one chain of a sampler; it starts anew when the next chain begins.

    The first evaluations use no memory: their results depend on the parameters alone. A sampler may evaluate the starts
    of all chains before it runs the first. When the first start is asked for again, all points in between are taken as
    starts of other chains. At the start of a chain the memory is emptied.
    """

    def __init__(self) -> None:
        super().__init__()
        self.forget()

    def forget(self) -> None:
        """Forget everything."""
        self._begun: dict[bytes, Any] = {}  # results at the starts of chains
        self._begin(0)

    def _begin(self, count: int) -> None:
        self.starts, self.results, self._count = Starts(), {}, count

    def recall(self, key: bytes) -> Any:
        """Return the result for these parameters; None if it is not known."""
        result = self._begun.get(key)
        if result is None:
            return super().recall(key)
        if self._count <= FIRST and len(self._begun) < KEPT:
            self._begun |= self.results
        self._begin(1)
        return result

    def keep(self, key: bytes, result: Any) -> None:
        """Keep a result; the very first one is never dropped."""
        self._count += 1
        if self._count > 1:
            super().keep(key, result)
        elif len(key) <= LONGEST:
            self._begun[key] = result

    def predict(self, parameters: np.ndarray) -> tuple[Start | None, bool]:
        """Return a start, and whether it is a prediction."""
        return super().predict(parameters) if self._count >= FIRST else (None, False)

    def add(self, parameters: np.ndarray, solution: Start, missed: bool) -> None:
        """Remember a solution, except at the very first point, which may have been evaluated long before."""
        if self._count:
            super().add(parameters, solution, missed)


class Chains:
    """Memories of the chains that share a compiled function: one for each thread of this process."""

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
        """Pickle and copy without the memories."""
        return Chains, ()


def _covariances(distances: np.ndarray) -> np.ndarray:
    return np.exp(distances * (-0.5 / RANGE**2))


def _pack(start: Start) -> np.ndarray | None:
    """Return a start as one vector: α, or cavity means and log variances if there are any.

    None for a state of inducing rows, which the next run carries over by itself.
    """
    if start.state is not None:
        return None
    if start.cavity is None:
        return start.alpha
    return np.concatenate([start.cavity[0], np.log(start.cavity[1])])


def _unpack(numbers: np.ndarray, like: Start) -> Start:
    if like.cavity is None:
        return Start(numbers)
    n = numbers.size // 2
    return Start(like.alpha, (numbers[:n], np.exp(numbers[n:])))
