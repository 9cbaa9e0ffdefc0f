"""Where the cuts of sampled grids lie."""

from typing import TYPE_CHECKING

from pmordinal.modl.plots.base import axes_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


def plot_boundaries(
    tree: "xr.DataTree", axis: str = "x", ax: "Axes | None" = None, *, bins: int = 60
) -> "Axes":
    """Draw the posterior expected number of cuts along an axis, one line a chain.

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
    ax = axes_of(ax)
    at = data[f"{axis}_boundary"].to_numpy()
    for chain in data[name].to_numpy():
        ax.hist(at, bins=bins, weights=chain, histtype="step")
    ax.set(xlabel=axis, ylabel="expected number of cuts")
    return ax
