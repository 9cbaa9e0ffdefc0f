"""A fitted ordinal Gaussian process: what was learned, and predictions from it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from pmordinal.checks import finite_array, one_of
from pmordinal.features import Features
from pmordinal.labels import Labels
from pmordinal.posterior import Posterior

KINDS = ("probs", "class", "cumulative", "latent", "rank")


@dataclass(frozen=True)
class FitStatus:
    """How a fit ended.

    Attributes
    ----------
    converged : bool
    evaluations, iterations : int
        Of the objective and of L-BFGS, over all starts.
    seconds : float
    message : str
    objectives : tuple of float
        The optimum that each start reached.
    log_evidence_correction : float, optional
        The engine's estimate of what its evidence misses, in nats.
    """

    converged: bool
    evaluations: int
    iterations: int
    seconds: float
    message: str
    objectives: tuple[float, ...]
    log_evidence_correction: float | None = None


@dataclass(frozen=True, eq=False)
class OrdinalFit:
    """Point estimate of the hyperparameters, with the posterior of the latent function there.

    Attributes
    ----------
    posterior : Posterior
        Gaussian posterior of the latent function at the training rows.
    point : dict
        Every hyperparameter by name.
    dims : dict
        Names of the dimensions of the hyperparameters.
    objective : str
        What was maximised, and `objective_value`, what was reached (log prior included, if any).
    status : FitStatus
    engine : str
    labels : Labels
    features : Features
    unlabeled : ndarray, shape (m, d)
        Rows without a label.
    index : ndarray, shape (n,)
        Names of the labelled rows.
    """

    posterior: Posterior
    point: dict[str, np.ndarray]
    dims: dict[str, Any]
    objective: str
    objective_value: float
    status: FitStatus
    engine: str
    labels: Labels
    features: Features
    unlabeled: np.ndarray = field(repr=False)
    index: np.ndarray = field(repr=False)

    @property
    def thresholds(self) -> np.ndarray:
        """Thresholds b_1 < … < b_{r−1}, shape (r − 1,); `labels.threshold_names` names them."""
        return self.posterior.likelihood.thresholds

    @property
    def noise(self) -> float:
        """Scale of the noise on the latent function."""
        return self.posterior.likelihood.noise

    @property
    def log_evidence(self) -> float:
        """The engine's log P(y | hyperparameters)."""
        return self.posterior.log_evidence

    def predict(self, Xnew, kind: str = "probs", *, rule="mode"):
        """Return predictions for new rows.

        Parameters
        ----------
        Xnew : DataFrame or array_like, shape (m, d)
            In the units of the training table.
        kind : {"probs", "class", "cumulative", "latent", "rank"}
            Class probabilities; the most probable label, of the kind you gave; P(y ≤ k) for all
            classes but the last; mean and standard deviation of the latent function; the expected
            class position, counted from zero.
        rule : {"mode", "median"} or array_like, shape (r, r)
            For ``kind="class"``: the most probable class; the median one, which minimises the
            expected absolute error; or the class of least expected cost, where ``rule[k, j]`` is
            the cost of saying j when k is true.

        Returns
        -------
        DataArray, shape (m, r), (m, r − 1) or (m,); labels; or a Dataset with ``mean`` and ``sd``
        """
        X = self.features.transform(Xnew, name="Xnew")
        return self._predict(X, {"obs": _row_names(Xnew, len(X))}, kind, rule)

    def _predict(self, X: np.ndarray, rows: dict, kind: str, rule):
        """Return predictions for rows in the units of the covariance."""
        one_of("kind", kind, KINDS)
        mean, var = self.posterior.latent(X)
        if kind == "latent":
            data = {"mean": ("obs", mean), "sd": ("obs", np.sqrt(var))}
            return xr.Dataset(data, coords=rows)
        probs = self.posterior.likelihood.probabilities(mean, var)
        if kind == "class":
            return self.labels.decode(decide(probs, rule))
        if kind == "rank":
            return xr.DataArray(probs @ np.arange(self.labels.n_classes), rows, name="rank")
        if kind == "cumulative":
            names = {"threshold": self.labels.threshold_names}
            return xr.DataArray(probs.cumsum(1)[:, :-1], rows | names, name="cumulative")
        return xr.DataArray(probs, rows | {"class": self.labels.class_names}, name="probs")

    def relevance(self) -> pd.Series:
        """Return how much each attribute matters, the largest first.

        It is the papers' ARD parameter κ = 1/ℓ² (for `LinearARD` its weight) times the variance of
        the attribute, so that it does not depend on units. The covariance must have one
        length-scale for each attribute.
        """
        gram = self.posterior.gram
        kappa = gram.kernel.relevance(gram.values, gram.X.shape[1])
        if kappa is None:
            raise ValueError(
                "relevance needs one length-scale for each attribute: fit with ard=True"
            )
        series = pd.Series(kappa * gram.X.var(0), index=list(self.features.names), name="relevance")
        return series.sort_values(ascending=False)

    def effects(self, feature, n_grid: int = 60) -> xr.Dataset:
        """Return average predictions along an attribute; see `pmordinal.effects.effects`."""
        from pmordinal.effects import effects

        return effects(self, feature, n_grid)

    def to_datatree(self, draws: int = 1000, hyper: str = "point", seed=None) -> xr.DataTree:
        """Return draws from the posterior as an ArviZ ``DataTree``.

        Parameters
        ----------
        draws : int
        hyper : {"point"}
            ``"point"``: the hyperparameters stay at their estimate.
        seed : int or Generator, optional

        Returns
        -------
        DataTree
            Groups ``posterior``, ``posterior_predictive``, ``log_likelihood``, ``sample_stats``,
            ``observed_data``, ``constant_data``.
        """
        from pmordinal.datatree import to_datatree

        return to_datatree(self, draws, hyper, seed)

    def save(self, path: str | Path) -> None:
        """Write the fit to a netCDF file (``.nc``) or a Zarr store (``.zarr``); see `load`."""
        from pmordinal.storage import save

        save(self, path)

    def __repr__(self) -> str:
        """Return a table of what was learned."""
        counts = dict(zip(self.labels.class_names, self.labels.counts.tolist(), strict=True))
        unlabeled = f", {len(self.unlabeled)} unlabelled" if len(self.unlabeled) else ""
        state = "" if self.status.converged else " (not converged)"
        correction = self.status.log_evidence_correction
        missed = "" if correction is None else f" (estimated error {-correction:+.3f})"
        lines = [
            f"OrdinalFit: {self.engine}, {self.posterior.likelihood.link.name} link, "
            f"{self.posterior.y.size} rows{unlabeled}, {len(self.features.names)} features",
            f"  classes      {counts}",
            f"  log evidence {self.log_evidence:.3f}{missed}",
            f"  loo          {self.posterior.leave_one_out.value.sum():.3f}",
            f"  noise        {self.noise:.4g}",
        ]
        names = self.labels.threshold_names
        pairs = zip(names, self.thresholds, strict=True)
        lines.append("  thresholds   " + ", ".join(f"{k}: {v:.4g}" for k, v in pairs))
        for name, value in self.point.items():
            if name not in ("noise", "thresholds"):
                lines.append(f"  {name:<12} " + np.array2string(value, precision=4, threshold=8))
        lines.append(
            f"  {self.status.evaluations} evaluations of {self.objective}, "
            f"{self.status.seconds:.2f} s{state}"
        )
        return "\n".join(lines)


def decide(probs: np.ndarray, rule) -> np.ndarray:
    """Return the class code that a decision rule picks from each row of probabilities.

    Parameters
    ----------
    probs : ndarray, shape (m, r)
    rule : {"mode", "median"} or array_like, shape (r, r)
        See `OrdinalFit.predict`.

    Examples
    --------
    >>> probs = np.array([[0.45, 0.15, 0.4]])
    >>> decide(probs, "mode"), decide(probs, "median")
    (array([0]), array([1]))
    """
    if isinstance(rule, str):
        one_of("rule", rule, ("mode", "median"))
        if rule == "mode":
            return probs.argmax(1)
        return (probs.cumsum(1) < 0.5).sum(1)
    cost = finite_array("rule", rule, ndim=2)
    r = probs.shape[1]
    if cost.shape != (r, r):
        raise ValueError(f"rule: a cost matrix must have shape {(r, r)}, got {cost.shape}")
    return (probs @ cost).argmin(1)


def _row_names(X, n: int) -> np.ndarray:
    index = getattr(X, "index", None)
    if index is not None and not callable(index) and len(index) == n:
        return np.asarray(index)
    return np.arange(n)
