"""The rank cdf averaged over sampled grids."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pmordinal.data.lettering import caption
from pmordinal.modl.plots.base import WIDTH, axes_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from pmordinal.modl.partition.grid import Grid


def plot_averaged_cdf(
    tree: "xr.DataTree", x: Any, grid: "Grid | None" = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the rank cdf averaged over grids at some predictor values, and that of one grid.

    Parameters
    ----------
    tree : xarray.DataTree
        From `sample_grids`.
    x : array-like, shape (k,)
        Predictor values.
    grid : Grid, optional
        A single grid to compare with, drawn dashed.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
    """
    from pmordinal.modl.regression.averaging import averaged_rank_cdf

    ax = axes_of(ax)
    ranks = np.linspace(0.0, 1.0, 201)
    for k, (value, cdf) in enumerate(zip(x, averaged_rank_cdf(tree, x, ranks), strict=True)):
        ax.plot(ranks, cdf, color=f"C{k}", label=f"x = {caption(value, WIDTH)}")
        if grid is not None:
            row = grid.rank_cdf(ranks)[grid.part_of([value])[0]]
            ax.plot(ranks, row, color=f"C{k}", linestyle="--", linewidth=1)
    ax.set(xlabel="normalised rank of y", ylabel="cumulative probability", xlim=(0, 1), ylim=(0, 1))
    ax.legend(fontsize="small")
    return ax
