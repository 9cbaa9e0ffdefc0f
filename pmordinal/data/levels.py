"""Levels of ordered labels: inferring them, and checking that they are valid and have distinct names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from pmordinal.data.foreign import as_pandas


def check_types(values: Sequence[Any], name: str, infinite: bool = False) -> None:
    """Raise unless every value is of a type that can be a label."""
    allowed = (str, bool, int, float, np.bool_, np.integer, np.floating, pd.Interval)
    for kind in {type(value) for value in values}:
        if not issubclass(kind, allowed):
            refuse(kind.__name__, name)
    for value in set(values):
        if isinstance(value, pd.Interval):
            check_types([value.left, value.right], name, infinite=True)
        elif isinstance(value, (float, np.floating)) and np.isinf(value) and not infinite:
            raise ValueError(
                f"{name} holds {value}, which is not a label: "
                "replace it by a level, or by NaN if the label is missing"
            )


def refuse(what: str, name: str) -> None:
    """Raise a TypeError that says how to convert labels of type `what`."""
    lower = what.lower()
    if re.search("date|time|period", lower):
        remedy = "turn dates and times into levels first, e.g. with pd.cut or .dt.year"
    elif re.search(r"bytes|\|s\d", lower):
        remedy = "turn bytes into text first, e.g. with np.char.decode(y)"
    else:
        remedy = "labels are integers, text, bools or an ordered categorical: convert them"
    raise TypeError(f"{name} holds labels of type {what}: {remedy}")


def check_categories(categories: Any) -> tuple[Any, ...]:
    """Return the declared levels as a tuple; raise if they are no valid list of levels."""
    if isinstance(categories, (str, bytes, set, frozenset, Mapping)) or not isinstance(
        categories, Iterable
    ):
        raise TypeError(
            f"categories must be a list of levels from lowest to highest, got {categories!r}"
        )
    levels = tuple(map(plain, as_pandas(categories, "categories")))
    if any(level is None or level is pd.NA or level != level for level in levels):
        raise ValueError(
            "categories hold a missing value: leave it out, missing labels need no level"
        )
    check_types(levels, "categories")
    return levels


def infer_levels(present: list[Any], name: str) -> tuple[Any, ...]:
    """Return the levels of labels whose order is known without `categories`."""
    inferred = pd.api.types.infer_dtype(present, skipna=False)
    if inferred == "boolean":
        return (False, True)
    if inferred not in ("integer", "floating", "mixed-integer-float"):
        found = sorted({str(value) for value in present})
        what = "text" if inferred == "string" else "mixed labels"
        raise ValueError(
            f"{name} holds {what}, whose order is not known; the levels found are {show(found)}: "
            "pass categories=[...] from lowest to highest"
        )
    fractions = dict.fromkeys(value for value in present if value != int(value))
    if fractions:
        raise ValueError(
            f"{name} holds numbers that are not whole ({show(fractions)}), so its levels are not "
            "known: bin a measurement with pd.cut or pd.qcut, or pass categories=[...] if these "
            "are the levels"
        )
    levels = sorted({int(value) for value in present})
    low, high = levels[0], levels[-1]
    if high - low + 1 > len(levels):
        if high - low < 20:
            missing = show([k for k in range(low, high) if k not in set(levels)])
            all_of_them, these = f"{list(range(low, high + 1))}", f"{levels}"
        else:
            missing = f"{high - low + 1 - len(levels)} values"
            all_of_them, these = f"range({low}, {high + 1})", "sorted(set(y))"
        raise ValueError(
            f"{name} has a gap: levels {show(levels)} but not {missing}. Pass "
            f"categories={all_of_them} if those are levels nobody chose, or "
            f"categories={these} if they don't exist"
            + ("; bin a measurement with pd.qcut" if len(levels) > 20 else "")
        )
    return tuple(levels)


def check_levels(levels: tuple[Any, ...], name: str, given: bool) -> None:
    """Raise unless there are two or more levels whose names as text are all different."""
    source = "categories" if given else f"the levels of {name}"
    if len(set(levels)) < len(levels):
        twice = dict.fromkeys(level for level in levels if levels.count(level) > 1)
        raise ValueError(f"{source} hold {show(twice)} more than once: list each level once")
    if len(levels) < 2:
        raise ValueError(
            f"{source} must be two or more, got {show(levels) or 'none'}: "
            "declare the levels that were not observed with categories=[...]"
        )
    names = [str(level) for level in levels]
    if len(set(names)) < len(names):
        same = [level for level in levels if names.count(str(level)) > 1]
        raise ValueError(f"{source} hold levels that read the same, {show(same)}: rename them")
    if len({"|".join(pair) for pair in pairwise(names)}) < len(names) - 1:
        raise ValueError(f"{source} give two thresholds one name: rename the levels with a '|'")


def unknown_labels(
    strangers: np.ndarray, row: int, levels: tuple[Any, ...], name: str
) -> ValueError:
    """Return the error for labels that are not among the levels, the first one in `row`."""
    unknown = list(dict.fromkeys(strangers.tolist()))
    hint = "add them to categories, correct them, or make them NaN if they mean missing"
    twins = [level for level in levels if str(level) == str(unknown[0])]
    if twins:
        hint = (
            f"{unknown[0]!r} is {type(unknown[0]).__name__} in {name} but "
            f"{type(twins[0]).__name__} in categories, use one type"
        )
    return ValueError(
        f"{name} holds labels that are not in categories: {show(unknown)} "
        f"(first in row {row}); the categories are {show(levels, 10)}: {hint}"
    )


def plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python scalar; other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def show(values: Iterable[Any], limit: int = 5) -> str:
    """Return the first few values as text for a message."""
    items = [repr(plain(value)) for value in values]
    more = f", … ({len(items)} in all)" if len(items) > limit else ""
    return ", ".join(items[:limit]) + more
