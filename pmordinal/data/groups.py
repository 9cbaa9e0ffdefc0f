"""Groups of rows: the column of a table that says whose thresholds cut a row, or whose noise is on it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from pmordinal import checks
from pmordinal.data.columns import column_values
from pmordinal.data.features import Column
from pmordinal.data.foreign import as_pandas
from pmordinal.data.levels import plain, show
from pmordinal.words import guess

# Names of dimensions and variables that models and sampled trees already have.
RESERVED = frozenset(
    "obs feature threshold class chain draw __sample__ "
    "y f f_white noise noise_sd noise_z noise_population amplitude lengthscale coefficients "
    "column common_lengthscale lengthscale_ratio linear_amplitude rough_amplitude rough_lengthscale "
    "main pair main_term pair_term".split()
)


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row, by the name of its column.

    Attributes
    ----------
    name : str
        Of the column, and of a dimension of the model.
    levels : tuple
        The groups, in order: those declared and not seen too.
    codes : ndarray of int, shape (n,)
        Positions among the levels.
    has_population : bool
        Whether there are parameters for rows of other groups, after those of the levels.

    Examples
    --------
    >>> raters = Groups.of("rater", ["b", "a", "b"])
    >>> raters.levels, raters.codes.tolist()
    (('a', 'b'), [1, 0, 1])
    >>> raters.at(pd.DataFrame({"rater": ["a", "c"]})).tolist()
    [0, 2]
    """

    name: str
    levels: tuple[Any, ...]
    codes: np.ndarray
    has_population: bool = True

    @classmethod
    def of(cls, name: str, values: Any, table: str = "X") -> Self:
        """Return groups from a column of values, categorical or not."""
        groups = pd.Categorical(values)
        if np.any(groups.codes < 0):
            raise ValueError(
                f"{table} column {name!r} has {np.sum(groups.codes < 0)} missing value(s), the first in row "
                f"{int(np.argmin(groups.codes))}: fill them in or drop those rows"
            )
        levels = tuple(map(plain, groups.categories))
        if len({_text(level) for level in levels}) < len(levels):
            raise ValueError(
                f"{table} column {name!r} has levels that read the same, {show(levels)}: rename them"
            )
        return cls(name, levels, groups.codes.astype(np.int64))

    @property
    def column(self) -> Column:
        """The column of a table that has the groups."""
        return Column(self.name, tuple(_text(level) for level in self.levels))

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return len(self.levels) + self.has_population

    def take(self, index: np.ndarray) -> Self:
        """Return the groups of some of the rows."""
        return replace(self, codes=self.codes[index])

    def at(self, Xnew: Any, argument: str = "by") -> np.ndarray:
        """Return the group of each new row; those that are not known have the position after the last."""
        values = column(Xnew, self.name, "Xnew", argument)
        place = {_text(level): code for code, level in enumerate(self.levels)}
        found = Groups.of(self.name, values, "Xnew")
        codes = np.array([place.get(_text(level), -1) for level in found.levels])[found.codes]
        if not self.has_population and np.any(codes < 0):
            stranger = found.levels[found.codes[int(np.argmin(codes))]]
            raise ValueError(
                f"Xnew: {self.name} {stranger!r} is not known, and the model has no population that it could be of; "
                f"known are {show(self.levels)}"
            )
        return np.where(codes < 0, len(self.levels), codes)

    def to_json(self) -> dict[str, Any]:
        """Return what a file keeps besides the codes: levels become text."""
        levels = [_text(level) for level in self.levels]
        return {"name": self.name, "levels": levels, "has_population": self.has_population}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], codes: np.ndarray) -> Self:
        """Return the groups that `to_json` described."""
        return cls(data["name"], tuple(data["levels"]), codes, bool(data["has_population"]))


def _text(level: Any) -> str:
    """Return a level as text, whole numbers without a point: a column of them may be float in another table."""
    level = plain(level)
    return str(int(level)) if isinstance(level, float) and level.is_integer() else str(level)


def check_name(by: Any, argument: str = "thresholds_by") -> str:
    """Return the name of a column that names a dimension of the model on the stack, too."""
    if not isinstance(by, str):
        raise TypeError(f"{argument} must be the name of a column of X, got {checks.got(by)}")
    import pymc as pm  # here: MODL on the command line does without it

    model = pm.Model.get_context(error_if_none=False)
    taken = by in RESERVED or by.startswith("thresholds")
    if taken or (model is not None and by in model.named_vars):
        raise ValueError(
            f"{argument}: the {argument.removesuffix('_by')} get a dimension of the column's name, and {by!r} is "
            f"that of another dimension or variable of the model: rename the column, e.g. to {by + '_id'!r}"
        )
    return by


def column(X: Any, name: str, table: str, argument: str) -> Any:
    """Return the values of one column of a table.

    Parameters
    ----------
    X : DataFrame
        Of pandas, polars or any library that `as_pandas` reads.
    name : str
    table, argument : str
        What to call the table, and the argument that named the column, in error messages.
    """
    X = as_pandas(X, table)
    columns = getattr(X, "columns", None)
    names = [] if columns is None else [str(column) for column in columns]
    if name not in names:
        known = "no column names" if columns is None else f"the columns {show(names)}"
        raise ValueError(
            f"{argument}: {name!r} must be a column of the table {table}, which has {known}"
            f"{guess(name, names)}"
        )
    if names.count(name) > 1:
        raise ValueError(f"{argument}: {table} has more than one column named {name!r}: rename it")
    j = names.index(name)
    return column_values(X.iloc[:, j] if isinstance(X, pd.DataFrame) else X[name])


def without(X: Any, names: set[str]) -> Any:
    """Return a table without some of its columns."""
    X = as_pandas(X, "X")
    others = [j for j, column in enumerate(X.columns) if str(column) not in names]
    if not others:
        raise ValueError(
            f"X has no columns besides {show(sorted(names))}, which give thresholds, noise or weights: add some"
        )
    return X.iloc[:, others] if isinstance(X, pd.DataFrame) else X[:, others]
