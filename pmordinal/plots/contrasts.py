"""Effects per category: how P(Y = k) differs between values of an attribute."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from pmordinal.effects import effects, locate
from pmordinal.fitted import OrdinalFit
from pmordinal.plots.base import MUTED, Places, class_colours, dodge, label_right, new_axes


def plot_effects(
    fit: OrdinalFit, feature: str, ax: Axes | None = None, *, versus: Any = None, **kwargs
) -> Axes:
    """Draw the differences of P(Y = k) from a reference value of an attribute, with intervals.

    Parameters
    ----------
    fit : OrdinalFit
    feature : str
        A column of the training table.
    ax : Axes, optional
        Where to draw.
    versus : optional
        The reference value; default is the first level, or the median of a numeric attribute.
    **kwargs
        For `effects`.

    Returns
    -------
    Axes
    """
    where, levels = locate(fit.features, feature)
    if versus is None:
        column = fit.features.untransform(fit.posterior.gram.X)[:, where.start]
        versus = float(np.median(column)) if levels is None else levels[0]
    table = effects(fit, feature, "probs", versus=versus, **kwargs)
    shown = f"{versus:.3g}" if levels is None else str(versus)
    if levels is not None:
        table = table[table[feature] != shown]
    places = Places.of(table, [feature])
    classes = fit.labels.class_names
    colours = class_colours(len(classes))
    ax = new_axes(ax, f"Effect of {feature} on each category")
    ax.axhline(0.0, color=MUTED, lw=0.9, zorder=0)
    for k, name in enumerate(classes):
        part = table[table["class"] == name]
        places.draw(ax, part, colours[k], dodge(k, len(classes)), name)
    places.label(ax)
    ax.set_ylabel(f"change of probability from {feature} = {shown}")
    if levels is None:
        ends = [table.loc[table["class"] == name, "mean"].iloc[-1] for name in classes]
        label_right(ax, ends, classes, colours)
    else:
        ax.legend(title="class", loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return ax
