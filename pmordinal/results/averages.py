"""Weighted averages of predictions over rows, with draws of them: what effects consist of.

Means are exact. Intervals are those of the posterior of the latent function: of P(Y = k) given f, not of Y. They
come from draws of f at all the rows of an effect together, with the same white noise for all effects, so that curves
stay smooth. An integrated fit has several members, each with its share of the draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import ndtri

from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.posterior import Posterior
from pmordinal.posterior.mixture import mixed
from pmordinal.results.chosen_group import shifted

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit


@dataclass(frozen=True)
class Effect:
    """A weighted average of predictions over rows, or a difference of two averages.

    Attributes
    ----------
    likelihood : OrdinalLikelihood
    weights : ndarray, shape (m,)
    probs : ndarray, shape (m, r)
        Class probabilities of the rows.
    means : ndarray, shape (draws or 1, m)
        Means of the latent function at the rows, one set for each Gaussian component of the posterior.
    covariance : ndarray, shape (m, m)
        Covariance around these means, without white noise.
    white : ndarray, shape (m,)
        Variance of the white noise in the covariance function, which data cannot predict.
    """

    likelihood: OrdinalLikelihood
    weights: np.ndarray
    probs: np.ndarray
    means: np.ndarray
    covariance: np.ndarray
    white: np.ndarray

    @classmethod
    def of(
        cls,
        fit: "OrdinalFit",
        likelihood: OrdinalLikelihood,
        alphas: np.ndarray,
        X: np.ndarray,
        base: np.ndarray | None = None,
    ) -> "Effect":
        """Return the average over rows `X`, minus that over rows `base` if given; both in the user's units."""
        weights = np.full(len(X), 1.0 / len(X))
        if base is not None:
            X, weights = np.concatenate([X, base]), np.repeat([1.0, -1.0], len(X)) / len(X)
        X, which = np.unique(X, axis=0, return_inverse=True)  # one-hot rows often coincide
        Z = fit.features.standardized(X)
        means, covariance, white = joint_latent(fit.posterior, Z, alphas)
        if (shift := fit.features.shift(Z)) is not None:
            means = means + shift
        return cls(
            likelihood,
            np.bincount(which.ravel(), weights, len(X)),
            fit.posterior.probabilities(Z, shifted(fit, likelihood, Z)),
            means,
            covariance,
            white,
        )

    def sample(self, weight: float, noise: np.ndarray) -> "Sampled":
        """Return exact averages and draws of them.

        Parameters
        ----------
        weight : float
            Of the fit, among the members of an integrated one.
        noise : ndarray, shape (draws, at least m)
            Standard normal draws, shared by all effects.
        """
        w = self.weights
        # the symmetric root is a smooth function of C, which a pivoted Cholesky factor is not
        values, vectors = np.linalg.eigh(self.covariance)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        f = self.means + noise[:, : w.size] @ root
        centers = self.means @ w
        variance = max(w @ self.covariance @ w, 0.0) + centers.var()
        return Sampled(
            weight,
            w @ self.probs,
            np.einsum("i,tik->tk", w, self._class_probs(f)),
            float(centers.mean()),
            float(variance),
            f @ w,
            len(centers) == 1,
        )

    def _class_probs(self, f: np.ndarray) -> np.ndarray:
        """Return P(Y = k | f) for draws of f, shape (draws, m, r)."""
        if np.any(self.white > 0.0):
            white = np.broadcast_to(self.white, f.shape)
            return self.likelihood.probabilities(f.ravel(), white.ravel()).reshape(*f.shape, -1)
        z = (self.likelihood.edges - f[..., None]) / self.likelihood.noise
        return np.diff(self.likelihood.link.cdf(z), axis=-1)


@dataclass(frozen=True, eq=False)
class Sampled:
    """An effect under one member of a fit.

    Attributes
    ----------
    weight : float
        Of the member.
    probs : ndarray, shape (r,)
        Averaged class probabilities.
    draws : ndarray, shape (draws, r)
        Draws of the averaged class probabilities given f.
    mean, variance : float
        Of the averaged latent function.
    latent : ndarray, shape (draws,)
        Draws of it.
    gaussian : bool
        Whether it is Gaussian.
    """

    weight: float
    probs: np.ndarray
    draws: np.ndarray
    mean: float
    variance: float
    latent: np.ndarray
    gaussian: bool


def summarise(
    members: Sequence[Sampled], names: list[str], kinds: Sequence[str], tails: tuple[float, float]
) -> pd.DataFrame:
    """Return mean, standard deviation and interval of each kind of prediction, over all members of a fit.

    Parameters
    ----------
    members : sequence of Sampled
        As many draws of each as its weight says.
    names : list of str
        Names of the classes.
    kinds : sequence of str
    tails : tuple of float
        Probabilities below the ends of the interval.
    """
    exact = sum(one.weight * one.probs for one in members)
    draws = np.concatenate([one.draws for one in members])
    r = draws.shape[1]
    reductions = {
        "probs": (np.eye(r), names),
        "exceedance": (np.tri(r)[:, 1:], names[1:]),
        "rank": (np.arange(r)[:, None], [None]),
    }
    tables = []
    for kind in kinds:
        if kind == "latent":
            mean, sd, low, high = _latent(members, tails)
            row = {"class": [None], "mean": mean, "sd": sd, "low": low, "high": high}
        else:
            A, classes = reductions[kind]
            low, high = np.quantile(draws @ A, tails, axis=0)
            row = {"class": classes, "mean": exact @ A, "sd": (draws @ A).std(0)}
            row |= {"low": low, "high": high}
        tables.append(pd.DataFrame({"kind": kind} | row))
    return pd.concat(tables, ignore_index=True)


def _latent(members: Sequence[Sampled], tails: tuple[float, float]) -> tuple[float, ...]:
    """Return mean, standard deviation and interval of the averaged latent function."""
    weights, means, variances = (
        np.array([getattr(one, name) for one in members]) for name in ("weight", "mean", "variance")
    )
    mean, variance = mixed(weights, means, variances)
    sd = float(np.sqrt(variance))
    if len(members) > 1 or not members[0].gaussian:
        return mean, sd, *np.quantile(np.concatenate([one.latent for one in members]), tails)
    return mean, sd, *(mean + sd * ndtri(tails))


def joint_latent(
    posterior: Posterior, Z: np.ndarray, alphas: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means of f at new rows for each α, their covariance without white noise, and its variance."""
    k = posterior.cross(Z)
    v = posterior.explain(k)
    kernel, values = posterior.gram.kernel, posterior.gram.values
    prior = kernel.matrix(values, Z, Z)[0]
    white = kernel.diagonal(values, Z)[0] - kernel.copy_diagonal(values, Z)
    return alphas.T @ k, prior - v.T @ v, white
