"""Category probabilities along an attribute."""

from matplotlib.axes import Axes

from pmordinal.effects import effects
from pmordinal.fitted import OrdinalFit
from pmordinal.plots.base import (
    Places,
    class_colours,
    dodge,
    ink_on,
    label_right,
    new_axes,
)


def plot_categories(
    fit: OrdinalFit, feature, ax: Axes | None = None, *, stacked: bool | None = None, **kwargs
) -> Axes:
    """Draw the category probabilities along an attribute, with their intervals or stacked.

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
    table = effects(fit, names, "probs", **kwargs)
    ax = new_axes(ax, "Category probabilities")
    places = Places.of(table, names)
    if stacked is None:
        stacked = places.ticks is not None
    classes = fit.labels.class_names
    colours = class_colours(len(classes))
    if stacked:
        _stack(ax, places, table["mean"].to_numpy().reshape(-1, len(classes)), colours, classes)
    else:
        for k, name in enumerate(classes):
            part = table[table["class"] == name]
            places.draw(ax, part, colours[k], dodge(k, len(classes)), name)
    places.label(ax)
    ax.set(ylim=(0, 1), ylabel="probability")
    if stacked or places.ticks is not None:
        ax.legend(
            title="class", reverse=True, loc="upper left", bbox_to_anchor=(1, 1), frameon=False
        )
    else:
        ends = [table.loc[table["class"] == name, "mean"].iloc[-1] for name in classes]
        label_right(ax, ends, classes, colours)
    return ax


def _stack(ax: Axes, places: Places, probs, colours, classes) -> None:
    tops = probs.cumsum(1)
    bottoms = tops - probs
    for k, name in enumerate(classes):
        if places.ticks is None:
            ax.fill_between(places.x, bottoms[:, k], tops[:, k], color=colours[k], label=name, lw=0)
            continue
        ax.bar(places.x, probs[:, k], 0.75, bottoms[:, k], color=colours[k], label=name)
        for i in (probs[:, k] > 0.06).nonzero()[0]:
            ax.text(
                places.x[i],
                0.5 * (bottoms[i, k] + tops[i, k]),
                f"{probs[i, k]:.2f}",
                ha="center",
                va="center",
                color=ink_on(colours[k]),
            )
