"""Fits the grids of many predictors in parallel, and ranks the predictors by level (compression gain)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from pmordinal import checks
from pmordinal.data import target
from pmordinal.data.rows import check_paired
from pmordinal.modl.encode import EncodedColumn, encode_predictor, encode_target, observed
from pmordinal.modl.frames import as_columns
from pmordinal.modl.parallel import run_tasks
from pmordinal.modl.partition.fit_grid import as_texts, grid_from_columns
from pmordinal.modl.partition.grid import Grid
from pmordinal.words import guessing


def fit_columns(
    columns: Mapping[str, EncodedColumn],
    target: EncodedColumn,
    *,
    starts: int,
    seed: int | None,
    n_jobs: int | None,
    progressbar: bool,
    y_name: str = "y",
    seed_name: str = "seed",
    partial: bool = False,
) -> dict[str, Grid]:
    """Return the grid of every encoded column, fitted in parallel; see `run_tasks`."""
    starts = checks.integer("starts", starts, minimum=1)
    seeds = checks.seeds(seed_name, seed, len(columns))
    tasks = {
        name: (column, target, starts, s, name, y_name)
        for (name, column), s in zip(columns.items(), seeds, strict=True)
    }
    return run_tasks(
        grid_from_columns,
        tasks,
        what="MODL grid of",
        n_jobs=n_jobs,
        progressbar=progressbar,
        partial=partial,
    )


@guessing
def fit_grids(
    X: Any,
    y: Any,
    *,
    starts: int = 10,
    seed: int | None = 0,
    n_jobs: int | None = -1,
    progressbar: bool = True,
    random_seed: int | None = None,
) -> dict[str, Grid]:
    """Return the grid of every predictor of a table, by name.

    Parameters
    ----------
    X : pandas or polars DataFrame, mapping of columns, or array-like of shape (n, d)
        Predictors of mixed types, see `fit_grid`.
    y : array-like, shape (n,), or str
        Target, or the column of `X` that has it; rows where it is missing are left out with a warning.
    starts : int, default 10
        Starts of each search.
    seed, random_seed : int or None, default 0
        Seed of the random starts.
    n_jobs : int or None, default -1
        Parallel tasks, as in joblib; wrap the call in ``joblib.parallel_config(backend="dask")``
        to spread predictors over a cluster.
    progressbar : bool, default True
        Whether to show progress.

    Returns
    -------
    dict of str to Grid
        A predictor whose search fails is left out with a warning that names it; an interrupt keeps
        the grids that are done.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(60.0)
    >>> grids = fit_grids({"a": x, "b": x % 2}, x // 20, progressbar=False)
    >>> grids["a"].I, grids["b"].is_null
    (3, True)
    """
    seed = checks.one_seed(seed, random_seed)
    X, y = target.split(X, y)
    columns = as_columns(X)
    values, labels = encode_target(y)
    n = len(next(iter(columns.values())))
    if len(values) != n:
        raise ValueError(f"X has {n} rows and y has {len(values)}: pass as many of both")
    check_paired(X, y)
    seen = observed(values)
    encoded = {name: encode_predictor(c[seen], name=name) for name, c in columns.items()}
    y_name = getattr(y, "name", None)
    grids = fit_columns(
        encoded,
        encode_predictor(values[seen]),
        starts=starts,
        seed=seed,
        n_jobs=n_jobs,
        progressbar=progressbar,
        y_name="y" if y_name is None else str(y_name),
        partial=True,
    )
    return {name: replace(grid, y_labels=as_texts(labels)) for name, grid in grids.items()}


@guessing
def rank_predictors(
    X: Any,
    y: Any,
    *,
    starts: int = 10,
    seed: int | None = 0,
    n_jobs: int | None = -1,
    progressbar: bool = True,
    random_seed: int | None = None,
) -> pd.DataFrame:
    """Return the predictors sorted by how much of the target's ranks they explain.

    Parameters
    ----------
    X, y, starts, seed, n_jobs, progressbar
        As for `fit_grids`.

    Returns
    -------
    pandas.DataFrame
        One row a predictor, sorted by `level` (the compression gain g(M) [HB2007, eq. 2]); columns
        level, I, J, cost, kind, missing (number of rows).

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(60.0)
    >>> ranking = rank_predictors({"b": x % 2, "a": x}, x // 20, progressbar=False)
    >>> ranking.index.tolist(), ranking["I"].tolist()
    (['a', 'b'], [3, 1])
    """
    seed = checks.one_seed(seed, random_seed)
    grids = fit_grids(X, y, starts=starts, seed=seed, n_jobs=n_jobs, progressbar=progressbar)
    return ranking_table(grids)


def ranking_table(grids: Mapping[str, Grid]) -> pd.DataFrame:
    """Return the table of `rank_predictors` for grids by name."""
    rows = {
        name: {
            "level": g.level,
            "I": g.I,
            "J": g.J,
            "cost": g.cost,
            "kind": g.kind,
            "missing": 0 if g.missing_part is None else int(g.counts[g.missing_part].sum()),
        }
        for name, g in grids.items()
    }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("predictor")
    return table.sort_values("level", ascending=False, kind="stable")
