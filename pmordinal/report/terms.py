"""The section of a report on the terms of a formula."""

import numpy as np
import pandas as pd

from pmordinal.plots import plot_terms
from pmordinal.plots.base import intervals
from pmordinal.report.page import Section, columns, figure, heading, table, text
from pmordinal.results.fit import OrdinalFit

SMALLEST = 0.1  # effect of a number, so that three digits can be read
MOST_ROWS = 40  # of the table of shares
MOST_LEVELS = 12  # of the effects of one term


def terms_section(fit: OrdinalFit) -> Section:
    """Return pictures of the terms, their shares of the variance, and the effects in the user's units."""
    shares = fit.variance_shares().sort_values(ascending=False)
    drawn = plot_terms(fit)[0].get_figure(root=True)
    listed = table(shares.head(MOST_ROWS).to_frame().rename_axis("term"), bars="share")
    parts = [
        text(
            "The latent function is a sum of these terms, each shown with the intervals of its posterior, all others "
            "being in the model too. A term's share is that of its variance over the rows, the noise included."
        ),
        figure(
            drawn, "The terms of the latent function; levels of groups are sorted by their means"
        ),
    ]
    blocks = [[heading("Shares of the variance"), listed]]
    if any(term.kind != "smooth" for term in fit.model_terms):
        said = (
            "Effects are what a term adds to the latent function, for so many units of a number or at a level. "
            f"Lower and upper are the ends of {intervals({})}."
        )
        parts.append(text(said))
        blocks += _effects(fit.coefficients())
    return Section("terms", "Terms", (*parts, columns(*blocks, wide=True)))


def _effects(effects: pd.DataFrame) -> list[list[str]]:
    """Return a table of the numbers, and one for each term with levels: of many, the largest effects."""
    numbers = effects["level"].isna()
    blocks = []
    if numbers.any():
        shown = _by_units(effects[numbers].drop(columns=["sd", "level"]).set_index("term"))
        blocks.append([heading("Effects of numbers"), table(shown.round(3))])
    for term, part in effects[~numbers].groupby("term", sort=False):
        largest = part["mean"].abs().sort_values(ascending=False).index[:MOST_LEVELS]
        shown = part.loc[sorted(largest)].set_index("level")[["mean", "lower", "upper"]]
        said = "" if len(part) == len(shown) else f"The {MOST_LEVELS} largest of {len(part)}."
        column, _, group = str(term).rpartition("|")
        units = (
            _units(float(shown.abs().to_numpy().max())) if group and column not in ("", "1") else 1
        )
        of = str(term) if units == 1 else f"{column}|{group}, for {units:,} of {column}"
        levels = table((shown * units).round(3).rename_axis("at level"), said)
        blocks.append([heading(f"Effects of {of}"), levels])
    return blocks


def _units(size: float) -> int:
    """Return for how many units, a power of ten, the digits of an effect can be read: 10,000 of an income."""
    return 10 ** max(0, int(np.ceil(np.log10(SMALLEST / max(size, 1e-12)))))


def _by_units(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the effects of so many units each."""
    units = [_units(size) for size in effects.abs().max(axis=1)]
    names = [f"{many:,} of {term}" for many, term in zip(units, effects.index, strict=True)]
    return effects.mul(units, axis=0).set_axis(pd.Index(names, name="units"))
