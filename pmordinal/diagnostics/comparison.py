"""Fits of several engines, and sampled trees, side by side."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from pmordinal import checks
from pmordinal.diagnostics.leave_one_out import loo
from pmordinal.fitted import OrdinalFit


@dataclass(frozen=True)
class _Summary:
    """What two posteriors are compared by: moments of f, thresholds, class probabilities."""

    mean: np.ndarray
    sd: np.ndarray
    thresholds: np.ndarray
    probs: np.ndarray


def compare(
    results: Mapping[str, OrdinalFit | xr.DataTree], reference: str | None = None
) -> pd.DataFrame:
    """Return a table of fits and sampled trees of the same data, one row each.

    Parameters
    ----------
    results : mapping of str to OrdinalFit or DataTree
        Fits of any engine; trees need ``f``, ``thresholds`` and ``posterior_predictive``, as
        `OrdinalFit.to_datatree` makes them.
    reference : str, optional
        The one to measure distances from.

    Returns
    -------
    DataFrame
        ``seconds``, ``evaluations``, ``converged``; ``log_evidence`` with
        ``log_evidence_correction``, the engine's own estimate of what it misses; ``elpd_loo`` and
        its standard error ``se``. With a reference: ``latent_mean``, the largest distance of
        posterior means of f in posterior standard deviations of the reference; ``latent_sd``, the
        largest ratio of standard deviations, as a logarithm; ``thresholds``, the largest distance;
        ``tv_mean`` and ``tv_max``, total variation between the class probabilities of the rows.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> wine = pmo.datasets.wine()
    >>> X, y = wine[["temperature", "contact"]], wine["rating"]
    >>> engines = ("laplace", "ep")
    >>> fits = {e: pmo.fit(pmo.gp_model(X, y, engine=e), progressbar=False) for e in engines}
    >>> table = compare(fits, reference="ep")
    >>> bool(table.loc["laplace", "tv_max"] < 0.02)
    True
    """
    if not results:
        raise ValueError("results is empty: pass a mapping of names to fits or trees")
    if reference is not None:
        checks.one_of("reference", reference, list(results))
    rows = {name: _quality(result) for name, result in results.items()}
    if reference is not None:
        summaries = {name: _summarise(name, result) for name, result in results.items()}
        for name, summary in summaries.items():
            rows[name] |= _distance(name, summary, reference, summaries[reference])
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("result")


def _quality(result: OrdinalFit | xr.DataTree) -> dict:
    score = loo(result)
    row = {"engine": "mcmc", "seconds": np.nan, "evaluations": np.nan, "converged": True}
    row |= {"log_evidence": np.nan, "log_evidence_correction": np.nan}
    if isinstance(result, OrdinalFit):
        status = result.status
        row |= {
            "engine": result.engine,
            "seconds": status.seconds,
            "evaluations": status.evaluations,
            "converged": status.converged and result.posterior.status.converged,
            "log_evidence": result.log_evidence,
        }
        if status.log_evidence_correction is not None:
            row["log_evidence_correction"] = status.log_evidence_correction
    else:
        row["seconds"] = result["posterior"].attrs.get("sampling_time", np.nan)
    return row | {"elpd_loo": score.elpd, "se": score.se}


def _summarise(name: str, result: OrdinalFit | xr.DataTree) -> _Summary:
    if isinstance(result, OrdinalFit):
        p = result.posterior
        probs = p.likelihood.probabilities(p.mean, p.variance)
        return _Summary(p.mean, np.sqrt(p.variance), p.likelihood.thresholds, probs)
    for group, variable in (("posterior", "f"), ("posterior_predictive", "y")):
        if group not in result.children or variable not in result[group]:
            raise ValueError(
                f"{name!r}: the tree lacks {group}/{variable}, which the distances need"
            )
    draws = ("chain", "draw")
    posterior = result["posterior"].to_dataset()
    b = posterior["thresholds"].mean(draws).values
    y = result["posterior_predictive"].to_dataset()["y"]
    probs = np.stack([(y == k).mean(draws).values for k in range(b.size + 1)], axis=-1)
    f = posterior["f"]
    return _Summary(f.mean(draws).values, f.std(draws).values, b, probs)


def _distance(name: str, this: _Summary, reference: str, other: _Summary) -> dict[str, float]:
    if this.probs.shape != other.probs.shape:
        raise ValueError(
            f"{name!r} has {this.probs.shape[0]} rows of {this.probs.shape[1]} classes and {reference!r} "
            f"{other.probs.shape[0]} of {other.probs.shape[1]}: compare results of the same data"
        )
    variation = 0.5 * np.abs(this.probs - other.probs).sum(1)
    return {
        "latent_mean": float(np.max(np.abs(this.mean - other.mean) / other.sd)),
        "latent_sd": float(np.max(np.abs(np.log(this.sd / other.sd)))),
        "thresholds": float(np.max(np.abs(this.thresholds - other.thresholds))),
        "tv_mean": float(variation.mean()),
        "tv_max": float(variation.max()),
    }
