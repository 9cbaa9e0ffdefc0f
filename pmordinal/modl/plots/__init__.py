"""Pictures of grids, of their conditional rank cdfs, of rankings and of posteriors over grids."""

from pmordinal.modl.plots.plot_averaged_cdf import plot_averaged_cdf
from pmordinal.modl.plots.plot_boundaries import plot_boundaries
from pmordinal.modl.plots.plot_data_with_grid import plot_data_with_grid
from pmordinal.modl.plots.plot_predicted_ranks import plot_predicted_ranks
from pmordinal.modl.plots.plot_rank_cdf import plot_rank_cdf
from pmordinal.modl.plots.plot_ranking import plot_ranking

__all__ = [
    "plot_averaged_cdf",
    "plot_boundaries",
    "plot_data_with_grid",
    "plot_predicted_ranks",
    "plot_rank_cdf",
    "plot_ranking",
]
