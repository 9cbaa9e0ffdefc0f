"""How one column of the user's table becomes numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pmordinal.data.levels import show
from pmordinal.errors import warn


@dataclass(frozen=True)
class Column:
    """One column of the user's table: numeric, or categorical with the levels it may take.

    Attributes
    ----------
    name : str
        The column's name.
    levels : tuple of str, optional
        The levels as text, in order; None for a numeric column.
    is_coded : bool
        Whether the levels become one matrix column of positions among the levels, instead of one
        0/1 column a level. A new level gets a position after all others.
    is_open : bool
        Whether new levels are expected, as those of raters; else a warning says that there are some.
    expression : str, optional
        How the column is computed from numeric ones; the user's table does not have it.
    is_offset : bool
        Whether it is added to the latent function as it is; no covariance reads it.

    Examples
    --------
    >>> Column("colour", ("blue", "red")).names
    ('colour=blue', 'colour=red')
    >>> Column("colour", ("blue", "red"), is_coded=True).names
    ('colour',)
    """

    name: str
    levels: tuple[str, ...] | None = None
    is_coded: bool = False
    is_open: bool = False
    expression: str | None = None
    is_offset: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the matrix columns that this column becomes."""
        if self.levels is None or self.is_coded:
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels)

    @property
    def codes(self) -> np.ndarray:
        """The matrix entries of each level, shape (number of levels, number of matrix columns)."""
        n = len(self.levels or ())
        return np.arange(n, dtype=float)[:, None] if self.is_coded else np.eye(n)

    def to_json(self) -> dict[str, Any]:
        """Return the column as plain data; what only columns of formulas have is left out of others."""
        levels = None if self.levels is None else list(self.levels)
        further: dict[str, Any] = {"is_coded": self.is_coded, "is_open": self.is_open}
        further |= {"expression": self.expression, "is_offset": self.is_offset}
        return {"name": self.name, "levels": levels} | {k: v for k, v in further.items() if v}


def levels_of(values: Any, column: str, name: str) -> tuple[str, ...] | None:
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


def block(values: Any, column: Column, name: str) -> np.ndarray:
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
    if column.is_coded:
        return _positions([str(value) for value in values], column, name)[:, None]
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


def _positions(values: Sequence[str], column: Column, name: str) -> np.ndarray:
    """Return the position of each level among those of the column, new ones after them."""
    assert column.levels is not None
    known = set(column.levels)
    new = sorted({value for value in values if value not in known})
    if new and not column.is_open:
        warn(
            f"{name} column {column.name!r} has level(s) that were not there when the model was fitted, {show(new)}; "
            f"known are {show(column.levels)}. All that is known of their effects is the prior"
        )
    place = {level: code for code, level in enumerate((*column.levels, *new))}
    return np.array([place[value] for value in values], dtype=np.float64)


def computed(column: Column, numbers: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """Return a column that is an expression."""
    assert column.expression is not None
    from pmordinal.data.expressions import (
        evaluate,  # here: tables without expressions need no parser
    )

    values = evaluate(column.expression, numbers)
    bad = ~np.isfinite(values)
    if bad.any():
        raise ValueError(
            f"{name}: {column.expression} is {values[bad][0]} in {bad.sum()} row(s), the first in row "
            f"{int(np.argmax(bad))}: check the column's values there"
        )
    if column.levels is None:
        return values
    return _positions(number_levels(values), column, name)


def number_levels(values: np.ndarray) -> list[str]:
    """Return numbers as names of levels.

    Examples
    --------
    >>> number_levels(np.array([1.0, 2.5]))
    ['1', '2.5']
    """
    return [f"{value:.15g}" for value in values]


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
