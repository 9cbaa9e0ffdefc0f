"""Surrogate residuals against the quantiles of the link."""

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import beta

from pmordinal.diagnostics.model_checks import surrogate_residuals
from pmordinal.links import get_link
from pmordinal.plots.base import FAINT, MUTED, class_colours, intervals, new_axes
from pmordinal.results.effects import interval_tails


def plot_residuals(
    source,
    y=None,
    ax: Axes | None = None,
    *,
    link=None,
    replicates: int = 10,
    ci_prob: float | None = None,
    **kwargs,
) -> Axes:
    """Draw the sorted surrogate residuals against the quantiles of the link's noise.

    Under the right model they lie on the diagonal; the band holds each order statistic with the probability given. The
    lines are replicates: residuals of ordered classes are random.

    Parameters
    ----------
    source : OrdinalFit, DataTree, or array_like of probabilities, shape (m, r)
    y : array_like, shape (m,), optional
        True labels; only with probabilities.
    ax : Axes, optional
        Where to draw.
    link : {"probit", "logit", "cloglog"}, optional
        Default is the model's.
    replicates : int
        Sets of residuals; the first is drawn as points.
    ci_prob : float, optional
        Pointwise probability of the band; default is ArviZ's ``rcParams["stats.ci_prob"]``.
    **kwargs
        For `surrogate_residuals`.

    Returns
    -------
    Axes
    """
    table = surrogate_residuals(source, y, link=link, replicates=replicates, **kwargs)
    noise = get_link(table.attrs["link"])
    sets = np.sort(table["residual"].to_numpy().reshape(replicates, -1), axis=1)
    n = sets.shape[1]
    order = np.arange(1, n + 1)
    x = noise.quantile((order - 0.5) / n)
    low, high = (noise.quantile(beta.ppf(q, order, n - order + 1)) for q in interval_tails(ci_prob))
    ax = new_axes(ax, "Surrogate residuals")
    colour = class_colours(2)[0]
    ax.fill_between(
        x, low, high, color=FAINT, lw=0, label=f"{intervals({'ci_prob': ci_prob})} of a right model"
    )
    ax.plot(x, x, color=MUTED, lw=0.9, ls="--")
    ax.plot(x, sets[1:].T, color=colour, lw=0.6, alpha=0.35)
    ax.plot(x, sets[0], "o", color=colour, ms=3.5, mec="white", mew=0.3)
    ax.set(xlabel=f"quantiles of the {noise.name} link's noise", ylabel="sorted residuals")
    ax.legend(loc="upper left", frameon=False)
    return ax
