"""The user's X and y, read once: rows, labels, and what they are called."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pmordinal.data import features as feature_table
from pmordinal.data.by_row import ByRow
from pmordinal.data.columns import read_columns
from pmordinal.data.features import Features
from pmordinal.data.labels import Labels, encode
from pmordinal.data.rows import check_paired, row_names
from pmordinal.data.whole import Whole


@dataclass(frozen=True, eq=False)
class Design:
    """What a model is built from: the rows of `X` as numbers, and their labels.

    Attributes
    ----------
    rows : ndarray, shape (n, d)
        All rows, those without a label included.
    labels : Labels
        One for each row, some of them missing.
    features : Features
        How the user's table became rows.
    index : ndarray, shape (n,)
        Names of the rows: numbers from zero where two rows would share one.
    further : ndarray, shape (m, d)
        More rows without a label, from a table of their own.
    every : ByRow
        Groups and weights of all rows.
    whole : Whole, optional
        What is known of the table where these rows are a sample of it.

    Examples
    --------
    >>> design = read([[1.0], [2.0], [4.0]], [1, None, 2])
    >>> design.X.tolist(), design.y.tolist(), design.unlabeled.tolist()
    ([[1.0], [4.0]], [0, 1], [[2.0]])
    """

    rows: np.ndarray
    labels: Labels
    features: Features
    index: np.ndarray
    further: np.ndarray
    every: ByRow = field(default_factory=ByRow)
    whole: Whole | None = None

    @property
    def by_row(self) -> ByRow:
        """Groups and weights of the labelled rows."""
        return self.every.take(self.labels.observed)

    @property
    def X(self) -> np.ndarray:
        """The labelled rows."""
        return self.rows[self.labels.observed]

    @property
    def y(self) -> np.ndarray:
        """Class codes of the labelled rows."""
        return self.labels.codes[self.labels.observed]

    @property
    def unlabeled(self) -> np.ndarray:
        """The rows without a label, of both tables."""
        return np.concatenate([self.rows[~self.labels.observed], self.further])

    @property
    def coords(self) -> dict[str, Any]:
        """Names of the labelled rows, the attributes, the thresholds and the classes."""
        return {
            "obs": self.index[self.labels.observed],
            "feature": list(self.features.names),
            "threshold": self.labels.threshold_names,
            "class": self.labels.class_names,
        }


def read(
    X: Any,
    y: Any,
    categories: Any = None,
    *,
    standardize: bool = False,
    unlabeled: Any = None,
    features: Features | None = None,
    by_row: ByRow | None = None,
) -> Design:
    """Return a table and its labels as a design.

    Parameters
    ----------
    X : DataFrame or array_like, shape (n, number of columns)
    y : array_like, shape (n,)
        Labels; some may be missing.
    categories : sequence, optional
        All labels in order.
    standardize : bool
        Centre and scale the columns.
    unlabeled : DataFrame or array_like, optional
        Further rows without a label.
    features : Features, optional
        How `X` becomes rows; learned from `X` if not given.
    by_row : ByRow, optional
        Groups and weights of the rows.
    """
    by_row = ByRow() if by_row is None else by_row
    weights = by_row.weights
    if weights is not None and weights.size != (count := len(read_columns(X, "X")[1][0])):
        raise ValueError(
            f"weights must have one number for each of the {count} rows, got {weights.size}"
        )
    if features is None:
        features, rows = feature_table.learn(X, standardize=standardize, weights=weights)
    else:
        rows = features.transform(X)
    labels = encode(y, categories)
    if len(rows) != labels.codes.size:
        raise ValueError(
            f"X has {len(rows)} rows and y has {labels.codes.size} labels: they must match"
        )
    check_paired(X, y)
    further = rows[:0] if unlabeled is None else features.transform(unlabeled, name="unlabeled")
    index = row_names(X, len(rows))
    if not pd.Index(index).is_unique:
        index = np.arange(len(rows))
    return Design(rows, labels, features, index, further, by_row)
