"""Pictures of models, fits and checks; each returns the matplotlib or ArviZ object it drew on."""

from pmordinal.plots.annealing import plot_annealing
from pmordinal.plots.bars import plot_bars
from pmordinal.plots.categories import plot_categories
from pmordinal.plots.contrasts import plot_effects
from pmordinal.plots.engines import plot_engines
from pmordinal.plots.grid import plot_grid
from pmordinal.plots.latent import plot_latent
from pmordinal.plots.prior import plot_prior
from pmordinal.plots.regions import plot_regions
from pmordinal.plots.relevance import plot_relevance
from pmordinal.plots.reliability import plot_calibration
from pmordinal.plots.residuals import plot_residuals

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
]
