"""Reads the table of a model, in memory or spread over Dask."""

from typing import Any

from pmordinal.data import by_row
from pmordinal.data import design as design_of
from pmordinal.data.design import Design
from pmordinal.data.spread import is_dask
from pmordinal.engines import Engine


def read(
    engine: Engine,
    X: Any,
    y: Any,
    categories: Any,
    *,
    standardize: bool,
    unlabeled: Any = None,
    **by: Any,
) -> tuple[Design, Engine]:
    """Return the design of a table, and the engine for its rows, wherever they are.

    Parameters
    ----------
    engine : Engine
    X, y, categories, standardize, unlabeled
        See `pmordinal.data.design.read`.
    **by
        ``thresholds_by``, ``noise_by`` and ``weights``, see `pmordinal.data.by_row.read`.
    """
    if not (is_dask(X) or is_dask(y)):
        X, every = by_row.read(X, **by)
        options = {"standardize": standardize, "unlabeled": unlabeled, "by_row": every}
        return design_of.read(X, y, categories, **options), engine
    from pmordinal.data.spread.read import read as read_spread

    engine.check_spread()
    for name, value in {**by, "unlabeled": unlabeled}.items():
        if value is not None:
            raise ValueError(
                f"{name}= is for tables in memory, and X is spread over Dask: leave it out, or fit a sample of the "
                "rows in memory"
            )
    design = read_spread(X, y, categories, standardize=standardize, sample=engine.sample)
    return design, engine.spread_over(design.parts, design.lengths, design.y)
