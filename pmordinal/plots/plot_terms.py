"""The terms of a fit, a panel each."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties

from pmordinal import checks
from pmordinal.data.lettering import caption, captions
from pmordinal.plots.base import (
    FAINT,
    INK,
    MUTED,
    WIDTH,
    Places,
    class_colours,
    class_legend,
    dodge,
    intervals,
    numbers,
    rug,
    tidy,
)
from pmordinal.results.effects import interval_tails
from pmordinal.results.fit import OrdinalFit, a_fit
from pmordinal.results.term_shapes import Shape, shape
from pmordinal.results.terms import parts
from pmordinal.words import guessing

COLOUR = class_colours(9)[2]
FEW = 6  # largest number of curves with bands
MOST_LEVELS = 9  # largest number of curves, or of points at one place, that are named
MOST_NAMES = 24  # largest number of levels of a group that are named
NAMED = 5  # terms left out that are named


@guessing
def plot_terms(
    fit: OrdinalFit,
    terms: str | Sequence[str] | None = None,
    *,
    most: int = 8,
    n_grid: int = 60,
    ci_prob: float | None = None,
    figsize: tuple[float, float] | None = None,
) -> np.ndarray:
    """Draw the terms of the latent function, a panel each, with intervals.

    Parameters
    ----------
    fit : OrdinalFit
        Of `formula_model`; the terms of any other sum of covariances are named after their kind.
    terms : str or sequence of str, optional
        Names of terms; default are those with the largest shares of the variance.
    most : int
        Largest number of panels if `terms` is not given; the title says how many were left out.
    n_grid : int
        Points along a number; over two numbers, half as many along each.
    ci_prob : float, optional
        Probability of the intervals; default is ArviZ's ``rcParams["stats.ci_prob"]``.
    figsize : tuple of float, optional

    Returns
    -------
    ndarray of Axes
        One for each term, that with the largest share of the variance first. The share is in the title.

    Notes
    -----
    A term of a number is a curve over the range of the data, with the rows as ticks below; with a
    factor, a curve for each level. A term of two numbers is a map of its mean. Factors are points,
    and the levels of a group are sorted by their means. A term of more columns is drawn along that
    which matters most, averaged over the others as they are in the data.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> model = pmo.formula_model("rating ~ temperature + (1 | judge)", pmo.datasets.wine())
    >>> axes = plot_terms(pmo.fit(model, progressbar=False))
    >>> [ax.get_title(loc="left").split(" ·")[0] for ax in axes]
    ['temperature', '1|judge']
    """
    found = {part[0].name: part for part in parts(a_fit(fit))}
    n_grid = checks.integer("n_grid", n_grid, minimum=4)
    tails = interval_tails(ci_prob)
    shares = fit.variance_shares().iloc[: len(found)]  # without offsets and the noise
    shares = shares.sort_values(ascending=False, kind="stable")
    if terms is None:
        chosen = list(shares.index[: checks.integer("most", most, minimum=1)])
    else:
        wanted = checks.names("terms", terms)
        for name in wanted:
            checks.one_of("terms", name, list(found))
        chosen = [name for name in shares.index if name in wanted]
    shapes = [shape(fit, found[name], n_grid, tails) for name in chosen]
    axes = _panels(len(shapes), figsize)
    largest = max((s.table["mean"].abs().max() for s in shapes if s.kind == "surface"), default=0.0)
    upright = []
    effect = f"effect, {intervals({'ci_prob': ci_prob})}"
    for ax, name, one in zip(axes, chosen, shapes, strict=True):
        ax.set_title(
            f"{caption(name, 34)} · {_percent(shares[name])}", loc="left", fontsize="medium"
        )
        if one.kind == "surface":
            _surface(ax, fit, one, float(largest))
        elif one.kind == "ordered":
            _ordered(ax, one, effect)
        else:
            (_curves if one.kind == "curves" else _points)(ax, fit, one)
            upright.append(ax)
    _share_heights(upright, effect)
    figure = axes[0].get_figure(root=True)
    if terms is None and len(chosen) < len(shares):
        figure.suptitle(_left_out(shares, len(chosen)), fontsize="medium")
    return axes


def _panels(n: int, figsize: tuple[float, float] | None) -> np.ndarray:
    """Return axes in rows of four at most, as even as possible."""
    n_rows = -(-n // 4)
    n_columns = -(-n // n_rows)
    size = figsize or (0.6 + 3.3 * max(n_columns, 1.5), 0.5 + 2.9 * n_rows)
    figure, axes = plt.subplots(
        n_rows, n_columns, figsize=size, layout="constrained", squeeze=False
    )
    for ax in axes.flat[n:]:
        figure.delaxes(ax)
    return np.array([tidy(ax) for ax in axes.flat[:n]])


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.2g} %"


def _left_out(shares: pd.Series, n: int) -> str:
    rest = shares.iloc[n:]
    names = ", ".join(caption(name, WIDTH) for name in rest.index[:NAMED])
    more = ", …" if len(rest) > NAMED else ""
    share = _percent(rest.sum())
    return f"The largest {n} of {len(shares)} terms. Left out, with {share} of the variance:\n{names}{more}"


def _curves(ax: Axes, fit: OrdinalFit, one: Shape) -> None:
    ax.axhline(0.0, color=MUTED, lw=0.8, zorder=0)
    levels = list(dict.fromkeys(one.table["z"]))
    few = len(levels) <= FEW
    colours = [COLOUR] if len(levels) == 1 else class_colours(len(levels))
    drawn = []
    for level, colour in zip(levels, colours, strict=True):
        part = one.table if len(levels) == 1 else one.table[one.table["z"] == level]
        places = Places(part["x"].to_numpy(dtype=float), None, one.x)
        if few:
            drawn.append(places.draw(ax, part, colour))
        else:
            drawn += ax.plot(part["x"], part["mean"], color=colour, lw=1.0)
    rug(ax, numbers(fit, one.x))
    lowest, highest = one.table["x"].min(), one.table["x"].max()
    ax.set_xlim(lowest, highest if highest > lowest else lowest + 1.0)
    ax.set_xlabel(_label(one))
    if len(levels) > 1:
        _legend(ax, drawn, levels, one.z)


def _points(ax: Axes, fit: OrdinalFit, one: Shape) -> None:
    ax.axhline(0.0, color=MUTED, lw=0.8, zorder=0)
    ticks = list(dict.fromkeys(one.table["x"]))
    places = Places(np.arange(len(ticks), dtype=float), [str(t) for t in ticks], one.x)
    levels = list(dict.fromkeys(one.table["z"]))
    colours = [COLOUR] if len(levels) == 1 else class_colours(len(levels))
    drawn = []
    for k, (level, colour) in enumerate(zip(levels, colours, strict=True)):
        part = one.table if len(levels) == 1 else one.table[one.table["z"] == level]
        drawn.append(places.draw(ax, part, colour, dodge(k, len(levels))))
    places.label(ax)
    if one.averaged:
        ax.set_xlabel(_label(one))
    if len(levels) > 1:
        _legend(ax, drawn, levels, one.z)


def _ordered(ax: Axes, one: Shape, effect: str) -> None:
    """Draw the levels of a group above each other, sorted by their means."""
    y = np.arange(len(one.table))
    names = captions(list(one.table["x"]), WIDTH)
    thin = len(y) > MOST_NAMES
    ax.axvline(0.0, color=MUTED, lw=0.8, zorder=0)
    ax.hlines(
        y, one.table["low"], one.table["high"], color=COLOUR, lw=1.8, alpha=0.4 if thin else 1.0
    )
    ax.plot(one.table["mean"], y, "o", color=INK if thin else COLOUR, ms=2.0 if thin else 4.5)
    if thin:
        ax.set_yticks([])
        ax.set_ylabel(f"{len(y)} levels of {caption(one.x, WIDTH)}")
    else:
        ax.set_yticks(y, names, fontsize="small" if len(y) <= 12 else "x-small")
        ax.set_ylabel(caption(one.x))
    ax.set_ylim(-0.7, len(y) - 0.3)
    ax.grid(axis="y", color=FAINT, lw=0.0 if thin else 0.6)
    ax.set_axisbelow(True)
    ax.set_xlabel(effect)


def _surface(ax: Axes, fit: OrdinalFit, one: Shape, largest: float) -> None:
    grid = one.table.pivot(index="z", columns="x", values="mean")
    edge = largest or 1.0
    drawn = ax.contourf(
        grid.columns, grid.index, grid, levels=np.linspace(-edge, edge, 16), cmap="PuOr_r"
    )
    bar = plt.colorbar(drawn, ax=ax, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.locator = plt.MaxNLocator(5, symmetric=True)
    bar.update_ticks()
    x, z = numbers(fit, one.x), numbers(fit, one.z)
    ax.plot(x, z, "o", color=INK, ms=1.6, mec="none", alpha=0.5)
    ax.set_xlabel(caption(one.x))
    ax.set_ylabel(caption(one.z))
    ax.grid(False)


def _label(one: Shape) -> str:
    return caption(one.x) + (", others as in the data" if one.averaged else "")


def _legend(ax: Axes, drawn: Sequence[Any], levels: Sequence[str], title: str) -> None:
    """Name the levels right of the panel, or say how many there are."""
    if len(levels) > MOST_LEVELS:
        said = f"{len(levels)} levels of {caption(title, WIDTH)}"
        ax.text(0.02, 0.98, said, va="top", fontsize="small", transform=ax.transAxes)
        return
    class_legend(ax, drawn, levels)
    legend = ax.get_legend()
    assert legend is not None
    legend.set_title(caption(title, WIDTH), FontProperties(size="small"))
    for text in legend.get_texts():
        text.set_fontsize("small")


def _share_heights(axes: Sequence[Axes], effect: str) -> None:
    """Give panels one scale of effects, so that their sizes can be compared."""
    limits = np.array([ax.get_ylim() for ax in axes]).reshape(-1, 2)
    for ax in axes:
        ax.set_ylim(limits[:, 0].min(), limits[:, 1].max())
        ax.set_ylabel(effect)
