"""The base class `Posterior` of what engines return, and small classes that go with it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from pmordinal.gram import Gram, Kernel
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
        Number of Cholesky factorisations.
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
    """The part of a posterior that a later run of the engine can start from: O(n) numbers.

    Attributes
    ----------
    alpha : ndarray, shape (n,)
        Used by engines without cavities.
    cavity : tuple of two ndarrays, shape (n,), optional
        Cavity means and variances; with `state`, those of the part of f that the inducing rows carry.
    state : object, optional
        What an engine with inducing rows has found, and for which parameters: O(m²) numbers.
    """

    alpha: np.ndarray
    cavity: tuple[np.ndarray, np.ndarray] | None = None
    state: Any = None


@dataclass(frozen=True, eq=False)
class LatentDraws:
    """Draws of the latent function with their log densities, all with respect to one measure.

    Attributes
    ----------
    f : ndarray, shape (draws, n)
    log_prior : ndarray, shape (draws,)
        Log density under the Gaussian-process prior.
    log_q : ndarray, shape (draws,)
        Log density under the distribution that they were drawn from.
    source : str
        How they were drawn, if not in the usual way.
    support : ndarray, shape (draws, s), optional
        Draws of what predictions are made from, where that is not f at the rows of `Posterior.support`.
    """

    f: np.ndarray
    log_prior: np.ndarray
    log_q: np.ndarray
    source: str = ""
    support: np.ndarray | None = None


class Scores(Protocol):
    """Log probabilities of labels, one for each row; an engine may add derivatives or errors."""

    @property
    def value(self) -> np.ndarray:
        """The log probabilities, shape (n,)."""


@dataclass(frozen=True, eq=False)
class Posterior(ABC):
    """Posterior of the latent function at the training rows; engines return subclasses of it.

    A property here may be a field of a subclass whose engine has the value already.

    Attributes
    ----------
    gram : Gram
        Covariance bound to the training rows.
    y : ndarray of int, shape (n,)
        Class codes.
    likelihood : OrdinalLikelihood
    alpha : ndarray, shape (s,)
        E f* = k*ᵀ α.
    log_evidence : float
    status : Status
    """

    gram: Gram
    y: np.ndarray
    likelihood: OrdinalLikelihood
    alpha: np.ndarray
    log_evidence: float
    status: Status

    @classmethod
    @abstractmethod
    def restore(cls, support: np.ndarray, **fields: Any) -> Self:
        """Rebuild a posterior from the fields of this class, `extra` and `support`, as a file has them."""

    @cached_property
    def mean(self) -> np.ndarray:
        """Posterior mean, shape (n,)."""
        raise NotImplementedError

    @cached_property
    def precision(self) -> np.ndarray:
        """Precisions of the sites, the Gaussians that replace the likelihoods of the labels; see `sites`.

        Of shape (s,), or (n,) if there is a site for every label.
        """
        raise NotImplementedError

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

        The posterior covariance of f at these rows is the prior one minus vᵀ v.
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
        """Training rows that are not in `support`: the posterior has not used their labels."""
        return np.setdiff1d(np.arange(self.y.size), self.support)

    @property
    def support_gram(self) -> Gram:
        """Covariance of the rows of `support`."""
        return self.gram

    @property
    def start(self) -> Start:
        """A warm start for the engine's next run."""
        return Start(self.alpha)

    @property
    def notes(self) -> dict[str, float]:
        """Numbers about the approximation that a fit's status shows, by name."""
        return {}

    @property
    def advice(self) -> str:
        """What to change where the approximation is too coarse; empty if it is not."""
        return ""

    def latent(self, Xnew: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of f at new rows [CG2005, eqs. 16–17].

        Parameters
        ----------
        Xnew : ndarray, shape (m, d)

        Returns
        -------
        mean, variance : ndarray, shape (m,)
        """
        return self.part(Xnew)

    def term(self, place: int | None = None) -> tuple[Kernel, Sequence[np.ndarray]]:
        """Return the covariance of a term, by its place among the kernel's `parts`, and its parameters.

        Without a place it is that of the whole latent function.
        """
        kernel, values = self.gram.kernel, self.gram.values
        return (kernel, values) if place is None else kernel.parts(values)[place]

    @property
    def support_matrix(self) -> np.ndarray:
        """Covariance of what predictions are made from, shape (s, s)."""
        return self.support_gram.matrix

    def cross(self, Xnew: np.ndarray, place: int | None = None) -> np.ndarray:
        """Return the covariance of what predictions are made from with a term at new rows, shape (s, m)."""
        kernel, values = self.term(place)
        return kernel.matrix(values, self.support_gram.X, Xnew)[0]

    def part(self, Xnew: np.ndarray, place: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance at new rows of one term of f, all others being in the model too.

        Parameters
        ----------
        Xnew : ndarray, shape (m, d)
        place : int, optional
            Of the term among the kernel's `parts`; by default it is the sum of all.

        Returns
        -------
        mean, variance : ndarray, shape (m,)
        """
        k = self.cross(Xnew, place)
        v = self.explain(k)
        kernel, values = self.term(place)
        prior = kernel.diagonal(values, Xnew)[0]
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
        """Return α of each Gaussian in the mixture that f at new rows is drawn from, shape (s, draws or 1)."""
        return self.alpha[:, None]

    @cached_property
    def in_sample(self) -> np.ndarray:
        """Log probability that a second label at each training row would equal the first, shape (n,)."""
        return self.likelihood.tilted(self.y, self.mean, self.variance).value

    @property
    def loo(self) -> float:
        """Σ log p(y_i | y without i): of the rows that a weight stands for one is left out, and each is counted."""
        scores, weights = self.leave_one_out.value, self.likelihood.weights
        return float(scores.sum() if weights is None else weights @ scores)

    def latent_with_pullback(
        self, Xnew: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray, np.ndarray], Gradient]]:
        """Return mean and variance of f at new rows, and the pullback to the hyperparameters.

        Parameters
        ----------
        Xnew : ndarray, shape (m, d)

        Returns
        -------
        mean, variance : ndarray, shape (m,)
        pullback : callable
            Takes the derivatives of a number by mean and variance; returns its `Gradient`.
        """
        raise NotImplementedError

    @cached_property
    def log_evidence_error(self) -> float | None:
        """Standard error of `log_evidence` if it is estimated from draws, else None."""
        return None

    @cached_property
    def log_evidence_correction(self) -> float | None:
        """Estimate of the true log evidence minus `log_evidence`, if the engine has one."""
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
