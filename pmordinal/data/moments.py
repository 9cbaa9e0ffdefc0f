"""Means and standard deviations of columns, from blocks of rows, in memory or spread over a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ROWS = 20_000  # rows of a block


@dataclass(frozen=True, eq=False)
class Moments:
    """Of the columns of a block, in units of their largest entry, so that no square over- or underflows.

    Attributes
    ----------
    n : int
    largest, mean, squares : ndarray, shape (d,)
        Largest absolute value; mean and sum of squared deviations in its units.
    """

    n: int
    largest: np.ndarray
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray) -> "Moments":
        """Return the moments of rows in memory."""
        largest = np.abs(matrix).max(axis=0)
        # a constant column has a standard deviation of exactly zero
        relative = matrix / np.where(largest == 0, 1.0, largest)
        mean = relative.mean(axis=0)
        relative -= mean
        return cls(len(matrix), largest, mean, (relative * relative).sum(axis=0))


def moments(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations (population) of columns.

    Examples
    --------
    >>> moments(np.array([[1.0, 5.0], [3.0, 5.0]]))
    (array([2., 5.]), array([1., 0.]))
    """
    return combined([Moments.of(matrix[k : k + ROWS]) for k in range(0, len(matrix), ROWS)])


def combined(parts: Sequence[Moments]) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations over several blocks, in the units of the columns."""
    n = sum(part.n for part in parts)
    largest = np.max([part.largest for part in parts], axis=0)
    largest[largest == 0] = 1.0
    shares = [part.largest / largest for part in parts]
    means = [share * part.mean for share, part in zip(shares, parts, strict=True)]
    # as differences from the first, so that a constant column has no deviation
    mean = means[0] + sum(p.n / n * (m - means[0]) for p, m in zip(parts, means, strict=True))
    total = np.zeros_like(mean)
    for part, share, each in zip(parts, shares, means, strict=True):
        total += share**2 * part.squares + part.n * (each - mean) ** 2
    return largest * mean, largest * np.sqrt(total / n)


def weighted_moments(matrix: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of columns, of the rows that these stand for."""
    largest = np.abs(matrix).max(axis=0)
    largest[largest == 0] = 1.0
    matrix = matrix / largest
    w = np.broadcast_to(weights[:, None], matrix.shape)
    total = w.sum(axis=0)  # summed as the columns are, so that a constant one has no deviation
    mean = (w * matrix).sum(axis=0) / total
    sd = np.sqrt((w * (matrix - mean) ** 2).sum(axis=0) / total)
    return largest * mean, largest * sd
