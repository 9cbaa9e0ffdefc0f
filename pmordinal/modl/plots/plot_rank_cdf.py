"""The conditional cdf of the target rank, part by part."""

from typing import TYPE_CHECKING

import numpy as np

from pmordinal.data.lettering import caption, captions
from pmordinal.modl.plots.base import WIDTH, axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pmordinal.modl.partition.grid import Grid


def plot_rank_cdf(grid: "Grid", ax: "Axes | None" = None, *, smoothing: float = 1.0) -> "Axes":
    """Draw the conditional cdf of the normalised target rank for every part of the predictor.

    Parameters
    ----------
    grid : Grid
    ax : matplotlib Axes, optional
        Where to draw.
    smoothing : float, default 1.0
        Smoothing of the cell probabilities: added to each count.

    Returns
    -------
    matplotlib Axes
    """
    import matplotlib as mpl

    ax = axes_of(ax)
    edges = np.concatenate(([0.0], grid.y_ranks, [1.0]))
    colours = mpl.colormaps["viridis"](np.linspace(0.0, 0.92, grid.I))
    names = captions(grid.part_names(), WIDTH)
    for row, name, colour in zip(grid.rank_cdf(smoothing=smoothing), names, colours, strict=True):
        ax.plot(edges, row, color=colour, label=name)
    ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", linewidth=1)
    ax.vlines(edges[1:-1], 0, 1, color="0.85", linewidth=0.8, zorder=0)
    ax.set(
        xlabel=f"normalised rank of {caption(grid.y_name)}", ylabel="cumulative probability",
        xlim=(0, 1), ylim=(0, 1),
    )  # fmt: skip
    ax.legend(title=caption(grid.x_name, WIDTH), fontsize="small", loc="best")
    return ax
