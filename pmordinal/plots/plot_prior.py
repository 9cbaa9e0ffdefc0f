"""The class shares that the priors of a model imply."""

import numpy as np
import pymc as pm
import xarray as xr
from matplotlib.axes import Axes

from pmordinal.diagnostics.model_checks import prior_categories, prior_draws
from pmordinal.plots.base import ACCENT, class_colours, name_axis, new_axes


def plot_prior(
    source: pm.Model | xr.DataTree,
    ax: Axes | None = None,
    *,
    draws: int = 500,
    ci_prob: float | None = None,
    seed: int | None = None,
) -> Axes:
    """Draw the class shares of data sets drawn from the priors, beside the observed ones.

    Thick lines are the inner half of the draws, thin ones their interval, the mark their median.

    Parameters
    ----------
    source : pm.Model or DataTree
        A model whose labels are called ``y``, or draws of it by ``pm.sample_prior_predictive``.
    ax : Axes, optional
        Where to draw.
    draws, ci_prob, seed
        See `prior_categories`.

    Returns
    -------
    Axes
    """
    tree = prior_draws(source, draws, seed)
    wide = prior_categories(tree, ci_prob=ci_prob)
    inner = prior_categories(tree, ci_prob=0.5)
    ax = new_axes(ax, "Class shares under the prior")
    x, colours = np.arange(len(wide)), class_colours(len(wide))
    ax.vlines(x, wide["low"], wide["high"], colors=colours, lw=2)
    ax.vlines(x, inner["low"], inner["high"], colors=colours, lw=8)
    ax.scatter(x, wide["median"], s=34, color="white", edgecolors=colours, linewidths=1.2, zorder=3)
    ax.plot(x, wide["observed"], "D", color=ACCENT, ms=6, mec="white", label="observed", zorder=4)
    name_axis(ax, x, list(wide["class"]), "class")
    ax.set(ylabel="share of the rows", xlim=(-0.6, len(x) - 0.4))
    ax.set_ylim(0, 1)
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return ax
