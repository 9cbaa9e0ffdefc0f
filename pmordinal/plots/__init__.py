"""Pictures of fits; each returns the matplotlib axes it drew on."""

from pmordinal.plots.categories import plot_categories
from pmordinal.plots.latent import plot_latent

__all__ = ["plot_categories", "plot_latent"]
