"""Short tables of a fit or a grid, for the terminal and for reports."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pmordinal.data.groups import Groups
from pmordinal.data.whole import Whole
from pmordinal.results.left_out import hyper_of_fit

if TYPE_CHECKING:
    from pmordinal.modl.partition.grid import Grid
    from pmordinal.results.fit import OrdinalFit


def text_of(fit: "OrdinalFit") -> str:
    """Return a readable table of a fit."""
    known = counted(fit)
    counts = dict(zip(fit.labels.class_names, known.counts, strict=True))
    unlabeled = f", {known.unlabeled} unlabelled" if known.unlabeled else ""
    k = fit.posterior.y.size
    of_sample = f" (of a sample of {k} rows)" if k < known.rows else ""
    state = "" if fit.status.converged else " (not converged)"
    lines = [
        f"OrdinalFit: {fit.engine}, {fit.posterior.likelihood.link.name} link, "
        f"{known.rows} rows{unlabeled}, {len(fit.features.names)} features",
        f"  classes      {counts}",
        f"  log evidence {fit.log_evidence:.3f}{evidence_error(fit)}",
        f"  loo          {fit.posterior.loo:.3f}{held(fit)}{of_sample}",
    ]
    if fit.engine == "inducing":
        from pmordinal.engines.base import COMFORTABLE  # here: tables of grids do without PyMC

        notes = fit.status.notes
        m = f"{notes.get('n_inducing', fit.posterior.support.size)} rows"
        if "n_columns" in notes:
            m += f", and {notes['n_columns']} columns of linear and group terms,"
        reason = f"; {known.rows} are too many for 'ep'" if known.rows > COMFORTABLE else ""
        lines.insert(1, f"  inducing     {m} stand for all{reason}")
    if (weights := fit.by_row.weights) is not None:
        lines.insert(1, f"  weights      {weights.sum():.6g} in all")
    names = fit.labels.threshold_names
    for by, noise in by_level(fit.by_row.noise, fit.noise):
        lines.append(f"  noise        {by}{noise:.4g}")
    for by, thresholds in by_level(fit.by_row.thresholds, fit.thresholds):
        pairs = zip(names, thresholds, strict=True)
        lines.append(f"  thresholds   {by}" + ", ".join(f"{k}: {v:.4g}" for k, v in pairs))
    if fit.integral is not None:
        lines.insert(4, f"  hyper        {fit.integral.account}; their mode:")
    for name, value in further(fit.point).items():
        lines.append(f"  {name:<12} " + np.array2string(value, precision=4, threshold=8))
    lines.append(
        f"  {fit.status.evaluations} evaluations of {fit.objective}, "
        f"{fit.status.seconds:.2f} s{state}"
    )
    return "\n".join(lines)


def held(fit: "OrdinalFit") -> str:
    """Return what a leave-one-out score holds fixed, to be shown behind it."""
    return f" (hyperparameters {hyper_of_fit(fit)})"


def evidence_error(fit: "OrdinalFit") -> str:
    """Return what is known about the error of the log evidence, to be shown behind it."""
    if (error := fit.posterior.log_evidence_error) is not None:
        return f" ± {error:.3f} (Monte-Carlo standard error)"
    if (correction := fit.status.log_evidence_correction) is not None:
        return f" (estimated error {_small(-correction)})"
    if fit.engine == "inducing":
        from pmordinal.engines.inducing.correction import MOST_PAIRED  # here: as in text_of

        if counted(fit).rows > MOST_PAIRED:
            return f" (its error is not estimated beyond {MOST_PAIRED} rows)"
    return ""


def further(point: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the hyperparameters except thresholds and noise, each once."""
    shown = {"thresholds", "noise"}
    shown |= {
        f"{name}_z" for name in shown if f"{name}_population" in point
    }  # deviations of groups
    if {"amplitude", "noise"} <= point.keys():  # the entries of this vector
        shown.add("scales")
    return {name: value for name, value in point.items() if name not in shown}


def parameters(fit: "OrdinalFit") -> dict[str, float]:
    """Return thresholds, noise and every other hyperparameter of a fit by a readable name.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> fit = pmo.fit(pmo.gp_model([1.0, 2, 3, 4], [0, 0, 1, 1], "expquad"), progressbar=False)
    >>> list(parameters(fit))
    ['threshold 0|1', 'noise', 'lengthscale']
    """
    names = fit.labels.threshold_names
    rows: dict[str, float] = {}
    for by, thresholds in by_level(fit.by_row.thresholds, fit.thresholds):
        rows |= {f"{by}threshold {k}": float(v) for k, v in zip(names, thresholds, strict=True)}
    rows |= {f"{by}noise": float(v) for by, v in by_level(fit.by_row.noise, fit.noise)}
    for name, value in further(fit.point).items():
        dims = tuple(fit.dims.get(name, ()))
        if dims == ("feature",):
            rows |= {f"{name}[{where}]": entry for where, entry in _by_column(fit, value)}
        elif dims == ("column",):
            pairs = zip(fit.features.columns, value.tolist(), strict=True)
            rows |= {f"{name}[{column.name}]": entry for column, entry in pairs}
        elif value.size == 1:
            rows[name] = value.item()
        else:
            for index, entry in np.ndenumerate(value):
                rows[f"{name}[{','.join(map(str, index))}]"] = float(entry)
    return rows


def _by_column(fit: "OrdinalFit", values: np.ndarray) -> Iterator[tuple[str, float]]:
    """Yield one value for each column of the matrix; one for all levels of a factor that share theirs."""
    start = 0
    for column in fit.features.columns:
        own = values[start : start + len(column.names)].tolist()
        start += len(own)
        if len(set(own)) == 1:
            yield column.name, own[0]
        else:
            yield from zip(column.names, own, strict=True)


def by_level(by: Groups | None, values: Any) -> Iterator[tuple[str, Any]]:
    """Yield parameters with the name of their group before them; one that is no group's with nothing."""
    if by is None:
        yield "", values
    else:
        yield from ((f"{by.name}={level}: ", v) for level, v in zip(by.levels, values, strict=True))


def counted(fit: "OrdinalFit") -> Whole:
    """Return how many rows there were, with and without a label, and how many of each class."""
    if fit.whole is not None:
        return fit.whole
    return Whole(fit.posterior.y.size, tuple(fit.labels.counts.tolist()), len(fit.unlabeled))


def outcome(fit: "OrdinalFit") -> dict[str, str]:
    """Return number of rows, evidence, leave-one-out score and status of a fit, as readable text."""
    scores = fit.posterior.leave_one_out.value
    weights = fit.by_row.weights
    w = np.ones(scores.size) if weights is None else weights
    se = np.sqrt(w @ (scores - w @ scores / w.sum()) ** 2)
    weighed = "" if weights is None else f", {weights.sum():.6g} by their weights"
    known = counted(fit)
    unlabeled = f", {known.unlabeled} unlabelled" if known.unlabeled else ""
    of_sample = f" (of a sample of {scores.size} rows)" if scores.size < known.rows else ""
    return {
        "rows": f"{known.rows} labelled{weighed}{unlabeled}",
        "log evidence": f"{fit.log_evidence:.2f}{evidence_error(fit)}",
        "leave-one-out log score": f"{fit.posterior.loo:.2f} ± {se:.2f}{held(fit)}{of_sample}",
        "fit": f"{fit.status.evaluations} evaluations of {fit.objective}, {fit.status.seconds:.2f} s",
        "status": status(fit),
    }


def _small(value: float) -> str:
    """Return a small number with its sign and three decimals, in words where these would be zeros."""
    return f"{value:+.3f}" if abs(value) >= 0.0005 else "below 0.001"


def status(fit: "OrdinalFit") -> str:
    """Return whether a fit converged, and what to do if it did not."""
    if not fit.posterior.status.converged:
        return f"the engine did not converge: {fit.posterior.status.message}"
    if not fit.status.converged:
        return (
            f"the optimiser stopped early ({fit.status.message}): try more starts, more evaluations, or "
            "another engine"
        )
    return "converged"


def grid_table(grid: "Grid", names: list[str] | None = None) -> pd.DataFrame:
    """Return the counts of a grid, with names for rows and columns.

    Parameters
    ----------
    grid : Grid
    names : list of str, optional
        Labels of an ordered target whose codes the grid was fitted to; its intervals are then called
        ``low``, ``medium to high``.

    Examples
    --------
    >>> from pmordinal.modl import fit_grid
    >>> x = np.arange(60)
    >>> grid_table(fit_grid(x, x // 20), ["low", "medium", "high"]).columns.to_list()
    ['low', 'medium', 'high']
    """
    table = grid.to_frame()
    if names is not None:
        named = replace(grid, y_labels=tuple(names))
        table.columns = pd.Index(named.interval_names())
    return table


def number(value: Any) -> str:
    """Return a value as text for a table: four digits, yes or no, empty if missing.

    Examples
    --------
    >>> number(10234.5), number(0.12345), number(True), number(None)
    ('10,234', '0.1235', 'yes', '')
    """
    if value is None or value is pd.NA or value != value:
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        x = float(value)
        if abs(x) >= 1000.0 and abs(x) < 1e15:
            return f"{x:,.0f}"
        return f"{x:.0f}" if x.is_integer() else f"{x:.4g}"
    return str(value)
