"""Engines side by side, from the table of `pmordinal.compare`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from pmordinal import checks
from pmordinal.data.lettering import caption
from pmordinal.plots.base import FAINT, INK, WIDTH, tidy


@dataclass(frozen=True)
class Panel:
    """A panel of the figure: a column of the table, its title, the column of its standard error, its scale."""

    column: str
    title: str
    error: str | None = None
    log: bool = False


PANELS = (
    Panel("elpd_loo", "leave-one-out log score", error="se"),
    Panel("tv_max", "largest total variation\nof class probabilities"),
    Panel("latent_mean", "largest distance of latent\nmeans, in standard deviations"),
    Panel("seconds", "seconds", log=True),
)


def plot_engines(
    table: pd.DataFrame,
    columns: Sequence[str] | None = None,
    figsize: tuple[float, float] | None = None,
) -> np.ndarray:
    """Draw the table of `pmordinal.compare`: scores, distances and time of each result.

    Parameters
    ----------
    table : DataFrame
        One row for each result.
    columns : sequence of str, optional
        Columns to draw, a panel each; default is the leave-one-out score, the time and, where the table
        has a reference, the distances from it.
    figsize : tuple of float, optional

    Returns
    -------
    ndarray of Axes
        One for each panel.
    """
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"table must be what pmo.compare returned, got {checks.got(table)}")
    known = {panel.column: panel for panel in PANELS}
    for name in columns or ():
        checks.one_of("columns", name, [str(column) for column in table.columns])
    names = [name for name in known if name in table] if columns is None else list(columns)
    if not names:
        raise ValueError(f"table: it has none of {list(known)}: pass what pmo.compare returned")
    panels = [
        known.get(name, Panel(name, caption(name.replace("_", " "), WIDTH))) for name in names
    ]
    y = np.arange(len(table))[::-1]
    _, axes = plt.subplots(
        1,
        len(panels),
        figsize=figsize or (2.7 * len(panels) + 0.8, 1.4 + 0.4 * len(table)),
        sharey=True,
        layout="constrained",
        squeeze=False,
    )
    for ax, panel in zip(axes[0], panels, strict=True):
        values = table[panel.column].to_numpy(dtype=float)
        if panel.error in table:
            error = table[panel.error].to_numpy(dtype=float)
            ax.hlines(y, values - error, values + error, color=INK, lw=1.5)
        ax.plot(values, y, "o", color=INK, ms=6)
        ax.set_title(panel.title, fontsize="medium")
        known_values = values[np.isfinite(values)]
        if panel.log and known_values.size and known_values.max() > 10 * known_values.min() > 0:
            ax.set_xscale("log")
        ax.grid(axis="y", color=FAINT, lw=0.8)
        tidy(ax).set_axisbelow(True)
    axes[0, 0].set_yticks(y, [caption(name, WIDTH) for name in table.index])
    axes[0, 0].set_ylim(-0.6, len(table) - 0.4)
    return axes[0]
