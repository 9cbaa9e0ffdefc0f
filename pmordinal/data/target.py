"""A target that is named: the column of the table that holds the labels."""

from typing import Any

from pmordinal.data.foreign import as_pandas
from pmordinal.data.levels import show
from pmordinal.data.spread import is_dask
from pmordinal.words import guess


def split(X: Any, y: Any) -> tuple[Any, Any]:
    """Return attributes and labels; `y` may be the name of a column of `X`, which is taken out of it.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [20, 30], "rating": [1, 2]})
    >>> X, y = split(table, "rating")
    >>> list(X.columns), y.to_list()
    (['age'], [1, 2])
    """
    if not isinstance(y, str):
        return X, y
    X = X if is_dask(X) else as_pandas(X, "X")
    if not hasattr(X, "columns"):
        raise TypeError(
            f"y is the name {y!r}, and X has no named columns: pass the labels themselves"
        )
    names = list(X.columns)
    if names.count(y) != 1:
        why = "no" if y not in names else "more than one"
        raise ValueError(f"y: X has {why} column {y!r}; it has {show(names, 12)}{guess(y, names)}")
    others = [name for name in names if name != y]
    if not others:
        raise ValueError(f"y: X has no column besides {y!r}: nothing is left to predict it from")
    return X[others], X[y]
