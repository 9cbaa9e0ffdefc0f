"""The levels of predictors as bars."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pmordinal import checks
from pmordinal.data.lettering import caption
from pmordinal.modl.plots.base import WIDTH, axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    ax = axes_of(ax)
    shown = ranking.head(checks.integer("top", top, minimum=1)).iloc[::-1]
    colours = np.where(shown["kind"] == "numeric", "tab:blue", "tab:orange")
    y = np.arange(len(shown))  # places, since two long names may look the same
    ax.barh(y, shown["level"], color=colours)
    ax.set_yticks(y, [caption(name, WIDTH) for name in shown.index])
    ax.set(xlabel="level (orange: categorical)")
    return ax
