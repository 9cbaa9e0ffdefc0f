"""Partitions of a Dask table, and blocks of a fixed number of rows made of them.

Users' partitions may have any size; what is computed is the same for all, since it is computed from these blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pmordinal.data.levels import show
from pmordinal.errors import located


@dataclass(frozen=True, eq=False)
class Partitions:
    """The partitions of a table.

    Attributes
    ----------
    parts : list of Delayed
        In the order of the rows.
    name : str
        What to call the table in error messages.
    columns : list, optional
        Names of its columns; None for arrays.
    width : int
        Number of its columns.
    lengths : list of int, optional
        Their rows, if these are known.
    """

    parts: list[Any]
    name: str
    columns: list[Any] | None
    width: int
    lengths: list[int] | None = None

    def blocks(self, lengths: Sequence[int], size: int) -> list[Any]:
        """Return delayed tables of `size` rows each, except for the last, given the partitions' rows."""
        from dask import delayed

        ends = np.cumsum(lengths)
        starts = ends - lengths
        total = int(ends[-1]) if len(ends) else 0
        found = []
        join = delayed(joined, pure=False)
        for low in range(0, total, size):
            high = min(low + size, total)
            first = int(np.searchsorted(ends, low, side="right"))
            last = int(np.searchsorted(starts, high, side="left"))
            # all partitions between the two, also empty ones: they are checked too
            chosen = range(0 if low == 0 else first, len(ends) if high == total else last)
            spans = []
            for j in chosen:
                a, b = max(low - starts[j], 0), min(high - starts[j], lengths[j])
                spans.append((j, int(a), int(b), int(lengths[j])))
            parts = [self.parts[j] for j in chosen]
            found.append(join(parts, spans, self.columns, self.width, self.name))
        return found


def partitions(X: Any, name: str) -> Partitions:
    """Return the partitions of a Dask table, column or array."""
    if type(X).__name__ not in ("Array", "DataFrame", "Series"):
        raise TypeError(
            f"{name} is a {type(X).__name__} of Dask: pass a DataFrame, a Series or an Array"
        )
    if hasattr(X, "chunks"):  # an array
        if X.ndim > 2:
            raise ValueError(
                f"{name} must have 2 dimensions (rows, columns), got {X.ndim}: reshape it to (n, d)"
            )
        if X.ndim == 2 and len(X.chunks[1]) > 1:
            X = X.rechunk({1: -1})
        lengths = None if np.isnan(X.chunks[0]).any() else list(map(int, X.chunks[0]))
        width = 1 if X.ndim == 1 else X.shape[1]
        return Partitions(X.to_delayed().ravel().tolist(), name, None, width, lengths)
    columns = list(X.columns) if X.ndim == 2 else [X.name]
    return Partitions(list(X.to_delayed()), name, columns, len(columns))


def lengths_of(table: Partitions) -> list[int]:
    """Return the number of rows of each partition, computed if it is not known."""
    if table.lengths is not None:
        return table.lengths
    import dask

    return list(dask.compute(*(dask.delayed(len, pure=False)(part) for part in table.parts)))


def joined(
    parts: Sequence[Any],
    spans: Sequence[tuple[int, int, int, int]],
    columns: list[Any] | None,
    width: int,
    name: str,
) -> Any:
    """Return rows of some partitions as one table; runs on a worker.

    Parameters
    ----------
    parts : sequence of DataFrame, Series or ndarray
    spans : sequence of tuple
        For each of them its number, the first row to take, the row after the last, and how many rows it should have.
    columns, width, name
        See `Partitions`.
    """
    taken = []
    for part, (number, start, stop, length) in zip(parts, spans, strict=True):
        with located(f"{name}, partition {number} (counted from 0)"):
            check_columns(part, columns, width)
            if len(part) != length:
                raise ValueError(
                    f"it has {len(part)} row(s) where {length} were expected: X and y must have the same rows in each "
                    "partition, and give the same ones whenever they are read; persist() them first"
                )
        if start < stop:
            taken.append(part.iloc[start:stop] if hasattr(part, "iloc") else part[start:stop])
    if len(taken) == 1:
        return taken[0]
    return pd.concat(taken) if hasattr(taken[0], "iloc") else np.concatenate(taken)


def check_columns(part: Any, columns: list[Any] | None, width: int) -> None:
    """Raise if a partition has other columns than the table."""
    if columns is None:
        found = 1 if np.ndim(part) == 1 else np.shape(part)[1]
        if found != width:
            raise ValueError(f"it has {found} column(s), the table has {width}")
    elif isinstance(part, pd.DataFrame) and list(part.columns) != columns:
        raise ValueError(
            f"it has the columns {show(part.columns)}, the table has {show(columns)}: give all partitions the same ones"
        )
