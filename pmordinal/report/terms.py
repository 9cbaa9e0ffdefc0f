"""The section of a report on the terms of a formula."""

import pandas as pd

from pmordinal.plots import plot_terms
from pmordinal.plots.base import intervals
from pmordinal.report.page import Section, columns, figure, heading, table, text
from pmordinal.results.fit import OrdinalFit

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
            "Effects are what a term adds to the latent function, for one unit of a number or at a level. "
            f"Lower and upper are the ends of {intervals({})}."
        )
        parts.append(text(said))
        blocks += _effects(fit.coefficients())
    return Section("terms", "Terms", (*parts, columns(*blocks, wide=True)))


def _effects(effects: pd.DataFrame) -> list[list[str]]:
    """Return a table of the numbers, and one for each term with levels: of many, the largest effects."""
    effects = effects.drop(columns="sd").round(3)
    numbers = effects["level"].isna()
    blocks = []
    if numbers.any():
        shown = effects[numbers].set_index("term").drop(columns="level").rename_axis("of")
        blocks.append([heading("Effects of one unit"), table(shown)])
    for term, part in effects[~numbers].groupby("term", sort=False):
        largest = part["mean"].abs().sort_values(ascending=False).index[:MOST_LEVELS]
        shown = part.loc[sorted(largest)].set_index("level").drop(columns="term")
        said = "" if len(part) == len(shown) else f"The {MOST_LEVELS} largest of {len(part)}."
        blocks.append([heading(f"Effects of {term}"), table(shown.rename_axis("at level"), said)])
    return blocks
