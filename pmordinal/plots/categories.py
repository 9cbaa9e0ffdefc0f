"""Category probabilities along an attribute."""

import numpy as np
from matplotlib.axes import Axes

from pmordinal.effects import effects
from pmordinal.fitted import OrdinalFit
from pmordinal.plots.base import class_colours, new_axes


def plot_categories(fit: OrdinalFit, feature, ax: Axes | None = None, **kwargs) -> Axes:
    """Draw the category probabilities along an attribute, stacked from the lowest class up.

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
    colours = class_colours(fit.labels.n_classes)
    tops = data["probs"].values.cumsum(1)
    bottoms = tops - data["probs"].values
    numeric = np.issubdtype(data["value"].dtype, np.number)
    x = data["value"].values if numeric else np.arange(data.sizes["value"])
    for k, name in enumerate(fit.labels.class_names):
        if numeric:
            ax.fill_between(x, bottoms[:, k], tops[:, k], color=colours[k], label=name, lw=0)
        else:
            heights = tops[:, k] - bottoms[:, k]
            ax.bar(x, heights, 0.75, bottoms[:, k], color=colours[k], label=name)
            for i in np.flatnonzero(heights > 0.06):
                light = "white" if k < 0.6 * fit.labels.n_classes else "black"
                middle = 0.5 * (bottoms[i, k] + tops[i, k])
                ax.text(x[i], middle, f"{heights[i]:.2f}", ha="center", va="center", color=light)
    if not numeric:
        ax.set_xticks(x, data["value"].values)
    ax.set(ylim=(0, 1), xlabel=data.attrs["feature"], ylabel="probability")
    ax.legend(
        title="class", reverse=True, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False
    )
    return ax
