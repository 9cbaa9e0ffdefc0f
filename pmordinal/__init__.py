"""Gaussian-process ordinal regression for PyMC.

The public names are loaded when first used, so that the light parts (`pmordinal.modl`) do not
import PyMC.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pmordinal.words import nearest

__version__ = "0.2.0"

_HOME = {
    "ConvergenceWarning": "errors",
    "LabelOrderWarning": "errors",
    "LINKS": "links",
    "ENGINES": "engines",
    "OBJECTIVES": "engines.objectives",
    "EP": "engines",
    "Exact": "engines",
    "Inducing": "engines",
    "Laplace": "engines",
    "PLSOR": "engines",
    "SparseADF": "engines",
    "LinearARD": "gram",
    "PearsonRatings": "gram",
    "Precomputed": "gram",
    "select_features": "inference.select_features",
    "thresholds": "model.thresholds",
    "Ordinal": "model.ordinal",
    "MarginalOrdinal": "model.marginal",
    "formula_model": "model.formula_model",
    "gp_model": "model.factories",
    "fit": "inference.fit",
    "OrdinalFit": "results.fit",
    "SemiSupervisedFit": "results.semisupervised",
    "sample": "inference.sample",
    "sample_exact": "inference.sample_exact",
    "sample_posterior": "inference.sample_posterior",
    "conformal": "inference.conformal",
    "Conformal": "results.conformal",
    "Stack": "results.stacking",
    "stack": "results.stacking",
    "load": "results.load",
    "calibration": "diagnostics.model_checks",
    "Comparison": "diagnostics.compare",
    "compare": "diagnostics.compare",
    "compare_engines": "diagnostics.compare_engines",
    "compare_scores": "diagnostics.scoring",
    "loo": "diagnostics.loo",
    "scores": "diagnostics.scoring",
    "rank_methods": "diagnostics.scoring",
    "predictive_bars": "diagnostics.model_checks",
    "prior_categories": "diagnostics.model_checks",
    "surrogate_residuals": "diagnostics.model_checks",
    "linear_model": "model.factories",
    "latent_model": "model.latent.factory",
    "model_summary": "model.summary",
    "write_report": "report",
}

_MODULES = ("datasets", "modl", "plots", "sklearn")

__all__ = [*_HOME, *_MODULES]

if TYPE_CHECKING:
    from pmordinal import datasets, modl, plots, sklearn
    from pmordinal.diagnostics.compare import Comparison, compare
    from pmordinal.diagnostics.compare_engines import compare_engines
    from pmordinal.diagnostics.loo import loo
    from pmordinal.diagnostics.model_checks import (
        calibration,
        predictive_bars,
        prior_categories,
        surrogate_residuals,
    )
    from pmordinal.diagnostics.scoring import compare_scores, rank_methods, scores
    from pmordinal.engines import ENGINES, EP, PLSOR, Exact, Inducing, Laplace, SparseADF
    from pmordinal.engines.objectives import OBJECTIVES
    from pmordinal.errors import ConvergenceWarning, LabelOrderWarning
    from pmordinal.gram import LinearARD, PearsonRatings, Precomputed
    from pmordinal.inference.conformal import conformal
    from pmordinal.inference.fit import fit
    from pmordinal.inference.sample import sample
    from pmordinal.inference.sample_exact import sample_exact
    from pmordinal.inference.sample_posterior import sample_posterior
    from pmordinal.inference.select_features import select_features
    from pmordinal.links import LINKS
    from pmordinal.model.factories import gp_model, linear_model
    from pmordinal.model.formula_model import formula_model
    from pmordinal.model.latent.factory import latent_model
    from pmordinal.model.marginal import MarginalOrdinal
    from pmordinal.model.ordinal import Ordinal
    from pmordinal.model.summary import model_summary
    from pmordinal.model.thresholds import thresholds
    from pmordinal.report import write_report
    from pmordinal.results.conformal import Conformal
    from pmordinal.results.fit import OrdinalFit
    from pmordinal.results.load import load
    from pmordinal.results.semisupervised import SemiSupervisedFit
    from pmordinal.results.stacking import Stack, stack


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"pmordinal.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"pmordinal.{name}")
    # Python asks for modules, too, before it imports them
    is_name = not name.startswith("_") and find_spec(f"pmordinal.{name}") is None
    hint = _whereabouts(name) if is_name else ""
    raise AttributeError(f"module 'pmordinal' has no attribute {name!r}{hint}", name=name)


def _whereabouts(name: str) -> str:
    """Return a sentence that says what was meant: a name of this module, or one of the modules in it."""
    known = dict(zip(__all__, __all__, strict=True))
    for module in (*_MODULES, "modl.plots"):
        try:
            found = import_module(f"pmordinal.{module}")
        except ModuleNotFoundError:  # scikit-learn is optional
            continue
        known |= {
            each: f"{module}.{each}" for each in getattr(found, "__all__", ()) if each not in known
        }
    meant = nearest(name, known)
    return f". Did you mean {known[meant]!r}?" if meant else ""


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
