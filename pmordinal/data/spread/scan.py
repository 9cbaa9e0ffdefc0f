"""Learns how a spread table becomes numbers: each block says what its columns are, the driver puts that together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pmordinal.data.coding import Column, block, levels_of
from pmordinal.data.columns import column_values, read_columns
from pmordinal.data.features import Features, check_unique, common_scale
from pmordinal.data.moments import Moments, combined
from pmordinal.errors import located


@dataclass(frozen=True, eq=False)
class Scanned:
    """What a block of rows says of its columns.

    Attributes
    ----------
    start : int
        Number of its first row.
    columns : tuple of Column
        With the levels that occur in the block, or are declared there.
    declared : tuple of bool
        Whether the levels of a column are declared, in their order.
    missing : tuple of tuple
        For each column how many values are missing, and the first such row.
    moments : Moments, optional
        Of the matrix columns; None if a value is missing.
    """

    start: int
    columns: tuple[Column, ...]
    declared: tuple[bool, ...]
    missing: tuple[tuple[int, int], ...]
    moments: Moments | None


def scan(table: Any, start: int) -> Scanned:
    """Return what a block says of its columns; runs on a worker."""
    with located(f"X, in the rows from {start} on"):
        names, data = read_columns(table, "X")
        if names is None:
            names = [f"x{j}" for j in range(len(data))]
        data = [column_values(values) for values in data]
        columns = tuple(
            Column(name, levels_of(values, name, "X"))
            for name, values in zip(names, data, strict=True)
        )
        lost = [np.asarray(pd.isna(values), dtype=bool) for values in data]
        missing = tuple((int(each.sum()), start + int(each.argmax())) for each in lost)
        declared = tuple(isinstance(values, pd.Categorical) for values in data)
        moments = None
        if not any(count for count, _ in missing):
            parts = [block(v, column, "X") for v, column in zip(data, columns, strict=True)]
            moments = Moments.of(np.concatenate(parts, axis=1))
        return Scanned(start, columns, declared, missing, moments)


def features_of(scanned: Sequence[Scanned], standardize: bool) -> Features:
    """Return the rules by which the table becomes numbers, from what its blocks say."""
    names = [column.name for column in scanned[0].columns]
    check_unique(names, "X")
    for j, name in enumerate(names):
        count = sum(each.missing[j][0] for each in scanned)
        if count:
            row = next(each.missing[j][1] for each in scanned if each.missing[j][0])
            raise ValueError(
                f"X column {name!r} has {count} missing value(s), the first in row {row}: impute them or drop those "
                "rows"
            )
    columns = tuple(_merged(scanned, j) for j in range(len(names)))
    matrix_names = [name for column in columns for name in column.names]
    check_unique(matrix_names, "X")
    center, scale = np.zeros(len(matrix_names)), np.ones(len(matrix_names))
    if standardize:
        center, sd = combined([_placed(each, matrix_names) for each in scanned])
        scale = common_scale(columns, sd)
    return Features(columns, center, scale)


def _merged(scanned: Sequence[Scanned], j: int) -> Column:
    """Return one column with the levels of all blocks: as declared if all agree, else sorted."""
    found = [each.columns[j].levels for each in scanned]
    name = scanned[0].columns[j].name
    texts = [each for each, levels in zip(scanned, found, strict=True) if levels is not None]
    if not texts:
        return Column(name)
    if len(texts) < len(found):
        number = next(e for e, levels in zip(scanned, found, strict=True) if levels is None)
        raise ValueError(
            f"X column {name!r} holds numbers in the rows from {number.start} on, and text in those from "
            f"{texts[0].start} on: make all of them one or the other"
        )
    levels = {tuple(each) for each in found if each is not None}
    if len(levels) == 1 and all(each.declared[j] for each in scanned):
        return Column(name, levels.pop())
    return Column(name, tuple(sorted(set().union(*levels))))


def _placed(scanned: Scanned, names: Sequence[str]) -> Moments:
    """Return the moments of a block for all matrix columns; of levels that it does not have they are zero."""
    own = [name for column in scanned.columns for name in column.names]
    assert scanned.moments is not None
    if own == list(names):
        return scanned.moments
    at = {name: j for j, name in enumerate(names)}
    place = [at[name] for name in own]
    parts = []
    for values in (scanned.moments.largest, scanned.moments.mean, scanned.moments.squares):
        every = np.zeros(len(names))
        every[place] = values
        parts.append(every)
    return Moments(scanned.moments.n, *parts)
