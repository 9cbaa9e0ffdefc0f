"""Plots of grids, of their conditional rank cdfs, of rankings and of posteriors over grids."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pmordinal import checks
from pmordinal.data.lettering import caption

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from pmordinal.modl.partition.grid import Grid

WIDTH = 26  # longest name in a legend or on an axis, in characters


def _axes(ax: "Axes | None") -> "Axes":
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _span(values: np.ndarray) -> tuple[float, float]:
    """Return the range of finite values with a margin."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = 0.03 * (high - low) or 0.5
    return low - margin, high + margin


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
    ax = _axes(ax)
    y_low, y_high = _span(grid.y)
    y_edges = np.concatenate(([y_low], grid.y_boundaries, [y_high]))
    keep = np.unique(np.linspace(0, len(grid.y) - 1, min(max_points, len(grid.y))).astype(int))
    part = grid.part_of(grid.x)
    jitter = np.random.default_rng(0).uniform(0.1, 0.9, len(grid.y))
    if grid.kind == "categorical" or np.isnan(grid.x).all():
        x_edges = np.arange(grid.I + 1, dtype=float)
        points = part + jitter
        names = [caption(name, WIDTH) for name in grid.part_names()]
        ax.set_xticks(
            x_edges[:-1] + 0.5,
            names,
            rotation=20 if grid.I > 2 else 0,
            ha="right" if grid.I > 2 else "center",
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
    if colorbar:
        ax.figure.colorbar(mesh, ax=ax, label="conditional rank density")
    ax.set(
        xlabel=caption(grid.x_name), ylabel=caption(grid.y_name),
        xlim=(x_edges[0], x_edges[-1]), ylim=(y_low, y_high),
    )  # fmt: skip
    ax.set_title(f"{grid.I} × {grid.J} cells, level {grid.level:.4f}", pad=14)
    return ax


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

    ax = _axes(ax)
    edges = np.concatenate(([0.0], grid.y_ranks, [1.0]))
    colours = mpl.colormaps["viridis"](np.linspace(0.0, 0.92, grid.I))
    for row, name, colour in zip(
        grid.rank_cdf(smoothing=smoothing), grid.part_names(), colours, strict=True
    ):
        ax.plot(edges, row, color=colour, label=caption(name, WIDTH))
    ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", linewidth=1)
    ax.vlines(edges[1:-1], 0, 1, color="0.85", linewidth=0.8, zorder=0)
    ax.set(
        xlabel=f"normalised rank of {caption(grid.y_name)}", ylabel="cumulative probability",
        xlim=(0, 1), ylim=(0, 1),
    )  # fmt: skip
    ax.legend(title=caption(grid.x_name, WIDTH), fontsize="small", loc="best")
    return ax


def plot_ranking(ranking: pd.DataFrame, ax: "Axes | None" = None, *, top: int = 30) -> "Axes":
    """Draw the levels of the predictors as bars, the most informative on top.

    Parameters
    ----------
    ranking : pandas.DataFrame
        From `rank_predictors`.
    ax : matplotlib Axes, optional
        Where to draw.
    top : int, default 30
        How many predictors to show.

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax)
    shown = ranking.head(checks.integer("top", top, minimum=1)).iloc[::-1]
    colours = np.where(shown["kind"] == "numeric", "tab:blue", "tab:orange")
    y = np.arange(len(shown))  # positions, since two long names may look the same when cut
    ax.barh(y, shown["level"], color=colours)
    ax.set_yticks(y, [caption(name, WIDTH) for name in shown.index])
    ax.set(xlabel="level (orange: categorical)")
    return ax


def plot_boundaries(
    tree: "xr.DataTree", axis: str = "x", ax: "Axes | None" = None, *, bins: int = 60
) -> "Axes":
    """Draw the posterior expected number of cuts along an axis, one line for each chain.

    Parameters
    ----------
    tree : xarray.DataTree
        From `sample_grids`.
    axis : {"x", "y"}, default "x"
        Predictor (numeric) or target.
    ax : matplotlib Axes, optional
        Where to draw.
    bins : int, default 60
        Number of bins of the histogram.

    Returns
    -------
    matplotlib Axes
    """
    data = tree["boundaries"]
    name = f"{axis}_density"
    if name not in data:
        raise ValueError(f"there are no cuts on axis {axis!r}: choose 'y', or 'x' if it is numeric")
    ax = _axes(ax)
    at = data[f"{axis}_boundary"].to_numpy()
    for chain in data[name].to_numpy():
        ax.hist(at, bins=bins, weights=chain, histtype="step")
    ax.set(xlabel=axis, ylabel="expected number of cuts")
    return ax


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

    ax = _axes(ax)
    ranks = np.linspace(0.0, 1.0, 201)
    for k, (value, cdf) in enumerate(zip(x, averaged_rank_cdf(tree, x, ranks), strict=True)):
        ax.plot(ranks, cdf, color=f"C{k}", label=f"x = {caption(value, WIDTH)}")
        if grid is not None:
            row = grid.rank_cdf(ranks)[grid.part_of([value])[0]]
            ax.plot(ranks, row, color=f"C{k}", linestyle="--", linewidth=1)
    ax.set(xlabel="normalised rank of y", ylabel="cumulative probability", xlim=(0, 1), ylim=(0, 1))
    ax.legend(fontsize="small")
    return ax
