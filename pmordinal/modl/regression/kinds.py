"""Kinds of rank regressor: each gives every predictor's density an exponent in their product."""

from collections.abc import Callable

from pmordinal.modl.partition.grid import Grid
from pmordinal.modl.regression.subsets import Selection
from pmordinal.registry import Registry

KINDS: Registry[Callable[[dict[str, Grid], Selection | None], dict[str, float]]] = Registry(
    "kind of rank regressor"
)


@KINDS.register("univariate")
def _univariate(grids: dict[str, Grid], selection: Selection | None) -> dict[str, float]:
    """Use the most informative predictor alone [HB2007, eq. 4]."""
    return dict.fromkeys(list(grids)[:1], 1.0)


@KINDS.register("nb")
def _naive_bayes(grids: dict[str, Grid], selection: Selection | None) -> dict[str, float]:
    """Use all informative predictors [HB2007, eq. 5]."""
    return dict.fromkeys(grids, 1.0)


@KINDS.register("snb")
def _selective(grids: dict[str, Grid], selection: Selection | None) -> dict[str, float]:
    """Use the subset of largest posterior probability."""
    assert selection is not None
    return {k: 1.0 for k, chosen in zip(grids, selection.best, strict=True) if chosen}


@KINDS.register("averaged")
def _averaged(grids: dict[str, Grid], selection: Selection | None) -> dict[str, float]:
    """Weight every predictor by the compression of the subsets it belongs to."""
    assert selection is not None
    return {k: float(w) for k, w in zip(grids, selection.weights, strict=True) if w > 0}
