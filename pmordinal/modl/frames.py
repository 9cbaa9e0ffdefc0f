"""Splits a table of predictors of mixed types into named columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pmordinal.data.foreign import as_pandas
from pmordinal.modl.encode import as_series


def as_columns(X: Any) -> dict[str, pd.Series]:
    """Return the columns of a table by name.

    Parameters
    ----------
    X : DataFrame, mapping of columns, or array-like of shape (n, d)
        Tables of pandas, polars, Arrow and xarray are read by name. Columns of arrays are named
        ``x0``, ``x1``, ….

    Returns
    -------
    dict of str to pandas.Series

    Examples
    --------
    >>> list(as_columns(np.zeros((3, 2))))
    ['x0', 'x1']
    """
    is_mapping = isinstance(X, Mapping) and not hasattr(X, "data_vars")  # not a Dataset
    if not is_mapping:
        X = as_pandas(X, "X")
    if is_mapping:
        columns = {str(k): as_series(v, str(k)) for k, v in X.items()}
    elif isinstance(X, pd.Series) or getattr(X, "ndim", 2) == 1:
        raise ValueError(
            "X must be 2-dimensional, got one column. Reshape your data with X.reshape(-1, 1) or "
            "X.to_frame()"
        )
    elif hasattr(X, "columns"):
        names = [str(c) for c in X.columns]
        if len(set(names)) < len(names):
            raise ValueError("X has columns of the same name: rename them")
        columns = {
            str(c): (X.iloc[:, k] if isinstance(X, pd.DataFrame) else as_series(X[c], str(c)))
            for k, c in enumerate(X.columns)
        }
    else:
        if hasattr(X, "toarray"):
            raise TypeError("Sparse data was passed, but dense data is required: use X.toarray()")
        values = np.asarray(X)
        if values.ndim != 2:
            raise ValueError(
                f"X must be 2-dimensional, got shape {values.shape}. Reshape your data with "
                "X.reshape(-1, 1) if it is one feature"
            )
        columns = {f"x{k}": as_series(values[:, k], f"x{k}") for k in range(values.shape[1])}
    if not columns:
        raise ValueError(f"X has no columns: 0 feature(s) (shape={getattr(X, 'shape', None)})")
    lengths = {len(c) for c in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"the columns of X differ in length: {sorted(lengths)}")
    return columns
