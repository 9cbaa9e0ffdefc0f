"""Effects per category: how P(Y = k) differs between values of an attribute."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from pmordinal.data.lettering import caption
from pmordinal.plots.base import (
    MUTED,
    Places,
    class_colours,
    class_legend,
    dodge,
    intervals,
    label_right,
    new_axes,
    numbers,
    rug,
)
from pmordinal.results.effects import effects, locate
from pmordinal.results.fit import OrdinalFit, a_fit


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
        Numbers that a formula takes as levels, ``C(k)``, are levels.
    **kwargs
        For `effects`.

    Returns
    -------
    Axes
    """
    where, attribute = locate(a_fit(fit).features, feature)
    levels = attribute.levels
    if versus is None:
        column = fit.features.untransform(fit.posterior.gram.X)[:, where.start]
        if fit.features.counts_levels(feature):
            versus = float(column.min())
        else:
            versus = float(np.median(column)) if levels is None else levels[0]
    table = effects(fit, feature, "probs", versus=versus, **kwargs)
    shown = f"{versus:.3g}" if levels is None else str(versus)
    if levels is not None and len(levels) > 1:  # a single level stays
        table = table[table[feature] != shown]
    places = Places.of(table, [feature])
    classes = fit.labels.class_names
    colours = class_colours(len(classes))
    slots = len(places.ticks or ()) * max(1.0, len(classes) / 4)
    title = f"Effect of {caption(feature, 30)} on each category"
    ax = new_axes(ax, title, slots)
    ax.axhline(0.0, color=MUTED, lw=0.9, zorder=0)
    parts = [table[table["class"] == name] for name in classes]
    drawn = [
        places.draw(ax, part, colours[k], dodge(k, len(classes))) for k, part in enumerate(parts)
    ]
    places.label(ax)
    origin = f"{caption(feature, 20)} = {caption(shown, 32)}"
    ax.set_ylabel(f"change of probability from\n{origin},\n{intervals(kwargs)}")
    if places.ticks is None:
        rug(ax, numbers(fit, feature))
        label_right(ax, [part["mean"].iloc[-1] for part in parts], classes, colours)
    else:
        class_legend(ax, drawn, classes)
    return ax
