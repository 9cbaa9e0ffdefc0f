"""Shared by all plots: colours, axes and panels, positions along an attribute, labels and legends.

The colours of the classes come from cividis, which runs from dark to light for every kind of colour vision and in grey
print. Its lightest end is left out, so that lines are visible on white.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import xarray as xr
from arviz_base import rcParams
from arviz_plots import PlotCollection
from matplotlib import pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from scipy.optimize import isotonic_regression

from pmordinal.data.lettering import caption, captions, evenly_chosen
from pmordinal.results.fit import OrdinalFit

INK, MUTED, FAINT = "0.1", "0.45", "0.85"  # greys: text and data; reference lines; grid lines
ACCENT = "#d95f02"  # observed data, distinct from the blues and yellows of the classes
MOST_NAMES = 16  # largest number of classes in a legend: more would not fit
WIDEST = 14.0  # inches: a figure with many levels grows to this
WIDTH = 24  # longest name in a legend or on an axis, in characters
MOST_TICKS = 500  # rows of the data under a curve


def class_colours(n_classes: int) -> list[str]:
    """Return one colour for each class, from dark to light.

    Examples
    --------
    >>> class_colours(3)
    ['#00224e', '#6f7073', '#dfca57']
    """
    shades = matplotlib.colormaps["cividis"](np.linspace(0.0, 0.88, n_classes))
    return [to_hex(shade) for shade in shades]


def ink_on(colour: str) -> str:
    """Return black or white, whichever reads better on a colour.

    Examples
    --------
    >>> ink_on("#00224e"), ink_on("#e0c958")
    ('white', 'black')
    """
    luminance = np.dot(np.power(to_rgb(colour), 2.2), [0.2126, 0.7152, 0.0722])
    return "black" if luminance > 0.18 else "white"


def new_axes(ax: Axes | None, title: str | None = None, slots: float = 0) -> Axes:
    """Return `ax`, or new axes with a title, wide enough for so many levels; without top and right spines."""
    if ax is None:
        width, height = plt.rcParams["figure.figsize"]
        size = (min(max(width, 2.6 + 0.32 * slots), WIDEST), height)
        ax = plt.subplots(figsize=size, layout="constrained")[1]
        if title:
            ax.set_title(title, loc="left")
    return tidy(ax)


def intervals(options: Mapping[str, Any]) -> str:
    """Return how probable the intervals of a plot are, in words for an axis, a title or a legend."""
    ci_prob = options.get("ci_prob")
    return f"{100 * (rcParams['stats.ci_prob'] if ci_prob is None else ci_prob):.3g} % intervals"


def panels(data: xr.Dataset, dim: str, height: float, title: str) -> PlotCollection:
    """Return ArviZ's collection with one panel for each value of a dimension, four in a row.

    If there are more than ``rcParams["plot.max_subplots"]``, an evenly spaced choice is drawn, and the title says so.
    """
    n = data.sizes[dim]
    shown = evenly_chosen(n, rcParams["plot.max_subplots"] or n)
    if len(shown) < n:
        title = f"{title}: {len(shown)} of {n} {dim}s"
        data, n = data.isel({dim: shown}), len(shown)
    size = (1.0 + 2.7 * max(min(n, 4), 2), 0.6 + height * -(-n // 4))
    collection = PlotCollection.wrap(
        data,
        cols=[dim],
        col_wrap=4,
        backend="matplotlib",
        figure_kwargs={"figsize": size, "sharex": True, "sharey": True, "layout": "constrained"},
    )
    for i, value in enumerate(data[dim].values):
        ax = tidy(collection.get_target(next(iter(data.data_vars)), {dim: value}))
        ax.tick_params(labelbottom=i >= n - 4, labelleft=i % 4 == 0)
    collection.viz["figure"].item().suptitle(title)
    return collection


def tidy(ax: Axes) -> Axes:
    """Remove the top and right spines and make the others thin."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_linewidth(0.6)
    ax.tick_params(width=0.6)
    return ax


@dataclass(frozen=True)
class Places:
    """Positions of an attribute's values on the x axis.

    Attributes
    ----------
    x : ndarray, shape (number of values,)
        The values themselves, or 0, 1, … for levels.
    ticks : list of str, optional
        Names of the levels, or the value of a numeric attribute that has only one; None for others.
    title : str
        Label of the axis.
    """

    x: np.ndarray
    ticks: list[str] | None
    title: str

    @classmethod
    def of(cls, table: pd.DataFrame, names: Sequence[str]) -> "Places":
        """Return the positions of the values in columns `names` of a table of effects."""
        values = table[list(names)].drop_duplicates()
        numeric = len(names) == 1 and pd.api.types.is_numeric_dtype(values[names[0]])
        if numeric and len(values) > 1:
            return cls(values[names[0]].to_numpy(), None, names[0])
        shown = "{:.6g}".format if numeric else str
        ticks = [", ".join(map(shown, row)) for row in values.itertuples(index=False)]
        return cls(np.arange(len(ticks), dtype=float), ticks, ", ".join(names))

    def label(self, ax: Axes) -> None:
        """Put names and ticks on the x axis."""
        if self.ticks is None:
            ax.set_xlabel(caption(self.title))
            ax.set_xlim(self.x[0], self.x[-1])
        else:
            name_axis(ax, self.x, self.ticks, self.title)
            ax.set_xlim(self.x[0] - 0.5, self.x[-1] + 0.5)

    def draw(self, ax: Axes, table: pd.DataFrame, colour, shift: float = 0.0) -> Artist:
        """Draw mean and interval: a curve in its band, or points with bars; return the curve or points.

        Parameters
        ----------
        ax : Axes
        table : DataFrame
            One row for each position, with ``mean``, ``low`` and ``high``.
        colour : colour
        shift : float
            Horizontal shift, for points that would hide each other.
        """
        mean, low, high = (table[name].to_numpy() for name in ("mean", "low", "high"))
        if self.ticks is None:
            ax.fill_between(self.x, low, high, color=colour, alpha=0.22, lw=0)
            return ax.plot(self.x, mean, color=colour, lw=1.8)[0]
        ax.vlines(self.x + shift, low, high, color=colour, lw=2.0)
        return ax.plot(self.x + shift, mean, "o", color=colour, ms=6, mec="white")[0]


def numbers(fit: OrdinalFit, column: str) -> np.ndarray:
    """Return a numeric column at labelled rows in the user's units; of many rows, at an evenly spaced choice."""
    X = fit.posterior.gram.X
    X = fit.features.untransform(X[evenly_chosen(len(X), MOST_TICKS)])
    return X[:, fit.features.names.index(column)]


def rug(ax: Axes, x: np.ndarray) -> None:
    """Draw the data as ticks at the foot of the axes."""
    ax.plot(
        x, np.zeros_like(x), "|", color=INK, ms=7, mew=0.5, alpha=0.5, clip_on=False,
        transform=ax.get_xaxis_transform(), gid="rug",
    )  # fmt: skip


def dodge(k: int, n: int, width: float = 0.6) -> float:
    """Return the horizontal shift of the k-th of n points at one position.

    Examples
    --------
    >>> [dodge(k, 3, width=0.6) for k in range(3)]
    [-0.2, 0.0, 0.2]
    """
    return round(width * ((k + 0.5) / n - 0.5), 12)


def label_right(ax: Axes, heights: Sequence[float], names: Sequence[str], colours=None) -> None:
    """Write names right of the axes at given heights, pushed apart where they would overlap.

    If there are too many to fit, an evenly spaced choice of them is written.
    """
    shown = evenly_chosen(len(names), MOST_NAMES)
    low, high = ax.get_ylim()
    wanted = (np.asarray(heights, dtype=float)[shown] - low) / (high - low)
    said = captions([names[i] for i in shown], WIDTH)
    for i, name, height in zip(shown, said, spread(np.clip(wanted, 0.0, 1.0)), strict=True):
        colour = INK if colours is None else colours[i]
        ax.text(1.015, height, name, color=colour, va="center", transform=ax.transAxes)


def class_legend(
    ax: Axes, handles: Sequence[Any], names: Sequence[str], reverse: bool = False
) -> None:
    """Draw a legend of the classes right of the axes; if they are too many, of an evenly spaced choice."""
    shown = evenly_chosen(len(names), MOST_NAMES)
    title = "class" if len(shown) == len(names) else f"{len(shown)} of {len(names)} classes"
    if reverse:
        shown = shown[::-1]
    legend = ax.legend(
        [handles[i] for i in shown],
        ["class"] * len(shown),
        title=title,
        loc="upper left",
        bbox_to_anchor=(1, 1),
        frameon=False,
    )
    for text, name in zip(
        legend.get_texts(), captions([names[i] for i in shown], WIDTH), strict=True
    ):
        # Set afterwards, since matplotlib leaves names like "" and "_low" out of a legend.
        text.set_text(name)


def name_axis(ax: Axes, x: np.ndarray, names: Sequence[str], title: str) -> None:
    """Write names under positions on the x axis, as many as fit; rotated if they would overlap."""
    inches = ax.get_window_extent().width / ax.figure.dpi
    shown = evenly_chosen(len(names), max(2, int(4 * inches)))
    ticks = captions([names[i] for i in shown], WIDTH)
    is_crowded = sum(len(tick) + 2 for tick in ticks) > 10 * inches
    turn: dict[str, Any] = (
        {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if is_crowded else {}
    )
    ax.set_xticks(np.asarray(x, dtype=float)[shown], ticks, **turn)
    part = "" if len(shown) == len(names) else f" ({len(shown)} of {len(names)} named)"
    ax.set_xlabel(caption(title) + part)


def spread(wanted: np.ndarray, gap: float = 0.055) -> np.ndarray:
    """Return heights close to the wanted ones, at least a gap apart, and between 0 and 1 if they fit.

    It is the isotonic regression of the sorted heights minus the gaps below each.

    Examples
    --------
    >>> spread(np.array([0.5, 0.5, 0.9]), gap=0.1).round(3).tolist()
    [0.45, 0.55, 0.9]
    """
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(wanted.size)
    placed = np.empty(wanted.size)
    placed[order] = isotonic_regression(wanted[order] - steps).x.clip(0.0, 1.0 - steps[-1]) + steps
    return placed
