"""The exact posterior under the probit link, by independent weighted draws [Botev2017].

See `posterior` for what is exact and what is Monte-Carlo error. A fit keeps the random numbers and the order of the
rows fixed, so that the estimated evidence is a smooth function of the hyperparameters. Its gradient is exact.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from pmordinal import linalg
from pmordinal.engines.base import ENGINES, Engine
from pmordinal.engines.exact.box import Box, Proposals, greedy_order
from pmordinal.engines.exact.posterior import (
    ExactPosterior,
    boxed_normal,
    error_of_log_mean,
    log_mean,
)
from pmordinal.engines.exact.truncated import uniforms
from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.posterior import Posterior, Start, Status

FEW = 50  # with fewer effective draws a standard error is unreliable


@ENGINES.register("exact")
@dataclass(frozen=True)
class Exact(Engine):
    """The exact posterior by independent draws; probit link only.

    Parameters
    ----------
    draws : int
        Weighted draws to keep: moments and predictions are averages over them.
    standard_error : float
        Wanted standard error of the log evidence: proposals are added, up to `max_proposals`, until it is
        reached. A fit uses `draws` proposals at every step, always from the same random numbers.
    max_proposals : int
        Largest number of proposals for the evidence, and for exact draws by accept–reject.
    resample : bool
        If accept–reject would take more, resample weighted draws instead of raising.
    seed : int
        Seed of the random numbers.
    order : ndarray of int, shape (n,), optional
        Order in which rows are drawn; chosen by the engine and kept fixed in a fit.
    """

    name: ClassVar[str] = "exact"
    needs_normal_noise: ClassVar[bool] = True
    is_monte_carlo: ClassVar[bool] = True
    posterior_type: ClassVar[type[Posterior]] = ExactPosterior

    draws: int = 1000
    standard_error: float = 0.02
    max_proposals: int = 100_000
    resample: bool = False
    seed: int = 0
    order: np.ndarray | None = field(default=None, compare=False, repr=False)

    def select(self, gram, y, likelihood, turn=0, report=None) -> Self:
        """Return the engine with a fixed order of the rows, chosen at these hyperparameters; see `Engine`."""
        self.check_link(likelihood.link)
        return replace(self, order=greedy_order(*boxed_normal(gram, y, likelihood)))

    def loosened(self, objective: str, sampled: bool = False) -> Self:
        """Return the engine with a fixed number of proposals, so that the objective is smooth."""
        return self if sampled else replace(self, standard_error=np.inf)

    def __call__(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        start: Start | None = None,
    ) -> ExactPosterior:
        """Return weighted draws of the exact posterior; see `Engine`."""
        self.check_link(likelihood.link)
        self.check_weights(likelihood.weights)
        box = Box.solve(
            *boxed_normal(gram, y, likelihood),
            order=None if self.order is None or self.order.size != y.size else self.order,
            start=None if start is None else start.alpha,
        )
        rng = np.random.default_rng(self.seed)
        proposals = box.propose(uniforms(rng, y.size, self.draws))
        log_weights = self._sharpen(box, proposals, rng)
        precision = np.full(y.size, likelihood.noise_at() ** -2.0)
        factor = linalg.cholesky_B(gram.matrix, np.sqrt(precision))
        alphas = box.alpha(proposals.x)
        w = np.exp(proposals.log_weights - proposals.log_weights.max())
        alpha = alphas @ (w / w.sum())
        return ExactPosterior(
            gram=gram,
            y=y,
            likelihood=likelihood,
            alpha=alpha,
            mean=linalg.symv(gram.matrix, alpha),
            precision=precision,
            factor=factor,
            log_evidence=log_mean(log_weights),
            status=self._status(box, log_weights),
            alphas=alphas,
            log_weights=log_weights,
            max_proposals=self.max_proposals,
            resample=self.resample,
            solved=box,
            proposals=proposals,
        )

    def _sharpen(self, box: Box, proposals: Proposals, rng: np.random.Generator) -> np.ndarray:
        """Return log weights of the proposals and of further ones, until the standard error is reached."""
        log_weights = proposals.log_weights
        while (error := error_of_log_mean(log_weights)) > self.standard_error:
            count = log_weights.size
            wanted = 1.1 * count * (error / self.standard_error) ** 2
            more = int(min(wanted, self.max_proposals, 4 * count)) - count
            if more <= 0:
                break
            for size in np.diff([*range(0, more, self.draws), more]):
                fresh = box.propose(uniforms(rng, box.n, int(size))).log_weights
                log_weights = np.concatenate([log_weights, fresh])
        return log_weights

    def _status(self, box: Box, log_weights: np.ndarray) -> Status:
        error, count = error_of_log_mean(log_weights), log_weights.size
        effective = 1.0 / (1.0 / count + error**2)
        message = (
            f"log evidence with standard error {error:.2g}, {count} proposals worth {effective:.0f}"
        )
        remedy = ""
        if not box.converged:
            remedy = "the tilt did not converge: give the noise and length-scales proper priors"
        elif error > self.standard_error or effective < FEW:
            remedy = "raise max_proposals, or use engine='ep'"
        converged = not remedy
        if remedy:
            message = f"no convergence: {message}; {remedy}"
        return Status(converged, max(box.iterations, 1), message, box.iterations + 2)
