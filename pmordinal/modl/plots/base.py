"""What the plots of MODL share; matplotlib is imported where something is drawn."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 26  # characters of a name beside a picture or under it


def axes_of(ax: "Axes | None") -> "Axes":
    """Return `ax`, or new axes."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]
