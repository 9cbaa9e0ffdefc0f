"""`OrdinalFit`: a fitted ordinal Gaussian process, its parameters and predictions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from pmordinal.checks import one_of, one_seed
from pmordinal.data.by_row import ByRow
from pmordinal.data.features import Features
from pmordinal.data.labels import Labels
from pmordinal.data.rows import row_names
from pmordinal.data.spread import is_dask
from pmordinal.data.terms import Term
from pmordinal.data.whole import Whole
from pmordinal.likelihood import OrdinalLikelihood, Rows
from pmordinal.posterior import Posterior
from pmordinal.posterior.mixture import mixed
from pmordinal.results.decisions import KINDS, present
from pmordinal.results.fit_summary import Shown
from pmordinal.results.status import FitStatus
from pmordinal.words import guessing

if TYPE_CHECKING:
    from pmordinal.results.curvature import Surface
    from pmordinal.results.integral import Integral

BLOCK = 2**22  # largest number of entries of a temporary array in a prediction: 32 MB
DRAWS = 1000  # entries counted for each new row at least: some engines have a mean for each draw
TERMS = 32  # entries counted for each class of a new row: log probability and derivatives

type LikelihoodOf = Callable[["OrdinalFit"], OrdinalLikelihood]


@dataclass(frozen=True, eq=False, repr=False)
class OrdinalFit(Shown):
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
        Name of the objective; `objective_value` is its maximum (including the log prior, if any).
    status : FitStatus
    engine : str
    labels : Labels
    features : Features
    unlabeled : ndarray, shape (m, d)
        Rows without a label.
    index : ndarray, shape (n,)
        Names of the labelled rows: numbers, times or text, see `pmordinal.data.rows.storable`.
    model_terms : tuple of Term
        Names of the terms, if the model has some; see `terms`.
    optimum : tuple, optional
        The objective and where its optimum is, for ``hyper="gaussian"``; a fit from a file or a pickle has none.
    by_row : ByRow
        Groups and weights of the labelled rows.
    integral : Integral, optional
        Values of the hyperparameters with weights; see `integrate`. `point` is still their point estimate.
    whole : Whole, optional
        Numbers of rows of the training table where it is spread over Dask: hyperparameters, evidence and
        predictions are those of all rows, and what has an entry for each row is that of a sample.
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
    model_terms: tuple[Term, ...] = ()
    optimum: "tuple[Surface, np.ndarray] | None" = field(default=None, repr=False)
    by_row: ByRow = field(default_factory=ByRow, repr=False)
    integral: "Integral | None" = field(default=None, repr=False)
    whole: Whole | None = None

    @property
    def members(self) -> "Iterator[tuple[float, OrdinalFit]]":
        """Weights and fits at fixed hyperparameters: this one alone, or those of an integrated fit."""
        if self.integral is None:
            yield 1.0, self
            return
        posteriors, records = self.posterior.members, self.integral.records  # type: ignore[attr-defined]
        for w, posterior, record in zip(self.integral.weights, posteriors, records, strict=True):
            yield w, replace(self, posterior=posterior, point=record.point, integral=None)

    @property
    def thresholds(self) -> np.ndarray:
        """Thresholds b_1 < … < b_{r−1}, shape (r − 1,), or (groups, r − 1); `labels.threshold_names` names them."""
        thresholds, by = self.posterior.likelihood.thresholds, self.by_row.thresholds
        return thresholds if by is None else thresholds[: len(by.levels)]

    @property
    def noise(self) -> float | np.ndarray:
        """Scale of the noise on the latent function, or that of each group."""
        noise, by = self.posterior.likelihood.noise, self.by_row.noise
        return noise if by is None else noise[: len(by.levels)]  # type: ignore[index]

    @property
    def population(self) -> OrdinalLikelihood:
        """The likelihood of a row of no known group: one vector of thresholds, one noise."""
        likelihood = self.posterior.likelihood
        for by in (self.by_row.thresholds, self.by_row.noise):
            if by is not None and not by.has_population:
                raise ValueError(
                    f"thresholds or noise by {by.name!r} have no population here: build the model with pmo.gp_model, "
                    "or give its thresholds and noise after those of the groups"
                )
        b, s = likelihood.thresholds, likelihood.noise
        return OrdinalLikelihood(
            b if self.by_row.thresholds is None else b[-1],
            s if self.by_row.noise is None else s[-1],  # type: ignore[index]
            likelihood.link,
        )

    @property
    def log_evidence(self) -> float:
        """The engine's log P(y | hyperparameters)."""
        return self.posterior.log_evidence

    @guessing
    def predict(
        self,
        Xnew,
        kind: str = "probs",
        *,
        rule="mode",
        coverage: float = 0.9,
        calibration: tuple | None = None,
    ):
        """Return predictions for new rows.

        Parameters
        ----------
        Xnew : DataFrame or array_like, shape (m, d)
            In the units of the training table; it may be of Dask. With thresholds or noise by group it has
            their columns; groups that are not among the training rows are taken for the population.
        kind : {"probs", "class", "cumulative", "latent", "rank", "set"}
            Class probabilities; the most probable label, of the kind you gave; P(y ≤ k) for all
            classes but the last; mean and standard deviation of the latent function; the expected
            class position, counted from zero; a set of neighbouring classes, see `conformal`.
        rule : {"mode", "median"} or array_like, shape (r, r)
            For ``kind="class"``: the most probable class; the median one, which minimises the
            expected absolute error; or the class of least expected cost, where ``rule[k, j]`` is
            the cost of saying j when k is true.
        coverage : float
            For ``kind="set"``: how often a set is to hold the true label, at least.
        calibration : tuple of (X, y), optional
            For ``kind="set"``: rows that the fit has not seen. The coverage then holds whether the
            model is right or not. Without them the fit's own labels are used, each left out, and
            it is approximate.

        Returns
        -------
        DataArray, shape (m, r), (m, r − 1) or (m,); labels; a Dataset with ``mean`` and ``sd``; or
        one with ``lower``, ``upper``, ``size`` and ``included``
            Of Dask for a table of Dask, computed when asked for: a DataFrame with a column for each class, or a
            Series, for a DataFrame; an array for an array, ``"latent"`` of shape (m, 2).
        """
        one_of("kind", kind, (*KINDS, "set"))
        if kind != "set" and calibration is not None:
            raise ValueError(f"calibration is for kind='set', not for kind={kind!r}")
        if is_dask(Xnew):
            from pmordinal.results.predict_spread import predict_spread

            return predict_spread(self, Xnew, kind, rule)
        if kind == "set":
            from pmordinal.results.conformal import predict_set

            return predict_set(self, Xnew, coverage, calibration)
        X = self.features.transform(Xnew, name="Xnew")
        known = Rows(*self.by_row.codes_at(Xnew), shift=self.features.shift(X))
        rows = {"obs": row_names(Xnew, len(X))}
        return self._predict(
            X, rows, kind, rule, lambda fit: fit.posterior.likelihood.at_new(known)
        )

    def _predict(self, X: np.ndarray, rows: dict, kind: str, rule, likelihood_of: "LikelihoodOf"):
        """Return predictions for rows in the units of the covariance, with the likelihood of these rows."""
        one_of("kind", kind, KINDS)
        if kind == "latent":
            moments = [(w, *fit._latent(X)) for w, fit in self.members]
            weights, means, variances = map(np.array, zip(*moments, strict=True))
            mean, var = mixed(weights, means, variances)
            if (shift := self.features.shift(X)) is not None:
                mean = mean + shift
            data = {"mean": ("obs", mean), "sd": ("obs", np.sqrt(var))}
            return xr.Dataset(data, coords=rows)
        return present(self.probabilities(X, likelihood_of), self.labels, rows, kind, rule)

    def _latent(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        blocks = [self.posterior.latent(X[part]) for part in self._blocks(X)]
        mean, var = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return mean, var

    def probabilities(self, X: np.ndarray, likelihood_of: "LikelihoodOf") -> np.ndarray:
        """Return class probabilities of rows in the units of the covariance, averaged over the members."""
        total = np.zeros((len(X), self.labels.n_classes))
        for w, fit in self.members:
            likelihood = likelihood_of(fit)
            for part in fit._blocks(X):
                total[part] += w * fit.posterior.probabilities(X[part], likelihood.of_rows(part))
        return total

    def _blocks(self, X: np.ndarray) -> Iterator[slice]:
        """Yield new rows in blocks, so that what they need besides the result is bounded."""
        width = max(self.posterior.support.size, DRAWS) + TERMS * self.labels.n_classes
        size = max(BLOCK // width, 1)
        for start in range(0, len(X), size):
            yield slice(start, start + size)

    def relevance(self) -> pd.Series:
        """Return how much each attribute matters, the largest first.

        It is the papers' ARD parameter κ = 1/ℓ² (for `LinearARD` its weight) times the variance of
        the attribute, so that it does not depend on units. The covariance must have one
        length-scale for each attribute.
        """
        gram, kappa = self.posterior.gram, np.zeros(self.posterior.gram.X.shape[1])
        for weight, member in self.members:
            each = gram.kernel.relevance(member.posterior.gram.values, kappa.size)
            if each is None:
                raise ValueError(
                    "relevance needs one length-scale for each attribute: fit with ard=True"
                )
            kappa += weight * each
        series = pd.Series(kappa * gram.X.var(0), index=list(self.features.names), name="relevance")
        return series.sort_values(ascending=False)

    def effects(self, feature, kind=("probs", "exceedance", "rank", "latent"), **options):
        """Return average predictions along an attribute, with intervals, as a tidy frame.

        Parameters
        ----------
        feature : str or sequence of str
            A column of the training table, or several categorical ones to combine.
        kind : str or sequence of str
            Some of ``"probs"``, P(Y = k); ``"exceedance"``, P(Y ≥ k); ``"rank"``; ``"latent"``.
        **options
            ``at=``, other attributes held fixed; ``versus=``, differences from a value; and more, see
            `pmordinal.results.effects.effects`.

        Returns
        -------
        DataFrame
            The attribute, ``kind``, ``class``, ``mean``, ``sd``, ``low``, ``high``.
        """
        from pmordinal.results.effects import effects

        return effects(self, feature, kind, **options)

    def terms(self, Xnew=None) -> xr.Dataset:
        """Return the posterior of each term of the latent function on its own.

        Parameters
        ----------
        Xnew : DataFrame or array_like, optional
            Rows, in the units of the training table; default is the labelled rows.

        Returns
        -------
        Dataset
            ``mean`` and ``sd`` with the dimensions ``term`` and ``obs``. The terms compete: their
            means add up to that of the latent function, their variances do not.
        """
        from pmordinal.results.terms import terms

        return terms(self, Xnew)

    def coefficients(self, ci_prob: float | None = None) -> pd.DataFrame:
        """Return the effects of linear, factor and group terms, in the user's units.

        Parameters
        ----------
        ci_prob : float, optional
            Probability of the intervals; default is ArviZ's ``rcParams["stats.ci_prob"]``.

        Returns
        -------
        DataFrame
            ``term``, ``level``, ``mean``, ``sd``, ``lower``, ``upper``: the change of the latent function with
            one unit of a number, or its value at a level. The effects of a factor's levels sum to
            zero; those of groups are drawn around zero. Of the sums that `gp_model` knows by name these
            are the effects of their linear part, with the names of the columns as terms; the smooth parts
            are not in them.
        """
        from pmordinal.results.terms import coefficients

        return coefficients(self, ci_prob)

    def variance_shares(self) -> pd.Series:
        """Return how much of the variance over the labelled rows is due to each term, and to the noise.

        Returns
        -------
        Series
            Shares that add up to one. A term's variance is the posterior mean of its variance over
            the rows.
        """
        from pmordinal.results.terms import variance_shares

        return variance_shares(self)

    @guessing
    def to_datatree(
        self, draws: int = 1000, hyper: str | None = None, seed=None, random_seed=None
    ) -> xr.DataTree:
        """Return draws from the posterior as an ArviZ ``DataTree``.

        Parameters
        ----------
        draws : int
        hyper : {"point", "gaussian", "psis", "ccd"}, optional
            ``"point"``, the default: the hyperparameters stay at their estimate. ``"gaussian"``: they
            are drawn from a Gaussian with the curvature of the objective there, on the unconstrained
            scale, and the engine runs once for each draw. ``"psis"``, ``"ccd"``: they are those of
            `integrate`, which is the default of an integrated fit, as often as their weights say.
        seed, random_seed : int or Generator, optional

        Returns
        -------
        DataTree
            Groups ``posterior``, ``posterior_predictive``, ``log_likelihood``, ``log_prior`` (of the
            hyperparameters; a fit from a file has none), ``sample_stats``, ``observed_data``,
            ``constant_data``. Linear, factor, interaction and group terms of a formula
            are variables of ``posterior``, named like the terms, with the names of their levels: effects
            in the user's units, drawn together with `f`. In ``sample_stats``, ``log_p`` and ``log_q`` are the
            log densities of each draw under the model and under the approximation, up to a
            constant. With ``hyper="gaussian"`` and 100 draws or more the Pareto k-hat of their
            difference is the attribute ``pareto_k``: above 0.7 the draws cannot stand for the
            posterior.
        """
        from pmordinal.results.datatree import to_datatree

        return to_datatree(self, draws, hyper, one_seed(seed, random_seed))

    def integrate(
        self, method: str = "psis", *, draws: int | None = None, seed=None, random_seed=None
    ) -> "OrdinalFit":
        """Return the fit with its hyperparameters integrated out, in place of their point estimate.

        Predictions, effects, terms, coefficients and leave-one-out scores of the result carry the
        uncertainty of the hyperparameters; `hyperparameters` says how large it is.

        Parameters
        ----------
        method : {"psis", "ccd"}
            ``"psis"``: draws around the optimum, weighted by Pareto-smoothed importance sampling.
            ``"ccd"``: a central composite design, with fewer runs of the engine. Predictions are about as good,
            but standard deviations of the hyperparameters may be a third too small where these are many.
        draws : int, optional
            Of ``"psis"``: 512 for up to four hyperparameters, else 1024. Powers of two are spread most evenly.
        seed, random_seed : int or Generator, optional
            Of ``"psis"``.
        """
        from pmordinal.results.integrate import integrate

        return integrate(self, method, draws=draws, seed=one_seed(seed, random_seed))

    def hyperparameters(self, ci_prob: float | None = None) -> pd.DataFrame:
        """Return ``mean``, ``sd``, ``lower`` and ``upper`` of each hyperparameter of an integrated fit."""
        from pmordinal.results.integral import hyperparameters

        return hyperparameters(self, ci_prob)

    def further_groups(self) -> dict[str, xr.Dataset]:
        """Return further groups for the file of a fit, which subclasses may have."""
        return {} if self.integral is None else {"integral": self.integral.to_dataset()}

    def save(self, path: str | Path) -> None:
        """Write the fit to a netCDF file (``.nc``) or a Zarr store (``.zarr``); see `load`."""
        from pmordinal.results.storage import save

        save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the model out of pickles, since not every prior can be pickled."""
        return {**self.__dict__, "optimum": None}


def a_fit(source: Any) -> OrdinalFit:
    """Return `source` if it is a single fit; raise a TypeError for anything else."""
    if not isinstance(source, OrdinalFit):
        hint = ": pass one of its fits" if hasattr(source, "fits") else "; pmo.fit returns one"
        raise TypeError(f"fit must be an OrdinalFit, got {type(source).__name__}{hint}")
    return source
