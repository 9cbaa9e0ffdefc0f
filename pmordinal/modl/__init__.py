"""MODL: Bayes-optimal grids of a predictor and a target, and rank regression based on them.

Hue and Boullé (2007), "A new probabilistic approach in rank regression with optimal Bayesian
partitioning" [HB2007]. A grid divides the predictor into parts (intervals of numbers, or groups of
labels) and the target into intervals. This package needs no PyMC. `RankRegressor` and
`MODLDiscretizer` need scikit-learn and are imported on first use.

Examples
--------
>>> import numpy as np
>>> from pmordinal import modl
>>> x = np.linspace(0, 1, 100)
>>> modl.fit_grid(x, np.floor(4 * x)).J
4
"""

from typing import TYPE_CHECKING, Any

from pmordinal.data.ranked_probability_score import ranked_probability_score
from pmordinal.modl.partition import criterion
from pmordinal.modl.partition.fit_grid import fit_grid
from pmordinal.modl.partition.grid import Grid
from pmordinal.modl.partition.sample_grids import sample_grids
from pmordinal.modl.regression.averaging import averaged_log_score, averaged_rank_cdf
from pmordinal.modl.regression.nlrpd_of_cdf import nlrpd_of_cdf
from pmordinal.modl.regression.ranking import fit_grids, rank_predictors
from pmordinal.words import guess

if TYPE_CHECKING:
    from pmordinal.modl.regression.discretizer import MODLDiscretizer
    from pmordinal.modl.regression.regressor import RankRegressor

__all__ = [
    "Grid",
    "MODLDiscretizer",
    "RankRegressor",
    "averaged_log_score",
    "averaged_rank_cdf",
    "criterion",
    "fit_grid",
    "fit_grids",
    "nlrpd_of_cdf",
    "rank_predictors",
    "ranked_probability_score",
    "sample_grids",
]

_ESTIMATORS = {"MODLDiscretizer": "discretizer", "RankRegressor": "regressor"}


def __getattr__(name: str) -> Any:
    """Import the estimators and plots on first use."""
    from importlib import import_module

    if name == "plots":
        return import_module(f"{__name__}.plots")
    if name.startswith("plot_"):
        raise AttributeError(
            f"module {__name__!r} has no plots: those are in pmordinal.plots and pmordinal.modl.plots"
        )
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{guess(name, __all__)}")
    try:
        module = import_module(f"{__name__}.regression.{_ESTIMATORS[name]}")
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("sklearn"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs scikit-learn: pip install scikit-learn", name=error.name
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
