"""Thresholds by group: the column of a table, such as the rater, that decides which thresholds a row has."""

from typing import Any

import numpy as np
import pandas as pd
import pymc as pm

from pmordinal import checks
from pmordinal.data.columns import column_values
from pmordinal.data.foreign import as_pandas
from pmordinal.data.levels import show

# Names of dimensions and variables that models and sampled trees already have.
RESERVED = frozenset(
    "obs feature threshold class chain draw __sample__ "
    "y f f_white noise amplitude lengthscale coefficients "
    "column common_lengthscale lengthscale_ratio linear_amplitude rough_amplitude rough_lengthscale "
    "main pair main_term pair_term".split()
)


def split(X: Any, by: str) -> tuple[Any, pd.Categorical]:
    """Return a table without its column `by`, and that column.

    Parameters
    ----------
    X : DataFrame
        A table of pandas, polars or any library that `as_pandas` reads.
    by : str
        Name of a column, categorical or not. It names a dimension of the model too.

    Examples
    --------
    >>> table = pd.DataFrame({"dose": [1.0, 2.0, 3.0], "rater": ["b", "a", "b"]})
    >>> rest, groups = split(table, "rater")
    >>> list(rest.columns), groups.codes.tolist(), list(groups.categories)
    (['dose'], [1, 0, 1], ['a', 'b'])
    """
    if not isinstance(by, str):
        raise TypeError(f"thresholds_by must be the name of a column of X, got {checks.got(by)}")
    model = pm.Model.get_context(error_if_none=False)
    taken = by in RESERVED or by.startswith("thresholds")
    if taken or (model is not None and by in model.named_vars):
        raise ValueError(
            f"thresholds_by: the thresholds get a dimension of the column's name, and {by!r} is that of another "
            f"dimension or variable of the model: rename the column, e.g. to {by + '_id'!r}"
        )
    X = as_pandas(X, "X")
    groups = _column(X, by, "X")
    others = [j for j, column in enumerate(X.columns) if str(column) != by]
    if not others:
        raise ValueError(f"X has no columns besides {by!r}, which gives the thresholds: add some")
    return (X.iloc[:, others] if isinstance(X, pd.DataFrame) else X[:, others]), groups


def dimension(model: pm.Model) -> str | None:
    """Return the name of the groups' dimension in a model; None if all rows share the thresholds."""
    dims = model.named_vars_to_dims.get("thresholds", ())
    return str(dims[0]) if len(dims) == 2 else None


def codes(model: pm.Model, by: str, Xnew: Any) -> np.ndarray:
    """Return the group of each new row as its position among the model's groups, shape (m,)."""
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
    X = as_pandas(X, name)
    columns = getattr(X, "columns", None)
    names = [] if columns is None else [str(column) for column in columns]
    if by not in names:
        known = "no column names" if columns is None else f"the columns {show(names)}"
        raise ValueError(
            f"thresholds_by: {by!r} must be a column of the table {name}, which has {known}"
        )
    if names.count(by) > 1:
        raise ValueError(f"thresholds_by: {name} has more than one column named {by!r}: rename it")
    j = names.index(by)
    groups = pd.Categorical(column_values(X.iloc[:, j] if isinstance(X, pd.DataFrame) else X[by]))
    if np.any(groups.codes < 0):
        raise ValueError(
            f"{name} column {by!r} has {np.sum(groups.codes < 0)} missing value(s), the first in row "
            f"{int(np.argmin(groups.codes))}: fill them in or drop those rows"
        )
    return groups
