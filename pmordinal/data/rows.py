"""Row names: converts an index of any kind to values that xarray, netCDF and Zarr can store, and compares two."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from pmordinal.data.foreign import row_index

KEPT = "biufMm"  # NumPy dtype kinds that files can store


def storable(names: Iterable) -> np.ndarray:
    r"""Return the entries of an index in storable form: numbers and most times unchanged, others as text.

    Parameters
    ----------
    names : pandas Index or iterable
        Times with a zone or beyond 2262, intervals, periods and objects become what ``str`` says of them; the
        levels of a MultiIndex are separated by commas. What no file can hold, a NUL and half a surrogate
        pair, is written as an escape.

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> storable(pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]))
    array(['a, 1', 'b, 2'], dtype='<U4')
    >>> storable(pd.Index(["plain", "a\0b"]))
    array(['plain', 'a\\x00b'], dtype='<U6')
    """
    if isinstance(names, pd.MultiIndex):
        return _texts(", ".join(map(str, entry)) for entry in names)
    index = names if isinstance(names, pd.Index) else pd.Index(list(names), dtype=object)
    if isinstance(index, pd.CategoricalIndex):
        index = pd.Index(np.asarray(index).astype(object), dtype=object)
    if index.dtype == object and not any(isinstance(entry, str) for entry in index):
        index = index.infer_objects()  # not for text, which pandas would change
    if pd.api.types.is_numeric_dtype(index) and not index.hasnans:  # also nullable types
        index = index.astype(getattr(index.dtype, "numpy_dtype", index.dtype))
    if isinstance(index.dtype, np.dtype) and index.dtype.kind in KEPT and _in_reach(index):
        return index.to_numpy()
    return _texts(map(str, index))


def _in_reach(index: pd.Index) -> bool:
    """Tell whether times fit into nanoseconds, as xarray reads them: up to the year 2262."""
    if isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex):
        try:
            index.as_unit("ns")
        except (pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
            return False
    return True


def _texts(names: Iterable[str]) -> np.ndarray:
    safe = [
        name.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00") for name in names
    ]
    return np.array(safe, dtype=np.str_)


def row_names(X, n: int) -> np.ndarray:
    """Return the index of a table in storable form, or 0, …, n − 1 if it has none."""
    index = row_index(X)
    return np.arange(n) if index is None else storable(index)


def check_paired(X: Any, y: Any, name: str = "X", other: str = "y") -> None:
    """Raise if two tables of the same length have row names that say that their rows are in another order.

    Rows go by position. Where one has the names 0, …, n − 1 that pandas gives, and the other names of its own, those
    say nothing.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20, 30], "rating": [2, 1]})
    >>> check_paired(table[["age"]], table["rating"].sort_values())
    Traceback (most recent call last):
        ...
    ValueError: X and y have the same number of rows, but other row names or another order of them: pass ...
    """
    ours, theirs = row_index(X), row_index(y)
    if ours is None or theirs is None or len(ours) != len(theirs) or ours.equals(theirs):
        return
    given = pd.RangeIndex(len(ours))
    if (ours.equals(given) or theirs.equals(given)) and set(ours) != set(theirs):
        return
    raise ValueError(
        f"{name} and {other} have the same number of rows, but other row names or another order of them: pass "
        f"{other}.loc[{name}.index], or {other}.to_numpy() where the rows are in the same order"
    )
