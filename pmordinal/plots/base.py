"""What all plots share: ordered, colour-blind safe class colours, and where to draw."""

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes


def class_colours(n_classes: int) -> list[tuple[float, ...]]:
    """Return one colour a class, from dark to light: the order survives a grey-scale print."""
    colours = matplotlib.colormaps["viridis"](np.linspace(0.05, 0.95, n_classes))
    return [tuple(colour) for colour in colours]


def new_axes(ax: Axes | None) -> Axes:
    """Return `ax`, or new axes."""
    return plt.subplots(layout="constrained")[1] if ax is None else ax
