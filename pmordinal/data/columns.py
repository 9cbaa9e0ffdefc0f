"""Reads the columns of a user's table: data frames of any library, arrays, nested lists."""

from typing import Any

import numpy as np
import pandas as pd

from pmordinal.data.foreign import as_pandas

# Types of polars that NumPy lacks, or would turn into a matrix.
_OBJECTS = ("Categorical", "String", "Int128", "UInt128", "Struct", "Array", "List")


def read_columns(X: Any, name: str) -> tuple[list[str] | None, list[Any]]:
    """Return the column names (None for arrays) and the columns, each a Series or a 1-d array."""
    if getattr(getattr(X, "dtype", None), "names", None):
        raise TypeError(f"{name} is an array of records: pass pd.DataFrame.from_records(X)")
    X = as_pandas(X, name)
    polars = is_polars(X)
    names: list[str] | None
    data: list[Any]
    if isinstance(X, pd.DataFrame):
        names = [str(column) for column in X.columns]
        data = [X.iloc[:, j] for j in range(X.shape[1])]
    elif polars and hasattr(X, "columns"):
        names, data = list(X.columns), [X[column] for column in X.columns]
    elif isinstance(X, pd.Series) or polars:
        names, data = ([str(X.name)] if X.name not in (None, "") else None), [X]
    else:
        names, data = None, _columns_of_array(X, name)
    if not data:
        raise ValueError(f"{name} has no columns: pass at least one")
    if len(data[0]) == 0:
        raise ValueError(f"{name} has no rows: pass at least one")
    return names, data


def is_polars(X: Any) -> bool:
    """Tell whether a table or column is a polars object."""
    return any(base.__module__.startswith("polars") for base in type(X).__mro__)


def column_values(column: Any) -> Any:
    """Return a column as a NumPy or pandas array."""
    if isinstance(column, np.ndarray):
        return column
    if isinstance(column, pd.Series):
        array = as_pandas(column, "X").array
        return array.to_numpy() if isinstance(array, pd.arrays.NumpyExtensionArray) else array
    kind = type(column.dtype).__name__
    if kind == "Enum":
        levels = column.dtype.categories.to_list()
        return pd.Categorical(column.to_list(), categories=levels, ordered=True)
    if kind in _OBJECTS:
        values = np.empty(len(column), dtype=object)
        values[:] = column.to_list()
        return values
    return column.to_numpy()


def _columns_of_array(X: Any, name: str) -> list[np.ndarray]:
    if isinstance(X, np.ma.MaskedArray):
        X = np.array(X.tolist(), dtype=object)  # a masked entry becomes None, a missing value
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(
            f"{name} has rows of different lengths: give every row the same number of columns"
        ) from error
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have 2 dimensions (rows, columns), got shape {array.shape} of a "
            f"{type(X).__name__}: reshape it to (n, d)"
        )
    if array.dtype.kind in "OUT":
        array = array.astype(object)
        try:
            array = np.where(pd.isna(array), np.nan, array).astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(
                f"{name} holds values that are not numbers ({error}): make them numbers, or pass "
                "a DataFrame, whose text columns become one-hot columns"
            ) from error
    return list(array.T)
