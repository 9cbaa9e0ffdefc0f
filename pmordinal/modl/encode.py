"""Encodes users' columns as indices of their distinct values; decides which are numeric or categorical."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pmordinal.data.columns import column_values, is_polars
from pmordinal.data.foreign import as_pandas
from pmordinal.errors import warn


@dataclass(frozen=True)
class EncodedColumn:
    """One encoded column.

    Parameters
    ----------
    code : ndarray of int64, shape (n,)
        Index of each row's value, −1 where missing.
    values : ndarray
        Distinct values, sorted where numeric; labels where categorical.
    categorical : bool
        Whether the values have no order.
    """

    code: np.ndarray
    values: np.ndarray
    categorical: bool


def as_series(x: Any, name: str) -> pd.Series:
    """Return one column as a pandas Series; raise if it is not one-dimensional."""
    x = as_pandas(x, name)
    if isinstance(x, pd.Series):
        return x
    if is_polars(x) and hasattr(x, "dtype"):  # keeps levels and their order
        x = column_values(x)
    if isinstance(x, pd.Categorical):
        return pd.Series(x)
    values = x.to_numpy() if hasattr(x, "to_numpy") else np.asarray(x)
    if values.ndim != 1:
        raise ValueError(
            f"{name} must be one column, got an array of shape {values.shape}: pass a 1-D array, or use "
            "rank_predictors or RankRegressor for many columns"
        )
    # No type inference for objects: in some versions of pandas it fails for numbers beyond 1e308.
    return pd.Series(values, dtype=object if values.dtype == object else None)


def is_categorical(x: pd.Series) -> bool:
    """Tell whether a column is categorical, that is, not of numbers."""
    if isinstance(x.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(x):
        return True
    if pd.api.types.is_numeric_dtype(x):
        return False
    if x.dtype == object:
        present = x[x.notna()]
        return not all(isinstance(v, int | float | np.number) for v in present)
    return True


def to_floats(x: pd.Series, name: str) -> np.ndarray:
    """Return a numeric column as floats with NaN for missing; raise if there is an infinity."""
    if pd.api.types.is_complex_dtype(x):
        raise ValueError(f"Complex data not supported: {name} must be real")
    try:
        values = x.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} cannot be read as numbers (dtype {x.dtype}): each argument must be a string or a real "
            "number; pass categorical=True to group it by labels"
        ) from error
    except OverflowError:  # a huge Python integer
        values = np.array([np.inf])
    if np.isinf(values).any():
        raise ValueError(
            f"{name} contains infinity or a number beyond 1e308: replace it by a finite value, or by "
            "NaN to make it missing"
        )
    return values


def _dense(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return value indices (−1 for NaN) and the sorted distinct values."""
    order = np.argsort(values, kind="stable")  # NaN sorts last
    present = len(values) - int(np.count_nonzero(np.isnan(values)))
    ranked = values[order[:present]]
    new = np.ones(present, dtype=bool)
    new[1:] = ranked[1:] != ranked[:-1]
    code = np.full(len(values), -1, dtype=np.int64)
    code[order[:present]] = np.cumsum(new) - 1
    return code, ranked[new]


def encode_predictor(x: Any, *, categorical: bool | None = None, name: str = "x") -> EncodedColumn:
    """Return a predictor as indices of its distinct values.

    Parameters
    ----------
    x : array-like, shape (n,)
        Numbers, or labels of any hashable kind; NaN, None and NA are missing.
    categorical : bool, optional
        Whether to treat `x` as unordered labels; decided by the type by default.
    name : str, default "x"
        For error messages.

    Returns
    -------
    EncodedColumn

    Examples
    --------
    >>> encode_predictor([2.5, None, 1.0, 2.5]).code.tolist()
    [1, -1, 0, 1]
    >>> encode_predictor(["b", "a", "b"]).values.tolist()
    ['a', 'b']
    """
    series = as_series(x, name)
    if categorical is None:
        if pd.api.types.is_datetime64_any_dtype(series) or series.dtype.kind == "m":
            raise TypeError(
                f"{name} holds dates or durations: turn them into numbers (days since a start), or pass "
                "categorical=True to group them as labels"
            )
        categorical = is_categorical(series)
    if not categorical:
        code, values = _dense(to_floats(series, name))
        return EncodedColumn(code, values, False)
    try:
        code, found = pd.factorize(series, use_na_sentinel=True)
    except TypeError as error:
        raise TypeError(
            f"{name} holds unhashable values: each argument must be a string or a number"
        ) from error
    labels = np.asarray(found, dtype=object)
    order = sorted(range(len(labels)), key=lambda k: (type(labels[k]).__name__, labels[k]))
    position = np.empty(len(labels) + 1, dtype=np.int64)
    position[order] = np.arange(len(labels))
    position[-1] = -1
    return EncodedColumn(position[code], labels[order], True)


def encode_target(y: Any, name: str = "y") -> tuple[np.ndarray, list[Any] | None]:
    """Return the target as floats with NaN for missing, and its labels if it is ordered categorical.

    Examples
    --------
    >>> encode_target(pd.Categorical(["low", "high"], ["low", "high"], ordered=True))
    (array([0., 1.]), ['low', 'high'])
    """
    series = as_series(y, name)
    if isinstance(series.dtype, pd.CategoricalDtype):
        if not series.cat.ordered:
            raise ValueError(
                f"{name} is an unordered categorical: the target needs an order, say "
                "pd.Categorical(y, categories=[...], ordered=True)"
            )
        codes = series.cat.codes.to_numpy().astype(float)
        return np.where(codes < 0, np.nan, codes), list(series.cat.categories)
    if is_categorical(series) and not pd.api.types.is_bool_dtype(series):
        raise TypeError(
            f"{name} holds labels (dtype {series.dtype}): the target needs numbers or an ordered "
            "pd.Categorical"
        )
    return to_floats(series, name), None


def observed(y: np.ndarray, name: str = "y") -> np.ndarray:
    """Return the mask of rows with a target; warn about missing ones, raise if all are missing."""
    seen = ~np.isnan(y)
    if not seen.any():
        raise ValueError(
            f"no row has a value of {name} ({len(y)} rows given): at least one is needed"
        )
    left_out = len(y) - int(seen.sum())
    if left_out:
        warn(
            f"{left_out} of {len(y)} rows have a missing {name} and are left out; drop them beforehand to "
            "silence this"
        )
    return seen


def midpoints(values: np.ndarray) -> np.ndarray:
    """Return a number strictly above each value and not above the next: b_j of [HB2007, section 3.1].

    The paper's subscript slips: b_j lies between the sorted values β_j and β_j + 1.

    Examples
    --------
    >>> midpoints(np.array([1.0, 2.0, 4.0])).tolist()
    [1.5, 3.0]
    """
    low, high = values[:-1], values[1:]
    middle = 0.5 * low + 0.5 * high
    return np.where((middle > low) & (middle <= high), middle, high)
