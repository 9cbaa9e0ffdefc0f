"""Reads the table of a model, in memory or spread over Dask."""

from typing import Any

from pmordinal.data import by_row
from pmordinal.data import design as design_of
from pmordinal.data.design import Design
from pmordinal.data.spread import is_dask
from pmordinal.engines import Engine, engine_for, get_engine


def named(engine: str | Engine | None, X: Any, y: Any, objective: str | None) -> Engine | None:
    """Return the engine that a user has named, or that the table or the objective asks for; None if none is."""
    if engine is None and (is_dask(X) or is_dask(y)):
        return get_engine("inducing")
    if engine is None and objective is not None:
        return get_engine("ep")
    return None if engine is None else get_engine(engine)


def read(
    engine: Engine | None,
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
    engine : Engine, optional
        By default that which suits the number of labelled rows.
    X, y, categories, standardize, unlabeled
        See `pmordinal.data.design.read`.
    **by
        ``thresholds_by``, ``noise_by`` and ``weights``, see `pmordinal.data.by_row.read`.
    """
    if not (is_dask(X) or is_dask(y)):
        X, every = by_row.read(X, **by)
        options = {"standardize": standardize, "unlabeled": unlabeled, "by_row": every}
        design = design_of.read(X, y, categories, **options)
        return design, engine_for(engine, len(design.y))
    from pmordinal.data.spread.read import read as read_spread

    assert engine is not None  # `named` has chosen one
    engine.check_spread()
    for name, value in {**by, "unlabeled": unlabeled}.items():
        if value is not None:
            raise ValueError(
                f"{name}= is for tables in memory, and X is spread over Dask: leave it out, or fit a sample of the "
                "rows in memory"
            )
    design = read_spread(X, y, categories, standardize=standardize, sample=engine.sample)
    return design, engine.spread_over(design.parts, design.lengths, design.y)
