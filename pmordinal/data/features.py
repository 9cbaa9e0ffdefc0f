"""The user's table at the border: a float matrix inside, names and levels kept for prediction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from pmordinal.data.columns import column_values, read_columns
from pmordinal.data.levels import show

LARGEST = 1e100  # entry of a row, whose square distances are numbers


@dataclass(frozen=True)
class Column:
    """One column of the user's table: numeric, or categorical with the levels it may take.

    Attributes
    ----------
    name : str
        The column's name.
    levels : tuple of str, optional
        The levels as text, in order; None for a numeric column.

    Examples
    --------
    >>> Column("colour", ("blue", "red")).names
    ('colour=blue', 'colour=red')
    """

    name: str
    levels: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the matrix columns that this column becomes."""
        if self.levels is None:
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels)


@dataclass(frozen=True, eq=False)
class Features:
    """How a table becomes a float matrix, remembered for prediction.

    Attributes
    ----------
    columns : tuple of Column
        The columns of the user's table.
    center, scale : ndarray, shape (d,)
        What is subtracted from the matrix columns, and what they are then divided by.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20, 30], "colour": ["red", "blue"]})
    >>> features, X = learn(table)
    >>> features.names
    ('age', 'colour=blue', 'colour=red')
    >>> X
    array([[20.,  0.,  1.],
           [30.,  1.,  0.]])
    """

    columns: tuple[Column, ...]
    center: np.ndarray
    scale: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the matrix columns: ``age``; ``colour=red``; ``x0``, ``x1``, … for arrays."""
        return tuple(name for column in self.columns for name in column.names)

    def transform(self, X: Any, name: str = "X") -> np.ndarray:
        """Return a table as the matrix the model was fitted on.

        Parameters
        ----------
        X : DataFrame or array_like, shape (n, number of columns)
            Frames are read by column name: the order is free and other columns are ignored.
            Arrays are read by position.
        name : str
            What to call `X` in error messages.

        Returns
        -------
        ndarray of float64, shape (n, d)
            A new C-contiguous array.

        Examples
        --------
        >>> features, _ = learn([[0.0], [2.0]], standardize=True)
        >>> features.transform([[3.0]])
        array([[2.]])
        """
        names, data = read_columns(X, name)
        wanted = [column.name for column in self.columns]
        if names is None:
            if len(data) != len(wanted):
                hint = ", or X.reshape(1, -1) for one row" if np.ndim(X) == 1 else ""
                raise ValueError(
                    f"{name} must have {len(wanted)} column(s), got {len(data)}: "
                    f"pass {show(wanted)} in this order{hint}"
                )
        else:
            needed = set(wanted)
            place = {column: j for j, column in enumerate(names)}
            lost = [column for column in wanted if column not in place]
            if lost:
                raise ValueError(
                    f"{name} lacks the column(s) {show(lost)}, it has {show(names)}: add or "
                    "rename them, or pass X.to_numpy() to go by position"
                )
            _check_unique([column for column in names if column in needed], name)
            data = [data[place[column]] for column in wanted]
        blocks = [
            _block(values, column, name)
            for values, column in zip(map(column_values, data), self.columns, strict=True)
        ]
        return self._standardize(np.concatenate(blocks, axis=1), name)

    def untransform(self, Z: Any) -> np.ndarray:
        """Return matrix columns in the user's units (undo centring and scaling).

        Parameters
        ----------
        Z : array_like, shape (n, d)
            Rows in the model's units.

        Returns
        -------
        ndarray of float64, shape (n, d)
            Columns as in `names`; one-hot columns are 0 or 1 again.

        Examples
        --------
        >>> features, X = learn([[0.0], [2.0]], standardize=True)
        >>> features.untransform(X)
        array([[0.],
               [2.]])
        """
        Z = np.asarray(Z, dtype=np.float64)
        if Z.ndim != 2 or Z.shape[1] != len(self.center):
            raise ValueError(
                f"Z must have shape (n, {len(self.center)}), got {Z.shape}: "
                "pass rows of what transform returned"
            )
        return Z * self.scale + self.center

    def to_json(self) -> dict[str, Any]:
        """Return columns, levels, centre and scale as plain data for JSON.

        Examples
        --------
        >>> features, _ = learn([1.0, 2.0])
        >>> features.to_json()
        {'columns': [{'name': 'x0', 'levels': None}], 'center': [0.0], 'scale': [1.0]}
        """
        columns = [
            {"name": column.name, "levels": None if column.levels is None else list(column.levels)}
            for column in self.columns
        ]
        return {"columns": columns, "center": self.center.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the features that `to_json` described.

        Examples
        --------
        >>> features, _ = learn([1.0, 2.0])
        >>> Features.from_json(features.to_json()).names
        ('x0',)
        """
        columns = tuple(
            Column(item["name"], None if item["levels"] is None else tuple(item["levels"]))
            for item in data["columns"]
        )
        center, scale = (np.array(data[key], dtype=np.float64) for key in ("center", "scale"))
        return cls(columns, center, scale)

    def _standardize(self, matrix: np.ndarray, name: str) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            matrix = (matrix - self.center) / self.scale
        bad = ~(np.abs(matrix) <= LARGEST).all(axis=0)  # a NaN is not below it either
        if bad.any():
            raise ValueError(
                f"{name} column {self.names[int(np.argmax(bad))]!r} overflows when it is standardised or squared: "
                "rescale it, or take its logarithm"
            )
        return np.ascontiguousarray(matrix)


def learn(
    X: Any, standardize: bool = False, name: str = "X", weights: np.ndarray | None = None
) -> tuple[Features, np.ndarray]:
    """Return how a table becomes a float matrix, and the matrix.

    Parameters
    ----------
    X : DataFrame or array_like, shape (n, number of columns)
        A table of pandas, polars, Arrow or xarray, an array, nested lists; a Series or 1-d array is
        one column. In tables, categorical and text columns become one 0/1 column a level, bools one
        column.
    standardize : bool
        Centre every matrix column by its mean and divide it by its standard deviation
        (population); constant columns are only centred. The levels of a factor share one scale, the
        root mean square of their standard deviations.
    name : str
        What to call `X` in error messages.
    weights : ndarray, shape (n,), optional
        How many rows each stands for, where means and standard deviations are taken.

    Returns
    -------
    Features
        To be kept for prediction.
    ndarray of float64, shape (n, d)
        A new C-contiguous array.

    Examples
    --------
    >>> features, X = learn([[1, 5], [3, 5]], standardize=True)
    >>> features.names
    ('x0', 'x1')
    >>> X
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    names, data = read_columns(X, name)
    if names is None:
        names = [f"x{j}" for j in range(len(data))]
    _check_unique(names, name)
    data = [column_values(values) for values in data]
    columns = tuple(
        Column(column, _levels(values, column, name))
        for column, values in zip(names, data, strict=True)
    )
    blocks = [_block(values, column, name) for values, column in zip(data, columns, strict=True)]
    matrix = np.concatenate(blocks, axis=1)
    center, scale = np.zeros(matrix.shape[1]), np.ones(matrix.shape[1])
    if standardize:
        # Taken relative to the largest entry, so that no square over- or underflows and a
        # constant column has a standard deviation of exactly zero.
        largest = np.abs(matrix).max(axis=0)
        largest[largest == 0] = 1.0
        relative = matrix / largest
        mean, sd = _moments(relative, weights)
        center, scale = largest * mean, largest * sd
        scale = _common(columns, scale)
    features = Features(columns, center, scale)
    _check_unique(features.names, name)
    return features, features._standardize(matrix, name)


def _moments(matrix: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of columns, of the rows that these stand for."""
    if weights is None:
        return matrix.mean(axis=0), matrix.std(axis=0)
    w = np.broadcast_to(weights[:, None], matrix.shape)
    total = w.sum(axis=0)  # summed as the columns are, so that a constant one has no deviation
    mean = (w * matrix).sum(axis=0) / total
    return mean, np.sqrt((w * (matrix - mean) ** 2).sum(axis=0) / total)


def _common(columns: Sequence[Column], sd: np.ndarray) -> np.ndarray:
    """Return what the matrix columns are divided by, given their standard deviations, shape (d,)."""
    # With a scale of its own a rare level would be far from all others, and one that is declared but
    # not seen close to all of them. With one scale any two levels are equally far apart. The root
    # mean square over the seen levels keeps the sum of the block's variances at what it is when each
    # column is standardised, and levels that nobody has do not change it.
    scale, start = sd.copy(), 0
    for column in columns:
        stop = start + len(column.names)
        if column.levels is not None:
            seen = sd[start:stop][sd[start:stop] > 0]
            if seen.size:
                scale[start:stop] = np.sqrt(np.mean(seen**2))
            elif len(column.levels) > 1:  # rows of one level: as if all were equally frequent
                share = 1.0 / len(column.levels)
                scale[start:stop] = np.sqrt(share * (1.0 - share))
        start = stop
    return np.where(scale == 0, 1.0, scale)


def _check_unique(names: Sequence[str], name: str) -> None:
    if len(set(names)) < len(names):
        twice = [item for item in names if names.count(item) > 1]
        raise ValueError(
            f"{name} has more than one column named {twice[0]!r}: rename the column or the level"
        )


def _levels(values: Any, column: str, name: str) -> tuple[str, ...] | None:
    """Return the levels of a categorical or text column, None for a numeric one."""
    if isinstance(values, pd.Categorical):
        levels = [str(level) for level in values.categories]
    elif _is_text(values):
        levels = sorted({str(value) for value in values if not pd.isna(value)})
    else:
        return None
    if len(set(levels)) < len(levels):
        raise ValueError(
            f"{name} column {column!r} has levels that read the same as text: rename them"
        )
    return tuple(levels)


def _is_text(values: Any) -> bool:
    if not pd.api.types.is_object_dtype(values) and not pd.api.types.is_string_dtype(values):
        return False
    return pd.api.types.infer_dtype(values, skipna=True) in ("string", "empty")


def _block(values: Any, column: Column, name: str) -> np.ndarray:
    """Return one column of the user's as one or more matrix columns, shape (n, k)."""
    where = f"{name} column {column.name!r}"
    missing = np.asarray(pd.isna(values), dtype=bool)
    if missing.any():
        raise ValueError(
            f"{where} has {missing.sum()} missing value(s), the first in row "
            f"{int(np.argmax(missing))}: impute them or drop those rows"
        )
    if column.levels is None:
        out = _numbers(values, where)
        infinite = ~np.isfinite(out)
        if infinite.any():
            row = int(np.argmax(infinite))
            raise ValueError(
                f"{where} has {infinite.sum()} infinite value(s), the first in row {row} "
                f"({out[row]}): replace them or drop those rows"
            )
        return out[:, None]
    place = {level: code for code, level in enumerate(column.levels)}
    codes = np.array([place.get(str(value), -1) for value in values], dtype=np.int64)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise ValueError(
            f"{where} has a level that was not there when the model was fitted, "
            f"{str(values[row])!r} in row {row}; known are {show(column.levels)}: "
            "recode it, or fit with a categorical that declares it"
        )
    return (codes[:, None] == np.arange(len(column.levels))).astype(np.float64)


def _numbers(values: Any, where: str) -> np.ndarray:
    dtype = what = values.dtype
    if pd.api.types.is_object_dtype(dtype):
        what = pd.api.types.infer_dtype(values, skipna=False)
        numeric = what in ("integer", "floating", "mixed-integer-float", "boolean", "decimal")
    else:
        numeric = pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
        numeric &= not pd.api.types.is_complex_dtype(dtype)
    if numeric:
        try:
            with np.errstate(over="ignore"):  # a long double becomes inf, which is then refused
                return np.asarray(values, dtype=np.float64)
        except OverflowError as error:
            raise ValueError(f"{where} has a number beyond 1e308: rescale it") from error
    if any(word in str(what) for word in ("date", "time", "period")):
        remedy = "turn it into numbers, e.g. days since a start: (t - t.min()).dt.days"
    elif "complex" in str(what):
        remedy = "pass the real and the imaginary part as two columns"
    elif "str" in str(what):
        remedy = "it was numeric when the model was fitted, make it so again"
    else:
        remedy = "make all its values numbers, or all of them text"
    raise TypeError(f"{where} is not numeric ({what}): {remedy}")
