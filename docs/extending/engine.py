"""The Laplace approximation in its shortest form: Newton's iteration for the mode, no safeguards.

At the mode f = K ∇log P(y | f); the sites have the precisions W = −∇∇log P(y | f) [RW2006, algorithm 3.1].
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pmordinal import linalg
from pmordinal.engines.base import ENGINES, Engine
from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.posterior import Gradient, SitePosterior, Start, Status


class NewtonPosterior(SitePosterior):
    """N(f, (K⁻¹ + W)⁻¹) at the mode; prediction and leave-one-out are inherited."""

    def evidence_gradient(self) -> Gradient:
        """Return the exact gradient of the evidence: direct, and through the motion of the mode."""
        terms, A = self.likelihood.log_prob(self.y, self.mean), self.variance
        by_mode = 0.5 * A * terms.d3  # −½ log|B| depends on the mode through W
        S, K = self.root_precision, self.gram.matrix
        u = by_mode - S * linalg.solve(self.factor, S * (K @ by_mode))  # (I + W K)⁻¹ by_mode
        pull = K @ u

        def total(by):  # derivatives of L, L' and L'' by a threshold or the noise
            return by[0] + pull * by[1] + 0.5 * A * by[2]

        return Gradient(
            self.gram.pullback(self.evidence_dK(0.5 * self.alpha + u)),
            self.likelihood.threshold_gradient(self.y, total(terms.upper), total(terms.lower)),
            float(total(terms.log_noise).sum()),
        )


@ENGINES.register("newton")
@dataclass(frozen=True)
class Newton(Engine):
    """Laplace approximation by plain Newton steps.

    Parameters
    ----------
    tol : float
        Largest change of the latent function at which the mode is accepted.
    max_iterations : int
    """

    name: ClassVar[str] = "newton"
    objectives: ClassVar[tuple[str, ...]] = ("evidence",)

    tol: float = 1e-9
    max_iterations: int = 100

    def __call__(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        start: Start | None = None,
    ) -> NewtonPosterior:
        """Return the Laplace approximation; see `Engine`."""
        K, alpha = gram.matrix, np.zeros(y.size)
        if start is not None and start.alpha.size == y.size:
            alpha = start.alpha
        f, change, iterations = K @ alpha, np.inf, 0
        while change > self.tol and iterations < self.max_iterations:
            iterations += 1
            terms = likelihood.log_prob(y, f)
            S = np.sqrt(terms.curvature)
            b = terms.curvature * f + terms.d1
            L = linalg.cholesky_B(K, S)
            alpha = b - S * linalg.solve(L, S * (K @ b))
            f, old = K @ alpha, f
            change = np.abs(f - old).max()
        converged = bool(change <= self.tol)
        message = "converged" if converged else "no convergence: use engine='laplace'"
        terms = likelihood.log_prob(y, f)
        W = np.maximum(terms.curvature, 1e-280)  # leave-one-out divides by it
        L = linalg.cholesky_B(K, np.sqrt(W))
        log_evidence = terms.value.sum() - 0.5 * alpha @ f - 0.5 * linalg.log_det(L)
        status = Status(converged, iterations, message, iterations + 1)
        return NewtonPosterior(
            gram=gram,
            y=y,
            likelihood=likelihood,
            alpha=alpha,
            mean=f,
            precision=W,
            factor=L,
            log_evidence=float(log_evidence),
            status=status,
        )
