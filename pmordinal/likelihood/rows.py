"""What a likelihood knows of each row besides its label: whose thresholds, whose noise, its weight, a known shift."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np


@dataclass(frozen=True, eq=False)
class Rows:
    """Groups, weights and shifts of the rows that a likelihood is for; None is one for all, or no shift.

    Attributes
    ----------
    thresholds, noise : ndarray of int, shape (n,), optional
        Which vector of thresholds cuts a row, and which noise is on it.
    weights : ndarray, shape (n,), optional
        How many rows like this one it stands for.
    shift : ndarray, shape (n,), optional
        Known number that is added to the latent function before it is cut.

    Examples
    --------
    >>> Rows(thresholds=np.array([0, 1, 1])).take([0, 2]).thresholds
    array([0, 1])
    """

    thresholds: np.ndarray | None = None
    noise: np.ndarray | None = None
    weights: np.ndarray | None = None
    shift: np.ndarray | None = None

    def take(self, index: np.ndarray | slice | list[int]) -> Self:
        """Return what is known of some of the rows."""
        parts = (self.thresholds, self.noise, self.weights, self.shift)
        if all(part is None for part in parts):
            return self
        return type(self)(*(None if part is None else part[index] for part in parts))

    def unweighted(self) -> Self:
        """Return all but the weights."""
        return replace(self, weights=None)


ALIKE = Rows()  # one vector of thresholds, one noise, no weights, no shifts


def along(values: np.ndarray, ndim: int) -> np.ndarray:
    """Return a vector as an array of so many axes, the first of which it is along."""
    return values.reshape(-1, *(1,) * (ndim - 1))
