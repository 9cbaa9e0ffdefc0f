"""The ordinal likelihood P(y | f) = F((b_{y+1} − f)/s) − F((b_y − f)/s) [CG2005, eq. 5].

Engines use two methods: `log_prob`, its logarithm at latent values, and `tilted`, the logarithm
of its average over a Gaussian. Both return all derivatives, in the same form for every link.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from pmordinal.likelihood.rows import ALIKE, Rows, along
from pmordinal.likelihood.smoothing import Terms, interval_terms, smooth, smooth_power
from pmordinal.likelihood.tail_tables import log_smooth
from pmordinal.links import Link, get_link


class OutOfRange(ValueError):
    """Thresholds that do not increase, or noise that is not positive: no likelihood has such values."""


def _is_positive(noise: float | np.ndarray) -> bool:
    """Tell whether all noise is positive and finite; a single number is compared without NumPy."""
    if isinstance(noise, float):
        return 0.0 < noise < np.inf
    return bool(((noise > 0.0) & (noise < np.inf)).all())


@dataclass(frozen=True)
class OrdinalLikelihood:
    """Threshold likelihood for r ordered classes.

    Parameters
    ----------
    thresholds : ndarray, shape (r − 1,) or (groups, r − 1)
        Strictly increasing.
    noise : float, or ndarray of shape (groups,)
        Scale s > 0 of the noise on the latent function.
    link : str or Link
        Distribution of the standardised noise.
    rows : Rows
        The group of each row, where thresholds or noise have groups, weights and known shifts. A
        likelihood with these is for these rows alone: `of_rows` and `at_new` make those for others.

    Examples
    --------
    >>> likelihood = OrdinalLikelihood([-1.0, 1.0], noise=0.5)
    >>> likelihood.probabilities(np.array([0.0]), np.array([0.0])).round(3)
    array([[0.023, 0.954, 0.023]])
    >>> raters = Rows(thresholds=np.array([0, 1]))
    >>> likelihood = OrdinalLikelihood([[-1.0, 1.0], [0.0, 1.0]], noise=0.5, rows=raters)
    >>> likelihood.probabilities(np.zeros(2), np.zeros(2)).round(3)
    array([[0.023, 0.954, 0.023],
           [0.5  , 0.477, 0.023]])
    """

    thresholds: np.ndarray
    noise: float | np.ndarray = 1.0
    link: Link = field(default="probit")  # type: ignore[assignment]
    rows: Rows = field(default=ALIKE, repr=False)

    def __post_init__(self) -> None:
        """Convert and check the parameters."""
        noise = np.asarray(self.noise, dtype=float)
        object.__setattr__(self, "thresholds", np.asarray(self.thresholds, dtype=float))
        object.__setattr__(self, "noise", noise if noise.ndim else float(noise))
        object.__setattr__(self, "link", get_link(self.link))
        if self.thresholds.ndim not in (1, 2) or self.thresholds.size < 1:
            raise ValueError(
                f"thresholds must be a vector, or one for each group, got shape {self.thresholds.shape}"
            )
        if not (self.edges[..., 1:] > self.edges[..., :-1]).all():  # from −∞ to ∞
            raise OutOfRange(f"thresholds must be finite and increasing, got {self.thresholds}")
        if not _is_positive(self.noise):
            raise OutOfRange(f"noise must be positive and finite, got {self.noise}")
        if (self.thresholds.ndim == 2) != (self.rows.thresholds is not None):
            raise ValueError(
                "thresholds must be a vector, or a matrix with the group of each row, got shape "
                f"{self.thresholds.shape}"
            )
        if noise.ndim != (self.rows.noise is not None):
            raise ValueError(
                f"noise must be a number, or a vector with the group of each row, got shape {noise.shape}"
            )

    @property
    def n_classes(self) -> int:
        """Number r of classes."""
        return self.thresholds.shape[-1] + 1

    @property
    def weights(self) -> np.ndarray | None:
        """How many rows each row stands for; None is one."""
        return self.rows.weights

    @property
    def copies(self) -> np.ndarray | None:
        """How many equal sites stand for a row: its weight, but one for weights below one; None is one."""
        return None if self.weights is None else np.maximum(self.weights, 1.0)

    @cached_property
    def edges(self) -> np.ndarray:
        """Thresholds padded with b_0 = −∞ and b_r = ∞, shape (r + 1,) or (groups, r + 1)."""
        *groups, inner = self.thresholds.shape
        edges = np.empty((*groups, inner + 2))
        edges[..., 0], edges[..., 1:-1], edges[..., -1] = -np.inf, self.thresholds, np.inf
        return edges

    def of_rows(self, index: np.ndarray | slice) -> Self:
        """Return the likelihood of some of the rows."""
        return self if self.rows is ALIKE else replace(self, rows=self.rows.take(index))

    def at_new(self, rows: Rows) -> Self:
        """Return the likelihood for other rows; they have groups and shifts where these have, and no weights."""
        return self if self.rows is ALIKE else replace(self, rows=rows.unweighted())

    def _picked(self, y: np.ndarray) -> np.ndarray:
        """Return class codes as positions among the edges of all groups."""
        group = self.rows.thresholds
        return y if group is None else along(group, np.ndim(y)) * (self.n_classes + 1) + y

    def bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the interval of latent values that is cut into each class code.

        They are thresholds, minus the shift of the row; the first axis of `y` is that of the rows.
        """
        edges, at, shift = self.edges.reshape(-1), self._picked(y), self.rows.shift
        if shift is None:
            return edges[at], edges[at + 1]
        by = along(shift, np.ndim(y))
        return edges[at] - by, edges[at + 1] - by

    def noise_at(self, ndim: int = 1) -> float | np.ndarray:
        """Return the noise: one number, or that of each row, along the first of so many axes."""
        return self.noise if self.rows.noise is None else along(self.noise[self.rows.noise], ndim)  # type: ignore[index]

    @property
    def row_thresholds(self) -> np.ndarray:
        """The thresholds, without shifts: one vector, or that of each row, shape (n, r − 1)."""
        group = self.rows.thresholds
        return self.thresholds if group is None else self.thresholds[group]

    def log_prob(self, y: np.ndarray, f: np.ndarray) -> Terms:
        """Return log P(y | f) with its derivatives.

        Parameters
        ----------
        y : ndarray of int, shape (n,)
            Class codes 0, …, r − 1.
        f : ndarray, shape (n,)
            Latent values.
        """
        return interval_terms(self.link, *self.bounds(y), f, self.noise_at(np.ndim(y)))

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
            return interval_terms(self.link, lower, upper, mean, self.noise_at(), var)
        return smooth(self.link, lower, upper, mean, self.noise_at(), np.sqrt(var))

    def tilting(self, y: np.ndarray) -> Callable[[np.ndarray, np.ndarray], Terms]:
        """Return `tilted` as a function of mean and variance, faster if it is called often."""
        if not self.link.closed_form_smoothing:
            return lambda mean, var: self.tilted(y, mean, var)
        evaluate = self.link.latent_function(*self.bounds(y), self.noise_at())
        return lambda mean, var: Terms.of(evaluate(mean, var))

    def site_tilting(self, y: np.ndarray) -> Callable[[np.ndarray, np.ndarray], Terms]:
        """Return `tilting`, for rows of weight below one with the likelihood to that power."""
        plain, w = self.tilting(y), self.weights
        if w is None or w.min() >= 1.0:
            return plain
        low = np.flatnonzero(w < 1.0)
        part, power = self.of_rows(low), w[low]
        (lower, upper), noise = part.bounds(y[low]), part.noise_at()

        def evaluate(mean: np.ndarray, var: np.ndarray) -> Terms:
            rows = np.array(plain(mean, var).rows)
            sd = np.sqrt(var[low])
            powers = smooth_power(self.link, lower, upper, mean[low], noise, sd, power)
            rows[:, low] = powers.rows
            return Terms.of(rows)

        return evaluate

    def at(self, y: np.ndarray) -> Callable[[np.ndarray], Terms]:
        """Return `log_prob` as a function of the latent values, for engines that ask often."""
        evaluate = self.link.latent_function(*self.bounds(y), self.noise_at())
        none = np.zeros(y.size)
        return lambda f: Terms.of(evaluate(f, none))

    def log_tilted(self, y: np.ndarray, mean: np.ndarray, var: np.ndarray) -> np.ndarray:
        """Return only the value of `tilted`, for many data at once; accurate to six digits at least.

        Parameters
        ----------
        y : ndarray of int
        mean, var : ndarray
            Of shapes that broadcast with `y`, whose first axis is that of the rows.
        """
        lower, upper = self.bounds(y)
        return log_smooth(self.link, lower, upper, mean, self.noise_at(np.ndim(y)), var)

    def log_probabilities(self, mean: np.ndarray, var: np.ndarray) -> np.ndarray:
        """Return log P(y = k) under f ~ N(mean, var) for every class, shape (m, r)."""
        m, r = mean.size, self.n_classes
        each = self.of_rows(np.repeat(np.arange(m), r))
        y = np.tile(np.arange(r), m)
        terms = each.tilted(y, np.repeat(mean, r), np.repeat(np.asarray(var, dtype=float), r))
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
        """Return the sum over data of derivatives by each datum's upper and lower threshold."""
        at, edges = self._picked(y), self.edges
        total = np.bincount(at + 1, upper, edges.size) + np.bincount(at, lower, edges.size)
        return total.reshape(edges.shape)[..., 1:-1]

    def noise_gradient(self, log_noise: np.ndarray) -> float | np.ndarray:
        """Return the sum over data of derivatives by the logarithm of each datum's noise."""
        if self.rows.noise is None:
            return float(log_noise.sum())
        return np.bincount(self.rows.noise, log_noise, np.size(self.noise))

    def draw(self, f: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return one class code for each latent value, of the same shape as `f`; rows are along its last axis."""
        noise = self.noise_at()
        noisy = f + noise * self.link.draw(rng, np.shape(f))
        if self.rows.shift is not None:
            noisy = noisy + self.rows.shift
        if self.rows.thresholds is None:
            return np.searchsorted(self.thresholds, noisy, side="left")
        return (noisy[..., None] > self.row_thresholds).sum(-1)
