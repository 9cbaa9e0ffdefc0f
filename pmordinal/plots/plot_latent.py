"""The latent function along an attribute, with the thresholds that cut it into classes."""

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from pmordinal.data.lettering import caption
from pmordinal.diagnostics.predictive import class_names, variable
from pmordinal.plots.base import (
    INK,
    MUTED,
    Places,
    class_colours,
    intervals,
    label_right,
    name_axis,
    new_axes,
    numbers,
    rug,
)
from pmordinal.results.chosen_group import chosen_likelihood
from pmordinal.results.effects import effects, interval_tails
from pmordinal.results.fit import OrdinalFit


def plot_latent(
    source: OrdinalFit | xr.DataTree,
    feature,
    ax: Axes | None = None,
    *,
    tree: xr.DataTree | None = None,
    ci_prob: float | None = None,
    **kwargs,
) -> Axes:
    """Draw the latent function along an attribute; the bands between the thresholds are the classes.

    Parameters
    ----------
    source : OrdinalFit or DataTree
        For a fit, the average over the training rows as `effects` gives it. For a tree with
        ``posterior/f`` and ``constant_data/X``, every training row with its interval.
    feature : str or sequence of str
        A column of the training table, or, for a fit, several categorical ones to combine.
    ax : Axes, optional
        Where to draw.
    tree : DataTree, optional
        Draws of the thresholds to go with a fit: their intervals are drawn as bars at the right. A tree
        as `source` brings its own.
    ci_prob : float, optional
        Probability of the intervals; default is ArviZ's ``rcParams["stats.ci_prob"]``.
    **kwargs
        For `effects`, if `source` is a fit.

    Returns
    -------
    Axes
    """
    names = [feature] if isinstance(feature, str) else list(feature)
    title = "Latent function and thresholds"
    if isinstance(source, OrdinalFit):
        table = effects(source, names, "latent", ci_prob=ci_prob, **kwargs)
        places, classes = Places.of(table, names), source.labels.class_names
        b = chosen_likelihood(source, kwargs.get("at")).thresholds
        thresholds = np.repeat(b[:, None], 3, axis=1)
        if tree is not None:
            thresholds = _thresholds(tree, ci_prob)
        ax = new_axes(ax, title, slots=len(places.ticks or ()))
        places.draw(ax, table, INK)
        places.label(ax)
        if places.ticks is None:
            rug(ax, numbers(source, names[0]))
    else:
        if len(names) > 1 or kwargs:
            raise ValueError(
                f"of a tree, one feature is drawn at its training rows, got {names} {kwargs or ''}: "
                "averages over rows and combinations need a fit"
            )
        thresholds = _thresholds(source, ci_prob)
        classes = class_names(source, len(thresholds) + 1)
        table, ticks = _rows(source, names[0], ci_prob)
        ax = new_axes(ax, title)
        ax.vlines(table["x"], table["low"], table["high"], color=INK, lw=0.7, alpha=0.4)
        ax.plot(table["x"], table["mean"], "o", color=INK, ms=3)
        if ticks is None:
            ax.set_xlabel(caption(names[0]))
        else:
            name_axis(ax, np.arange(len(ticks)), ticks, names[0])
    _classes(ax, thresholds, table, classes)
    ax.set_ylabel(f"latent function, {intervals({'ci_prob': ci_prob})}")
    return ax


def _classes(ax: Axes, thresholds: np.ndarray, table: pd.DataFrame, classes: list[str]) -> None:
    """Draw thresholds (rows: low, middle, high) and the classes between them."""
    reach = np.concatenate([thresholds.ravel(), table["low"], table["high"]])
    pad = 0.12 * (np.ptp(reach) or 1.0)
    low, high = reach.min() - pad, reach.max() + pad
    edges = np.concatenate([[low], thresholds[:, 1], [high]])
    for k, colour in enumerate(class_colours(len(classes))):
        ax.axhspan(edges[k], edges[k + 1], color=colour, alpha=0.3, lw=0, zorder=0)
    if np.any(thresholds[:, 2] > thresholds[:, 0]):  # room for their intervals
        left, right = ax.get_xlim()
        ax.set_xlim(left, right + 0.025 * len(thresholds) * (right - left))
    for j, (bottom, middle, top) in enumerate(thresholds):
        ax.axhline(middle, color=MUTED, lw=0.9, ls="--", zorder=0.6)
        if top > bottom:  # side by side, as neighbours may overlap
            place = 0.985 - 0.02 * (len(thresholds) - 1 - j)
            ax.vlines(place, bottom, top, MUTED, lw=3.5, transform=ax.get_yaxis_transform())
            ax.plot(place, middle, "o", color=MUTED, ms=6, transform=ax.get_yaxis_transform())
    ax.set_ylim(low, high)
    label_right(ax, 0.5 * (edges[:-1] + edges[1:]), classes)


def _thresholds(tree: xr.DataTree, ci_prob: float | None) -> np.ndarray:
    b = variable(tree, "posterior", "thresholds").stack(sample=("chain", "draw"))
    if b.ndim > 2:
        raise ValueError("the tree has thresholds by group, which cannot be drawn as one set")
    low, high = interval_tails(ci_prob)
    return np.quantile(b.transpose("sample", ...).values, [low, 0.5, high], axis=0).T


def _rows(
    tree: xr.DataTree, feature: str, ci_prob: float | None
) -> tuple[pd.DataFrame, list[str] | None]:
    """Return x position, mean and interval of f at each training row; rows of one level are spread out."""
    X = variable(tree, "constant_data", "X")
    names = [str(name) for name in X["feature"].values]
    columns = [
        i for i, name in enumerate(names) if name == feature or name.startswith(f"{feature}=")
    ]
    if not columns:
        raise ValueError(f"feature: {feature!r} is not in the tree, which has {names}")
    f = variable(tree, "posterior", "f").stack(sample=("chain", "draw")).transpose("sample", ...)
    low, high = np.quantile(f.values, interval_tails(ci_prob), axis=0)
    table = pd.DataFrame({"mean": f.values.mean(0), "low": low, "high": high})
    if names[columns[0]] == feature:
        table["x"] = X.values[:, columns[0]]
        return table, None
    level = X.values[:, columns].argmax(1)
    table["x"] = level + 0.6 * (table["mean"].groupby(level).rank(pct=True) - 0.5)
    return table, [names[i].removeprefix(f"{feature}=") for i in columns]
