"""Tables that are spread over many partitions or machines by Dask; no row of them is gathered but a sample."""

from typing import Any


def is_dask(X: Any) -> bool:
    """Tell whether a table, a column or an array is one of Dask."""
    libraries = {base.__module__.partition(".")[0] for base in type(X).__mro__}
    return bool(libraries & {"dask", "dask_expr"})
