"""The ordinal likelihood P(y | f) = F((b_{y+1} − f)/s) − F((b_y − f)/s) [CG2005, eq. 5].

Engines use two methods: `log_prob`, its logarithm at latent values, and `tilted`, the logarithm
of its average over a Gaussian. Both return all derivatives, in the same form for every link.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite

import numpy as np

from pmordinal.likelihood.smoothing import Terms, interval_terms, smooth
from pmordinal.likelihood.tail_tables import log_smooth
from pmordinal.links import Link, get_link


@dataclass(frozen=True)
class OrdinalLikelihood:
    """Threshold likelihood for r ordered classes.

    Parameters
    ----------
    thresholds : ndarray, shape (r − 1,)
        Strictly increasing.
    noise : float
        Scale s > 0 of the noise on the latent function.
    link : str or Link
        Distribution of the standardised noise.

    Examples
    --------
    >>> likelihood = OrdinalLikelihood([-1.0, 1.0], noise=0.5)
    >>> likelihood.probabilities(np.array([0.0]), np.array([0.0])).round(3)
    array([[0.023, 0.954, 0.023]])
    """

    thresholds: np.ndarray
    noise: float = 1.0
    link: Link = field(default="probit")  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Convert and check the parameters."""
        object.__setattr__(self, "thresholds", np.asarray(self.thresholds, dtype=float))
        object.__setattr__(self, "noise", float(self.noise))
        object.__setattr__(self, "link", get_link(self.link))
        if self.thresholds.ndim != 1 or self.thresholds.size < 1:
            raise ValueError(f"thresholds must be a vector, got shape {self.thresholds.shape}")
        first, last = self.thresholds[0], self.thresholds[-1]
        increasing = (self.thresholds[1:] > self.thresholds[:-1]).all()
        if not (increasing and isfinite(first) and isfinite(last)):
            raise ValueError(f"thresholds must be finite and increasing, got {self.thresholds}")
        if not (isfinite(self.noise) and self.noise > 0):
            raise ValueError(f"noise must be positive and finite, got {self.noise}")

    @property
    def n_classes(self) -> int:
        """Number r of classes."""
        return self.thresholds.size + 1

    @property
    def edges(self) -> np.ndarray:
        """Thresholds padded with b_0 = −∞ and b_r = ∞, shape (r + 1,)."""
        return np.concatenate([[-np.inf], self.thresholds, [np.inf]])

    def bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper threshold of each class code in `y`."""
        edges = self.edges
        return edges[y], edges[y + 1]

    def log_prob(self, y: np.ndarray, f: np.ndarray) -> Terms:
        """Return log P(y | f) with its derivatives.

        Parameters
        ----------
        y : ndarray of int, shape (n,)
            Class codes 0, …, r − 1.
        f : ndarray, shape (n,)
            Latent values.
        """
        return interval_terms(self.link, *self.bounds(y), f, self.noise)

    def tilted(self, y: np.ndarray, mean: np.ndarray, var: np.ndarray) -> Terms:
        """Return log ∫ P(y | f) N(f; mean, var) df with its derivatives in the mean.

        Closed form for links that are closed under Gaussian smoothing (s² → s² + var), else by
        quadrature in log space. The derivative in `var` is (L'' + L'²)/2, for every link.

        Parameters
        ----------
        y : ndarray of int, shape (n,)
        mean, var : ndarray, shape (n,)
        """
        lower, upper = self.bounds(y)
        if self.link.closed_form_smoothing:
            return interval_terms(self.link, lower, upper, mean, self.noise, var)
        return smooth(self.link, lower, upper, mean, self.noise, np.sqrt(var))

    def tilting(self, y: np.ndarray) -> Callable[[np.ndarray, np.ndarray], Terms]:
        """Return `tilted` as a function of mean and variance, faster if it is called often."""
        if not self.link.closed_form_smoothing:
            return lambda mean, var: self.tilted(y, mean, var)
        evaluate = self.link.latent_function(*self.bounds(y), self.noise)
        return lambda mean, var: Terms.of(evaluate(mean, var))

    def at(self, y: np.ndarray) -> Callable[[np.ndarray], Terms]:
        """Return `log_prob` as a function of the latent values, faster if it is called often."""
        evaluate, none = self.link.latent_function(*self.bounds(y), self.noise), np.zeros(y.size)
        return lambda f: Terms.of(evaluate(f, none))

    def log_tilted(self, y: np.ndarray, mean: np.ndarray, var: np.ndarray) -> np.ndarray:
        """Return only the value of `tilted`, for many data at once; accurate to six digits at least.

        Parameters
        ----------
        y : ndarray of int
        mean, var : ndarray
            Their shapes must broadcast with that of `y`.
        """
        lower, upper = self.bounds(y)
        return log_smooth(self.link, lower, upper, mean, self.noise, var)

    def log_probabilities(self, mean: np.ndarray, var: np.ndarray) -> np.ndarray:
        """Return log P(y = k) under f ~ N(mean, var) for every class, shape (m, r)."""
        m, r = mean.size, self.n_classes
        y = np.tile(np.arange(r), m)
        terms = self.tilted(y, np.repeat(mean, r), np.repeat(np.asarray(var, dtype=float), r))
        return terms.value.reshape(m, r)

    def probabilities(self, mean: np.ndarray, var: np.ndarray) -> np.ndarray:
        """Return P(y = k) under f ~ N(mean, var) for every class [CG2005, eq. 18].

        Returns
        -------
        ndarray, shape (m, r)
            Rows sum to one.
        """
        probs = np.exp(self.log_probabilities(mean, var))
        return probs / probs.sum(1, keepdims=True)  # corrects rounding only: the sum is one

    def threshold_gradient(self, y: np.ndarray, upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """Return the gradient in the thresholds, given derivatives by each datum's upper and lower one."""
        r = self.n_classes
        total = np.bincount(y + 1, upper, r + 1) + np.bincount(y, lower, r + 1)
        return total[1:r]

    def draw(self, f: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return one class code for each latent value, of the same shape as `f`."""
        noisy = f + self.noise * self.link.draw(rng, np.shape(f))
        return np.searchsorted(self.thresholds, noisy, side="left")
