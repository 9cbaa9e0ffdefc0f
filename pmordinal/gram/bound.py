"""`Gram`: a kernel at given rows and parameter values."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pmordinal.gram.base import Array, Kernel, Pullback
from pmordinal.linalg import fill_upper
from pmordinal.linalg.workspace import empty


class Gram:
    """A kernel at given rows and parameter values: all that engines use of a covariance.

    Parameters
    ----------
    kernel : Kernel
    X : array_like, shape (n, d)
    values : sequence of array_like
        One for each of ``kernel.parameters``.

    Notes
    -----
    `matrix` and `diagonal` are computed on first use and kept. They are read-only, because the
    pullback needs them.

    Examples
    --------
    >>> import pymc as pm
    >>> from pmordinal.gram import Gram, lower
    >>> gram = Gram(lower(pm.gp.cov.ExpQuad(1, ls=1.0)), [[0.0], [1.0]], [1.0])
    >>> gram.matrix.round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    >>> [derivative.round(4).item() for derivative in gram.pullback([[0.0, 0.5], [0.5, 0.0]])]
    [0.6065]
    """

    def __init__(self, kernel: Kernel, X: ArrayLike, values: Sequence[ArrayLike]) -> None:
        if len(values) != len(kernel.parameters):
            raise ValueError(
                f"the kernel has {len(kernel.parameters)} parameters, got {len(values)} values: "
                "give one for each of kernel.parameters, in that order"
            )
        self.kernel = kernel
        self.X = _rows(X)
        self.values = tuple(np.asarray(value, dtype=np.float64) for value in values)

    def __getstate__(self) -> dict:
        """Leave the matrix and its pullback out of pickles: they are computed again when needed."""
        return {name: value for name, value in self.__dict__.items() if name != "_square"}

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.X)

    @cached_property
    def _square(self) -> tuple[Array, Pullback]:
        K, pullback = self.kernel.matrix(self.values, self.X)
        K.flags.writeable = False
        return K, pullback

    @property
    def matrix(self) -> Array:
        """K(X), shape (n, n), symmetric and in Fortran order."""
        return self._square[0]

    @cached_property
    def diagonal(self) -> Array:
        """The diagonal of `matrix`, shape (n,), without computing the matrix."""
        k = self.kernel.diagonal(self.values, self.X)[0]
        k.flags.writeable = False
        return k

    def columns(self, index: ArrayLike) -> Array:
        """Return columns of `matrix`, shape (n, len(index)), without computing the others."""
        chosen = np.asarray(index, dtype=np.intp)
        if "_square" in self.__dict__:
            return self.matrix[:, chosen]
        return self.kernel.columns(self.values, self.X, chosen)

    def cross(self, X_star: ArrayLike) -> Array:
        """Return the covariance of the rows with other rows, shape (n, m)."""
        return self.kernel.matrix(self.values, self.X, _rows(X_star))[0]

    def cross_diagonal(self, X_star: ArrayLike) -> Array:
        """Return the prior variance at other rows, shape (m,)."""
        return self.kernel.diagonal(self.values, _rows(X_star))[0]

    def copy_diagonal(self) -> Array:
        """Return the covariance of each row with another, identical row: `diagonal` minus white noise."""
        return self.kernel.copy_diagonal(self.values, self.X)

    def pullback(self, dK: ArrayLike) -> list[Array]:
        """Return the derivative by each parameter, given the symmetric derivative by `matrix`.

        Only the lower triangle of `dK` is read.
        """
        dK = np.asarray(dK, dtype=np.float64)
        if dK.shape != (self.n, self.n):
            raise ValueError(f"dK must have shape {(self.n, self.n)}, got {dK.shape}")
        if not self.kernel.reads_triangle:
            dK = fill_upper(np.positive(dK, out=empty(dK.shape)))
        return self._square[1](dK)


def _rows(X: ArrayLike) -> Array:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(
            f"rows must be a matrix of shape (n, d), got shape {X.shape}: "
            "reshape a single attribute to (n, 1)"
        )
    return X
