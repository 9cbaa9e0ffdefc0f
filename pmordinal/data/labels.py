"""Ordered labels as codes 0, …, r−1, and codes back to labels of the user's type."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd

from pmordinal.data.foreign import as_pandas
from pmordinal.data.levels import (
    check_categories,
    check_levels,
    check_types,
    infer_levels,
    plain,
    refuse,
    show,
    unknown_labels,
)

_MISSING = -1


@dataclass(frozen=True, eq=False)
class Labels:
    """Ordinal labels as integer codes; `decode` turns codes back into labels.

    Attributes
    ----------
    codes : ndarray of int64, shape (n,)
        The class of each row, 0, …, r−1; −1 marks a missing label (an unlabelled row).
    categories : tuple, length r
        The user's labels from lowest to highest, levels that do not occur included.
    kind : {"array", "categorical", "enum"}
        What `decode` returns: a plain array, a ``pd.Categorical`` or a polars Enum series.
    dtype : str
        The dtype of the labels that `decode` returns.

    Examples
    --------
    >>> labels = encode(["low", "high", None], categories=["low", "medium", "high"])
    >>> labels.codes
    array([ 0,  2, -1])
    >>> labels.threshold_names
    ['low|medium', 'medium|high']
    """

    codes: np.ndarray
    categories: tuple[Any, ...]
    kind: str = "array"
    dtype: str = "object"

    @property
    def n_classes(self) -> int:
        """The number of levels r, including those that do not occur."""
        return len(self.categories)

    @property
    def class_names(self) -> list[str]:
        """The levels as text, from lowest to highest."""
        return [str(category) for category in self.categories]

    @property
    def threshold_names(self) -> list[str]:
        """Names of the r−1 thresholds, ``low|medium`` between low and medium."""
        names = self.class_names
        return [f"{below}|{above}" for below, above in pairwise(names)]

    @property
    def observed(self) -> np.ndarray:
        """Mask of the rows whose label is not missing, shape (n,)."""
        return self.codes != _MISSING

    @property
    def counts(self) -> np.ndarray:
        """Number of rows of each level, shape (r,)."""
        return np.bincount(self.codes[self.observed], minlength=self.n_classes)

    def with_codes(self, codes: Any) -> Self:
        """Return the labels with new class codes in the labelled rows.

        Parameters
        ----------
        codes : array_like of int, shape (number of labelled rows,)
            Classes 0, …, r−1.

        Examples
        --------
        >>> encode(["low", None, "high"], categories=["low", "high"]).with_codes([1, 0]).codes
        array([ 1, -1,  0])
        """
        codes, seen = np.asarray(codes), self.observed
        if codes.shape != (seen.sum(),):
            raise ValueError(
                f"observed labels: the model has {seen.sum()} rows with a label, got class codes of shape {codes.shape}"
            )
        wrong = ~np.isin(codes, np.arange(self.n_classes))
        if wrong.any():
            raise ValueError(
                f"observed labels: class codes are 0 to {self.n_classes - 1} for {show(self.class_names)}, "
                f"got {codes[wrong][0]}: observe the positions of the labels in this list"
            )
        new = self.codes.copy()
        new[seen] = codes
        return replace(self, codes=new)

    def without(self, rows: np.ndarray) -> Self:
        """Return the labels with some of the labelled rows, a mask of these, made missing.

        Examples
        --------
        >>> encode(["low", None, "high"], categories=["low", "high"]).without([True, False]).codes
        array([-1, -1,  1])
        """
        new = self.codes.copy()
        new[np.flatnonzero(self.observed)[np.asarray(rows)]] = _MISSING
        return replace(self, codes=new)

    def decode(self, codes: Any) -> Any:
        """Return the labels for given class codes, in the type of the user's labels.

        Parameters
        ----------
        codes : array_like of int, shape (m,)
            Classes 0, …, r−1; −1 becomes NaN, NA or null where the dtype has room for it.

        Returns
        -------
        ndarray, pandas array, pd.Categorical or polars.Series, shape (m,)
            As what was encoded; a polars Enum becomes a ``pd.Categorical`` where polars is not
            installed.

        Examples
        --------
        >>> encode([3, 1, 2]).decode([0, 0, 2])
        array([1, 1, 3])
        """
        codes = np.asarray(codes)
        if codes.size == 0:
            codes = codes.astype(np.int64)
        if codes.ndim != 1 or codes.dtype.kind not in "iu":
            raise ValueError(
                f"codes must be a 1-d array of integers, got shape {codes.shape} and dtype "
                f"{codes.dtype}: decode one row of draws at a time"
            )
        codes = codes.astype(np.int64)
        wrong = codes[(codes < _MISSING) | (codes >= self.n_classes)]
        if wrong.size:
            raise ValueError(
                f"codes must be between 0 and {self.n_classes - 1} (or -1 for a missing label), "
                f"got {wrong[0]}"
            )
        missing = codes == _MISSING
        if self.kind == "enum":
            try:
                import polars
            except ImportError:
                pass
            else:
                values = [None if code == _MISSING else self.categories[code] for code in codes]
                return polars.Series(values, dtype=polars.Enum(list(self.categories)))
        if self.kind in ("categorical", "enum"):
            index = pd.Index(list(self.categories), dtype=self.dtype)
            return pd.Categorical.from_codes(codes, categories=index, ordered=True)
        levels = _as_array(self.categories, self.dtype)
        if not isinstance(levels, np.ndarray):
            return levels.take(codes, allow_fill=True)
        if missing.any() and levels.dtype.kind not in "fO":
            raise ValueError(
                f"codes hold -1 (a missing label), which {levels.dtype} labels cannot express: "
                "decode codes[codes >= 0]"
            )
        out = levels[codes]
        if missing.any():
            out[missing] = np.nan
        return out

    def to_json(self) -> dict[str, Any]:
        """Return kind, dtype and categories as data that JSON can hold, without the codes.

        Examples
        --------
        >>> encode([1, 2, 3]).to_json()
        {'kind': 'array', 'dtype': 'int64', 'categories': [1, 2, 3]}
        """
        categories = [_interval_to_json(category) for category in self.categories]
        return {"kind": self.kind, "dtype": self.dtype, "categories": categories}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], codes: Any = ()) -> Self:
        """Return the labels that `to_json` described, with the given codes (by default none).

        Examples
        --------
        >>> labels = encode([1, 2, 3])
        >>> Labels.from_json(labels.to_json(), codes=labels.codes).codes
        array([0, 1, 2])
        """
        categories = tuple(_interval_from_json(category) for category in data["categories"])
        check_levels(categories, "the saved labels", given=False)
        codes = np.array(codes, dtype=np.int64)
        return cls(codes, categories, kind=str(data["kind"]), dtype=str(data["dtype"]))


def encode(y: Any, categories: Iterable[Any] | None = None, name: str = "y") -> Labels:
    """Return labels as codes 0, …, r−1, with what it takes to decode them.

    Parameters
    ----------
    y : array_like, shape (n,)
        Ordered ``pd.Categorical``, polars Enum, integers, whole floats, bools; or, with
        `categories`, text and anything of the above. NaN, None, NA and null mean unlabelled.
    categories : sequence, optional
        All levels from lowest to highest. Needed for text, unordered categoricals and integers
        with a gap; it overrules the order that `y` brings along.
    name : str
        What to call `y` in error messages.

    Returns
    -------
    Labels
        Levels that are declared but not observed keep their place.

    Examples
    --------
    >>> encode([2, 1, 3, 2]).codes
    array([1, 0, 2, 1])
    >>> encode([1, 2, 4], categories=[1, 2, 3, 4]).counts
    array([1, 1, 0, 1])
    """
    values, kind, dtype, declared, ordered = _read(y, name)
    missing = np.asarray(pd.isna(values), dtype=bool)
    if len(values) == 0:
        raise ValueError(f"{name} is empty: pass at least one label")
    if missing.all():
        raise ValueError(f"{name} has no label at all, all {len(values)} are missing: label some")
    present = values[~missing].tolist()
    check_types(present if declared is None else declared, name)

    if categories is not None:
        levels = check_categories(categories)
        if declared is not None and not set(declared) <= set(levels):
            lost = [level for level in declared if level not in set(levels)]
            raise ValueError(
                f"categories must hold every level of the categorical {name}, but lacks "
                f"{show(lost)}: add them, or drop unused ones with remove_unused_categories()"
            )
    elif declared is not None:
        if not ordered:
            raise ValueError(
                f"{name} is an unordered categorical with levels {show(declared)}: pass "
                "categories=[...] from lowest to highest, or make it ordered "
                "(pandas: y.cat.set_categories([...], ordered=True); "
                "polars: y.cast(pl.Enum([...])))"
            )
        levels = declared
    else:
        levels = infer_levels(present, name)
    check_levels(levels, name, given=categories is not None)

    place = {level: code for code, level in enumerate(levels)}
    codes = np.full(len(values), _MISSING, dtype=np.int64)
    codes[~missing] = [place.get(value, _MISSING - 1) for value in present]
    strangers = codes == _MISSING - 1
    if strangers.any():
        raise unknown_labels(values[strangers], int(np.argmax(strangers)), levels, name)
    if kind == "enum" and not all(isinstance(level, str) for level in levels):
        kind = "categorical"
    return Labels(codes, levels, kind, _dtype_for(levels, kind, dtype, bool(missing.any())))


def declares_order(y: Any) -> bool:
    """Tell whether labels come with their order: an ordered ``pd.Categorical`` or a polars Enum.

    Examples
    --------
    >>> declares_order(pd.Categorical(["low"], ["low", "high"], ordered=True)), declares_order([1, 2])
    (True, False)
    """
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype):
        return bool(dtype.ordered)
    return type(y).__module__.startswith("polars") and type(dtype).__name__ == "Enum"


def _read(y: Any, name: str) -> tuple[np.ndarray, str, str, tuple[Any, ...] | None, bool]:
    """Return values (an object array), kind, dtype, declared levels (if any), whether they are ordered."""
    if isinstance(y, (str, bytes)) or y is None:
        raise TypeError(f"{name} must be a sequence of labels, got {y!r}")
    y = as_pandas(y, name)
    if isinstance(y, pd.DataFrame) or hasattr(y, "columns"):
        raise ValueError(f"{name} must be one column of labels, got a table: pass one column of it")
    kind, declared, ordered = "array", None, False
    if type(y).__module__.startswith("polars") and hasattr(y, "to_list"):
        polars_type = type(y.dtype).__name__
        if polars_type == "Enum":
            y = pd.Categorical(y.to_list(), categories=y.dtype.categories.to_list(), ordered=True)
            kind = "enum"
        elif polars_type == "Categorical":
            y = pd.Categorical(y.to_list())
        elif polars_type in ("String", "Boolean", "Int128", "UInt128") or y.null_count():
            y = y.to_list()
        else:
            y = y.to_numpy()
    if isinstance(getattr(y, "dtype", None), pd.CategoricalDtype):
        y = pd.Categorical(y)
        kind = "enum" if kind == "enum" else "categorical"
        declared, ordered = tuple(map(plain, y.categories)), bool(y.ordered)
        lookup = _as_array((*declared, None), "object")  # code −1 gives None, the last
        return lookup[y.codes], kind, str(y.categories.dtype), declared, ordered

    if isinstance(y, np.ma.MaskedArray):
        y = y.tolist()  # masked entries become None
    if isinstance(y, (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
        dtype = "object" if pd.api.types.is_string_dtype(y.dtype) else str(y.dtype)
        raw = np.asarray(y, dtype=object)
    elif hasattr(y, "__array__"):
        raw = np.asarray(y)
        dtype = "str" if raw.dtype.kind in "UT" else str(raw.dtype)
    else:
        raw, dtype = np.asarray(y, dtype=object), "list"
    if raw.ndim != 1:
        raise ValueError(
            f"{name} must be 1-dimensional, got shape {raw.shape}: "
            "pass one column, or y.ravel() if it is a single column already"
        )
    if raw.dtype.kind in "MmcSV":
        refuse(f"dtype {raw.dtype}", name)
    values = raw.astype(object)
    if dtype == "list":
        dtype = _list_dtype(values)
    return values, kind, dtype, declared, ordered


def _list_dtype(values: np.ndarray) -> str:
    """Return the dtype of labels that came as a list, a nullable one if there is a None."""
    full = not np.any(pd.isna(values))
    match pd.api.types.infer_dtype(values, skipna=True):
        case "integer":
            return "int64" if full else "Int64"
        case "boolean":
            return "bool" if full else "boolean"
        case "floating" | "mixed-integer-float":
            return "float64"
        case "string":
            return "str" if full else "object"
    return "object"


def _dtype_for(levels: tuple[Any, ...], kind: str, dtype: str, missing: bool) -> str:
    """Return `dtype` if it can hold every level, otherwise the nearest that can."""
    try:
        held = _as_array(levels, dtype) if kind == "array" else pd.Index(levels, dtype=dtype)
        if held.tolist() == list(levels):  # NumPy text drops a NUL at the end
            return dtype
    except (TypeError, ValueError, OverflowError):
        pass
    if kind != "array":
        return str(pd.Index(levels).dtype)
    numeric = all(isinstance(level, (int, float)) for level in levels)
    return str(np.asarray(levels).dtype) if numeric and not missing else "object"


def _as_array(levels: tuple[Any, ...], dtype: str) -> Any:
    """Return the levels as a NumPy array, or as a pandas array if the dtype is pandas' own."""
    if dtype == "object":
        out = np.empty(len(levels), dtype=object)
        out[:] = levels
        return out
    if dtype == "str":
        return np.array(levels, dtype=np.str_)
    array = pd.array(list(levels), dtype=dtype)  # type: ignore[call-overload]
    return array.to_numpy() if isinstance(array, pd.arrays.NumpyExtensionArray) else array


def _interval_to_json(value: Any) -> Any:
    # pd.cut labels its bins by intervals, often with infinite ends, which JSON lacks.
    if not isinstance(value, pd.Interval):
        return value
    ends = [str(end) if np.isinf(end) else plain(end) for end in (value.left, value.right)]
    return {"interval": ends, "closed": value.closed}


def _interval_from_json(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    left, right = (float(end) if isinstance(end, str) else end for end in value["interval"])
    return pd.Interval(left, right, closed=value["closed"])
