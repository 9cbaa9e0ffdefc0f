"""The predicted distribution of the target's rank, row by row."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pmordinal import checks
from pmordinal.modl.plots.base import axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pmordinal.modl.regression.regressor import RankRegressor


def plot_predicted_ranks(
    model: "RankRegressor", X: Any, ax: "Axes | None" = None, *, top: int = 30
) -> "Axes":
    """Draw the predicted distribution of the normalised target rank of some rows, the lowest expected rank first.

    Parameters
    ----------
    model : RankRegressor
        A fitted one.
    X : data frame or array-like, shape (n, d)
        Rows to predict.
    ax : matplotlib Axes, optional
        Where to draw.
    top : int, default 30
        At most so many rows are drawn, chosen evenly among all in the order of their expected rank.

    Returns
    -------
    matplotlib Axes
        A line for each row: shades are the density of its rank, the dot is the expected rank.
    """
    ax = axes_of(ax)
    edges = model.rank_edges_
    cdf, mean = model.rank_cdf(X), model.predict_rank(X)
    count = min(checks.integer("top", top, minimum=1), len(mean))
    order = np.argsort(mean, kind="stable")
    rows = order[np.unique(np.linspace(0, len(mean) - 1, count).astype(int))]
    density = np.diff(cdf[rows], axis=1) / np.diff(edges)
    mesh = ax.pcolormesh(edges, np.arange(len(rows) + 1) - 0.5, density, cmap="Blues", vmin=0.0)
    ax.plot(mean[rows], np.arange(len(rows)), "o", color="tab:orange", ms=4, label="expected rank")
    names = X.index[rows] if hasattr(X, "index") else rows
    ax.set_yticks(np.arange(len(rows)), [str(name) for name in names], fontsize="small")
    ax.set(xlabel="normalised rank of the target, 0 is the lowest", ylabel="row", xlim=(0, 1))
    ax.figure.colorbar(mesh, ax=ax, label="predicted density of the rank (1: nothing is known)")
    ax.legend(loc="lower right", fontsize="small")
    return ax
