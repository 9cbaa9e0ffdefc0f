"""Converts tables and columns of other libraries to pandas, with their names and levels.

NumPy could read many of these tables by position, but a user with named columns expects them to be matched
by name. A table that has names, but cannot be read by them, is refused.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd


def as_pandas(X: Any, name: str) -> Any:
    """Return a table or column of Arrow or xarray as a pandas object; others unchanged, or refused.

    Parameters
    ----------
    X : object
        What the user passed. Frames and series of pandas and polars, arrays and lists are returned
        as they are.
    name : str
        What to call `X` in error messages.

    Returns
    -------
    DataFrame, Series, or `X` itself

    Examples
    --------
    >>> import xarray as xr
    >>> X = xr.DataArray([[1.0, 2.0]], dims=("row", "column"), coords={"column": ["age", "dose"]})
    >>> list(as_pandas(X, "X").columns)
    ['age', 'dose']
    """
    if X is None or isinstance(X, pd.DataFrame | np.ndarray | list | tuple):
        return X
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError(
            f"{name} is a sparse matrix, which Gaussian processes cannot use: pass {name}.toarray()"
        )
    if isinstance(getattr(X, "dtype", None), pd.ArrowDtype):
        return _of_arrow_dtype(X, name)
    libraries = {base.__module__.partition(".")[0] for base in type(X).__mro__}
    if "pandas" in libraries:  # a Series, an Index or an array
        return X
    if "polars" in libraries:
        if hasattr(X, "collect"):
            raise TypeError(f"{name} is a LazyFrame: pass {name}.collect()")
        return X
    if "pytensor" in libraries:
        raise TypeError(
            f"{name} is a PyTensor variable, such as pm.Data makes, but the rows and labels of a model are fixed: "
            "pass the numbers themselves; new rows go to predict or sample_posterior"
        )
    if "xarray" in libraries:
        return _of_xarray(X, name)
    if hasattr(X, "__dask_graph__") and not hasattr(X, "chunks"):  # dask arrays have no names
        raise TypeError(f"{name} is spread over Dask: pass {name}.compute()")
    if hasattr(X, "read_all") and hasattr(X, "__arrow_c_stream__"):
        raise TypeError(f"{name} can be read only once: pass {name}.read_all()")
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return _of_arrow(X, name)
    if isinstance(X, Mapping):
        raise TypeError(
            f"{name} is a {type(X).__name__}: pass pd.DataFrame({name}) if it holds columns"
        )
    for convert in ("to_pandas", "toPandas", "columns"):
        if hasattr(X, convert):
            how = "a pandas DataFrame" if convert == "columns" else f"{name}.{convert}()"
            raise TypeError(
                f"{name} is a {type(X).__name__}, whose columns cannot be read by name here: pass {how}"
            )
    return X


def row_index(X: Any) -> pd.Index | None:
    """Return the index (the row names) of a table; None if it has none."""
    if isinstance(X, pd.DataFrame | pd.Series):
        return X.index
    if type(X).__module__.startswith("xarray") and len(getattr(X, "dims", ())):
        return getattr(X, "indexes", {}).get(next(iter(X.dims)))
    return None


def _of_xarray(X: Any, name: str) -> Any:
    if hasattr(X, "data_vars"):  # a Dataset, or a DataTree
        dims = {variable.dims for variable in X.data_vars.values()}
        if hasattr(X, "children") or len(dims) > 1 or any(len(each) != 1 for each in dims):
            found = ", ".join(f"{key}{variable.dims}" for key, variable in X.data_vars.items())
            raise TypeError(
                f"{name} is a {type(X).__name__} with the variables {found or 'none'}: pass a Dataset whose "
                "variables are columns along one dimension, or a DataArray of rows and columns"
            )
        columns = {key: _values(variable) for key, variable in X.data_vars.items()}
        return pd.DataFrame(columns, index=row_index(X))
    if X.ndim == 1:
        return pd.Series(_values(X), index=row_index(X), name=getattr(X, "name", None))
    if X.ndim == 2 and X.dims[1] in getattr(X, "indexes", {}):
        return pd.DataFrame(X.to_numpy(), index=row_index(X), columns=X.indexes[X.dims[1]])
    return X.to_numpy()


def _values(variable: Any) -> Any:
    """Return a one-dimensional variable as an array: pandas' own if it holds one."""
    data = variable.data
    return data if isinstance(data, pd.api.extensions.ExtensionArray) else np.asarray(data)


def _of_arrow(X: Any, name: str) -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise TypeError(
            f"{name} is a {type(X).__name__}, an Arrow table, which only pyarrow can read: install it, or pass a "
            "pandas or polars DataFrame"
        ) from error
    column = X if isinstance(X, pa.Array | pa.ChunkedArray) else None
    if column is None and not isinstance(X, pa.Table | pa.RecordBatch):
        column = pa.chunked_array(X)
        column = None if pa.types.is_struct(column.type) else column
    if column is not None:
        _check_order(column, name)
        if column.null_count > 0:  # `to_pandas` would return floats or objects
            if pa.types.is_integer(column.type):
                return pd.Series(pd.array(column.to_pylist(), dtype="Int64"))
            if pa.types.is_boolean(column.type):
                return pd.Series(pd.array(column.to_pylist(), dtype="boolean"))
    try:
        return (pa.table(X) if column is None else column).to_pandas()
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(f"{name} cannot be read as a table of pandas: {error}") from error


def _of_arrow_dtype(X: Any, name: str) -> Any:
    """Return a pandas column that holds an Arrow array, as a categorical if it has levels."""
    if not hasattr(X.dtype.pyarrow_dtype, "ordered"):
        return X
    column = _of_arrow(getattr(X, "array", X).__arrow_array__(), name)
    return pd.Series(column.array, index=getattr(X, "index", None), name=getattr(X, "name", None))


def _check_order(column: Any, name: str) -> None:
    """Raise if the chunks of an ordered dictionary do not agree on the order."""
    if not getattr(column.type, "ordered", False):
        return
    chunks = [chunk.dictionary.to_pylist() for chunk in getattr(column, "chunks", [])]
    longest: list[Any] = max(chunks, key=len, default=[])
    for levels in chunks:
        # A later chunk may add levels at the end: pyarrow appends new ones.
        if levels != longest[: len(levels)]:
            raise ValueError(
                f"{name} is an ordered dictionary whose chunks have different levels, {levels} and {longest}: "
                "cast it to text and pass categories=[...] from lowest to highest"
            )
