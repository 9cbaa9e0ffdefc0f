"""Counts of (predictor value, target value) pairs as sparse matrices, and coarser versions of them.

Equal values share one index, and cuts lie between indices, so ties are never separated.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Rows:
    """Sparse counts, one row per value of an axis: columns ``col[ptr[v]:ptr[v + 1]]``."""

    ptr: np.ndarray
    col: np.ndarray
    cnt: np.ndarray

    @property
    def n_values(self) -> int:
        """Number of values of the axis."""
        return len(self.ptr) - 1

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of instances of each value."""
        return np.add.reduceat(self.cnt, self.ptr[:-1])


def _rows_from_table(table: np.ndarray) -> Rows:
    row, col = np.nonzero(table)
    ptr = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=len(table)))))
    return Rows(ptr, col.astype(np.int64), table[row, col].astype(np.int64))


def _rows_from_codes(code: np.ndarray, n_values: int, other: np.ndarray) -> Rows:
    order = np.argsort(code, kind="stable")
    size = np.bincount(code + 1, minlength=n_values + 1)
    order = order[size[0] :]  # −1, for missing, sorts first
    ptr = np.concatenate(([0], np.cumsum(size[1:])))
    return Rows(ptr, other[order], np.ones(len(order), dtype=np.int64))


@dataclass(frozen=True)
class Cells:
    """One predictor and the target, as indices of their sorted values.

    Parameters
    ----------
    x, y : Rows
        Counts by predictor value (missing rows left out) and by target value. The columns of `y`
        are predictor values; missing predictors have the column ``x.n_values``.
    n : int
        Number of instances, missing predictors included.
    n_missing : int
        Number of instances whose predictor is missing; they are a part of their own.
    n_categories : int or None
        V of a categorical predictor, missing counted as one value; None for a numeric one.
    x_code, y_code : ndarray of int64, shape (n,)
        Value index of each instance, −1 where the predictor is missing.
    """

    x: Rows
    y: Rows
    n: int
    n_missing: int
    n_categories: int | None
    x_code: np.ndarray
    y_code: np.ndarray

    @classmethod
    def from_codes(
        cls, x_code: np.ndarray, y_code: np.ndarray, *, categorical: bool = False
    ) -> "Cells":
        """Build the sparse rows from dense value indices (−1: missing predictor)."""
        n = len(x_code)
        mx, my = int(x_code.max(initial=-1)) + 1, int(y_code.max()) + 1
        n_missing = int(np.count_nonzero(x_code < 0))
        column = np.where(x_code < 0, mx, x_code) if n_missing else x_code
        if (mx + 1) * my <= 4 * n:
            flat = np.bincount(column * my + y_code, minlength=(mx + 1) * my)
            table = flat.reshape(mx + 1, my)
            x, y = _rows_from_table(table[:mx]), _rows_from_table(table.T)
        else:
            x = _rows_from_codes(x_code, mx, y_code)
            y = _rows_from_codes(y_code, my, column)
        n_categories = mx + (n_missing > 0) if categorical else None
        return cls(x, y, n, n_missing, n_categories, x_code, y_code)

    def coarsen(self, size: int) -> tuple["Cells", np.ndarray, np.ndarray]:
        """Return cells with at most `size` values per axis, and the edges of the bins.

        Bins hold about equally many instances; a categorical predictor is left as it is. Edges
        are value indices: bin b holds the values edges[b], …, edges[b + 1] − 1.
        """
        x_bin, x_edges = _bins(self.x, size if self.n_categories is None else self.x.n_values)
        y_bin, y_edges = _bins(self.y, size)
        if len(x_bin) == len(x_edges) - 1 and len(y_bin) == len(y_edges) - 1:
            return self, x_edges, y_edges
        x_code = x_bin[self.x_code]
        if self.n_missing:
            x_code = np.where(self.x_code < 0, -1, x_code)
        coarse = Cells.from_codes(
            x_code, y_bin[self.y_code], categorical=self.n_categories is not None
        )
        return coarse, x_edges, y_edges


def _bins(rows: Rows, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bin of each value and the edges of about `size` equally filled bins."""
    m = rows.n_values
    if m <= size:
        return np.arange(m), np.arange(m + 1)
    end = np.cumsum(rows.sizes)
    middle = end - 0.5 * rows.sizes
    raw = np.floor(middle * (size / end[-1])).astype(np.int64)
    first = np.concatenate(([True], raw[1:] != raw[:-1]))
    edges = np.concatenate((np.flatnonzero(first), [m]))
    return np.cumsum(first) - 1, edges
