"""The exact posterior under the probit link, by weighted draws from a Gaussian truncated to a box.

A label says that z = f + s·e lies between two thresholds. So the posterior of f is that of z ~ N(0, C), C = K + s² I,
in a box, followed by the Gaussian f | z; and the evidence is the probability of the box. `box` gives weighted
draws of z, independent of each other, whose average weight is an unbiased estimate of the evidence. Everything else is
an average over these draws of a quantity that is known given z:

- f* | z is Gaussian with mean k*ᵀ α, α = C⁻¹ z, and variance k** − k*ᵀ C⁻¹ k*: predictions are mixtures of Gaussians;
- z_i | z_{−i} is Gaussian, and 1/p(y_i | y_{−i}) is the posterior mean of 1/P(y_i | z_{−i}).

The only error is that of Monte Carlo; each estimate comes with its standard error.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from pmordinal.engines.exact.box import Box, Proposals
from pmordinal.engines.exact.truncated import uniforms
from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.posterior import Gradient, LatentDraws, MeasuredPosterior, Start

MOST = 2_000_000  # largest number of class probabilities at a time


@dataclass(frozen=True)
class Estimate:
    """Averages over draws.

    Attributes
    ----------
    value, standard_error : ndarray
    """

    value: np.ndarray
    standard_error: np.ndarray


@dataclass(frozen=True)
class Prediction:
    """Predictions for rows, with Monte-Carlo standard errors.

    Attributes
    ----------
    mean, variance : Estimate, shape (m,)
        Of the latent function.
    probabilities : Estimate, shape (m, r)
    """

    mean: Estimate
    variance: Estimate
    probabilities: Estimate


@dataclass(frozen=True, eq=False)
class ExactPosterior(MeasuredPosterior):
    """Weighted draws from the exact posterior.

    `alpha` and `mean` are posterior means; `precision` is 1/s², that of the observation z of f, so that `factor` is
    the factor of C/s².

    Attributes
    ----------
    alphas : ndarray, shape (n, draws)
        Draws of C⁻¹ z.
    log_weights : ndarray, shape (at least draws,)
        Those of the draws come first; further ones were used for the evidence only.
    max_proposals : int
        Largest number of proposals in `draw`.
    resample : bool
        Whether `draw` may resample weighted draws if too few proposals are accepted.
    solved : Box, optional
        The box that the draws came from; a posterior loaded from a file computes it again on first use.
    proposals : Proposals, optional
        The random numbers of the draws, for the gradient; None for a posterior loaded from a file.
    """

    alphas: np.ndarray = field(repr=False)
    log_weights: np.ndarray = field(repr=False)
    max_proposals: int
    resample: bool
    solved: Box | None = field(default=None, repr=False)
    proposals: Proposals | None = field(default=None, repr=False)

    @classmethod
    def restore(cls, support: np.ndarray, **fields: Any) -> Self:
        """Return the posterior with these fields; the factor is computed again."""
        fields["max_proposals"] = int(fields["max_proposals"])
        fields["resample"] = bool(fields["resample"])
        return super().restore(support, **fields)

    @property
    def extra(self) -> dict[str, np.ndarray]:
        """The draws, and the options for drawing more."""
        return {
            "alphas": self.alphas,
            "log_weights": self.log_weights,
            "max_proposals": np.array(self.max_proposals),
            "resample": np.array(int(self.resample)),
        }

    @cached_property
    def box(self) -> Box:
        """The box that z lies in, with its tilt."""
        return self.solved or Box.solve(*boxed_normal(self.gram, self.y, self.likelihood))

    @property
    def start(self) -> Start:
        """A warm start for the engine's next run."""
        return Start(self.box.start)

    @cached_property
    def weights(self) -> np.ndarray:
        """Normalised weights of the draws, shape (draws,)."""
        w = np.exp(self.log_weights[: self.alphas.shape[1]] - self.log_weights.max())
        return w / w.sum()

    @property
    def effective_draws(self) -> float:
        """Effective sample size of the weighted draws."""
        return 1.0 / float((self.weights**2).sum())

    @property
    def acceptance(self) -> float:
        """Estimated share of proposals that accept–reject accepts."""
        return float(np.exp(self.log_evidence - self.box.bound))

    @cached_property
    def log_evidence_error(self) -> float:
        """Standard error of `log_evidence`."""
        return error_of_log_mean(self.log_weights)

    @cached_property
    def _conditional_variance(self) -> np.ndarray:
        """Variance of f_i given z, shape (n,)."""
        return self.measured_variance()

    @cached_property
    def _means(self) -> np.ndarray:
        """E[f | z] at the training rows, shape (n, draws)."""
        return self.gram.matrix @ self.alphas

    @cached_property
    def variance(self) -> np.ndarray:
        """Posterior variances of f, shape (n,)."""
        return self.prediction().variance.value

    @property
    def cavity(self) -> tuple[np.ndarray, np.ndarray]:
        """Raises: this posterior has no sites, and so no cavities."""
        raise TypeError(
            "the exact posterior is not Gaussian and has no cavities; leave_one_out has log p(y_i | y without i)"
        )

    def _log_left_out(self, y: np.ndarray) -> np.ndarray:
        """Log P(y_i | z without i) for each draw of z, shape (n, draws)."""
        noise = self.likelihood.noise_at(2)
        variance = noise**2 / self.B_inverse_diagonal[:, None]  # 1/(C⁻¹)_ii
        z = self._means + noise**2 * self.alphas
        mean = z - variance * self.alphas
        lower, upper = (b[:, None] for b in self.likelihood.bounds(y))
        sd = np.sqrt(variance)
        link = self.likelihood.link
        return link.log_interval((lower - mean) / sd, (upper - mean) / sd, (upper - lower) / sd)

    @cached_property
    def log_left_out_weights(self) -> np.ndarray:
        """Log weights of the draws without each label, up to a factor, shape (n, draws)."""
        with np.errstate(divide="ignore"):  # some weigh nothing
            return np.log(self.weights) - self._log_left_out(self.y)

    def left_out_probabilities(self) -> np.ndarray:
        """Return the class probabilities of each training row without its own label, shape (n, r).

        Draws of the other z come from those of all with weights 1/P(y_i | z without i).
        """
        log_weights = self.log_left_out_weights
        log_weights = log_weights - logsumexp(log_weights, axis=1, keepdims=True)
        classes = [np.full(self.y.shape, k) for k in range(self.likelihood.n_classes)]
        return np.stack(
            [np.exp(log_weights + self._log_left_out(y)).sum(1) for y in classes], axis=1
        )

    @cached_property
    def leave_one_out(self) -> Estimate:
        """Log p(y_i | y without i), with standard errors: 1/p is the mean of 1/P(y_i | z without i)."""
        log_weights = self.log_left_out_weights
        value = logsumexp(log_weights, axis=1)
        shares = np.exp(log_weights - value[:, None])
        return Estimate(-value, np.sqrt(((shares - self.weights) ** 2).sum(1)))

    @cached_property
    def in_sample(self) -> np.ndarray:
        """Log probability that a second label at each training row would equal the first, shape (n,)."""
        log_p = self.likelihood.log_tilted(
            self.y[:, None], self._means, self._conditional_variance[:, None]
        )
        return logsumexp(log_p, axis=1, b=self.weights)

    def latent(self, Xnew: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior mean and variance of f at new rows."""
        return self.part(Xnew)

    def part(self, Xnew: np.ndarray, place: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance at new rows of one term of f; see `Posterior.part`."""
        mean, spread = self._moments(*self._part_given_z(Xnew, place))
        return mean.value, spread.value

    def probabilities(
        self, Xnew: np.ndarray | None = None, likelihood: OrdinalLikelihood | None = None
    ) -> np.ndarray:
        """Return the class probabilities of new rows, default the training rows, shape (m, r); see `Posterior`."""
        return self._classes(*self._given_z(Xnew), likelihood or self.likelihood).value

    def prediction(
        self, Xnew: np.ndarray | None = None, likelihood: OrdinalLikelihood | None = None
    ) -> Prediction:
        """Return latent moments and class probabilities with their Monte-Carlo standard errors.

        Parameters
        ----------
        Xnew : ndarray, shape (m, d), optional
            In the units of the covariance; default is the training rows.
        likelihood : OrdinalLikelihood, optional
            Of the new rows, where thresholds or noise have groups.
        """
        given = self._given_z(Xnew)
        classes = self._classes(*given, likelihood or self.likelihood)
        return Prediction(*self._moments(*given), classes)

    def _given_z(self, Xnew: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Mean, shape (m, draws), and variance, shape (m,), of f at rows given each draw of z."""
        if Xnew is None:
            return self._means, self._conditional_variance
        return self._part_given_z(Xnew)

    def _part_given_z(
        self, Xnew: np.ndarray, place: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean, shape (m, draws), and variance, shape (m,), of one term at rows given each draw of z."""
        kernel, values = self.term(place)
        k = self.cross(Xnew, place)
        v = self.explain(k)
        variance = kernel.diagonal(values, Xnew)[0] - (v * v).sum(0)
        return k.T @ self.alphas, np.maximum(variance, 0.0)

    def _moments(self, means: np.ndarray, variance: np.ndarray) -> tuple[Estimate, Estimate]:
        mean = means @ self.weights
        square = (means - mean[:, None]) ** 2
        between = square @ self.weights
        return (
            Estimate(mean, _standard_error(means, mean, self.weights)),
            Estimate(variance + between, _standard_error(square, between, self.weights)),
        )

    def _classes(
        self, means: np.ndarray, variance: np.ndarray, likelihood: OrdinalLikelihood
    ) -> Estimate:
        """Average of the rectangle formula over the draws: a mixture, not one Gaussian."""
        (m, draws), r = means.shape, likelihood.n_classes
        probs, errors = np.empty((m, r)), np.empty((m, r))
        rows = max(1, MOST // (draws * r))
        codes = np.arange(r)[None, :, None]
        for i in range(0, m, rows):
            part = slice(i, i + rows)
            here = likelihood.of_rows(part)
            p = np.exp(here.log_tilted(codes, means[part, None], variance[part, None, None]))
            probs[part] = p @ self.weights
            errors[part] = _standard_error(p, probs[part], self.weights)
        return Estimate(probs / probs.sum(1, keepdims=True), errors)

    def draw(self, draws: int, rng: np.random.Generator) -> LatentDraws:
        """Return independent exact draws of f at the training rows, by accept–reject.

        If that would take more than `max_proposals` proposals it raises. With `resample` weighted draws are
        resampled instead, and `source` says so.
        """
        expected = draws / max(self.acceptance, 1e-300)
        if self.box.converged and expected <= self.max_proposals:
            return self._around(*self._accepted(draws, rng), rng)
        if self.resample:
            return self.pick(draws, rng)
        raise ValueError(
            f"{draws} exact draws would take about {expected:.2g} proposals (acceptance {self.acceptance:.2g}) and "
            f"max_proposals is {self.max_proposals}: ask for fewer draws, raise max_proposals, or take draws "
            f"resampled from weighted ones with pmo.Exact(resample=True); {self.alphas.shape[1]} weighted draws "
            f"have an effective sample size of {self.effective_draws:.0f}"
        )

    def pick(self, draws: int, rng: np.random.Generator) -> LatentDraws:
        """Return draws of f resampled from the weighted ones: exact only if these are many."""
        index = rng.choice(self.weights.size, size=draws, p=self.weights)
        source = (
            f"resampled from {self.weights.size} weighted draws of effective sample size "
            f"{self.effective_draws:.0f}"
        )
        return self._around(self.alphas[:, index], source, rng)

    def components(self, draws: int, rng: np.random.Generator) -> np.ndarray:
        """Return α of weighted draws, resampled, shape (n, draws)."""
        return self.alphas[:, rng.choice(self.weights.size, size=draws, p=self.weights)]

    def _around(self, alphas: np.ndarray, source: str, rng: np.random.Generator) -> LatentDraws:
        f, log_prior = self.scatter(alphas, rng)
        log_likelihood = self.likelihood.log_prob(self.y[:, None], f).value.sum(0)
        return LatentDraws(f.T, log_prior, log_prior + log_likelihood - self.log_evidence, source)

    def _accepted(self, draws: int, rng: np.random.Generator) -> tuple[np.ndarray, str]:
        kept: list[np.ndarray] = []
        count = spent = 0
        while count < draws:
            rate = max(self.acceptance, count / spent if spent else 0.0)
            size = int(np.clip(1.1 * (draws - count) / rate + 10, 1, self.alphas.shape[1]))
            proposals = self.box.propose(uniforms(rng, self.y.size, size))
            chosen = proposals.x[:, self.box.accept(proposals.log_weights, rng)]
            kept.append(self.box.alpha(chosen))
            count, spent = count + chosen.shape[1], spent + size
        source = f"accept–reject: exact and independent, {count} of {spent} proposals accepted"
        return np.concatenate(kept, axis=1)[:, :draws], source

    def evidence_gradient(self) -> Gradient:
        """Return the exact gradient of the estimate `log_evidence`, its random numbers held fixed.

        If there were further proposals, it is that of the estimate from the kept draws alone.
        """
        if self.proposals is None:
            raise ValueError("a loaded posterior has no gradient: fit the model again")
        by = self.box.gradient(self.proposals)
        return Gradient(
            self.gram.pullback(by.C),
            self.likelihood.threshold_gradient(self.y, by.upper, by.lower),
            self.likelihood.noise_gradient(
                2.0 * self.likelihood.noise_at() ** 2 * np.diagonal(by.C)
            ),
        )


def log_mean(log_weights: np.ndarray) -> float:
    """Return the log of the mean of exp(log weights)."""
    top = log_weights.max()
    return float(top + np.log(np.exp(log_weights - top).mean()))


def error_of_log_mean(log_weights: np.ndarray) -> float:
    """Return the standard error of `log_mean`."""
    w = np.exp(log_weights - log_weights.max())
    return float(w.std() / w.mean() / np.sqrt(w.size))


def _standard_error(values: np.ndarray, mean: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the standard error of a weighted average over the last axis."""
    return np.sqrt((values - mean[..., None]) ** 2 @ weights**2)


def boxed_normal(
    gram: Gram, y: np.ndarray, likelihood: OrdinalLikelihood
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return C = K + s² I, s that of each row, and the box that the labels put z in."""
    C = np.array(gram.matrix, order="F")
    C[np.diag_indices(y.size)] += likelihood.noise_at() ** 2
    return C, *likelihood.bounds(y)
