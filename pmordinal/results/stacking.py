"""Stacking: a mixture of fits, weighted by how well they predict left-out labels.

Covariances often fit about equally well, and their mistakes differ. The weights w maximise Σ_i log Σ_k w_k p_k(y_i | y
without i), which the engines' leave-one-out probabilities give without a refit, plus a Dirichlet prior that keeps
small tables near equal weights (Yao et al., 2018, Bayesian Analysis 13).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from pmordinal.checks import finite_array, one_of
from pmordinal.data.rows import row_names
from pmordinal.data.same_rows import how_they_differ
from pmordinal.results.decisions import KINDS, present
from pmordinal.results.fit import OrdinalFit
from pmordinal.results.left_out import hyper_of_fit, warn_of_two_kinds

# pseudo-counts of the Dirichlet prior on the weights; on held-out training rows better than 0 to 5
PRIOR = 10.0
LEAST_WEIGHT = 1e-9


@dataclass(frozen=True, eq=False)
class Stack:
    """A mixture of fits to the same labels.

    Attributes
    ----------
    fits : dict of str to OrdinalFit
    weights : Series
        Weight of each fit; they sum to one.
    elpd : float
        Log probability of the labels, each left out, under the mixture. It is slightly optimistic, as the weights
        were fitted to the same labels.
    """

    fits: dict[str, OrdinalFit]
    weights: pd.Series
    elpd: float

    def predict(self, Xnew, kind: str = "probs", *, rule="mode"):
        """Return predictions for new rows, as `OrdinalFit.predict` does.

        Parameters
        ----------
        Xnew : DataFrame or array_like, shape (m, d)
        kind : {"probs", "class", "cumulative", "rank"}
            A mixture has no one latent function.
        rule : {"mode", "median"} or array_like, shape (r, r)
        """
        one_of("kind", kind, [k for k in KINDS if k != "latent"])
        pairs = zip(self.weights, self.fits.values(), strict=True)
        probs = sum(weight * fit.predict(Xnew).to_numpy() for weight, fit in pairs)
        labels = next(iter(self.fits.values())).labels
        return present(probs, labels, {"obs": row_names(Xnew, len(probs))}, kind, rule)

    def __repr__(self) -> str:
        """Return the names of the fits with their weights."""
        parts = ", ".join(f"{weight:.2f} {name}" for name, weight in self.weights.items())
        return f"Stack({parts}; elpd_loo {self.elpd:.1f})"


def stack(fits: Mapping[str, OrdinalFit], *, prior: float = PRIOR) -> Stack:
    """Return the mixture of fits that predicts left-out labels best.

    Parameters
    ----------
    fits : mapping of str to OrdinalFit
        Fits to the same labels, with the same weights; covariances, attributes and engines may differ. Hyperparameters
        are integrated over in all of them or in none: else the mixture prefers those that hold them fixed, which is
        warned of.
    prior : float
        Pseudo-counts for each fit: large values lead to equal weights, zero leaves them to the data.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> wine = pmo.datasets.wine()
    >>> X, y = wine[["temperature", "contact"]], wine["rating"]
    >>> models = {name: pmo.gp_model(X, y, ard=name == "ard") for name in ("isotropic", "ard")}
    >>> mixture = pmo.stack({name: pmo.fit(m, progressbar=False) for name, m in models.items()})
    >>> mixture.predict(X.iloc[:1]).sizes["class"]
    5
    """
    if not (isinstance(fits, Mapping) and fits):
        raise TypeError(f"fits must be a mapping of names to fits, got {type(fits).__name__}")
    for name, fit in fits.items():
        if not isinstance(fit, OrdinalFit):
            raise TypeError(f"fits[{name!r}] must be a fit of pmo.fit, got {type(fit).__name__}")
    first = next(iter(fits.values()))
    for name, fit in fits.items():
        reason = how_they_differ(fit.labels, first.labels, fit.index, first.index)
        if reason is not None:
            raise ValueError(f"fits[{name!r}] has {reason}: stack fits to the same rows")
        if not _same_weights(fit, first):
            raise ValueError(
                f"fits[{name!r}] has other weights than the first fit: stack fits to the same weighted rows"
            )
    prior = float(finite_array("prior", prior, ndim=0))
    if prior < 0:
        raise ValueError(f"prior must not be negative, got {prior}")
    warn_of_two_kinds({name: hyper_of_fit(fit) for name, fit in fits.items()})
    scores = np.array([fit.posterior.leave_one_out.value for fit in fits.values()])
    best = scores.max(0)
    probability = np.exp(scores - best)  # the weights depend only on ratios
    counts = first.by_row.weights
    weights = stacking_weights(probability, prior, counts)
    each = np.log(weights @ probability) + best
    elpd = float(each.sum() if counts is None else counts @ each)
    return Stack(dict(fits), pd.Series(weights, index=list(fits), name="weight"), elpd)


def _same_weights(fit: OrdinalFit, other: OrdinalFit) -> bool:
    ours, theirs = (
        np.ones(one.posterior.y.size) if one.by_row.weights is None else one.by_row.weights
        for one in (fit, other)
    )
    return np.array_equal(ours, theirs)


def stacking_weights(
    probability: np.ndarray, prior: float = PRIOR, counts: np.ndarray | None = None
) -> np.ndarray:
    """Return the mixture weights that make held-out labels most probable; the problem is concave.

    Parameters
    ----------
    probability : ndarray, shape (number of fits, n)
        Probability of each held-out label under each fit, up to a factor for each label.
    prior : float
        Pseudo-counts: a Dirichlet prior with concentration 1 + prior.
    counts : ndarray, shape (n,), optional
        How many labels each of them stands for.

    Examples
    --------
    >>> stacking_weights(np.array([[0.9, 0.8, 0.1], [0.5, 0.5, 0.5]]), prior=0.0).round(3)
    array([0.355, 0.645])
    """
    K, n = probability.shape
    c = np.ones(n) if counts is None else counts

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        mixture = w @ probability
        value = c @ np.log(mixture) + prior * np.log(w).sum()
        return -value / c.sum(), -((probability / mixture) @ c + prior / w) / c.sum()

    start = np.full(K, 1.0 / K)
    sum_to_one = {"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones(K)}
    bounds = [(LEAST_WEIGHT, 1.0)] * K
    options = {"ftol": 1e-12, "maxiter": 500}
    found = minimize(
        loss,
        start,
        jac=True,
        method="SLSQP",
        bounds=bounds,
        constraints=sum_to_one,
        options=options,
    )
    return found.x / found.x.sum()
