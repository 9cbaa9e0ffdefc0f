"""The columns that the terms of a formula read: numbers in standard deviations, levels as positions.

Levels are no 0/1 columns here. A factor of a thousand levels is one column, and a level that was not seen is as far
from all others as those are from each other.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd

from pmordinal.data import expressions
from pmordinal.data.coding import Column, block, levels_of, number_levels
from pmordinal.data.columns import column_values
from pmordinal.data.features import Features
from pmordinal.data.levels import show
from pmordinal.data.moments import moments, weighted_moments


def without_missing(table: pd.DataFrame, names: Sequence[str], na: str) -> tuple[pd.DataFrame, str]:
    """Return the rows in which no column of `names` is missing, and a sentence on those left out.

    Parameters
    ----------
    table : DataFrame
    names : sequence of str
    na : {"refuse", "drop"}
        Whether rows with a missing value are an error, or left out.
    """
    missing = table[list(names)].isna()
    counts = {name: int(missing[name].sum()) for name in names if missing[name].any()}
    if not counts:
        return table, ""
    listed = ", ".join(f"{name!r} ({count})" for name, count in counts.items())
    rows = missing.any(axis=1).to_numpy()
    if na == "refuse":
        raise ValueError(
            f"data: values are missing in {listed}, in {rows.sum()} of {len(table)} rows: fill them in, or leave "
            "these rows out with na='drop'"
        )
    if rows.all():
        raise ValueError(f"data: every row has a missing value, in {listed}: fill them in")
    return table[
        ~rows
    ], f"{rows.sum()} of {len(table)} rows are left out: values missing in {listed}"


def learn(
    table: pd.DataFrame,
    names: Sequence[str],
    computed: Sequence[str],
    groups: Collection[str],
    weights: np.ndarray | None = None,
    offsets: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Features, np.ndarray]:
    """Return how the columns of a formula become a matrix, and the matrix.

    Parameters
    ----------
    table : DataFrame
    names : sequence of str
        Columns of the table.
    computed : sequence of str
        Expressions of these, such as ``"np.log(income)"`` and ``"C(age)"``.
    groups : collection of str
        Columns and expressions of whose levels new ones are expected.
    weights : ndarray, shape (n,), optional
        How many rows each row stands for, in means and standard deviations.
    offsets : mapping of str to str, optional
        Names of known shifts, and the column or expression that each is.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20.0, 40.0], "judge": ["b", "a"]})
    >>> features, X = learn(table, ["age", "judge"], [], ["judge"])
    >>> X.tolist()
    [[-1.0, 1.0], [1.0, 0.0]]
    """
    columns, data = [], []
    for name in names:
        values = column_values(table[name])
        levels = levels_of(values, name, "data")
        column = Column(name, levels, is_coded=levels is not None, is_open=name in groups)
        columns.append(column)
        data.append(block(values, column, "data"))
    numbers = {c.name: x[:, 0] for c, x in zip(columns, data, strict=True) if c.levels is None}
    written = [(text, text, False) for text in computed]
    for name, text, is_offset in [*written, *((*item, True) for item in offsets.items())]:
        textual = [v for v in expressions.variables(expressions.parse(text)) if v not in numbers]
        if textual:
            raise ValueError(f"formula: {name}: {textual[0]!r} is not a number, but has levels")
        levels = None
        if is_offset and expressions.is_levels(text):
            raise ValueError(f"formula: {name}: a known shift is a number, and {text} has levels")
        if expressions.is_levels(text):
            found = np.unique(expressions.evaluate(text, numbers))
            levels = tuple(number_levels(found))
        is_open = text in groups
        text = expressions.settled(text, numbers, weights)
        columns.append(Column(name, levels, levels is not None, is_open, text, is_offset))
    d = len(columns)
    plain = Features(tuple(columns), np.zeros(d), np.ones(d))
    matrix = plain.standardized(np.concatenate(data, axis=1), "data")
    is_number = np.array([column.levels is None and not column.is_offset for column in columns])
    mean, spread = moments(matrix) if weights is None else weighted_moments(matrix, weights)
    center = np.where(is_number, mean, 0.0)
    scale = np.where(is_number & (np.ptp(matrix, axis=0) > 0), spread, 1.0)
    features = Features(tuple(columns), center, scale)
    return features, features.standardized(matrix, "data")


def check_seen(column: Column, values: np.ndarray, term: str) -> None:
    """Raise if a term cannot be learned from a column, because it does not vary."""
    if np.ptp(values) > 0:
        return
    if column.levels is None:
        raise ValueError(
            f"formula: {term}: the column {column.name!r} is constant, so that it has no effect: leave it out"
        )
    raise ValueError(
        f"formula: {term}: only one level of {column.name!r} is there, of {show(column.levels)}: leave it out"
    )
