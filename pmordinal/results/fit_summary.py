"""`FitSummary`: what a fit has learned, on one page, as text and as HTML."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pmordinal.data.levels import show
from pmordinal.data.ranked_probability_score import ranked_probability_score
from pmordinal.results.curvature import gaussian_at
from pmordinal.results.integral import described, interval_tails
from pmordinal.results.left_out import hyper_of_fit
from pmordinal.results.summary import (
    counted,
    evidence_error,
    further,
    parameters,
    status,
    text_of,
)
from pmordinal.words import guessing

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit

DRAWS = 400  # of the hyperparameters, for the ends of their intervals
SMALL = "font-size: smaller; margin: 0.2em 0"


@dataclass(frozen=True, eq=False)
class FitSummary:
    """Data, hyperparameters, terms and scores of a fit.

    Attributes
    ----------
    title : str
    data : dict of str to str
        Rows, classes, attributes, evidence and how the fit went.
    hyperparameters : DataFrame
        ``estimate``, and with intervals ``lower`` and ``upper``; thresholds are among them.
    terms : Series, optional
        Shares of the variance, where the model has terms.
    scores : DataFrame
        Log score, error rate, absolute error and ranked probability score, each label left out, of the fit and of
        the class shares without any attribute.
    notes : tuple of str
    hyper : {"fixed", "integrated"}
        What the scores hold fixed: the hyperparameters, which have seen the label left out, or nothing.
    """

    title: str
    data: dict[str, str]
    hyperparameters: pd.DataFrame
    terms: pd.Series | None
    scores: pd.DataFrame
    notes: tuple[str, ...]
    hyper: str

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables by their captions, as they are shown."""
        found = {"hyperparameters": self.hyperparameters}
        if self.terms is not None:
            found["shares of the variance"] = self.terms.to_frame("share")
        return found | {f"scores, each label left out, hyperparameters {self.hyper}": self.scores}

    def __repr__(self) -> str:
        """Return the page as text."""
        width = max(map(len, self.data))
        lines = [self.title, *(f"  {k:<{width}}  {v}" for k, v in self.data.items())]
        for caption, table in self.tables().items():
            shown = table.to_string(float_format=readable, na_rep="")
            lines += ["", caption, *(f"  {line}" for line in shown.splitlines())]
        return "\n".join([*lines, "", *self.notes]).rstrip()

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align: left'>{escape(k)}</th><td style='text-align: left'>{escape(v)}</td></tr>"
            for k, v in self.data.items()
        )
        parts = [f"<b>{escape(self.title)}</b>", f"<table>{rows}</table>"]
        for caption, table in self.tables().items():
            parts.append(f"<p style='{SMALL}'><b>{escape(caption)}</b></p>")
            parts.append(table.to_html(float_format=readable, na_rep=""))
        parts += [f"<p style='{SMALL}'>{escape(note)}</p>" for note in self.notes]
        return f"<div>{''.join(parts)}</div>"


class Shown:
    """How a fit is shown: its text, its page in a notebook, its summary."""

    @guessing
    def summary(self, ci_prob: float | None = None, *, intervals: bool = True) -> FitSummary:
        """Return data, hyperparameters, terms and scores of the fit on one page.

        Parameters
        ----------
        ci_prob : float, optional
            Probability of the intervals; default is ArviZ's ``rcParams["stats.ci_prob"]``.
        intervals : bool
            Intervals of the hyperparameters: those of an integrated fit, else from the curvature of the
            objective, which takes some runs of the engine.

        Returns
        -------
        FitSummary
            Its tables are data frames; it is shown as text, and as HTML in notebooks.
        """
        return summarise(self, ci_prob, intervals)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        """Return a readable table of the fit."""
        return text_of(self)  # type: ignore[arg-type]

    def _repr_html_(self) -> str:
        return self.summary(intervals=False)._repr_html_()


def summarise(fit: "OrdinalFit", ci_prob: float | None, intervals: bool) -> FitSummary:
    """Return the summary of a fit; see `Shown.summary`."""
    known = counted(fit)
    counts = zip(fit.labels.class_names, known.counts, strict=True)
    unlabeled = f", {known.unlabeled} more without a label" if known.unlabeled else ""
    missed = evidence_error(fit)
    columns = [column.name for column in fit.features.given]
    data = {
        "rows": f"{known.rows:,}{unlabeled}",
        "classes": ", ".join(f"{name}: {count:,}" for name, count in counts),
        "attributes": show([str(name) for name in columns], 12),
        "log evidence": f"{fit.log_evidence:,.2f}{missed}",
        "fit": f"{status(fit)}; {fit.status.evaluations} evaluations in {fit.status.seconds:.2f} s",
    }
    notes = []
    table = pd.DataFrame({"estimate": parameters(fit)})
    if fit.integral is not None:
        table = _with_intervals(fit, fit.integral.draws, fit.integral.draw_weights, ci_prob)
        notes.append(f"Hyperparameters are integrated over: {fit.integral.account}.")
        if fit.integral.account.method == "ccd":
            notes.append(
                "Intervals of a design are somewhat narrow; fit.integrate() has better ones."
            )
    elif intervals and fit.optimum is not None and not fit.optimum[0].discrete:
        surface, x = fit.optimum
        surface.begin_from(fit.posterior.start)
        q, rng = gaussian_at(surface.gradient, x), np.random.default_rng(0)
        found = [surface.named_values(q.draw(rng)[0]) for _ in range(DRAWS)]
        draws = {name: np.stack([one[name] for one in found]) for name in found[0]}
        table = _with_intervals(fit, draws, np.full(DRAWS, 1 / DRAWS), ci_prob)
        table["estimate"] = _estimates(fit, ci_prob)
        notes.append(
            "Intervals are those of a Gaussian at the optimum; fit.integrate() has better ones."
        )
    elif intervals:
        notes.append(
            "No intervals: a fit from a file, or with discrete hyperparameters, has no curvature."
        )
    else:
        notes.append("fit.summary() adds intervals.")
    terms = fit.variance_shares() if fit.model_terms else None
    title = f"{fit.engine}, {fit.posterior.likelihood.link.name} link"
    return FitSummary(title, data, table, terms, baselined(fit), tuple(notes), hyper_of_fit(fit))


def _with_intervals(fit: "OrdinalFit", draws, weights, ci_prob) -> pd.DataFrame:
    shown = {"thresholds", "noise", *further(fit.point)}
    kept = {name: draws[name] for name in draws if name in shown}
    table = described(fit, kept, weights, interval_tails(ci_prob))
    return table.rename(columns={"mean": "estimate"})[["estimate", "lower", "upper"]]


def _estimates(fit: "OrdinalFit", ci_prob) -> pd.Series:
    point = {name: np.asarray(value)[None] for name, value in fit.point.items()}
    return _with_intervals(fit, point, np.ones(1), ci_prob)["estimate"]


def baselined(fit: "OrdinalFit") -> pd.DataFrame:
    """Return scores of a fit, each label left out, and those of the class shares."""
    posterior, y = fit.posterior, fit.posterior.y
    weights = np.ones(y.size) if fit.by_row.weights is None else fit.by_row.weights
    shares = np.bincount(y, weights, minlength=fit.labels.n_classes) / weights.sum()
    rows = {
        fit.engine: posterior.left_out_probabilities(),
        "class shares alone": np.tile(shares, (y.size, 1)),
    }
    return pd.DataFrame({name: _scores(P, y, weights) for name, P in rows.items()}).T


def _scores(P: np.ndarray, y: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    guess = P.argmax(1)
    with np.errstate(divide="ignore"):  # a label of probability zero scores −∞
        logs = np.log(P[np.arange(y.size), y])
    each = {
        "mean log score": logs,
        "error rate": (guess != y).astype(float),
        "absolute error": np.abs(guess - y).astype(float),
        "ranked probability score": ranked_probability_score(P, y, normalize=False),
    }
    return {name: float(np.average(values, weights=weights)) for name, values in each.items()}


def readable(value: float) -> str:
    """Return a number in three digits, without an exponent where that can be.

    Examples
    --------
    >>> [readable(x) for x in (-0.2271, 1234567.0, 0.0, 3e-9)]
    ['-0.227', '1,234,567', '0', '3e-09']
    """
    if value == 0 or not np.isfinite(value):
        return f"{value:.0f}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) >= 0.01 else f"{value:.3g}"
