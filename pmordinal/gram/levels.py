"""Levels of a factor: rows of one level share a value, those of different levels have their own.

A column holds a code for each level, a whole number. As a term of a group it is [same level]; as that of a factor the
values of the levels that were seen sum to zero, so that they don't compete with the thresholds.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.gp import cov
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.variable import TensorVariable

from pmordinal.gram.base import Array, Builder, Columns, Kernel, Lower, Pullback
from pmordinal.gram.thin import LevelPairs, Thin, ThinKernel


class Levels(cov.Covariance):
    """Covariance of the levels of a factor, one for equal levels [same level].

    Parameters
    ----------
    input_dim : int
        Number of columns of X.
    active_dims : sequence of int, optional
        The one column that holds the codes; needed where `input_dim` is above 1.
    n_levels : int, optional
        Codes must be below it, and not negative; by default any whole number is a level.
    seen : sequence of int, optional
        Codes of the levels that sum to zero; by default all of `n_levels`.
    sum_to_zero : bool, default False
        Whether the values of the L seen levels sum to zero: two of them have covariance −1/(L − 1). All levels
        have variance one; those that were not seen are independent of all others.

    Examples
    --------
    >>> from pmordinal.gram import Gram, Levels, lower
    >>> judges = [[0.0], [1.0], [0.0]]
    >>> Gram(lower(Levels(1)), judges, []).matrix.tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    >>> factor = Gram(lower(Levels(1, seen=[0, 1, 2], sum_to_zero=True)), judges, [])
    >>> factor.cross([[0.0], [2.0], [7.0]]).tolist()
    [[1.0, -0.5, 0.0], [-0.5, -0.5, 0.0], [1.0, -0.5, 0.0]]
    """

    def __init__(
        self,
        input_dim: int,
        active_dims: Sequence[int] | None = None,
        n_levels: int | None = None,
        seen: Sequence[int] | None = None,
        sum_to_zero: bool = False,
    ) -> None:
        super().__init__(input_dim, active_dims)
        if len(self.active_dims) != 1:
            raise ValueError(
                "Levels needs exactly one column of codes, got "
                f"{len(self.active_dims)}: pass active_dims=[column]"
            )
        if seen is None and n_levels is not None:
            seen = range(n_levels)
        if sum_to_zero and seen is None:
            raise ValueError(
                "sum_to_zero=True needs the levels that sum to zero: pass seen=[code, …]"
            )
        codes = np.unique(np.asarray([] if seen is None else seen, dtype=np.float64))
        if sum_to_zero and len(codes) < 2:
            raise ValueError(
                f"sum_to_zero=True needs two levels at least, got {len(codes)}: "
                "a factor with one level has no effect"
            )
        self.n_levels = n_levels
        self.seen: NDArray[np.int64] | None = (
            codes_of(codes, n_levels, "seen") if sum_to_zero else None
        )

    def _codes(self, X: Any) -> TensorVariable:
        x = pt.as_tensor_variable(X)[:, int(self.active_dims[0])]
        good = pt.eq(pt.floor(x), x)
        if self.n_levels is not None:
            good = good & (x >= 0) & (x < self.n_levels)
        check = CheckAndRaise(ValueError, _wanted("the column", self.n_levels))
        return pt.as_tensor_variable(check(x, pt.all(good)))

    def _is_seen(self, codes: Any) -> TensorVariable:
        return pt.any(pt.eq(codes[:, None], pt.constant(self.seen)), axis=1)

    def full(self, X: Any, Xs: Any = None) -> TensorVariable:
        """Return the covariances between rows as a PyTensor expression, shape (n, m)."""
        rows = self._codes(X)
        columns = rows if Xs is None else self._codes(Xs)
        same = pt.cast(pt.eq(rows[:, None], columns[None, :]), "float64")
        if self.seen is None:
            return same
        both = self._is_seen(rows)[:, None] & self._is_seen(columns)[None, :]
        return same + (1.0 - same) * both * pt.constant(np.float64(_off(self.seen)))

    def diag(self, X: Any) -> TensorVariable:
        """Return ones as a PyTensor expression, shape (n,)."""
        return pt.ones_like(self._codes(X), dtype="float64")


class LevelsKernel(ThinKernel):
    """The same in NumPy: no parameters."""

    width = 1
    parameters = ()

    def __init__(self, active: Any, n_levels: int | None, seen: Sequence[int] | None) -> None:
        self.columns_of = Columns(active)
        self.n_levels = n_levels
        self.seen = None if seen is None else np.asarray(seen, dtype=np.int64)

    def form(self) -> dict[str, Any]:
        """Return the column of codes and the levels."""
        seen = None if self.seen is None else self.seen.tolist()
        active = self.columns_of.active
        return {
            "kernel": "LevelsKernel",
            "active": active,
            "n_levels": self.n_levels,
            "seen": seen,
        }

    @classmethod
    def from_form(cls, form: dict[str, Any], values: Iterator[Array]) -> Kernel:
        """Return the kernel of that form."""
        return cls(form["active"], form["n_levels"], form["seen"])

    def _codes(self, X: Array) -> NDArray[np.int64]:
        column = self.columns_of.active[0]
        return codes_of(self.columns_of(X)[:, 0], self.n_levels, f"column {column}")

    def _is_seen(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.zeros(codes.shape, np.bool_) if self.seen is None else np.isin(codes, self.seen)

    def pairs(self, X: Array) -> LevelPairs:
        """Return the number of each pair of rows."""
        codes = self._codes(X)
        off = 0.0 if self.seen is None else _off(self.seen)
        seen = self._is_seen(codes).astype(np.float64)
        return LevelPairs(codes[None], seen[None], np.array([off]))

    def thin(self, values: Sequence[Array], X: Array) -> Thin:
        """Return a column of ones, and the levels."""
        return Thin(np.ones((len(X), 1)), np.ones(1), self.pairs(X), lambda dphi, dweights: [])

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback."""
        if Z is None:
            return self.square(values, X)
        rows, columns = self._codes(X), self._codes(Z)
        K = (columns[:, None] == rows).astype(np.float64)
        if self.seen is not None:
            both = self._is_seen(columns)[:, None] & self._is_seen(rows)
            np.copyto(K, _off(self.seen), where=both & (K == 0.0))
        return K.T, lambda dK: []

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return ones."""
        return np.ones(len(self._codes(X))), lambda dk: []

    def copy_diagonal(self, values: Sequence[Array], X: Array) -> Array:
        """Return ones."""
        return np.ones(len(X))


def codes_of(x: Array, n_levels: int | None, what: str) -> NDArray[np.int64]:
    """Return codes as whole numbers; raise if one is none, or not below `n_levels`."""
    good = np.isfinite(x) & (x == np.floor(x))
    if n_levels is not None:
        good &= (x >= 0) & (x < n_levels)
    if not good.all():
        raise ValueError(f"{_wanted(what, n_levels)}; got {x[~good][0]:g}")
    return x.astype(np.int64)


def _wanted(what: str, n_levels: int | None) -> str:
    upto = "" if n_levels is None else f" from 0 to {n_levels - 1}"
    return f"Levels: {what} must hold whole numbers{upto}, one code for each level"


def _off(seen: NDArray[np.int64]) -> float:
    """Return the covariance of two levels that sum to zero: (0 − 1/L) · L / (L − 1)."""
    return -1.0 / (len(seen) - 1)


def _build(cov_func: Any, lower: Lower) -> Kernel | None:
    return LevelsKernel(cov_func.active_dims, cov_func.n_levels, cov_func.seen)


BUILDERS: dict[type, Builder] = {Levels: _build}
