"""The data of a grid with the grid over it."""

from typing import TYPE_CHECKING

import numpy as np

from pmordinal.data.lettering import caption, captions
from pmordinal.modl.plots.base import WIDTH, axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pmordinal.modl.partition.grid import Grid


def plot_data_with_grid(
    grid: "Grid",
    ax: "Axes | None" = None,
    *,
    smoothing: float = 1.0,
    max_points: int = 5000,
    cmap: str = "Blues",
    colorbar: bool = True,
) -> "Axes":
    """Draw the data with the grid over it; shades are the conditional density of the target rank.

    `pmordinal.plots.plot_grid` draws the counts in cells of equal size instead.

    Parameters
    ----------
    grid : Grid
        From `fit_grid`, which keeps the data.
    ax : matplotlib Axes, optional
        Where to draw.
    smoothing : float, default 1.0
        Smoothing of the cell probabilities: added to each count.
    max_points : int, default 5000
        At most so many points are drawn, chosen evenly.
    cmap : str, default "Blues"
        Colour map of the density; 1 is no information.
    colorbar : bool, default True
        Whether to draw the scale of the shades.

    Returns
    -------
    matplotlib Axes
    """
    if grid.x is None or grid.y is None:
        raise ValueError(
            "this grid does not hold its data (it comes from a table of predictors): fit it by fit_grid(x, y)"
        )
    ax = axes_of(ax)
    y_low, y_high = _span(grid.y)
    y_edges = np.concatenate(([y_low], grid.y_boundaries, [y_high]))
    keep = np.unique(np.linspace(0, len(grid.y) - 1, min(max_points, len(grid.y))).astype(int))
    part = grid.part_of(grid.x)
    jitter = np.random.default_rng(0).uniform(0.1, 0.9, len(grid.y))
    if grid.kind == "categorical" or np.isnan(grid.x).all():
        x_edges = np.arange(grid.I + 1, dtype=float)
        points = part + jitter
        names = captions(grid.part_names(), WIDTH)
        turned = grid.I > 2 or max(map(len, names)) > 12
        ax.set_xticks(
            x_edges[:-1] + 0.5,
            names,
            rotation=20 if turned else 0,
            ha="right" if turned else "center",
        )
    else:
        x_low, x_high = _span(grid.x)
        x_edges = np.concatenate(([x_low], grid.x_boundaries, [x_high]))
        points = grid.x.astype(float)
        if grid.missing_part is not None:
            width = 0.12 * (x_high - x_low)
            x_edges = np.append(x_edges, x_high + width)
            points = np.where(np.isnan(points), x_high + width * jitter, points)
            ax.annotate(
                "missing", (x_high + width / 2, 1.0), xycoords=("data", "axes fraction"),
                xytext=(0, 3), textcoords="offset points", ha="center", fontsize="small",
            )  # fmt: skip
    shade = grid.rank_density(smoothing).T
    mesh = ax.pcolormesh(x_edges, y_edges, shade, cmap=cmap, vmin=0.0, alpha=0.85)
    ax.vlines(x_edges[1:-1], y_low, y_high, color="black", linewidth=0.8)
    ax.hlines(y_edges[1:-1], x_edges[0], x_edges[-1], color="black", linewidth=0.8)
    size = float(np.clip(2000 / len(keep), 2, 14))
    ax.scatter(points[keep], grid.y[keep], s=size, c="tab:orange", linewidths=0.2, edgecolors="0.2")
    if grid.y_labels is not None:
        ax.set_yticks(range(len(grid.y_labels)), [caption(name, WIDTH) for name in grid.y_labels])
    if colorbar:
        ax.figure.colorbar(mesh, ax=ax, label="conditional rank density")
    ax.set(
        xlabel=caption(grid.x_name), ylabel=caption(grid.y_name),
        xlim=(x_edges[0], x_edges[-1]), ylim=(y_low, y_high),
    )  # fmt: skip
    ax.set_title(f"{grid.I} × {grid.J} cells, level {grid.level:.4f}", pad=14)
    return ax


def _span(values: np.ndarray) -> tuple[float, float]:
    """Return the range of finite values with a margin."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = 0.03 * (high - low) or 0.5
    return low - margin, high + margin
