"""Decision regions over two numeric attributes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from pmordinal import checks
from pmordinal.data.lettering import caption
from pmordinal.plots.base import INK, WIDTH, class_colours, class_legend, new_axes
from pmordinal.results.chosen_group import chosen_likelihood, of_attributes, shifted
from pmordinal.results.decisions import decide
from pmordinal.results.effects import fixed, locate, moved, typical_row
from pmordinal.results.fit import OrdinalFit, a_fit
from pmordinal.words import guessing

MOST_LABELLED = 6  # thresholds whose contours carry their names: more would collide
MOST_HELD = 4  # attributes whose fixed values are named


@guessing
def plot_regions(
    fit: OrdinalFit,
    features: tuple[str, str] | None = None,
    ax: Axes | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    rule="mode",
    n_grid: int = 120,
    points: bool = True,
) -> Axes:
    """Draw where each class is predicted, and the thresholds as contours of the latent mean.

    Parameters
    ----------
    fit : OrdinalFit
    features : tuple of two str, optional
        Numeric columns of the training table, for the x and the y axis; default is its columns, if
        they are two.
    ax : Axes, optional
        Where to draw.
    at : mapping, optional
        Values of other attributes, and groups whose thresholds or noise to take; the other attributes
        are at their medians and most frequent levels.
    rule : {"mode", "median"} or array_like, shape (r, r)
        How a class is decided on; see `OrdinalFit.predict`.
    n_grid : int
        Points along each axis.
    points : bool
        Draw the training rows, filled with the colour of their own class.

    Returns
    -------
    Axes
    """
    known = [column.name for column in a_fit(fit).features.given]
    names = checks.names("features", known if features is None else features)
    if len(names) != 2 or names[0] == names[1]:
        raise ValueError(
            f"features: name two of {known}, one for each axis, got {names}"
            if len(known) > 1
            else f"features: regions need two numeric columns, and the fit has only {known}"
        )
    n_grid = checks.integer("n_grid", n_grid, minimum=2)
    first, second = (_numeric(fit, name) for name in names)
    X = fit.features.untransform(fit.posterior.gram.X)
    row = moved(typical_row(fit), fixed(fit.features, of_attributes(fit, at or {}), names))
    xs, ys = (_reach(X[:, column], n_grid) for column in (first, second))
    grid = np.repeat(row, n_grid**2, axis=0)
    grid[:, first], grid[:, second] = (g.ravel() for g in np.meshgrid(xs, ys))
    Z = fit.features.standardized(grid)
    mean, _ = fit.posterior.latent(Z)
    if (shift := fit.features.shift(Z)) is not None:
        mean = mean + shift
    thresholds = chosen_likelihood(fit, at).thresholds

    def likelihood_of(member):
        return shifted(member, chosen_likelihood(member, at), Z)

    codes = decide(fit.probabilities(Z, likelihood_of), rule)
    classes = fit.labels.class_names
    colours = class_colours(len(classes))
    ax = new_axes(ax, "Decision regions and thresholds")
    shape, last = (n_grid, n_grid), len(classes) - 0.5
    ax.pcolormesh(
        xs, ys, codes.reshape(shape), cmap=ListedColormap(colours), vmin=-0.5, vmax=last, alpha=0.45,
        shading="nearest", rasterized=True, linewidth=0,
    )  # fmt: skip
    if np.any((mean.min() < thresholds) & (thresholds < mean.max())):
        lines = ax.contour(
            xs, ys, mean.reshape(shape), levels=thresholds, colors=INK, linewidths=0.9,
            linestyles="solid",
        )  # fmt: skip
        said = [caption(name, WIDTH) for name in fit.labels.threshold_names]
        if len(said) <= MOST_LABELLED:
            ax.clabel(lines, fmt=dict(zip(thresholds, said, strict=True)), fontsize="small")
    if points:
        own = [colours[k] for k in fit.posterior.y]
        ax.scatter(X[:, first], X[:, second], s=22, c=own, edgecolors=INK, linewidths=0.6, zorder=3)
    ax.set(xlim=(xs[0], xs[-1]), ylim=(ys[0], ys[-1]))
    ax.set(xlabel=caption(names[0]), ylabel=caption(names[1]))
    class_legend(ax, [Patch(color=colour) for colour in colours], classes, reverse=True)
    if held := _held(fit, row, names):
        ax.text(0.0, -0.16, f"at {held}", transform=ax.transAxes, fontsize="small", va="top")
    return ax


def _held(fit: OrdinalFit, row: np.ndarray, names: list[str]) -> str:
    """Return the values at which the other attributes are held."""
    said = []
    for column in fit.features.given:
        if column.name in names:
            continue
        where, _ = locate(fit.features, column.name)
        value = f"{row[0, where.start]:.4g}"
        if column.levels is not None:
            match = (row[:, where][:, None] == column.codes).all(axis=-1)
            value = caption(str(column.levels[int(match.argmax())]), 32)
        said.append(f"{caption(str(column.name), WIDTH)} = {value}")
    more = f" and {len(said) - MOST_HELD} more" if len(said) > MOST_HELD else ""
    return ", ".join(said[:MOST_HELD]) + more


def _numeric(fit: OrdinalFit, name: str) -> int:
    where, column = locate(fit.features, name)
    if column.levels is not None:
        raise ValueError(f"features: {name!r} is categorical, regions need two numeric columns")
    return where.start


def _reach(values: np.ndarray, n_grid: int) -> np.ndarray:
    margin = 0.05 * (np.ptp(values) or abs(values[0]) or 1.0)  # also for constant values
    return np.linspace(values.min() - margin, values.max() + margin, n_grid)
