"""Whether two results are of the same labelled rows, so that they may be compared row by row."""

from typing import Any

import numpy as np
import pandas as pd

from pmordinal.data.labels import Labels
from pmordinal.data.levels import show


def how_they_differ(ours: Labels, theirs: Labels, rows: Any, other_rows: Any) -> str | None:
    """Say why two results are not of the same labelled rows; None where nothing speaks against it.

    Parameters
    ----------
    ours, theirs : Labels
    rows, other_rows : array_like
        Names of the labelled rows. Other names are fine, since tables may be renumbered; the same names in another
        order are not.

    Examples
    --------
    >>> from pmordinal.data.labels import encode
    >>> first, second = encode([1, 2, 2]), encode([2, 1, 2])
    >>> how_they_differ(first, second, ["a", "b", "c"], ["b", "a", "c"])
    'the same rows in another order'
    """
    names, others = ours.class_names, theirs.class_names
    positions = [str(k) for k in range(len(names))]  # what classes without a name are called
    unnamed = len(names) == len(others) and positions in (names, others)
    if names != others and not unnamed:
        return f"classes {show(names)} instead of {show(others)}"
    y, other = ours.codes[ours.observed], theirs.codes[theirs.observed]
    if y.size != other.size:
        return f"{y.size} labelled rows instead of {other.size}"
    rows, other_rows = pd.Index(rows), pd.Index(other_rows)
    if not rows.equals(other_rows) and rows.isin(other_rows).all():
        return "the same rows in another order"
    if not np.array_equal(y, other):
        return "other labels"
    return None
