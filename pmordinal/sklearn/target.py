"""The target of a classifier: ordered labels, or codes that a scikit-learn meta-estimator made of them.

Some meta-estimators hand the codes of a label encoder to the estimators that they clone and fit: code k
is the k-th of the labels that occur, sorted. The order of the labels is lost, and so are their
names; both come back from `categories`, where all of them occur.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from pmordinal.data.columns import column_values, is_polars
from pmordinal.data.foreign import as_pandas
from pmordinal.data.labels import Labels, declares_order, encode
from pmordinal.data.levels import check_categories, check_levels, show
from pmordinal.errors import LabelOrderWarning, warn

UNLABELLED = -1  # as in sklearn.semi_supervised


@dataclass(frozen=True, eq=False)
class Target:
    """The target of a classifier after it was read.

    Attributes
    ----------
    labels : Labels
        The labels of the rows, none of them missing but where some may be.
    classes : ndarray, shape (r,)
        All classes as `y` names them, sorted: what scikit-learn calls ``classes_``.
    positions : ndarray of int, shape (r,)
        The place of each of `classes` between the lowest label, 0, and the highest, r − 1.
    """

    labels: Labels
    classes: np.ndarray
    positions: np.ndarray

    @property
    def levels(self) -> np.ndarray:
        """The labels from lowest to highest, shape (r,)."""
        return np.asarray(self.labels.decode(np.arange(self.labels.n_classes)))


def labelled_rows(y: Any, categories: Iterable[Any] | None) -> np.ndarray:
    """Return the mask of the rows with a label: neither missing nor −1, scikit-learn's sign of an unlabelled row.

    Where −1 is one of the `categories`, or a level of a categorical, it is a label.

    Parameters
    ----------
    y : array-like, shape (n,)
    categories : iterable or None
        All labels.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> labelled_rows([2, -1, 1], None).tolist(), labelled_rows(["low", None, "high"], None).tolist()
    ([True, False, True], [True, False, True])
    """
    y = _one_column(y)
    values = pd.Series(np.asarray(y, dtype=object))
    labelled = np.array(values.notna(), dtype=bool)
    dtype = getattr(y, "dtype", None)
    levels = dtype.categories if isinstance(dtype, pd.CategoricalDtype) else categories
    if levels is not None and any(level == UNLABELLED for level in levels):
        return labelled
    labelled[labelled] = [value != UNLABELLED for value in values[labelled]]
    return labelled


def read_target(y: Any, categories: Iterable[Any] | None, *, may_be_codes: bool = False) -> Target:
    """Return the target of a classifier after scikit-learn's checks.

    Parameters
    ----------
    y : array-like, shape (n,)
        Labels, none missing.
    categories : iterable or None
        All labels from lowest to highest.
    may_be_codes : bool
        Whether `y` may hold the codes of a label encoder instead of the labels in `categories`.

    Returns
    -------
    Target

    Examples
    --------
    >>> target = read_target(["low", "high"], ["low", "high"])
    >>> target.classes.tolist(), target.positions.tolist(), target.labels.codes.tolist()
    (['high', 'low'], [1, 0], [0, 1])
    """
    is_plain = isinstance(y, np.ndarray) and y.dtype == np.intp  # as label encoders return
    y = _one_column(y)
    if categories is not None:
        categories = check_categories(categories)
    has_levels = isinstance(getattr(y, "dtype", None), pd.CategoricalDtype)
    if declares_order(y) or (has_levels and categories is not None):
        labels = encode(y, categories)
    else:
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if categories is None:
            labels = encode(y, _sorted_levels(y))
        else:
            if is_plain and _are_codes(y, categories, may_be_codes):
                return _decoded(y, categories)
            labels = encode(y, categories)
    if not labels.observed.all():
        raise ValueError(
            "y contains NaN: drop the rows without a label, or learn from them with semisupervised=True"
        )
    levels = np.asarray(labels.decode(np.arange(labels.n_classes)))
    positions = _sorting(levels.tolist())
    return Target(labels, levels[positions], positions)


def _one_column(y: Any) -> Any:
    """Return y, or the only column of a table y, with its order and type."""
    y = as_pandas(y, "y")
    if hasattr(y, "columns") and len(y.columns) == 1:
        column_or_1d(np.asarray(y), warn=True)  # gives scikit-learn's own warning
        y = y[y.columns[0]]
    if is_polars(y) and hasattr(y, "dtype"):  # keeps the order of an Enum
        y = column_values(y)
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, pd.api.extensions.ExtensionDtype) and hasattr(dtype, "numpy_dtype"):
        if not pd.isna(y).any():  # keeps nullable integers from becoming floats
            y = np.asarray(y, dtype=dtype.numpy_dtype)
    return y


def _sorted_levels(y: np.ndarray) -> list[Any]:
    """Return the labels that occur, sorted as scikit-learn does; warn if that order has no meaning."""
    levels = np.unique(y).tolist()
    if len(levels) < 2:
        raise ValueError(f"y has 1 class, {show(levels)}: declare the others with categories=[...]")
    if any(isinstance(level, str) for level in levels):
        warn(
            f"y holds text without an order, which is sorted alphabetically: {show(levels)} from lowest "
            "to highest. Pass categories=[...] in the right order, or an ordered pd.Categorical",
            LabelOrderWarning,
        )
    return levels


def _sorting(levels: list[Any]) -> np.ndarray:
    """Return the positions that sort the levels; 0, 1, … if they cannot be sorted."""
    try:
        return np.array(sorted(range(len(levels)), key=levels.__getitem__))
    except TypeError:  # text and numbers: scikit-learn cannot sort them either
        return np.arange(len(levels))


def _are_codes(y: np.ndarray, categories: tuple[Any, ...], may_be_codes: bool) -> bool:
    """Tell whether integers are codes of a label encoder, rather than labels in `categories`."""
    r = len(categories)
    present = np.unique(y).tolist()
    if present[0] < 0 or present[-1] >= r:
        return False
    ordered = [categories[k] for k in _sorting(list(categories))]
    if set(present) <= set(categories):
        if may_be_codes and any(ordered[k] != k for k in present):
            warn(
                f"y holds {show(present)}, which may be labels or a label encoder's codes: they are "
                f"taken as labels. Number the labels from 0 and pass categories=range({r}), where "
                "both are the same",
                LabelOrderWarning,
            )
        return False
    recipe = f"Number the labels in order, 0 to {r - 1}, as y, and pass categories=range({r})"
    if not may_be_codes:
        raise ValueError(
            f"y holds the integers {show(present)}, but the categories are {show(categories, 10)}: "
            f"pass labels that are in categories. {recipe} if it is codes that you have"
        )
    if present[-1] < r - 1:
        raise ValueError(
            f"y holds {show(present)}, the codes of a label encoder, and there are {r} categories, "
            f"{show(categories, 10)}: it is not known which of them did not occur. {recipe}"
        )
    return True


def _decoded(y: np.ndarray, categories: tuple[Any, ...]) -> Target:
    """Return the target for codes of the sorted categories; its classes are the codes."""
    check_levels(categories, "y", given=True)
    positions = _sorting(list(categories))
    kind = encode(list(categories), categories)
    labels = Labels(positions[y], kind.categories, kind.kind, kind.dtype)
    return Target(labels, np.arange(len(categories)), positions)
