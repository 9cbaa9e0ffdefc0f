"""Probabilistic least squares ordinal regression [PLSOR].

Gaussian-process regression on the class numbers, whose predictions are then cut at thresholds: the
training likelihood is Gaussian, the test likelihood ordinal. Everything has a closed form, and the
parameters are chosen by the leave-one-out predictive probability.

The latent function is in label units, counted from the middle class. The covariance is that of the
noisy labels, K + σ_n² I, a ``pm.gp.cov.WhiteNoise`` term included; the paper's α and β_j are
1/noise and −b_j/noise (its thresholds enter with the sign of α), so that Φ((b_j − μ)/√(noise² +
σ²)) is its eq. 9.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import lapack

from pmordinal import linalg
from pmordinal.engines.base import ENGINES, Engine
from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.likelihood.smoothing import Terms
from pmordinal.linalg.workspace import empty
from pmordinal.posterior import Gradient, LatentDraws, Posterior, Start, Status


@dataclass(frozen=True, eq=False)
class PLSORPosterior(Posterior):
    """Posterior of regression on the class numbers; `precision` is all ones and is not used.

    Attributes
    ----------
    label_factor : ndarray, shape (n, n)
        Lower Cholesky factor of C = K + σ_n² I.
    """

    label_factor: np.ndarray = field(repr=False)

    @classmethod
    def restore(cls, support: np.ndarray, **fields: Any) -> Self:
        """Return the posterior with these fields; the factor is computed again."""
        L = np.asfortranarray(np.linalg.cholesky(fields["gram"].matrix))
        return cls(label_factor=L, **fields)

    @cached_property
    def C_inverse(self) -> np.ndarray:
        """C⁻¹ in full, shape (n, n)."""
        return linalg.inverse(self.label_factor)

    def explain(self, k: np.ndarray) -> np.ndarray:
        """Return L⁻¹ k; see `Posterior`."""
        return linalg.half_solve(self.label_factor, k)

    @cached_property
    def leave_one_out(self) -> Terms:
        """Log p(y_i | y without i), with derivatives."""
        return self.likelihood.tilted(self.y, *self.cavity)

    def left_out_probabilities(self) -> np.ndarray:
        """Return the class probabilities of each training row without its own label, shape (n, r)."""
        return self.likelihood.probabilities(*self.cavity)

    @cached_property
    def cavity(self) -> tuple[np.ndarray, np.ndarray]:
        """Leave-one-out mean and variance of each label [PLSOR, eqs. 12–13, with C for their K]."""
        q = np.diagonal(self.C_inverse)
        return label_units(self.y, self.likelihood) - self.alpha / q, 1.0 / q

    @cached_property
    def variance(self) -> np.ndarray:
        """Variance of a new label at each training row, shape (n,)."""
        white = self.gram.diagonal - self.gram.copy_diagonal()
        # k** − (C − w)ᵀ C⁻¹ (C − w) = 2 w − w² C⁻¹ on the diagonal
        return white * (2.0 - white * np.diagonal(self.C_inverse))

    def draw(self, draws: int, rng: np.random.Generator) -> LatentDraws:
        """Return draws of new numeric labels at the training rows, before they are cut at thresholds."""
        white = self.gram.diagonal - self.gram.copy_diagonal()
        A = np.diag(2.0 * white) - white[:, None] * self.C_inverse * white
        R = np.linalg.cholesky(A)
        z = rng.standard_normal((white.size, draws))
        f = self.mean[:, None] + R @ z
        v = linalg.half_solve(self.label_factor, f)
        constant = -0.5 * white.size * np.log(2 * np.pi)
        log_prior = constant - 0.5 * (v * v).sum(0) - 0.5 * linalg.log_det(self.label_factor)
        log_q = constant - 0.5 * (z * z).sum(0) - 0.5 * linalg.log_det(R)
        return LatentDraws(f.T, log_prior, log_q)

    def loo_gradient(self) -> Gradient:
        """Return the exact gradient of Σ log p(y_i | y without i) [PLSOR, eqs. 10–11]."""
        C_inverse, q, u = self.C_inverse, np.diagonal(self.C_inverse), self.alpha
        terms = self.leave_one_out
        by_mean, by_var = terms.d1, 0.5 * (terms.d1**2 - terms.curvature)
        # μ = t − u/q and σ² = 1/q, with u = C⁻¹ t and q = diag C⁻¹
        by_u, by_q = -by_mean / q, (by_mean * u - by_var) / q**2
        # dq = −diag(C⁻¹ dC C⁻¹) and du = −C⁻¹ dC u
        v = linalg.symv(C_inverse, by_u)
        dC = linalg.add_outer(linalg.weighted_square(C_inverse, -by_q), -0.5, u, v)
        return Gradient(
            self.gram.pullback(dC),
            self.likelihood.threshold_gradient(self.y, terms.upper[0], terms.lower[0]),
            float(terms.log_noise[0].sum()),
        )


@ENGINES.register("plsor")
@dataclass(frozen=True)
class PLSOR(Engine):
    """Gaussian-process regression on the class numbers, cut at thresholds.

    It needs no iteration. The covariance needs a ``pm.gp.cov.WhiteNoise`` term, the noise on
    the labels; `gp_model` adds it.
    """

    name: ClassVar[str] = "plsor"
    objectives: ClassVar[tuple[str, ...]] = ("loo",)
    in_label_units: ClassVar[bool] = True
    posterior_type: ClassVar[type[Posterior]] = PLSORPosterior

    def __call__(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        start: Start | None = None,
    ) -> PLSORPosterior:
        """Return the posterior of the regression; see `Engine`."""
        C = gram.matrix
        L = empty(C.shape)
        L[...] = C
        L, info = lapack.dpotrf(L, lower=1, clean=0, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError(
                "the covariance of the labels is not positive definite: add a pm.gp.cov.WhiteNoise term"
            )
        t = label_units(y, likelihood)
        alpha = linalg.solve(L, t)
        white = gram.diagonal - gram.copy_diagonal()
        mean = t - white * alpha  # of a new label, without the noise of the old one
        log_evidence = -0.5 * (t @ alpha + linalg.log_det(L) + t.size * np.log(2 * np.pi))
        return PLSORPosterior(
            gram=gram,
            y=y,
            likelihood=likelihood,
            alpha=alpha,
            mean=mean,
            precision=np.ones(y.size),
            label_factor=L,
            log_evidence=float(log_evidence),
            status=Status(True, 1, "closed form", 1),
        )


def label_units(y: np.ndarray, likelihood: OrdinalLikelihood) -> np.ndarray:
    """Return class codes minus their middle, so that a process with mean zero fits them."""
    return y - 0.5 * (likelihood.n_classes - 1)
