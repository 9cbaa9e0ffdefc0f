"""Category probabilities along an attribute."""

import numpy as np
from matplotlib.axes import Axes

from pmordinal.plots.base import (
    WIDTH,
    Places,
    class_colours,
    class_legend,
    dodge,
    ink_on,
    intervals,
    label_right,
    new_axes,
    numbers,
    rug,
)
from pmordinal.results.effects import effects
from pmordinal.results.fit import OrdinalFit, a_fit

NUMBER, LETTER = 0.5, 0.085  # inches of a number in a bar, and of a letter in the legend


def plot_categories(
    fit: OrdinalFit, feature, ax: Axes | None = None, *, stacked: bool | None = None, **kwargs
) -> Axes:
    """Draw the category probabilities along an attribute, as curves with intervals or as a stack.

    Parameters
    ----------
    fit : OrdinalFit
    feature : str or sequence of str
        A column of the training table, or several categorical ones to combine.
    ax : Axes, optional
        Where to draw.
    stacked : bool, optional
        Stack the probabilities from the lowest class up, without intervals. Default is to stack
        for categorical attributes, and curves with bands for numeric ones.
    **kwargs
        For `effects`: ``at=`` holds other attributes fixed, which are averaged over else.

    Returns
    -------
    Axes
    """
    names = [feature] if isinstance(feature, str) else list(feature)
    table = effects(a_fit(fit), names, "probs", **kwargs)
    places = Places.of(table, names)
    if stacked is None:
        stacked = places.ticks is not None
    ax = new_axes(ax, "Category probabilities", slots=len(places.ticks or ()))
    classes = fit.labels.class_names
    colours = class_colours(len(classes))
    if stacked:
        room = ax.get_window_extent().width / ax.figure.dpi
        room -= LETTER * min(max(map(len, classes)), WIDTH)
        probs = table["mean"].to_numpy().reshape(-1, len(classes))
        drawn = _stack(ax, places, probs, colours, numbered=len(probs) * NUMBER <= room)
    else:
        parts = [table[table["class"] == name] for name in classes]
        drawn = [
            places.draw(ax, part, colours[k], dodge(k, len(classes)))
            for k, part in enumerate(parts)
        ]
    places.label(ax)
    ax.set(ylim=(0, 1), ylabel="probability" + ("" if stacked else f", {intervals(kwargs)}"))
    if places.ticks is None:
        rug(ax, numbers(fit, names[0]))
    if stacked or places.ticks is not None:
        class_legend(ax, drawn, classes, reverse=True)
    else:
        label_right(ax, [part["mean"].iloc[-1] for part in parts], classes, colours)
    return ax


def _stack(ax: Axes, places: Places, probs: np.ndarray, colours: list[str], numbered: bool) -> list:
    """Draw the probabilities on top of each other and return what was drawn for each class."""
    tops = probs.cumsum(1)
    bottoms = tops - probs
    drawn: list = []
    for k, colour in enumerate(colours):
        if places.ticks is None:
            drawn.append(ax.fill_between(places.x, bottoms[:, k], tops[:, k], color=colour, lw=0))
            continue
        drawn.append(ax.bar(places.x, probs[:, k], 0.75, bottoms[:, k], color=colour))
        for i in (probs[:, k] > 0.06).nonzero()[0] if numbered else ():
            ax.text(
                places.x[i],
                0.5 * (bottoms[i, k] + tops[i, k]),
                f"{probs[i, k]:.2f}",
                ha="center",
                va="center",
                color=ink_on(colour),
            )
    return drawn
