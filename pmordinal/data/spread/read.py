"""Reads a Dask table and its labels: rules, counts and a sample come to the driver, the rows stay where they are."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pmordinal.checks import got
from pmordinal.data.design import Design
from pmordinal.data.features import Features
from pmordinal.data.labels import Labels, encode
from pmordinal.data.moments import ROWS
from pmordinal.data.spread import is_dask
from pmordinal.data.spread.partitions import Partitions, lengths_of, partitions
from pmordinal.data.spread.scan import features_of, scan
from pmordinal.data.whole import Whole
from pmordinal.errors import located

MOST_LABELS = 10_000  # different ones in a partition


@dataclass(frozen=True, eq=False, kw_only=True)
class SpreadDesign(Design):
    """A sample of a spread table, and where all its rows are.

    Attributes
    ----------
    parts : list of Delayed
        Blocks of rows with a label: attributes in the units of the model and class codes, as a pair.
    lengths : list of int
        Their numbers of rows.
    """

    parts: list[Any] = field(repr=False)
    lengths: list[int] = field(repr=False)


def read(
    X: Any,
    y: Any,
    categories: Any = None,
    *,
    standardize: bool = False,
    sample: Callable[[int], np.ndarray],
) -> SpreadDesign:
    """Return a design with a sample of the labelled rows.

    The table is read three times: for its labels, for its columns, and to keep it as numbers.

    Parameters
    ----------
    X : Dask DataFrame or Array
    y : Dask Series or Array
        Labels; rows without one are left out.
    categories : sequence, optional
        All labels in order.
    standardize : bool
        Centre and scale the columns, by the means and standard deviations of all rows.
    sample : callable
        Returns the numbers of the rows to gather, in order, from the number of rows.
    """
    import dask

    for name, table in (("X", X), ("y", y)):
        if not is_dask(table):
            raise TypeError(
                f"X and y must both be spread over Dask, or both in memory: {name} is {got(table)}; make y a column "
                "of the same Dask DataFrame, or a Dask array with the chunks of X"
            )
    rows, labelled = partitions(X, "X"), partitions(y, "y")
    known, y_lengths = _labels(labelled, categories)
    with readable(rows):
        same = len(rows.parts) == len(y_lengths) and rows.lengths is None
        x_lengths = y_lengths if same else lengths_of(rows)
    if sum(x_lengths) != sum(y_lengths):
        raise ValueError(
            f"X has {sum(x_lengths)} rows and y has {sum(y_lengths)} labels: they must match"
        )
    tables, targets = rows.blocks(x_lengths, ROWS), labelled.blocks(y_lengths, ROWS)
    starts = range(0, sum(x_lengths), ROWS)
    look, turn = dask.delayed(scan, pure=False), dask.delayed(as_numbers, pure=False)
    with readable(rows):
        scanned = dask.compute(
            *(look(table, start) for table, start in zip(tables, starts, strict=True))
        )
    features = features_of(scanned, standardize)
    rules = dask.delayed((features, known), traverse=False)
    parts = [turn(t, u, rules, a) for t, u, a in zip(tables, targets, starts, strict=True)]
    parts = list(dask.persist(*parts))
    counts = dask.compute(*(dask.delayed(count, pure=False)(p, known.n_classes) for p in parts))
    return _sampled(parts, counts, features, known, sum(x_lengths), sample)


def _sampled(
    parts: list[Any],
    counts: Sequence[np.ndarray],
    features: Features,
    known: Labels,
    total: int,
    sample: Callable[[int], np.ndarray],
) -> SpreadDesign:
    """Gather a sample of the rows."""
    import dask

    lengths = [int(each.sum()) for each in counts]
    n = sum(lengths)
    chosen = sample(n)
    ends = np.cumsum(lengths)
    take = dask.delayed(some, pure=False)
    pieces = []
    for part, end, length in zip(parts, ends, lengths, strict=True):
        inside = chosen[(chosen >= end - length) & (chosen < end)] - (end - length)
        if inside.size:
            pieces.append(take(part, inside))
    X, y = map(np.concatenate, zip(*dask.compute(*pieces), strict=True))
    labels = Labels(y, known.categories, known.kind, known.dtype)
    whole = Whole(n, tuple(np.sum(counts, axis=0).tolist()), total - n)
    return SpreadDesign(
        rows=X,
        labels=labels,
        features=features,
        index=chosen,
        further=X[:0],
        whole=whole,
        parts=parts,
        lengths=lengths,
    )


def _labels(table: Partitions, categories: Any) -> tuple[Labels, list[int]]:
    """Return the labels' levels and type, and the rows of each partition."""
    import dask

    if table.width != 1:
        raise ValueError("y must be one column of labels, got a table: pass one column of it")
    find = dask.delayed(different_labels, pure=False)
    with readable(table):
        found = dask.compute(*(find(part, number) for number, part in enumerate(table.parts)))
    lengths = [length for length, _ in found]
    every = [values for length, values in found if length]
    if not every:
        raise ValueError("y is empty: pass at least one label")
    values = pd.concat(every) if isinstance(every[0], pd.Series) else np.concatenate(every)
    return encode(values, categories, "y (its different labels)"), lengths


@contextmanager
def readable(table: Partitions) -> Iterator[None]:
    """Say which partition it is that cannot be read, if one of them cannot."""
    import dask

    try:
        yield
    except Exception as error:
        for number, part in enumerate(table.parts):
            try:
                dask.compute(dask.delayed(len, pure=False)(part))
            except Exception as fault:
                kept = "" if table.columns is None else f" with the columns {table.columns}"
                raise ValueError(
                    f"{table.name}, partition {number} (counted from 0) cannot be read{kept}: {fault!r}"
                ) from error
        raise


def different_labels(part: Any, number: int) -> tuple[int, Any]:
    """Return the rows of a partition and its different labels, a missing one included; runs on a worker."""
    with located(f"y, partition {number} (counted from 0)"):
        if np.ndim(part) == 2 and np.shape(part)[1] == 1:
            part = part.iloc[:, 0] if hasattr(part, "iloc") else part[:, 0]
        values: Any
        if isinstance(part, pd.Series):
            values = part.drop_duplicates()
        else:
            values = pd.unique(part) if part.dtype.kind == "O" else np.unique(part)
        if len(values) > MOST_LABELS:
            raise ValueError(
                f"it holds {len(values)} different labels: bin a measurement with pd.cut, in map_partitions"
            )
        return len(part), values


def as_numbers(
    table: Any, labels: Any, rules: tuple[Features, Labels], start: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the labelled rows of a block in the units of the model, and their class codes; runs on a worker."""
    features, known = rules
    with located(f"X and y, in the rows from {start} on"):
        if np.ndim(labels) == 2:
            labels = labels.iloc[:, 0] if hasattr(labels, "iloc") else labels[:, 0]
        observed = ~np.asarray(pd.isna(labels), dtype=bool)
        codes = np.empty(0, dtype=np.int64)
        if observed.any():
            codes = encode(labels[observed], known.categories).codes
        return features.transform(table)[observed], codes


def count(part: tuple[np.ndarray, np.ndarray], n_classes: int) -> np.ndarray:
    """Return the number of rows of each class; runs on a worker."""
    return np.bincount(part[1], minlength=n_classes)


def some(part: tuple[np.ndarray, np.ndarray], rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return some of the rows; runs on a worker."""
    return part[0][rows], part[1][rows]
