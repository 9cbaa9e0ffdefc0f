"""Checks files of partitions before an experiment begins.

A set is ``chu/NAME.csv``, attributes and a column ``y``, with ``chu/NAME_partitions.csv``, which has the same rows: a
column ``y5`` with classes 1 to 5, and ``s5_1``, ``s5_2``, … with 1 for the training rows of each partition and 0 for
the others. Other numbers of classes have columns of their own.
"""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from pmordinal.data import tables
from pmordinal.data.levels import show


def check(folder: Path, name: str, bins: int, partitions: Iterable[int]) -> None:
    """Raise an error that says what is wrong with the partitions of a set, if anything is."""
    path = folder / "chu" / f"{name}_partitions.csv"
    rows, table = tables.read(folder / "chu" / f"{name}.csv"), tables.read(path)
    tables.column(rows, "y", folder / "chu" / f"{name}.csv")
    if len(rows) != len(table):
        raise ValueError(f"{path} has {len(table)} rows, and {name}.csv has {len(rows)}")
    classes = _whole(tables.column(table, f"y{bins}", path), path)
    if set(classes) - set(range(1, bins + 1)):
        raise ValueError(
            f"{path}: y{bins} must hold classes 1 to {bins}, got {show(sorted(set(classes)))}"
        )
    for number in partitions:
        column = f"s{bins}_{number}"
        train = set(_whole(tables.column(table, column, path), path))
        if train != {0, 1}:
            raise ValueError(
                f"{path}: {column} must hold 1 for training rows and 0 for the others, got {show(sorted(train))}"
            )


def _whole(values: pd.Series, path: Path) -> list[int]:
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.isna().any() or (numbers % 1 != 0).any():
        raise ValueError(f"{path}: {values.name} must hold whole numbers")
    return numbers.astype(int).to_list()
