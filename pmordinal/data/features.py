"""Turns a user's table into a float matrix, in the same way for training and for prediction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from pmordinal.data.coding import Column, block, computed, levels_of
from pmordinal.data.columns import column_values, read_columns
from pmordinal.data.levels import show
from pmordinal.data.moments import moments, weighted_moments
from pmordinal.words import guess

LARGEST = 1e100  # largest entry: squared distances between rows must not overflow


@dataclass(frozen=True, eq=False)
class Features:
    """The rules by which a table becomes a float matrix: one-hot levels, centre and scale.

    Attributes
    ----------
    columns : tuple of Column
        The columns of the user's table.
    center, scale : ndarray, shape (d,)
        Numbers that are subtracted from the matrix columns, and numbers that they are then divided by.

    Examples
    --------
    >>> import pandas as pd
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

    @property
    def given(self) -> tuple[Column, ...]:
        """The columns that the user's table has: all but expressions."""
        return tuple(column for column in self.columns if column.expression is None)

    @property
    def offsets(self) -> list[int]:
        """The matrix columns that are known shifts, in the user's units."""
        return [j for j, column in enumerate(self.columns) if column.is_offset]

    def shift(self, Z: np.ndarray) -> np.ndarray | None:
        """Return the known shift of the latent function at rows of the matrix, shape (n,); None if there is none."""
        return Z[:, self.offsets].sum(axis=1) if self.offsets else None

    def counts_levels(self, name: str) -> bool:
        """Tell whether the numbers of a column are levels too, as those of k with ``C(k)`` in a formula."""
        computed = [c for c in self.columns if c.expression is not None and c.levels is not None]
        from pmordinal.data.expressions import (  # here: the parser takes long to import
            parse,
            variables,
        )

        return any(name in variables(parse(str(c.expression))) for c in computed)

    def transform(self, X: Any, name: str = "X") -> np.ndarray:
        """Return a table as a matrix, by the rules learned from the training table.

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
        columns = self.given
        wanted = [column.name for column in columns]
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
                    + guess(lost[0], [column for column in names if column not in wanted])
                )
            check_unique([column for column in names if column in needed], name)
            data = [data[place[column]] for column in wanted]
        blocks = [
            block(values, column, name)
            for values, column in zip(map(column_values, data), columns, strict=True)
        ]
        return self.standardized(np.concatenate(blocks, axis=1), name)

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
        """Return columns, levels, centre and scale as data that JSON can hold.

        Examples
        --------
        >>> features, _ = learn([1.0, 2.0])
        >>> features.to_json()
        {'columns': [{'name': 'x0', 'levels': None}], 'center': [0.0], 'scale': [1.0]}
        """
        columns = [column.to_json() for column in self.columns]
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
            Column(**item | {"levels": None if item["levels"] is None else tuple(item["levels"])})
            for item in data["columns"]
        )
        center, scale = (np.array(data[key], dtype=np.float64) for key in ("center", "scale"))
        return cls(columns, center, scale)

    def standardized(self, matrix: np.ndarray, name: str = "X") -> np.ndarray:
        """Return rows in the user's units as the model has them: the inverse of `untransform`.

        Parameters
        ----------
        matrix : ndarray, shape (n, at least the columns that are no expressions)
            Columns that are expressions are computed, whatever they are there.
        name : str
            What to call the rows in error messages.
        """
        matrix = self._with_expressions(matrix, name)
        with np.errstate(over="ignore", invalid="ignore"):
            matrix = (matrix - self.center) / self.scale
        bad = ~(np.abs(matrix) <= LARGEST).all(axis=0)  # also true for NaN
        if bad.any():
            raise ValueError(
                f"{name} column {self.names[int(np.argmax(bad))]!r} overflows when it is standardised or squared: "
                "rescale it, or take its logarithm"
            )
        return np.ascontiguousarray(matrix)

    def _with_expressions(self, matrix: np.ndarray, name: str) -> np.ndarray:
        expressions = [column for column in self.columns if column.expression is not None]
        if not expressions:
            return matrix
        plain = matrix[:, : len(self.center) - len(expressions)]  # the others are the last
        numbers = dict(zip(self.names, plain.T, strict=False))
        return np.column_stack([plain, *(computed(c, numbers, name) for c in expressions)])


def learn(
    X: Any, standardize: bool = False, name: str = "X", weights: np.ndarray | None = None
) -> tuple[Features, np.ndarray]:
    """Learn how a table becomes a float matrix; return these rules and the matrix.

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
    check_unique(names, name)
    data = [column_values(values) for values in data]
    columns = tuple(
        Column(column, levels_of(values, column, name))
        for column, values in zip(names, data, strict=True)
    )
    blocks = [block(values, column, name) for values, column in zip(data, columns, strict=True)]
    matrix = np.concatenate(blocks, axis=1)
    center, scale = np.zeros(matrix.shape[1]), np.ones(matrix.shape[1])
    if standardize:
        center, sd = moments(matrix) if weights is None else weighted_moments(matrix, weights)
        scale = common_scale(columns, sd)
    features = Features(columns, center, scale)
    check_unique(features.names, name)
    return features, features.standardized(matrix, name)


def common_scale(columns: Sequence[Column], sd: np.ndarray) -> np.ndarray:
    """Return the divisors of the matrix columns: one for all levels of a categorical column, shape (d,)."""
    # If each level had its own scale, a rare level would be far from all others, and a declared but
    # unseen one close to all of them. With one scale any two levels are equally far apart. The root
    # mean square over the seen levels keeps the sum of their variances the same as if each column
    # were standardised, and unseen levels do not change it.
    scale, start = sd.copy(), 0
    for column in columns:
        stop = start + len(column.names)
        if column.levels is not None:
            seen = sd[start:stop][sd[start:stop] > 0]
            if seen.size:
                scale[start:stop] = np.sqrt(np.mean(seen**2))
            elif len(column.levels) > 1:  # only one level occurs: as if all were equally frequent
                share = 1.0 / len(column.levels)
                scale[start:stop] = np.sqrt(share * (1.0 - share))
        start = stop
    return np.where(scale == 0, 1.0, scale)


def check_unique(names: Sequence[str], name: str) -> None:
    """Raise if two columns have one name."""
    if len(set(names)) < len(names):
        twice = [item for item in names if names.count(item) > 1]
        raise ValueError(
            f"{name} has more than one column named {twice[0]!r}: rename the column or the level"
        )
