"""Relevance of the attributes after a fit with one length-scale each."""

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from pmordinal import checks
from pmordinal.data.lettering import caption
from pmordinal.plots.base import FAINT, INK, MUTED, new_axes
from pmordinal.results.effects import interval_tails
from pmordinal.results.fit import OrdinalFit, a_fit
from pmordinal.words import guessing


@guessing
def plot_relevance(
    fit: OrdinalFit,
    ax: Axes | None = None,
    *,
    tree: xr.DataTree | None = None,
    top: int = 30,
    ci_prob: float | None = None,
) -> Axes:
    """Draw the ARD relevance of each attribute, the largest on top.

    Parameters
    ----------
    fit : OrdinalFit
        Fitted with ``ard=True``, or with `LinearARD`; see `OrdinalFit.relevance`.
    ax : Axes, optional
        Where to draw.
    tree : DataTree, optional
        With draws of ``posterior/lengthscale``: their intervals are drawn as lines.
    top : int
        How many attributes to show at most.
    ci_prob : float, optional
        Probability of the intervals; default is ArviZ's ``rcParams["stats.ci_prob"]``.

    Returns
    -------
    Axes
    """
    shown = a_fit(fit).relevance().head(checks.integer("top", top, minimum=1)).iloc[::-1]
    y = np.arange(len(shown))
    ax = new_axes(ax, "Relevance of the attributes")
    ax.hlines(y, 0, shown, color=FAINT, lw=5)
    ax.plot(shown, y, "o", color=INK, ms=6)
    if tree is not None:
        bounds = _intervals(fit, tree, ci_prob).loc[shown.index]
        ax.hlines(y, bounds["low"], bounds["high"], color=MUTED, lw=1.5)
    ax.set_yticks(y, [caption(name) for name in shown.index])
    ax.set(xlabel="relevance, variance of the attribute / length-scale²", ylim=(-0.6, len(y) - 0.4))
    ax.set_xlim(left=0.0)
    return ax


def _intervals(fit: OrdinalFit, tree: xr.DataTree, ci_prob: float | None) -> pd.DataFrame:
    posterior = tree["posterior"].to_dataset()
    if "lengthscale" not in posterior or "feature" not in posterior["lengthscale"].dims:
        raise ValueError("tree: it has no draws of posterior/lengthscale for each feature")
    scale = posterior["lengthscale"].stack(sample=("chain", "draw")).transpose("sample", "feature")
    relevance = fit.posterior.gram.X.var(0) / scale.values**2
    low, high = np.quantile(relevance, interval_tails(ci_prob), axis=0)
    return pd.DataFrame({"low": low, "high": high}, index=list(fit.features.names))
