"""Leave-one-out scores: computed by the engine for a fit, by ArviZ for a sampled tree."""

from dataclasses import dataclass, fields
from typing import Any

import arviz as az
import numpy as np
import xarray as xr
from scipy.special import logsumexp

from pmordinal.engines.exact.posterior import ExactPosterior
from pmordinal.errors import ConvergenceWarning, warn
from pmordinal.results.curvature import pareto_k
from pmordinal.results.datatree import is_same
from pmordinal.results.fit import OrdinalFit, a_fit
from pmordinal.results.left_out import FIXED, INTEGRATED, hyper_of_fit
from pmordinal.words import guessing

GOOD_K = 0.7  # of Pareto: above it a weighted average cannot be trusted
SAID = {
    FIXED: "Hyperparameters are fixed where all labels have put them: the label left out, too.",
    INTEGRATED: "Hyperparameters are integrated over, without the label left out.",
}


@dataclass(kw_only=True, repr=False)
class LeaveOneOut(az.ELPDDataLOO):
    """ArviZ's leave-one-out scores, which also say what they hold fixed.

    Attributes
    ----------
    hyper : {"fixed", "integrated"}
        Whether the hyperparameters stay where all labels, the one left out among them, have put them; or are averaged
        over without that label. Scores of the first kind are higher: compare those of one kind.
    """

    hyper: str = INTEGRATED

    @classmethod
    def of(cls, found: az.ELPDDataLOO, hyper: str) -> "LeaveOneOut":
        """Return ArviZ's scores with the word on hyperparameters."""
        have: dict[str, Any] = {f.name: getattr(found, f.name) for f in fields(found)}
        return cls(**have, hyper=hyper)

    def __str__(self) -> str:
        """Return ArviZ's table with the word on hyperparameters."""
        return f"{super().__str__()}\n\n{SAID[self.hyper]}"


@guessing
def loo(fit: OrdinalFit | xr.DataTree) -> LeaveOneOut:
    """Return the expected log pointwise predictive density by leaving each row out.

    For a fit it comes from the engine's cavities at the fitted hyperparameters: no importance
    sampling, no refits, and as accurate as the engine. The exact engine weights its draws: ``pareto_k`` says of each
    row how well that went, and above 0.7 there is a warning. For a fit that was integrated over its hyperparameters
    their weights are those without the label left out. Of the rows that a weight stands for one is left
    out at a time, and each counts. A sampled tree goes to ``az.loo``.
    ``az.compare`` takes both.

    Parameters
    ----------
    fit : OrdinalFit or DataTree

    Returns
    -------
    ELPDDataLOO
        With the pointwise scores in ``elpd_i``. ``hyper`` says what they hold fixed: ``"fixed"`` hyperparameters
        have seen the label that is left out, ``"integrated"`` ones have not. Compare scores of one kind.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> wine = pmo.datasets.wine()
    >>> fit = pmo.fit(pmo.gp_model(wine[["temperature"]], wine["rating"]), progressbar=False)
    >>> pmo.loo(fit).n_data_points, pmo.loo(fit).hyper
    (72, 'fixed')
    """
    if isinstance(fit, xr.DataTree):
        weights = tree_weights(fit)
        scored = az.loo(fit, pointwise=True)
        if weights is not None:
            scored = _weighted_tree(fit, scored, weights)
        return LeaveOneOut.of(scored, hyper_of(fit))
    posterior, hyper = a_fit(fit).posterior, hyper_of_fit(fit)
    scores, weights = posterior.leave_one_out.value, fit.by_row.weights
    rows = {"obs": fit.index}
    n = scores.size
    k = _pareto_k(fit)
    poor = _warn_of_poor_scores(scores, k) or not posterior.status.converged
    # log p(y_i | all of y) at the fitted hyperparameters, for the effective number of parameters
    fitted = posterior.in_sample
    if weights is not None:
        return _weighted(fit, scores, fitted, weights, hyper, k, poor)
    return LeaveOneOut(
        hyper=hyper,
        elpd=float(scores.sum()),
        se=float(np.sqrt(n * scores.var())),
        p=float((fitted - scores).sum()),
        n_samples=1,
        n_data_points=n,
        scale="log",
        warning=poor,
        good_k=GOOD_K,
        elpd_i=xr.DataArray(scores, rows, name="elpd_i"),
        pareto_k=xr.DataArray(k, rows, name="pareto_k"),
    )


def _pareto_k(fit: OrdinalFit) -> np.ndarray:
    """Return the Pareto k-hat of each score of a fit; zero where it does not come from draws of the engine."""
    posterior = fit.posterior
    if not isinstance(posterior, ExactPosterior):
        return np.zeros(posterior.y.size)
    return np.array([pareto_k(row, np.zeros_like(row)) for row in posterior.log_left_out_weights])


def _warn_of_poor_scores(scores: np.ndarray, k: np.ndarray) -> bool:
    """Warn of scores that cannot be trusted, and return whether there are any."""
    broken, few = ~np.isfinite(scores), k > GOOD_K
    if broken.any():
        warn(
            f"leave-one-out scores of {broken.sum()} of {scores.size} rows are not finite: fit again, "
            "with other priors or engine='ep'",
            ConvergenceWarning,
        )
    if few.any():
        warn(
            f"leave-one-out scores of {few.sum()} of {k.size} rows rest on few draws, and may be far off "
            f"(Pareto k up to {k.max():.2g}, above {GOOD_K}): take engine='ep'",
            ConvergenceWarning,
        )
    return bool(broken.any() or few.any())


def _weighted(
    fit: OrdinalFit, scores, fitted, weights, hyper: str, k: np.ndarray, poor: bool
) -> LeaveOneOut:
    """Return the scores of rows that stand for several: those of all of them, one being left out at a time."""
    rows, n = {"obs": fit.index}, weights.sum()
    mean = weights @ scores / n
    return LeaveOneOut(
        hyper=hyper,
        elpd=float(weights @ scores),
        se=float(np.sqrt(weights @ (scores - mean) ** 2)),
        p=float(weights @ (fitted - scores)),
        n_samples=1,
        n_data_points=round(n),
        scale="log",
        warning=poor,
        good_k=GOOD_K,
        elpd_i=xr.DataArray(weights * scores, rows, name="elpd_i"),
        pareto_k=xr.DataArray(k, rows, name="pareto_k"),
    )


def hyper_of(tree: xr.DataTree) -> str:
    """Return whether the draws of a tree hold the hyperparameters fixed, or integrate over them."""
    if tree.attrs.get("hyper") == "point":
        return FIXED
    posterior = tree["posterior"].to_dataset()
    rows = set(posterior["f"].dims) - {"chain", "draw"} if "f" in posterior else set()
    sampled = posterior.drop_dims(rows).drop_vars("f_white", errors="ignore")  # f in other units
    ordered = (values.transpose("chain", "draw", ...).values for values in sampled.values())
    moves = not all(is_same(values, values[:1, :1]) for values in ordered)
    return INTEGRATED if moves or not rows else FIXED  # without f there is nothing else to draw


def _weighted_tree(
    tree: xr.DataTree, result: az.ELPDDataLOO, weights: np.ndarray
) -> az.ELPDDataLOO:
    """Return the scores of rows that stand for several, one of each being left out at a time.

    The log likelihood of a row in the tree is that of one label, so that it is what az.loo leaves out.
    """
    if weights.min() < 1.0:
        raise ValueError(
            f"a row has the weight {weights.min():g}, less than one label that could be left out: use weights of one "
            "at least, or pmo.loo of a fit"
        )
    scores = result.elpd_i.values.reshape(-1)
    log_lik = tree["log_likelihood"].to_dataset()["y"].stack(sample=("chain", "draw"))
    fitted = logsumexp(log_lik.transpose("sample", ...).values, axis=0) - np.log(
        log_lik.sizes["sample"]
    )
    n = weights.sum()
    result.elpd = float(weights @ scores)
    variance = weights @ (scores - result.elpd / n) ** 2 / (n - 1.0)  # as ArviZ has it
    result.se = float(np.sqrt(n * variance))
    result.p = float(weights @ (fitted - scores))
    result.n_data_points = round(n)
    result.elpd_i = result.elpd_i * weights
    return result


def tree_weights(tree: xr.DataTree) -> np.ndarray | None:
    """Return how many rows each row of a tree stands for; None is one."""
    if (
        "constant_data" not in getattr(tree, "children", ())
        or "weights" not in tree["constant_data"]
    ):
        return None
    return np.asarray(tree["constant_data"]["weights"].values, dtype=float)


def repeats(weights: np.ndarray | None, n: int) -> np.ndarray:
    """Return the positions of n rows, each as often as its weight says; these must be whole numbers."""
    if weights is None:
        return np.arange(n)
    if np.any(weights != np.round(weights)):
        raise ValueError(
            "there are weights that are not whole numbers, and this check counts rows: use whole weights"
        )
    return np.repeat(np.arange(n), weights.astype(int))
