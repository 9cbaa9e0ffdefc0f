"""The latent function along an attribute, with the thresholds that cut it into classes."""

import numpy as np
from matplotlib.axes import Axes

from pmordinal.effects import effects
from pmordinal.fitted import OrdinalFit
from pmordinal.plots.base import class_colours, new_axes


def plot_latent(fit: OrdinalFit, feature, ax: Axes | None = None, **kwargs) -> Axes:
    """Draw the latent function along an attribute; the bands between the thresholds are the classes.

    Parameters
    ----------
    fit : OrdinalFit
    feature : str or sequence of str
        A column of the training table, or several categorical ones to combine.
    ax : Axes, optional
        Where to draw.
    **kwargs
        For `effects`.

    Returns
    -------
    Axes
    """
    ax = new_axes(ax)
    data = effects(fit, feature, **kwargs)
    mean, sd = data["latent"].values, data["sd"].values
    numeric = np.issubdtype(data["value"].dtype, np.number)
    x = data["value"].values if numeric else np.arange(data.sizes["value"])
    b = fit.thresholds
    pad = 0.12 * max(np.ptp(np.concatenate([b, mean - sd, mean + sd])), fit.noise)
    low = min(b[0], (mean - sd).min()) - pad
    high = max(b[-1], (mean + sd).max()) + pad
    edges = np.concatenate([[low], b, [high]])
    colours = class_colours(fit.labels.n_classes)
    for k, name in enumerate(fit.labels.class_names):
        ax.axhspan(edges[k], edges[k + 1], color=colours[k], alpha=0.25, lw=0)
        middle = 0.5 * (edges[k] + edges[k + 1])
        ax.text(1.01, middle, name, va="center", transform=ax.get_yaxis_transform())
    for value in b:
        ax.axhline(value, color="0.3", lw=0.8, ls="--")
    if numeric:
        ax.fill_between(x, mean - sd, mean + sd, color="0.15", alpha=0.25, lw=0)
        ax.plot(x, mean, color="0.1")
    else:
        ax.errorbar(x, mean, sd, fmt="o", color="0.1", capsize=4)
        ax.set_xticks(x, data["value"].values)
        ax.margins(x=0.15)
    ax.set(ylim=(low, high), xlabel=data.attrs["feature"], ylabel="latent function")
    return ax
