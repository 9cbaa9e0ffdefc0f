"""`Comparison`: the table of `compare`, shown short, with what each column cannot say as notes."""

from collections.abc import Mapping
from html import escape

import numpy as np
import pandas as pd
import xarray as xr

from pmordinal.diagnostics.loo import FIXED
from pmordinal.engines import ENGINES
from pmordinal.results.fit import OrdinalFit

type Result = OrdinalFit | xr.DataTree

GOOD_K = 0.7  # up to this Pareto shape draws can be reweighted to the exact posterior
SAME, CLOSE = 0.02, 0.1  # of total variation between class probabilities
TOO_FEW = 1.01  # of R-hat: chains that disagree more have not mixed
OTHER_EVIDENCE = {  # engines whose evidence is that of something else
    "plsor": "of labels as numbers",
    "sparse": "of the basis labels only",
}


class Comparison(pd.DataFrame):
    """The table of `compare`, one row for each result; ``tree`` has the numbers behind it.

    It is shown short: `short` is what is shown, `full` is a plain data frame with all columns, which can also be
    taken by their names.

    Attributes
    ----------
    tree : DataTree
        Groups with dimension ``result``: ``summary`` (the table), ``latent`` (``mean`` and ``sd`` of f),
        ``predictive`` (``probs`` of the classes), ``loo`` (``elpd_i``), ``hyperparameters`` (their
        means) and, with a reference, ``distance`` (``wasserstein`` and ``kl`` of each quantity).
    results : dict of str to OrdinalFit or DataTree
        The results that were compared.
    """

    _metadata = ["tree", "results"]  # noqa: RUF012 (pandas looks it up by this name)
    tree: xr.DataTree
    results: dict[str, Result]

    @property
    def _constructor(self):
        return pd.DataFrame  # a selection of the table is a plain data frame

    @property
    def full(self) -> pd.DataFrame:
        """All columns, as a plain data frame."""
        return pd.DataFrame(self)

    @property
    def short(self) -> pd.DataFrame:
        """The table as it is shown: words and rounded numbers, blank where results do not compare."""
        reference = self.tree.attrs.get("reference")
        records = self.full.to_dict("index")
        rows = {str(name): short_row(name, row, reference) for name, row in records.items()}
        table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("result")
        return table.loc[:, (table != "").any()]

    def notes(self) -> list[str]:
        """Return what the short table leaves open, a sentence each."""
        notes = []
        if (reference := self.tree.attrs.get("reference")) is not None:
            notes.append(
                f"off by: the largest change of a class probability of any row, from that of {reference}."
            )
        else:
            notes.append("No reference, so nothing is measured against a truth: pass reference=.")
        for engine, what in OTHER_EVIDENCE.items():
            if (self["engine"] == engine).any():
                notes.append(f"The evidence of {engine} is {what}; it does not compare.")
        if self["loo_hyper"].nunique() > 1:
            notes.append(
                "elpd at fixed hyperparameters is too high beside elpd with integrated ones: compare within a column."
            )
        notes.append("All columns: table.full; by name, such as table['k_hat'].")
        return notes

    def __repr__(self) -> str:
        """Return the short table and its notes."""
        with pd.option_context("display.width", 200, "display.max_columns", None):
            return "\n".join([repr(self.short), *self.notes()])

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes())
        small = 'style="font-size: smaller; margin-top: 0.3em"'
        return f"<div>{self.short.to_html(escape=True)}<ul {small}>{notes}</ul></div>"


def short_row(name, row: Mapping, reference: str | None) -> dict[str, str]:
    """Return the cells of a result in the short table."""
    cells = {"engine": str(row["engine"]), "seconds": number(row["seconds"], 2)}
    cells["log evidence"] = ""
    if row["engine"] not in OTHER_EVIDENCE and np.isfinite(row["log_evidence"]):
        error = row["log_evidence_error"]
        if not np.isfinite(error):
            error = abs(row["log_evidence_correction"])
        cells["log evidence"] = with_error(row["log_evidence"], error)
    for kind in ("fixed", "integrated"):
        own = ("fixed" if row["loo_hyper"] == FIXED else "integrated") == kind
        cells[f"elpd, {kind}"] = with_error(row["elpd_loo"], row["se"], 1) if own else ""
    cells["test nlp"] = number(row.get("test_nlp", np.nan), 3)
    off = row.get("tv_max", np.nan)
    cells["off by"] = "" if not np.isfinite(off) or name == reference else f"{100 * off:.1f} %"
    cells["verdict"] = verdict(name, row, reference)
    return cells


def verdict(name, row: Mapping, reference: str | None) -> str:
    """Return in words whether a result can be relied on."""
    faults = []
    if np.isfinite(r_hat := row.get("r_hat", np.nan)) and r_hat > TOO_FEW:
        faults.append(f"chains disagree (R-hat {r_hat:.2f})")
    elif not row["converged"]:
        faults.append("did not converge")
    if np.isfinite(k := row["k_hat"]) and k > GOOD_K:
        faults.append(f"poor draws (k-hat {k:.2g})")
    if (divergences := row.get("divergences", 0)) > 0:
        faults.append(f"{int(divergences)} divergences")
    off = row.get("tv_max", np.nan)
    if name == reference:
        return ", ".join(["reference", *faults])
    if np.isfinite(off):
        words = "same" if off <= SAME else "close" if off <= CLOSE else "far off"
        return ", ".join([words, *faults])
    return ", ".join(faults) or "nothing found against it"


def number(value: float, digits: int) -> str:
    """Return a number with so many digits after the point; nothing if it is not one."""
    return f"{value:,.{digits}f}".replace("-", "−") if np.isfinite(value) else ""


def with_error(value: float, error: float, digits: int = 2) -> str:
    """Return a number with its error, if that is known."""
    if not np.isfinite(value):
        return ""
    after = f" ± {error:.{digits}f}" if np.isfinite(error) else ""
    return number(value, digits) + after


def in_other_units(this: Result, other: Result) -> bool:
    """Return whether the latent functions of two results are on different scales."""
    return in_label_units(this) != in_label_units(other)


def in_label_units(result: Result) -> bool:
    """Return whether a result is of an engine that regresses on the labels."""
    engine = str(result.engine if isinstance(result, OrdinalFit) else result.attrs.get("engine"))
    return engine in ENGINES and ENGINES[engine].in_label_units
