"""The section of a report on the terms of a formula."""

from pmordinal.data.terms import WITH_COEFFICIENTS
from pmordinal.plots import plot_terms
from pmordinal.report.page import Section, figure, heading, table, text
from pmordinal.results.fit import OrdinalFit

MOST_ROWS = 40  # of a table


def terms_section(fit: OrdinalFit) -> Section:
    """Return pictures of the terms, their shares of the variance, and the effects in the user's units."""
    shares = fit.variance_shares().sort_values(ascending=False)
    drawn = plot_terms(fit)[0].get_figure(root=True)
    parts = [
        text(
            "The latent function is a sum of these terms, each shown with the intervals of its posterior, all others "
            "being in the model too. A term's share is that of its variance over the rows, the noise included."
        ),
        figure(
            drawn, "The terms of the latent function; levels of groups are sorted by their means"
        ),
        table(shares.head(MOST_ROWS).to_frame().rename_axis("term"), bars="share"),
    ]
    if any(term.kind in WITH_COEFFICIENTS for term in fit.model_terms):
        effects = fit.coefficients()
        said = "For one unit of a number, or at a level."
        if len(effects) > MOST_ROWS:
            said += f" The first {MOST_ROWS} of {len(effects)}."
        shown = effects.head(MOST_ROWS).fillna({"level": ""}).set_index("term")
        parts += [heading("Effects"), table(shown, said)]
    return Section("terms", "Terms", tuple(parts))
