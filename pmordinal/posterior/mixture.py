"""A mixture of posteriors at several values of the hyperparameters, which are integrated out.

Each member is the posterior p(f | y, θ_k) at one θ_k, with a weight that stands for p(θ_k | y) dθ. Leaving a label out
changes the weights too: p(θ | y without i) is p(θ | y) / p(y_i | y without i, θ) up to a factor, so that
1 / p(y_i | y without i) = Σ_k w_k / p(y_i | y without i, θ_k).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.posterior.base import LatentDraws, Posterior, Start

HALVINGS = 50  # of an interval that holds a quantile


@dataclass(frozen=True)
class MixtureScores:
    """Log probabilities of labels, shape (n,)."""

    value: np.ndarray


@dataclass(frozen=True, eq=False)
class MixturePosterior(Posterior):
    """Posterior of the latent function with the hyperparameters integrated out.

    `gram`, `likelihood`, `alpha` and `precision` are those at the mode of the hyperparameters; `mean`, `variance`,
    scores and predictions are those of the mixture. `log_evidence` is log p(y).

    Attributes
    ----------
    members : sequence of Posterior
        May be built again each time they are asked for.
    weights : ndarray, shape (K,)
        They sum to one.
    mode : Posterior
    evidence_error : float, optional
        Standard error of `log_evidence`, if the weights come from draws.
    """

    mean: np.ndarray = field(repr=False)
    precision: np.ndarray = field(repr=False)
    members: Sequence[Posterior] = field(repr=False)
    weights: np.ndarray = field(repr=False)
    mode: Posterior = field(repr=False)
    evidence_error: float | None = None

    @classmethod
    def of(
        cls, mode: Posterior, members: Sequence[Posterior], weights: np.ndarray, mean: np.ndarray,
        log_evidence: float, evidence_error: float | None = None,
    ) -> Self:  # fmt: skip
        """Return the mixture, with the mixture's `mean` at the training rows."""
        return cls(
            mode.gram, mode.y, mode.likelihood, mode.alpha, log_evidence, mode.status,
            mean, mode.precision, members, weights, mode, evidence_error,
        )  # fmt: skip

    @classmethod
    def restore(cls, support: np.ndarray, **fields: Any) -> Self:
        """Raise: a mixture is built again from its members."""
        raise TypeError("a mixture is built again from its members")

    @property
    def support(self) -> np.ndarray:
        """Rows that predictions are made from."""
        return self.mode.support

    @property
    def start(self) -> Start:
        """A warm start for the engine's next run: at the mode."""
        return self.mode.start

    @cached_property
    def log_evidence_error(self) -> float | None:
        """Standard error of `log_evidence` if the weights come from draws, else None."""
        return self.evidence_error

    @cached_property
    def _at_training_rows(self) -> dict[str, np.ndarray]:
        """What the members say of the training rows, in one pass over them: arrays with the members first."""
        rows: dict[str, list[np.ndarray]] = {
            name: [] for name in ("mean", "variance", "loo", "again")
        }
        for member in self.members:
            rows["mean"].append(member.mean)
            rows["variance"].append(member.variance)
            rows["loo"].append(member.leave_one_out.value)
            rows["again"].append(member.in_sample)
        return {name: np.stack(values) for name, values in rows.items()}

    @cached_property
    def variance(self) -> np.ndarray:
        """Posterior variances, shape (n,)."""
        rows = self._at_training_rows
        return mixed(self.weights, rows["mean"], rows["variance"])[1]

    @cached_property
    def log_left_out_weights(self) -> np.ndarray:
        """Log weights of the members without each label, shape (K, n)."""
        unnormalised = _log(self.weights)[:, None] - self._at_training_rows["loo"]
        return unnormalised - logsumexp(unnormalised, axis=0)

    @cached_property
    def leave_one_out(self) -> MixtureScores:
        """Log p(y_i | y without i): the hyperparameters are integrated without the label too."""
        log_w = _log(self.weights)[:, None]
        return MixtureScores(-logsumexp(log_w - self._at_training_rows["loo"], axis=0))

    def left_out_probabilities(self) -> np.ndarray:
        """Return the class probabilities of each training row without its own label, shape (n, r)."""
        weights = np.exp(self.log_left_out_weights)[..., None]
        return _sum(
            w * member.left_out_probabilities()
            for w, member in zip(weights, self.members, strict=True)
        )

    @cached_property
    def in_sample(self) -> np.ndarray:
        """Log probability that a second label at each training row would equal the first, shape (n,)."""
        return logsumexp(_log(self.weights)[:, None] + self._at_training_rows["again"], axis=0)

    def latent(self, Xnew: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of f at new rows."""
        means, variances = zip(*(member.latent(Xnew) for member in self.members), strict=True)
        return mixed(self.weights, np.stack(means), np.stack(variances))

    def probabilities(
        self, Xnew: np.ndarray | None = None, likelihood: OrdinalLikelihood | None = None
    ) -> np.ndarray:
        """Return the class probabilities of new rows, default the training rows, shape (m, r)."""
        if likelihood is not None:
            self._refuse("one likelihood: each member has its own thresholds and noise")
        pairs = zip(self.weights, self.members, strict=True)
        return _sum(w * member.probabilities(Xnew) for w, member in pairs)

    def draw(self, draws: int, rng: np.random.Generator) -> LatentDraws:
        """Return independent draws of f at the training rows; densities are those given the hyperparameters."""
        pairs = zip(shares(self.weights, draws), self.members, strict=True)
        parts = [member.draw(count, rng) for count, member in pairs if count]
        order = rng.permutation(draws)
        return LatentDraws(
            np.concatenate([part.f for part in parts])[order],
            np.concatenate([part.log_prior for part in parts])[order],
            np.concatenate([part.log_q for part in parts])[order],
            parts[0].source,
        )

    def explain(self, k: np.ndarray) -> NoReturn:
        """Raise: there is no one covariance."""
        self._refuse("one covariance")

    def part(self, Xnew: np.ndarray, place: int | None = None) -> NoReturn:
        """Raise: there is no one covariance of a term."""
        self._refuse("one covariance of a term: see fit.terms")

    def components(self, draws: int, rng: np.random.Generator) -> NoReturn:
        """Raise: there is no one α."""
        self._refuse("one α")

    @property
    def support_gram(self) -> Gram:
        """Raise: there is no one covariance."""
        self._refuse("one covariance")

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(
            f"the hyperparameters are integrated out, so that there is not {what}; posterior.members has the "
            "posterior at each of them, posterior.mode that at their mode"
        )


def mixed(
    weights: np.ndarray, means: np.ndarray, variances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of a mixture; the first axis of the arrays is that of its members.

    Examples
    --------
    >>> mixed(np.array([0.5, 0.5]), np.array([-1.0, 1.0]), np.array([2.0, 4.0]))
    (array(0.), array(4.))
    """
    mean = np.tensordot(weights, means, 1)
    return mean, np.tensordot(weights, variances + (means - mean) ** 2, 1)


def quantiles(
    weights: np.ndarray, means: np.ndarray, variances: np.ndarray, tails: Sequence[float]
) -> list[np.ndarray]:
    """Return quantiles of a mixture of Gaussians; the first axis of the arrays is that of its members.

    Examples
    --------
    >>> low, high = quantiles(np.array([0.5, 0.5]), np.array([-1.0, 1.0]), np.ones(2), (0.1, 0.9))
    >>> float(low.round(3)), float(high.round(3))
    (-1.849, 1.849)
    """
    sds = np.sqrt(variances)
    if len(weights) == 1:
        return [means[0] + ndtri(tail) * sds[0] for tail in tails]
    found = []
    spread = np.where(sds > 0.0, sds, np.finfo(float).tiny)
    for tail in tails:
        ends = means + ndtri(tail) * sds  # the quantile is between those of the members
        low, high = ends.min(0), ends.max(0)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            below = np.tensordot(weights, ndtr((middle - means) / spread), 1) < tail
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        found.append(0.5 * (low + high))
    return found


def shares(weights: Sequence[float] | np.ndarray, draws: int) -> np.ndarray:
    """Return how many of `draws` each member of a mixture has: its weight times that, up to one.

    Examples
    --------
    >>> shares(np.array([0.5, 0.3, 0.2]), 7)
    array([4, 2, 1])
    """
    ends = np.floor(np.cumsum(weights) / np.sum(weights) * draws + 0.5).astype(int)
    ends[-1] = draws
    return np.diff(ends, prepend=0)


def _log(weights: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):  # a weight may underflow
        return np.log(weights)


def _sum(arrays: Iterable[np.ndarray]) -> np.ndarray:
    total = None
    for array in arrays:
        total = array if total is None else total + array
    assert total is not None
    return total
