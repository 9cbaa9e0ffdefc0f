"""`fit_grid`: the cheapest grid found for one predictor and one target."""

from dataclasses import replace
from typing import Any

import numpy as np

from pmordinal import checks
from pmordinal.data.rows import check_paired
from pmordinal.modl.encode import (
    EncodedColumn,
    as_series,
    encode_predictor,
    encode_target,
    midpoints,
    observed,
)
from pmordinal.modl.partition.cells import Cells
from pmordinal.modl.partition.criterion import null_cost
from pmordinal.modl.partition.grid import Grid
from pmordinal.modl.partition.search import Partition, find_partition
from pmordinal.words import guessing


@guessing
def fit_grid(
    x: Any,
    y: Any,
    *,
    starts: int = 10,
    seed: int | np.random.Generator | np.random.SeedSequence | None = 0,
    categorical: bool | None = None,
    x_name: str | None = None,
    y_name: str | None = None,
    random_seed: int | None = None,
) -> Grid:
    """Return the Bayes-optimal grid found for a predictor and a target.

    Parameters
    ----------
    x : array-like, shape (n,)
        Predictor: numbers are cut into intervals, labels are grouped. Missing values are a part of
        their own. Equal values are never separated.
    y : array-like, shape (n,)
        Target: numbers, or an ordered ``pd.Categorical``. Rows with a missing target are left out
        with a warning.
    starts : int, default 10
        Starts of the search: a two-sided greedy merge and random target partitions.
    seed, random_seed : int, Generator, SeedSequence or None, default 0
        Seed of the random starts.
    categorical : bool, optional
        Whether to group `x` as labels; found from its type by default.
    x_name, y_name : str, optional
        Names for pictures; those of a pandas Series by default.

    Returns
    -------
    Grid
        The null model if no grid costs less, so also where `x` or `y` is constant.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> x = rng.uniform(size=200)
    >>> grid = fit_grid(x, (x > 0.5) + rng.uniform(size=200))
    >>> grid.I, grid.J, bool(abs(grid.x_boundaries[0] - 0.5) < 0.02)
    (2, 2, True)
    >>> fit_grid(rng.uniform(size=200), x).is_null
    True
    """
    seed = checks.one_seed(seed, random_seed)
    starts = checks.integer("starts", starts, minimum=1)
    rng = checks.generator("seed", seed)
    x_series, y_series = as_series(x, "x"), as_series(y, "y")
    if len(x_series) != len(y_series):
        raise ValueError(
            f"x has {len(x_series)} rows and y has {len(y_series)}: pass as many of both"
        )
    check_paired(x, y, "x")
    values, labels = encode_target(y_series)
    seen = observed(values)
    if not seen.all():
        x_series, values = x_series[seen], values[seen]
    column = encode_predictor(x_series, categorical=categorical)
    target = encode_predictor(values, categorical=False)
    grid = grid_from_columns(
        column,
        target,
        starts=starts,
        seed=rng,
        x_name=_name(x_name, x, "x"),
        y_name=_name(y_name, y, "y"),
    )
    kept = x_series.to_numpy() if column.categorical else _numbers(column)
    return replace(grid, x=kept, y=values, y_labels=as_texts(labels))


def as_texts(labels: list[Any] | None) -> tuple[str, ...] | None:
    """Return the labels of an ordered target as texts; None for numbers."""
    return None if labels is None else tuple(map(str, labels))


def _numbers(column: EncodedColumn) -> np.ndarray:
    """Return the values of a numeric column, NaN where missing."""
    if len(column.values) == 0:
        return np.full(len(column.code), np.nan)
    return np.where(column.code < 0, np.nan, column.values[column.code])


def _name(given: str | None, data: Any, default: str) -> str:
    if given is not None:
        return given
    found = getattr(data, "name", None)
    return default if found is None else str(found)


def grid_from_columns(
    column: EncodedColumn,
    target: EncodedColumn,
    starts: int,
    seed: int | np.random.Generator | np.random.SeedSequence | None,
    x_name: str,
    y_name: str,
) -> Grid:
    """Return the grid of two encoded columns; the data are not kept on it."""
    cells = Cells.from_codes(column.code, target.code, categorical=column.categorical)
    partition = find_partition(cells, starts, np.random.default_rng(seed))
    return to_grid(cells, partition, column, target, x_name, y_name)


def to_grid(
    cells: Cells,
    found: Partition,
    column: EncodedColumn,
    target: EncodedColumn,
    x_name: str,
    y_name: str,
) -> Grid:
    """Return a partition as a grid, with boundaries in values; the data are not kept on it."""
    y_cut = found.y_cuts[1:-1]
    y_ranks = np.cumsum(cells.y.sizes)[y_cut - 1] / cells.n
    groups = None
    x_boundaries = x_ranks = np.zeros(0)
    if column.categorical:
        n_groups = int(found.x_label.max(initial=0)) + 1
        groups = tuple(tuple(column.values[found.x_label == g].tolist()) for g in range(n_groups))
    elif not found.is_null():
        x_cut = np.flatnonzero(np.diff(found.x_label)) + 1
        x_boundaries = midpoints(column.values)[x_cut - 1]
        x_ranks = np.cumsum(cells.x.sizes)[x_cut - 1] / (cells.n - cells.n_missing)
    missing = cells.n_missing > 0 and not found.is_null()
    return Grid(
        counts=found.counts,
        cost=found.cost,
        null_cost=null_cost(cells.n, cells.n_categories),
        x_boundaries=x_boundaries,
        y_boundaries=midpoints(target.values)[y_cut - 1],
        x_ranks=x_ranks,
        y_ranks=y_ranks,
        groups=groups,
        missing_part=found.counts.shape[0] - 1 if missing else None,
        x_name=x_name,
        y_name=y_name,
    )
