"""Plots of models, fits and checks; each returns the matplotlib axes or ArviZ object that it drew on."""

from pmordinal.plots.plot_annealing import plot_annealing
from pmordinal.plots.plot_bars import plot_bars
from pmordinal.plots.plot_calibration import plot_calibration
from pmordinal.plots.plot_categories import plot_categories
from pmordinal.plots.plot_effects import plot_effects
from pmordinal.plots.plot_engines import plot_engines
from pmordinal.plots.plot_grid import plot_grid
from pmordinal.plots.plot_latent import plot_latent
from pmordinal.plots.plot_prior import plot_prior
from pmordinal.plots.plot_regions import plot_regions
from pmordinal.plots.plot_relevance import plot_relevance
from pmordinal.plots.plot_residuals import plot_residuals
from pmordinal.plots.plot_terms import plot_terms

__all__ = [
    "plot_annealing",
    "plot_bars",
    "plot_calibration",
    "plot_categories",
    "plot_effects",
    "plot_engines",
    "plot_grid",
    "plot_latent",
    "plot_prior",
    "plot_regions",
    "plot_relevance",
    "plot_residuals",
    "plot_terms",
]
