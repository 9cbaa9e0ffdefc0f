"""A fit as one self-contained HTML file: data, parameters, effects, checks, other engines, the code to repeat it."""

import hashlib
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from arviz_base import rc_context
from matplotlib import pyplot as plt

from pmordinal import modl
from pmordinal.data import files
from pmordinal.diagnostics.compare import compare
from pmordinal.diagnostics.loo import loo
from pmordinal.modl.regression.ranking import ranking_table
from pmordinal.plots import (
    plot_calibration,
    plot_categories,
    plot_engines,
    plot_latent,
    plot_relevance,
)
from pmordinal.report.grids import grids_section
from pmordinal.report.left_out import left_out_section
from pmordinal.report.page import (
    Section,
    code,
    columns,
    figure,
    heading,
    table,
    text,
    top_rows,
    whole_page,
)
from pmordinal.report.terms import terms_section
from pmordinal.report.training_table import repeated, training_table
from pmordinal.results.fit import OrdinalFit, a_fit
from pmordinal.results.summary import number, outcome, parameters, status
from pmordinal.words import guessing

MOST_CURVES = 6  # at most so many attributes have a picture
MOST_PANELS = 12  # at most so many thresholds have a calibration panel


@guessing
def write_report(
    fit: OrdinalFit,
    path: str | Path,
    *,
    target: str = "y",
    others: Mapping[str, OrdinalFit] | None = None,
    failures: Mapping[str, str] | None = None,
    source: str | Path | None = None,
    command: str | None = None,
    saved: str | Path | None = None,
) -> None:
    """Write an HTML report of a fit: one file, no script, nothing to download.

    Parameters
    ----------
    fit : OrdinalFit
    path : str or Path
        File to write; it appears when it is complete.
    target : str
        Name of the labels.
    others : mapping of str to OrdinalFit, optional
        Fits of the same rows by other engines, to compare with.
    failures : mapping of str to str, optional
        Engines that could not fit these rows, and why.
    source : str or Path, optional
        The file of the data; its checksum is kept.
    command : str, optional
        How to make this report again.
    saved : str or Path, optional
        The file that the fit was saved to, which the report then names.

    Examples
    --------
    >>> import pmordinal as pmo, tempfile
    >>> wine = pmo.datasets.wine()
    >>> fit = pmo.fit(pmo.gp_model(wine[["temperature", "judge"]], wine["rating"]), progressbar=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pmo.write_report(fit, f"{folder}/report.html", target="rating")
    ...     "Leave-one-out" in Path(f"{folder}/report.html").read_text("utf-8")
    True
    """
    fit = a_fit(fit)
    weights = fit.by_row.weights
    if weights is not None and np.any(weights != np.round(weights)):
        raise ValueError(
            "a report counts rows, and this fit has weights that are not whole numbers: use whole weights"
        )
    path = files.local(path)
    files.target(path)  # raises now rather than after the work
    with _own_figures():
        repeat = _reproduce(target, source, command, path, saved)  # fails early without the source
        html = _page(fit, target, dict(others or {}), dict(failures or {}), source, repeat)
    with files.whole(path) as temporary:
        temporary.write_text(html, encoding="utf-8", errors="backslashreplace")


@contextmanager
def _own_figures() -> Iterator[None]:
    """Close all figures that are opened inside, also if the report fails."""
    before = set(plt.get_fignums())
    try:
        with plt.ioff():
            yield
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)


def _page(fit: OrdinalFit, target: str, others, failures, source, repeat: Section) -> str:
    again = repeated(fit)
    rows = training_table(fit).iloc[again].reset_index(drop=True)
    classes = pd.Index(fit.labels.class_names)
    codes = pd.Categorical.from_codes(fit.posterior.y[again], categories=classes, ordered=True)
    y = pd.Series(codes, name=target)
    grids = modl.fit_grids(rows, y, progressbar=False)
    ranking = ranking_table(grids)
    score = loo(fit)
    tiles = {
        "labelled rows": f"{again.size:,}",
        "classes": str(fit.labels.n_classes),
        "attributes": str(len(fit.features.given)),
        "log evidence": f"{fit.log_evidence:.2f}",
        "leave-one-out log score": f"{score.elpd:.1f} ± {score.se:.1f}",
        "fit": "converged" if status(fit) == "converged" else "not converged",
    }
    subtitle = (
        f"Ordinal Gaussian process, engine {fit.engine}, {fit.posterior.likelihood.link.name} link"
        + (f", data {Path(source).name}" if source else "")
    )
    sections = [
        _data(fit, rows, target),
        _parameters(fit),
        *([terms_section(fit)] if fit.model_terms else []),
        _curves(fit, target, list(ranking.index)),
        _calibration(fit, target),
        left_out_section(fit, score, target),
        _engines(fit, others, failures),
        grids_section(grids, ranking, target),
        repeat,
    ]
    return whole_page(f"Ordinal regression of {target}", subtitle, tiles, sections)


def _data(fit: OrdinalFit, rows: pd.DataFrame, target: str) -> Section:
    found = np.bincount(fit.posterior.y[repeated(fit)], minlength=fit.labels.n_classes)
    counts = pd.DataFrame(
        {"rows": found, "share": [f"{c / len(rows):.1%}" for c in found]},
        index=pd.Index(fit.labels.class_names, name=target),
    )
    described = pd.DataFrame(
        [_describe(values) for _, values in rows.items()],
        index=pd.Index(rows.columns, name="attribute"),
    )
    unlabeled = len(fit.unlabeled)
    said = f"{len(rows):,} rows with a label"
    if fit.by_row.weights is not None:
        said += f", given as {fit.posterior.y.size:,} with weights"
    if unlabeled:
        said += (
            f", and {unlabeled:,} without one, which change nothing and are predicted like new rows"
        )
    empty = [n for n, c in zip(counts.index, counts["rows"], strict=True) if c == 0]
    notes = [text(f"{said}; classes from lowest to highest.")]
    if empty:
        notes.append(text(f"Nobody chose {', '.join(empty)}: they keep their place.", "soft"))
    classes = [heading("Classes"), table(counts, bars="rows")]
    parts = (*notes, columns(classes, [heading("Attributes"), top_rows(described, "attributes")]))
    return Section("data", "Data", parts)


def _describe(values: pd.Series) -> dict[str, object]:
    if isinstance(values.dtype, pd.CategoricalDtype):
        counts = values.value_counts(sort=False)
        most = f"{counts.idxmax()} ({counts.max()} rows)"
        return {"kind": f"{len(counts)} levels", "values": f"most frequent: {most}"}
    mean, sd, low, high = map(number, (values.mean(), values.std(), values.min(), values.max()))
    spread = f" ± {sd}" if sd else ""  # one row has none
    return {"kind": "number", "values": f"{mean}{spread}, from {low} to {high}"}


def _parameters(fit: OrdinalFit) -> Section:
    values = parameters(fit)
    cuts = {
        k.removeprefix("threshold "): v for k, v in values.items() if k.startswith("threshold ")
    }
    rest = {k: v for k, v in values.items() if not k.startswith("threshold ")}
    left = pd.DataFrame({"threshold": cuts}).rename_axis("between")
    right = pd.DataFrame({"value": rest}).rename_axis("hyperparameter")
    units = "in standard deviations of its prior, where the amplitude is one"
    if "noise_fraction" in fit.point:
        units = "in label units, counted from the middle class"
    elif fit.model_terms:
        units = "in units of the noise, whose scale is one"
    ending = pd.DataFrame({"": outcome(fit)})
    parts = [
        text(
            "A label is the class between whose thresholds the latent function plus noise falls. "
            f"The latent function is {units}; length-scales are in standard deviations of the attributes."
        ),
        columns([table(left)], [top_rows(right, "hyperparameters")], [table(ending)]),
    ]
    if status(fit) != "converged":
        parts.insert(0, text(f"This fit did not converge: {status(fit)}.", "warn"))
    if fit.dims.get("lengthscale") is not None and fit.point["lengthscale"].ndim == 1:
        size = (6.4, 1.2 + 0.3 * min(len(fit.features.names), 20))
        drawn, ax = plt.subplots(figsize=size, layout="constrained")
        plot_relevance(fit, ax, top=20)
        parts.append(figure(drawn, "Relevance of the attributes: variance / length-scale²"))
    return Section("parameters", "Thresholds and hyperparameters", tuple(parts))


def _curves(fit: OrdinalFit, target: str, by_level: list[str]) -> Section:
    shown = by_level[:MOST_CURVES]
    parts = [
        text(
            f"The probability of each class of {target} along an attribute, averaged over the rows as they are in "
            "all others; bands and bars are intervals of the posterior. Attributes in the order of MODL's ranking."
        )
    ]
    size = (5.2, 3.4)
    for name in shown:
        blocks = []
        for draw, caption in (
            (plot_categories, f"P({target}) along {name}"),
            (plot_latent, f"The latent function along {name}, and the thresholds"),
        ):
            drawn, ax = plt.subplots(figsize=size, layout="constrained")
            draw(fit, name, ax=ax)
            blocks.append([figure(drawn, caption)])
        parts += [heading(name), columns(*blocks)]
    if len(by_level) > len(shown):
        rest = by_level[len(shown) :]
        parts.append(
            text(f"Not shown: {', '.join(rest[:20])}{' …' if len(rest) > 20 else ''}.", "soft")
        )
    return Section("curves", "Category curves", tuple(parts))


def _calibration(fit: OrdinalFit, target: str) -> Section:
    with rc_context({"plot.max_subplots": MOST_PANELS}):
        drawn = plot_calibration(fit, seed=0).viz["figure"].item()
    parts = (
        text(
            f"Where the model gives {target} ≤ k a probability, how often is it so? Each row is predicted without "
            "its own label. The grey band is where the line would lie if the predictions were right."
        ),
        figure(drawn, "Observed against predicted frequency, threshold by threshold"),
    )
    return Section("calibration", "Calibration", parts)


def _engines(fit: OrdinalFit, others: dict[str, OrdinalFit], failures: dict[str, str]) -> Section:
    parts = []
    if others:
        own = f"{fit.engine}, this fit" if fit.engine in others else fit.engine
        compared = compare({own: fit, **others}, reference=own)
        notes = " ".join(compared.notes()[:-1])
        parts = [
            text(
                "The same model, fitted by other engines. Each has hyperparameters of its own. The last column says "
                f"how near an engine is to {own}."
            ),
            table(compared.short),
            text(notes, "soft"),
            figure(plot_engines(compared).flat[0].get_figure(root=True), "Engines side by side"),
        ]
    else:
        parts = [text(f"Only {fit.engine} was fitted; pmordinal compare sets others beside it.")]
    parts += [text(f"{name} could not be fitted: {why}", "warn") for name, why in failures.items()]
    return Section("engines", "Engines compared", tuple(parts))


def _reproduce(target: str, source, command, path: Path, saved) -> Section:
    parts = []
    if command:
        parts += [text("The command that made this report:"), code(command)]
    kept = "fit.nc" if saved is None else files.printable(saved)
    where = f"keep the fit with fit.save({kept!r})" if saved is None else f"the fit is in {kept}"
    lines = {"python": platform.python_version()}
    lines |= {name: version(name) for name in ("pmordinal", "pymc", "pytensor", "numpy", "scipy")}
    if source is not None:
        with Path(source).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        lines |= {"data": files.printable(source), "sha-256 of the data": digest}
    parts += [
        text("Made with"),
        table(pd.DataFrame({"": lines})),
        text(f"From Python, {where}. It gives the same report, but for the comparison of engines:"),
        code(
            "import pmordinal as pmo\n\n"
            f"fit = pmo.load({kept!r})\npmo.write_report(fit, {path.name!r}, target={target!r})"
        ),
    ]
    return Section("reproduce", "How to reproduce it", tuple(parts))
