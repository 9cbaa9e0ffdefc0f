"""Gaussian-process ordinal regression for PyMC.

The public names are loaded when first used, so that the light parts (`pmordinal.modl`) do not
import PyMC.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "ConvergenceWarning": "errors",
    "LabelOrderWarning": "errors",
    "LINKS": "links",
    "ENGINES": "engines",
    "OBJECTIVES": "objectives",
    "EP": "engines",
    "Exact": "engines",
    "Laplace": "engines",
    "PLSOR": "engines",
    "SparseADF": "engines",
    "LinearARD": "gram",
    "Precomputed": "gram",
    "select_features": "selection",
    "thresholds": "priors",
    "Ordinal": "distributions",
    "MarginalOrdinal": "gp",
    "gp_model": "models",
    "fit": "fitting",
    "OrdinalFit": "fitted",
    "SemiSupervisedFit": "semisupervised",
    "sample_exact": "pseudomarginal",
    "sample_posterior": "sampling",
    "Stack": "stacking",
    "stack": "stacking",
    "load": "storage",
    "calibration": "diagnostics",
    "Comparison": "diagnostics",
    "compare": "diagnostics",
    "compare_engines": "diagnostics",
    "compare_scores": "diagnostics",
    "loo": "diagnostics",
    "scores": "diagnostics",
    "rank_methods": "diagnostics",
    "predictive_bars": "diagnostics",
    "prior_categories": "diagnostics",
    "surrogate_residuals": "diagnostics",
    "linear_model": "models",
    "latent_model": "latent",
    "write_report": "report",
}

_MODULES = ("datasets", "modl", "plots", "sklearn")

__all__ = [*_HOME, *_MODULES]

if TYPE_CHECKING:
    from pmordinal import datasets, modl, plots, sklearn
    from pmordinal.diagnostics import (
        Comparison,
        calibration,
        compare,
        compare_engines,
        compare_scores,
        loo,
        predictive_bars,
        prior_categories,
        rank_methods,
        scores,
        surrogate_residuals,
    )
    from pmordinal.distributions import Ordinal
    from pmordinal.engines import ENGINES, EP, PLSOR, Exact, Laplace, SparseADF
    from pmordinal.errors import ConvergenceWarning, LabelOrderWarning
    from pmordinal.fitted import OrdinalFit
    from pmordinal.fitting import fit
    from pmordinal.gp import MarginalOrdinal
    from pmordinal.gram import LinearARD, Precomputed
    from pmordinal.latent import latent_model
    from pmordinal.links import LINKS
    from pmordinal.models import gp_model, linear_model
    from pmordinal.objectives import OBJECTIVES
    from pmordinal.priors import thresholds
    from pmordinal.pseudomarginal import sample_exact
    from pmordinal.report import write_report
    from pmordinal.sampling import sample_posterior
    from pmordinal.selection import select_features
    from pmordinal.semisupervised import SemiSupervisedFit
    from pmordinal.stacking import Stack, stack
    from pmordinal.storage import load


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"pmordinal.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"pmordinal.{name}")
    raise AttributeError(f"module 'pmordinal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
