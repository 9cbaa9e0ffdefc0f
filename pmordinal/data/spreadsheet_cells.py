r"""Protects text in CSV files that a spreadsheet would run as a formula: it gets an apostrophe in front.

A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or the end of a line is computed when a spreadsheet opens the
file, and a formula can start other programs. Numbers stay as they are, and so do texts without a letter or a digit,
such as ``++``: they compute nothing. Texts that begin with an apostrophe and then such a sign get one more, so that
reading gives back what was written.
"""

import re
from collections.abc import Callable
from typing import Any

import pandas as pd

MARK = "'"
SIGNS = "=+-@\t\r\n＝＋－＠"
NUMBER = r"[+-]?((\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?%?|inf(inity)?|nan|1\.#(IND|QNAN))"
FORMULA = re.compile(
    rf"{MARK}*(?!{NUMBER}\Z)[{re.escape(SIGNS)}].*[^\W_]", re.DOTALL | re.IGNORECASE
)


def marked(value: Any) -> Any:
    """Return a text with an apostrophe in front if it would be a formula; other values unchanged.

    Examples
    --------
    >>> [marked(value) for value in ("=1+1", "-1", "++", "'=1+1", -1)]
    ["'=1+1", '-1', '++', "''=1+1", -1]
    """
    return MARK + value if isinstance(value, str) and FORMULA.match(value) else value


def unmarked(value: Any) -> Any:
    """Undo `marked`.

    Examples
    --------
    >>> [unmarked(value) for value in ("'=1+1", "'-1", "'", "''=1+1", -1)]
    ['=1+1', "'-1", "'", "'=1+1", -1]
    """
    if isinstance(value, str) and value.startswith(MARK) and FORMULA.match(value[1:]):
        return value[1:]
    return value


def mark(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with `marked` applied to all texts and column names."""
    return _changed(table, marked, tuple(SIGNS + MARK))


def unmark(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with `unmarked` applied to all texts and column names."""
    return _changed(table, unmarked, (MARK,))


def _changed(table: pd.DataFrame, change: Callable, starts: tuple[str, ...]) -> pd.DataFrame:
    out = table.copy(deep=False)
    for position in range(table.shape[1]):
        column = table.iloc[:, position]
        if isinstance(column.dtype, pd.CategoricalDtype):
            out.isetitem(position, column.cat.rename_categories(change).array)
        elif column.dtype == object or _any_text(column, starts):
            out.isetitem(position, column.map(change, na_action="ignore").array)
    return out.set_axis([change(name) for name in table.columns], axis=1)


def _any_text(column: pd.Series, starts: tuple[str, ...]) -> bool:
    """Tell whether a column holds a text that starts so and is no number; a fast first test."""
    if not pd.api.types.is_string_dtype(column):
        return False
    found = column[column.str.startswith(starts, na=False)]
    return bool(pd.to_numeric(found, errors="coerce").isna().any())
