"""Thresholds by group: the column of a table that says whose thresholds cut a row."""

from typing import Any

import numpy as np
import pandas as pd
import pymc as pm

from pmordinal.levels import show


def split(X: Any, by: str) -> tuple[Any, pd.Categorical]:
    """Return a table without its column `by`, and that column.

    Parameters
    ----------
    X : DataFrame
        Pandas or polars.
    by : str
        Name of a column, categorical or not.

    Examples
    --------
    >>> table = pd.DataFrame({"dose": [1.0, 2.0, 3.0], "rater": ["b", "a", "b"]})
    >>> rest, groups = split(table, "rater")
    >>> list(rest.columns), groups.codes.tolist(), list(groups.categories)
    (['dose'], [1, 0, 1], ['a', 'b'])
    """
    groups = _column(X, by, "X")
    if len(X.columns) == 1:
        raise ValueError(f"X has no columns besides {by!r}, which gives the thresholds: add some")
    rest = X.drop(columns=by) if isinstance(X, pd.DataFrame) else X.drop(by)
    return rest, groups


def dimension(model: pm.Model) -> str | None:
    """Return the dimension over which a factory's model has thresholds, None if they are one vector."""
    dims = model.named_vars_to_dims.get("thresholds", ())
    return str(dims[0]) if len(dims) == 2 else None


def codes(model: pm.Model, by: str, Xnew: Any) -> np.ndarray:
    """Return the group of each new row as a position among the model's, shape (m,)."""
    levels = list(model.coords[by])
    groups = _column(Xnew, by, "Xnew")
    found = pd.Index(levels).get_indexer(pd.Index(np.asarray(groups)))
    if np.any(found < 0):
        raise ValueError(
            f"Xnew: {by} {groups[int(np.argmin(found))]!r} has no thresholds, known are {show(levels)}: to "
            "predict for a new one, declare it as a category of the training column"
        )
    return found


def _column(X: Any, by: str, name: str) -> pd.Categorical:
    columns = getattr(X, "columns", None)
    if columns is None or by not in list(columns):
        known = "no column names" if columns is None else f"the columns {show(columns)}"
        raise ValueError(
            f"thresholds_by: {by!r} must be a column of the table {name}, which has {known}"
        )
    values: Any = X[by]
    if not isinstance(values, pd.Series):  # polars
        values = values.to_list()
    groups = pd.Categorical(values)
    if np.any(groups.codes < 0):
        raise ValueError(
            f"{name} column {by!r} has {np.sum(groups.codes < 0)} missing value(s), the first in row "
            f"{int(np.argmin(groups.codes))}: fill them in or drop those rows"
        )
    return groups
