"""Probabilistic least squares ordinal regression [PLSOR].

Gaussian-process regression on the class numbers, whose predictions are then cut at thresholds: the
training likelihood is Gaussian, the test likelihood ordinal. Everything has a closed form, and the
parameters are chosen by the leave-one-out predictive probability.

The latent function is in label units, counted from the middle class. The covariance is that of the
noisy labels, K + σ_n² I, a ``pm.gp.cov.WhiteNoise`` term included; the paper's α and β_j are
−1/noise and b_j/noise, so that Φ((b_j − μ)/√(noise² + σ²)) is its eq. 9.

A row of weight w stands for w labels that were measured there, each with its own white noise: their average has the
variance σ_n²/w, and C is K + diag(σ_n²/w).
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

BLOCK = 64  # rows whose covariances with each other are computed for the sake of the diagonal


@dataclass(frozen=True, eq=False)
class PLSORPosterior(Posterior):
    """Posterior of regression on the class numbers; `precision` is all ones and is not used.

    Attributes
    ----------
    mean, precision : ndarray, shape (n,)
    label_factor : ndarray, shape (n, n)
        Lower Cholesky factor of C = K + σ_n² I.
    """

    mean: np.ndarray = field(repr=False)
    precision: np.ndarray = field(repr=False)
    label_factor: np.ndarray = field(repr=False)

    @classmethod
    def restore(cls, support: np.ndarray, **fields: Any) -> Self:
        """Return the posterior with these fields; the factor is computed again."""
        C = label_covariance(fields["gram"], fields["likelihood"].weights)
        return cls(label_factor=np.asfortranarray(np.linalg.cholesky(C)), **fields)

    @cached_property
    def white(self) -> np.ndarray:
        """Variance of the noise on one label at each row, shape (n,)."""
        return white_noise(self.gram)

    @cached_property
    def averaged(self) -> np.ndarray:
        """Variance of the noise on the average of a row's labels, shape (n,)."""
        w = self.likelihood.weights
        return self.white if w is None else self.white / w

    @cached_property
    def left_precision(self) -> np.ndarray:
        """Precision of a label given all others, shape (n,): the diagonal of C⁻¹ were every label a row."""
        q, w = np.diagonal(self.C_inverse), self.likelihood.weights
        return q if w is None else q / w**2 + (1.0 - 1.0 / w) / self.white

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
        q, w = self.left_precision, self.likelihood.weights
        alpha = self.alpha if w is None else self.alpha / w
        return label_units(self.y, self.likelihood) - alpha / q, 1.0 / q

    @cached_property
    def variance(self) -> np.ndarray:
        """Variance of a new label at each training row, shape (n,)."""
        e = self.averaged
        # k** − (C − e)ᵀ C⁻¹ (C − e) = white + e − e² C⁻¹ on the diagonal
        return self.white + e * (1.0 - e * np.diagonal(self.C_inverse))

    def draw(self, draws: int, rng: np.random.Generator) -> LatentDraws:
        """Return draws of new labels, before they are cut, at the training rows."""
        e = self.averaged
        R = np.linalg.cholesky(np.diag(self.white + e) - e[:, None] * self.C_inverse * e)
        z = rng.standard_normal((e.size, draws))
        f = self.mean[:, None] + R @ z
        L = self.label_factor
        if self.likelihood.weights is not None:  # a new label is one
            L = np.asfortranarray(np.linalg.cholesky(self.gram.matrix))
        v = linalg.half_solve(L, f)
        constant = -0.5 * e.size * np.log(2 * np.pi)
        log_prior = constant - 0.5 * (v * v).sum(0) - 0.5 * linalg.log_det(L)
        log_q = constant - 0.5 * (z * z).sum(0) - 0.5 * linalg.log_det(R)
        return LatentDraws(f.T, log_prior, log_q)

    def loo_gradient(self) -> Gradient:
        """Return the exact gradient of Σ log p(y_i | y without i) [PLSOR, eqs. 10–11]."""
        C_inverse, q, u, w = (
            self.C_inverse,
            self.left_precision,
            self.alpha,
            self.likelihood.weights,
        )
        terms = self.leave_one_out.times(w)
        once = self.leave_one_out
        by_mean, by_var = terms.d1, 0.5 * (terms.d1 * once.d1 - terms.curvature)
        # μ = t − u/q and σ² = 1/q, with u = C⁻¹ t and q = diag C⁻¹
        by_u, by_q = -by_mean / q, (by_mean * (u if w is None else u / w) - by_var) / q**2
        if w is not None:  # μ = t − u/(w q) and q = diag C⁻¹/w² + (1 − 1/w)/σ_n²
            by_white = -by_q * (1.0 - 1.0 / w) / self.white**2
            by_u, by_q = by_u / w, by_q / w**2
        # dq = −diag(C⁻¹ dC C⁻¹) and du = −C⁻¹ dC u
        v = linalg.symv(C_inverse, by_u)
        dC = linalg.add_outer(linalg.weighted_square(C_inverse, -by_q), -0.5, u, v)
        parameters = self.gram.pullback(dC)
        if w is not None:  # C has σ_n²/w where the matrix has σ_n²
            further = white_pullback(self.gram, by_white - (1.0 - 1.0 / w) * np.diagonal(dC))
            parameters = [a + b for a, b in zip(parameters, further, strict=True)]
        return Gradient(
            parameters,
            self.likelihood.threshold_gradient(self.y, terms.upper[0], terms.lower[0]),
            self.likelihood.noise_gradient(terms.log_noise[0]),
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
    has_weights: ClassVar[bool] = True
    posterior_type: ClassVar[type[Posterior]] = PLSORPosterior

    def check_weights(self, weights: np.ndarray | None) -> None:
        """Refuse weights of less than the one label that is left out."""
        if weights is not None and weights.min() < 1.0:
            raise ValueError(
                "engine 'plsor' leaves out one of the labels that a weight stands for, got a weight of "
                f"{weights.min():g}: use engine='ep' or 'laplace', or weights of one and more"
            )

    def __call__(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        start: Start | None = None,
    ) -> PLSORPosterior:
        """Return the regression on the labels; see `Engine`."""
        w = likelihood.weights
        self.check_weights(w)
        C = label_covariance(gram, w)
        L = empty(C.shape)
        L[...] = C
        L, info = lapack.dpotrf(L, lower=1, clean=0, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError(
                "the covariance of the labels is not positive definite: add a pm.gp.cov.WhiteNoise term"
            )
        t = label_units(y, likelihood)
        alpha = linalg.solve(L, t)
        white = white_noise(gram)
        mean = (
            t - (white if w is None else white / w) * alpha
        )  # of a new label: white noise is not predictable
        log_det, count = linalg.log_det(L), float(t.size)
        if w is not None:  # of all labels
            log_det, count = log_det + ((w - 1.0) @ np.log(white) + np.log(w).sum()), w.sum()
        log_evidence = -0.5 * (t @ alpha + log_det + count * np.log(2 * np.pi))
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


def label_covariance(gram: Gram, weights: np.ndarray | None) -> np.ndarray:
    """Return C, the covariance of the labels, or of their averages where rows stand for several."""
    if weights is None:
        return gram.matrix
    C = np.array(gram.matrix, order="F")
    C.flat[:: len(C) + 1] -= (1.0 - 1.0 / weights) * white_noise(gram)
    return C


def white_noise(gram: Gram) -> np.ndarray:
    """Return what a row's variance has that its covariance with a copy of it has not, shape (n,)."""
    return gram.diagonal - gram.copy_diagonal()


def white_pullback(gram: Gram, by_white: np.ndarray) -> list[np.ndarray]:
    """Return the derivative in each parameter of the kernel, given that in `white_noise`."""
    kernel, values, X = gram.kernel, gram.values, gram.X
    total = kernel.diagonal(values, X)[1](by_white)
    for i in range(0, len(X), BLOCK):
        part = slice(i, i + BLOCK)
        copies = kernel.matrix(values, X[part], X[part])[1](np.diag(by_white[part]))
        total = [a - b for a, b in zip(total, copies, strict=True)]
    return total
