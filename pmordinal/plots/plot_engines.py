"""Engines side by side, from the table of `pmordinal.compare`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from pmordinal import checks
from pmordinal.data.lettering import caption
from pmordinal.data.levels import show
from pmordinal.plots.base import ACCENT, FAINT, INK, WIDTH, tidy
from pmordinal.results.left_out import INTEGRATED
from pmordinal.words import guessing


@dataclass(frozen=True)
class Panel:
    """A panel of the figure: a column of the table, its title, its standard error, its scale, a line not to cross."""

    column: str
    title: str
    error: str | None = None
    log: bool = False
    line: float | None = None


PANELS = (
    Panel("elpd_loo", "leave-one-out log score\n(± standard error)", error="se"),
    Panel("tv_max", "largest change of a\nclass probability"),
    Panel("latent_mean", "largest shift of the latent\nfunction, in its sd"),
    Panel("k_hat", "Pareto k-hat of the draws\n(good below 0.7)", line=0.7),
    Panel("seconds", "time in seconds", log=True),
)


@guessing
def plot_engines(
    table: pd.DataFrame,
    columns: Sequence[str] | None = None,
    figsize: tuple[float, float] | None = None,
) -> np.ndarray:
    """Draw the table of `pmordinal.compare`: scores, distances, k-hat and time of each result.

    A hollow point is a result to distrust: it did not converge, or its k-hat is above 0.7. A line below the
    picture says so, and also where log scores do not compare. The reference has no
    distance from itself, and a dash stands where a number does not compare or does not exist.

    Parameters
    ----------
    table : DataFrame
        One row for each result.
    columns : sequence of str, optional
        Columns to draw, a panel each; default is the leave-one-out score, k-hat, the time and, where the
        table has a reference, the distances from it.
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
    usual = [name for name in known if name in table]
    known_there = [name for name in usual if table[name].notna().any()]
    names = known_there or usual if columns is None else list(columns)
    if not names:
        raise ValueError(f"table: it has none of {list(known)}: pass what pmo.compare returned")
    panels = [
        known.get(name, Panel(name, caption(name.replace("_", " "), WIDTH))) for name in names
    ]
    y = np.arange(len(table))[::-1]
    trusted = _trusted(table)
    figure, axes = plt.subplots(
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
        for sound, fill in ((trusted, INK), (~trusted, "white")):
            ax.plot(values[sound], y[sound], "o", color=INK, mfc=fill, ms=6)
        for missing in y[~np.isfinite(values)]:
            ax.text(
                0.5,
                missing,
                "–",
                transform=ax.get_yaxis_transform(),
                ha="center",
                va="center",
                backgroundcolor="white",
            )
        if panel.line is not None and np.nanmax(values, initial=0.0) > 0.6 * panel.line:
            ax.axvline(panel.line, color=ACCENT, lw=1.0, ls="--")
        ax.set_title(panel.title, fontsize="medium")
        known_values = values[np.isfinite(values)]
        if panel.log and known_values.size and known_values.max() > 10 * known_values.min() > 0:
            ax.set_xscale("log")
        ax.grid(axis="y", color=FAINT, lw=0.8)
        tidy(ax).set_axisbelow(True)
    axes[0, 0].set_yticks(y, [caption(name, WIDTH) for name in table.index])
    axes[0, 0].set_ylim(-0.6, len(table) - 0.4)
    if notes := _notes(table, names, trusted):
        figure.supxlabel("\n".join(notes), fontsize="small")
    return axes[0]


def _notes(table: pd.DataFrame, names: Sequence[str], trusted: np.ndarray) -> list[str]:
    """Return what the picture needs said below it."""
    notes = []
    if not trusted.all():
        notes.append("hollow: not converged, or draws whose k-hat is above 0.7")
    if "elpd_loo" in names and "loo_hyper" in table and table["loo_hyper"].dropna().nunique() > 1:
        integrated = table.index[table["loo_hyper"] == INTEGRATED]
        notes.append(
            f"log score of {show(integrated, 6)}: hyperparameters are integrated out; the others hold them fixed, "
            "which scores higher: the two do not compare"
        )
    return notes


def _trusted(table: pd.DataFrame) -> np.ndarray:
    """Return which results neither failed to converge nor have draws of a k-hat above 0.7."""
    trusted = np.ones(len(table), dtype=bool)
    if "converged" in table:
        trusted &= table["converged"].to_numpy(dtype=bool)
    if "k_hat" in table:
        trusted &= ~(table["k_hat"].to_numpy(dtype=float) > 0.7)
    return trusted
