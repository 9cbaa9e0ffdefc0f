"""`Precomputed`: a covariance given as a matrix; each row of X is an index into it.

For kernels that come from elsewhere, like the Pearson correlation between rating vectors
[CG2005, section 6.3]. The matrix covers training and test rows.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import ArrayLike, NDArray
from pymc.gp import cov
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.variable import TensorVariable

from pmordinal import checks
from pmordinal.gram.base import Array, Builder, Columns, Kernel, Lower, Pullback

_BAD_INDEX = "Precomputed: rows must be whole numbers from 0 to {last}, indices into the matrix"


class Precomputed(cov.Covariance):
    """Covariance function that looks up a given matrix; a row of X is an index into it.

    Parameters
    ----------
    K : array_like, shape (N, N)
        Symmetric covariances between all rows, training and test.
    input_dim : int, default 1
        Number of columns of X, when other covariances use some of them.
    active_dims : sequence of int, optional
        The one column that holds the indices; needed where `input_dim` is above 1.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pmordinal.gram import Gram, Precomputed, lower
    >>> K = np.corrcoef([[1, 2, 3, 5], [1, 2, 4, 4], [5, 3, 2, 1]])
    >>> gram = Gram(lower(2.0 * Precomputed(K)), [[0], [1]], [2.0])
    >>> gram.matrix.round(2).tolist()
    [[2.0, 1.76], [1.76, 2.0]]
    >>> gram.cross([[2]]).round(2).tolist()
    [[-1.89], [-1.89]]
    """

    def __init__(
        self, K: ArrayLike, input_dim: int = 1, active_dims: Sequence[int] | None = None
    ) -> None:
        super().__init__(input_dim, active_dims)
        if len(self.active_dims) != 1:
            raise ValueError(
                "Precomputed needs exactly one column of indices, got "
                f"{len(self.active_dims)}: pass active_dims=[column]"
            )
        try:
            table = np.array(K)
            if table.dtype.kind not in "biufO":
                raise TypeError(f"dtype {table.dtype}")
            table = table.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Precomputed needs a matrix of numbers, got {checks.got(K)}"
            ) from error
        if table.ndim != 2 or table.shape[0] != table.shape[1] or table.size == 0:
            raise ValueError(f"Precomputed needs a square matrix, got shape {table.shape}")
        if not np.isfinite(table).all():
            raise ValueError(
                f"Precomputed needs finite covariances, got {np.sum(~np.isfinite(table))} that are "
                "NaN or infinite: a constant row has no correlation, for one"
            )
        gap = np.abs(table - table.T).max()
        # Rounding may make a computed matrix slightly asymmetric, but not by more than this.
        if gap > 1e-8 * np.abs(table).max():
            raise ValueError(
                f"Precomputed needs a symmetric matrix, got one with K - K.T up to {gap:.3g}"
            )
        sd = np.sqrt(np.maximum(table.diagonal(), 0.0))
        if np.any(table.diagonal() < 0) or np.any(np.abs(table) > np.outer(sd, sd) * (1.0 + 1e-8)):
            raise ValueError(
                "Precomputed needs a positive semidefinite matrix, got one with a negative variance or a correlation "
                "above one: is it a matrix of distances?"
            )
        self.table: Array = (table + table.T) / 2.0
        self.table.flags.writeable = False

    def _index(self, X: Any) -> TensorVariable:
        x = pt.as_tensor_variable(X)[:, int(self.active_dims[0])]
        index = pt.cast(x, "int64")
        last = len(self.table) - 1
        check = CheckAndRaise(ValueError, _BAD_INDEX.format(last=last))
        whole, inside = pt.eq(index, x), (index >= 0) & (index <= last)
        return pt.as_tensor_variable(check(index, pt.all(whole & inside)))

    def full(self, X: Any, Xs: Any = None) -> TensorVariable:
        """Return the covariances between rows as a PyTensor expression, shape (n, m)."""
        rows = self._index(X)
        columns = rows if Xs is None else self._index(Xs)
        return pt.constant(self.table)[rows[:, None], columns[None, :]]

    def diag(self, X: Any) -> TensorVariable:
        """Return the variances of the rows as a PyTensor expression, shape (n,)."""
        return pt.constant(self.table.diagonal())[self._index(X)]


class PrecomputedKernel(Kernel):
    """The lookup in NumPy: no parameters."""

    joins_copies = True

    def __init__(self, active: Any, table: Array) -> None:
        self.columns_of = Columns(active)
        self.table = table
        self.parameters = ()

    def form(self) -> dict[str, Any]:
        """Return the column of indices and the matrix."""
        active = self.columns_of.active
        return {"kernel": "PrecomputedKernel", "active": active, "table": self.table.tolist()}

    @classmethod
    def from_form(cls, form: dict[str, Any], values: Iterator[Array]) -> Kernel:
        """Return the kernel of that form."""
        return cls(form["active"], np.array(form["table"]))

    def _index(self, X: Array) -> NDArray[np.intp]:
        x = self.columns_of(X)[:, 0]
        last = len(self.table) - 1
        bad = ~((x >= 0) & (x <= last) & (x == np.floor(x)))
        if bad.any():
            raise ValueError(f"{_BAD_INDEX.format(last=last)}; got {x[bad][0]:g}")
        return x.astype(np.intp)

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return entries of the table."""
        rows = self._index(X)
        columns = rows if Z is None else self._index(Z)
        return self.table[columns[:, None], rows].T, lambda dK: []

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return diagonal entries of the table."""
        return self.table.diagonal()[self._index(X)], lambda dk: []


def _build(cov_func: Any, lower: Lower) -> Kernel | None:
    return PrecomputedKernel(cov_func.active_dims, cov_func.table)


BUILDERS: dict[type, Builder] = {Precomputed: _build}
