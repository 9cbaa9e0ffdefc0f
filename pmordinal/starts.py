"""Where an engine starts: its solution at new parameters, predicted from those that it has found.

A sampler asks for thousands of solutions, smooth functions of a few parameters. A Gaussian process through some
hundred of them (kriging) predicts the next one to three digits, where the last one has none.
"""

import numpy as np
from scipy.linalg import lapack

from pmordinal.posterior import Start

MOST = 240  # solutions kept
BATCH = 40  # new ones that are worth a new fit
RANGE = 3.0  # length-scale of the process, in standard deviations of the parameters
NUGGET = 1e-8  # what is added to a variance of one
LARGEST = 10_000  # numbers of a solution, above which it is too large to keep hundreds
MANY = 100  # parameters, above which there is nothing to predict from
FAR = 3.0  # distance to the nearest solution, in standard deviations, from which none is trusted


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
