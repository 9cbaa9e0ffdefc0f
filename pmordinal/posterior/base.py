"""What every engine returns: a posterior of the latent function, and what can be asked of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood


@dataclass(frozen=True)
class Status:
    """How an iteration ended.

    Attributes
    ----------
    converged : bool
    iterations : int
    message : str
        Why it stopped and, where it did not converge, what to do.
    factorizations : int
        Cholesky factorisations spent.
    """

    converged: bool
    iterations: int
    message: str
    factorizations: int = 0


@dataclass(frozen=True)
class Gradient:
    """Gradient of an objective: one array per kernel parameter, thresholds, log noise, each of the same shape."""

    parameters: list[np.ndarray]
    thresholds: np.ndarray
    log_noise: float | np.ndarray

    def __add__(self, other: "Gradient") -> "Gradient":
        """Return the gradient of the sum."""
        return Gradient(
            [a + b for a, b in zip(self.parameters, other.parameters, strict=True)],
            self.thresholds + other.thresholds,
            self.log_noise + other.log_noise,
        )


@dataclass(frozen=True)
class Start:
    """What a warm start needs of an earlier posterior: O(n) numbers.

    Attributes
    ----------
    alpha : ndarray, shape (n,)
        Used by engines without cavities.
    cavity : tuple of two ndarrays, shape (n,), optional
        Cavity means and variances.
    """

    alpha: np.ndarray
    cavity: tuple[np.ndarray, np.ndarray] | None = None


@dataclass(frozen=True, eq=False)
class LatentDraws:
    """Draws of the latent function with their log densities, of one measure.

    Attributes
    ----------
    f : ndarray, shape (draws, n)
    log_prior : ndarray, shape (draws,)
        Of the Gaussian process.
    log_q : ndarray, shape (draws,)
        Of the distribution that they were drawn from.
    source : str
        How they were drawn, where that needs saying.
    """

    f: np.ndarray
    log_prior: np.ndarray
    log_q: np.ndarray
    source: str = ""


class Scores(Protocol):
    """Log probabilities of labels, one a row, and whatever else an engine knows of them."""

    @property
    def value(self) -> np.ndarray:
        """The log probabilities, shape (n,)."""


@dataclass(frozen=True, eq=False)
class Posterior(ABC):
    """Posterior of the latent function at the training rows: what all engines keep.

    What is computed when it is asked for can be a field of a subclass: the engine has it already.

    Attributes
    ----------
    gram : Gram
        Covariance bound to the training rows.
    y : ndarray of int, shape (n,)
        Class codes.
    likelihood : OrdinalLikelihood
    alpha : ndarray, shape (s,)
        E f* = k*ᵀ α.
    mean : ndarray, shape (n,)
        Posterior mean.
    precision : ndarray, shape (s,)
        Of the sites, or of whatever else stands for the labels.
    log_evidence : float
    status : Status
    """

    gram: Gram
    y: np.ndarray
    likelihood: OrdinalLikelihood
    alpha: np.ndarray
    mean: np.ndarray
    precision: np.ndarray
    log_evidence: float
    status: Status

    @classmethod
    @abstractmethod
    def restore(cls, support: np.ndarray, **fields: Any) -> Self:
        """Return the posterior with the fields of this class, `extra` and `support`; all else is computed again."""

    @property
    @abstractmethod
    def variance(self) -> np.ndarray:
        """Posterior variances, shape (n,)."""

    @property
    @abstractmethod
    def leave_one_out(self) -> Scores:
        """Log p(y_i | y without i)."""

    @abstractmethod
    def left_out_probabilities(self) -> np.ndarray:
        """Return the class probabilities of each training row without its own label, shape (n, r)."""

    @abstractmethod
    def explain(self, k: np.ndarray) -> np.ndarray:
        """Return v, shape (s, m), for the covariances k of `support` with m new rows.

        Of the prior covariance of f at these rows vᵀ v is what the labels explain.
        """

    @abstractmethod
    def draw(self, draws: int, rng: np.random.Generator) -> LatentDraws:
        """Return independent draws of f at the training rows."""

    @property
    def extra(self) -> dict[str, np.ndarray]:
        """Further arrays that `restore` needs, by name."""
        return {}

    @property
    def support(self) -> np.ndarray:
        """Rows that predictions are made from, shape (s,): all of them, unless the engine is sparse."""
        return np.arange(self.y.size)

    @cached_property
    def outside(self) -> np.ndarray:
        """The other rows, whose labels the posterior has not seen."""
        return np.setdiff1d(np.arange(self.y.size), self.support)

    @property
    def support_gram(self) -> Gram:
        """Covariance bound to the rows of `support`."""
        return self.gram

    @property
    def start(self) -> Start:
        """What the engine can start from next time."""
        return Start(self.alpha)

    def latent(self, Xnew: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of f at new rows [CG2005, eqs. 16–17].

        Parameters
        ----------
        Xnew : ndarray, shape (m, d)

        Returns
        -------
        mean, variance : ndarray, shape (m,)
        """
        k = self.support_gram.cross(Xnew)
        v = self.explain(k)
        prior = self.gram.cross_diagonal(Xnew)
        return k.T @ self.alpha, np.maximum(prior - (v * v).sum(0), 0.0)

    def probabilities(
        self, Xnew: np.ndarray | None = None, likelihood: OrdinalLikelihood | None = None
    ) -> np.ndarray:
        """Return the class probabilities of new rows, default the training rows, shape (m, r).

        Where thresholds or noise have groups, new rows need a `likelihood` that knows theirs.
        """
        moments = (self.mean, self.variance) if Xnew is None else self.latent(Xnew)
        return (likelihood or self.likelihood).probabilities(*moments)

    def components(self, draws: int, rng: np.random.Generator) -> np.ndarray:
        """Return the α of the Gaussians that draws of f at new rows come from, shape (s, draws), or (s, 1) for one."""
        return self.alpha[:, None]

    @cached_property
    def in_sample(self) -> np.ndarray:
        """Log probability that a new label at each training row equals the one there, shape (n,)."""
        return self.likelihood.tilted(self.y, self.mean, self.variance).value

    @property
    def loo(self) -> float:
        """Σ log p(y_i | y without i): of the rows that a weight stands for one is left out, and each is counted."""
        scores, weights = self.leave_one_out.value, self.likelihood.weights
        return float(scores.sum() if weights is None else weights @ scores)

    def latent_with_pullback(
        self, Xnew: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray, np.ndarray], Gradient]]:
        """Return mean and variance of f at new rows, and the pullback of cotangents of both.

        Parameters
        ----------
        Xnew : ndarray, shape (m, d)

        Returns
        -------
        mean, variance : ndarray, shape (m,)
        pullback : callable
            Takes the cotangents of mean and variance and returns a `Gradient`.
        """
        raise NotImplementedError

    @cached_property
    def log_evidence_error(self) -> float | None:
        """Standard error of `log_evidence`, where it is estimated from draws."""
        return None

    @cached_property
    def log_evidence_correction(self) -> float | None:
        """Estimate of what `log_evidence` misses, where the engine has one."""
        return None

    def evidence_gradient(self) -> Gradient:
        """Return the exact gradient of `log_evidence`."""
        raise NotImplementedError

    def loo_gradient(self) -> Gradient:
        """Return the exact gradient of the leave-one-out log predictive probability."""
        raise NotImplementedError

    def validation_gradient(self) -> Gradient:
        """Return the exact gradient of the log predictive probability of the rows outside `support`."""
        raise NotImplementedError
