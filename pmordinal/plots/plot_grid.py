"""A MODL grid as a heat map of its counts."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from pmordinal import checks
from pmordinal.data.lettering import caption, captions
from pmordinal.modl.partition.grid import Grid
from pmordinal.plots.base import WIDTH, ink_on, new_axes


def plot_grid(grid: Grid, ax: Axes | None = None, *, counts: bool = True) -> Axes:
    """Draw a MODL grid as a heat map: the share of each target interval among the rows of each part.

    Cells have equal sizes; the boundaries between them are on the axes. ``grid.plot()`` draws the data under the
    grid instead.

    Parameters
    ----------
    grid : Grid
        From `pmordinal.modl.fit_grid`.
    ax : Axes, optional
        Where to draw.
    counts : bool
        Write the counts into the cells.

    Returns
    -------
    Axes
    """
    if not isinstance(grid, Grid):
        raise TypeError(f"grid must be a Grid, as modl.fit_grid returns it, got {checks.got(grid)}")
    table = grid.to_frame()
    n = table.to_numpy(dtype=float)
    share = np.divide(
        n, n.sum(1, keepdims=True), out=np.zeros_like(n), where=n.sum(1, keepdims=True) > 0
    )
    ax = new_axes(ax, f"{grid.I} × {grid.J} cells, level {grid.level:.3f}")
    mesh = ax.pcolormesh(
        share.T, cmap="cividis", vmin=0.0, vmax=1.0, edgecolors="white", linewidth=1.5
    )
    if counts:
        for (i, j), count in np.ndenumerate(n):
            ink = ink_on(to_hex(tuple(mesh.to_rgba(share[i, j]))))
            ax.text(i + 0.5, j + 0.5, f"{count:.0f}", ha="center", va="center", color=ink)
    if grid.kind == "categorical" or grid.missing_part is not None:
        ax.set_xticks(
            np.arange(grid.I) + 0.5,
            captions(list(table.index), WIDTH),
            rotation=20,
            ha="right",
        )
    else:
        ax.set_xticks(np.arange(1, grid.I), [f"{b:.4g}" for b in grid.x_boundaries])
    if grid.y_labels is None:
        ax.set_yticks(np.arange(1, grid.J), [f"{b:.4g}" for b in grid.y_boundaries])
    else:
        ax.set_yticks(np.arange(grid.J) + 0.5, captions(list(table.columns), WIDTH))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel=caption(grid.x_name), ylabel=caption(grid.y_name))
    ax.figure.colorbar(mesh, ax=ax, label=f"share of the {caption(grid.x_name, WIDTH)} part")
    return ax
