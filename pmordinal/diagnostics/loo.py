"""Leave-one-out scores: computed by the engine for a fit, by ArviZ for a sampled tree."""

import arviz as az
import numpy as np
import xarray as xr

from pmordinal.results.fit import OrdinalFit


def loo(fit: OrdinalFit | xr.DataTree) -> az.ELPDDataLOO:
    """Return the expected log pointwise predictive density by leaving each row out.

    For a fit it comes from the engine's cavities at the fitted hyperparameters: no importance
    sampling, no refits, and as accurate as the engine. Of the rows that a weight stands for one is left
    out at a time, and each counts. A sampled tree goes to ``az.loo``.
    ``az.compare`` takes both.

    Parameters
    ----------
    fit : OrdinalFit or DataTree

    Returns
    -------
    ELPDDataLOO
        With the pointwise scores in ``elpd_i``.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> wine = pmo.datasets.wine()
    >>> fit = pmo.fit(pmo.gp_model(wine[["temperature"]], wine["rating"]), progressbar=False)
    >>> pmo.loo(fit).n_data_points
    72
    """
    if isinstance(fit, xr.DataTree):
        refuse_weights(fit)
        return az.loo(fit, pointwise=True)
    posterior = fit.posterior
    scores, weights = posterior.leave_one_out.value, fit.by_row.weights
    rows = {"obs": fit.index}
    n = scores.size
    # log p(y_i | all of y) at the fitted hyperparameters, for the effective number of parameters
    fitted = posterior.in_sample
    if weights is not None:
        return _weighted(fit, scores, fitted, weights)
    return az.ELPDDataLOO(
        elpd=float(scores.sum()),
        se=float(np.sqrt(n * scores.var())),
        p=float((fitted - scores).sum()),
        n_samples=1,
        n_data_points=n,
        scale="log",
        warning=not posterior.status.converged,
        good_k=0.7,
        elpd_i=xr.DataArray(scores, rows, name="elpd_i"),
        pareto_k=xr.DataArray(np.zeros(n), rows, name="pareto_k"),
    )


def _weighted(fit: OrdinalFit, scores, fitted, weights) -> az.ELPDDataLOO:
    """Return the scores of rows that stand for several: those of all of them, one being left out at a time."""
    rows, n = {"obs": fit.index}, weights.sum()
    mean = weights @ scores / n
    return az.ELPDDataLOO(
        elpd=float(weights @ scores),
        se=float(np.sqrt(weights @ (scores - mean) ** 2)),
        p=float(weights @ (fitted - scores)),
        n_samples=1,
        n_data_points=round(n),
        scale="log",
        warning=not fit.posterior.status.converged,
        good_k=0.7,
        elpd_i=xr.DataArray(weights * scores, rows, name="elpd_i"),
        pareto_k=xr.DataArray(np.zeros(scores.size), rows, name="pareto_k"),
    )


def refuse_weights(tree: xr.DataTree) -> None:
    """Raise for trees whose rows stand for several."""
    if "constant_data" in getattr(tree, "children", ()) and "weights" in tree["constant_data"]:
        raise ValueError(
            "the rows have weights, which this check does not know: repeat the rows, or pass class probabilities "
            "together with y"
        )
