"""Posteriors in which a Gaussian, called a site, replaces the likelihood of each label.

A site acts like a measurement of f at its row, with a precision in W. The posterior of f is then N(h, A), with h = K α
and A = (K⁻¹ + W)⁻¹. The cavity of a row is its Gaussian posterior without its own site. Everything is computed from
B = I + W^½ K W^½, so K may be singular.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from pmordinal import linalg
from pmordinal.likelihood.smoothing import Terms
from pmordinal.linalg.workspace import empty
from pmordinal.posterior.base import Gradient, LatentDraws, Posterior, Start


@dataclass(frozen=True)
class SiteReaction:
    """Terms that a gradient gets because the sites change with the parameters: by K, thresholds, log noise."""

    dK: np.ndarray
    thresholds: np.ndarray
    log_noise: float | np.ndarray


@dataclass(frozen=True, eq=False)
class MeasuredPosterior(Posterior):
    """Posterior in which f is Gaussian given measurements of it with the precisions W = `precision`.

    Attributes
    ----------
    mean : ndarray, shape (n,)
        Posterior mean.
    precision : ndarray, shape (s,)
        Of the measurements.
    factor : ndarray, shape (s, s)
        Lower Cholesky factor of B.
    """

    mean: np.ndarray = field(repr=False)
    precision: np.ndarray = field(repr=False)
    factor: np.ndarray = field(repr=False)

    @classmethod
    def restore(cls, support: np.ndarray, **fields: Any) -> Self:
        """Return the posterior with these fields; the factor is computed again."""
        K = fields["gram"].matrix
        factor = linalg.cholesky_B(K, np.sqrt(fields["precision"]))
        return cls(factor=factor, **fields)

    @cached_property
    def root_precision(self) -> np.ndarray:
        """W^½, shape (n,)."""
        return np.sqrt(self.precision)

    @cached_property
    def B_inverse(self) -> np.ndarray:
        """The lower triangle of B⁻¹, with zeros above it or the other half, shape (n, n)."""
        return linalg.lower_inverse(self.factor)

    @cached_property
    def B_inverse_diagonal(self) -> np.ndarray:
        """The diagonal of B⁻¹, which is 1 − W A: posterior over cavity variance, shape (n,)."""
        return np.diagonal(self.B_inverse).copy()

    def measured_variance(self) -> np.ndarray:
        """Return the variances A_ii of f at the training rows given the measurements, shape (n,)."""
        K, c, W = self.gram.matrix, self.B_inverse_diagonal, self.precision
        return linalg.posterior_diagonal(K, c, W, self.root_precision, self.factor)

    def explain(self, k: np.ndarray) -> np.ndarray:
        """Return L⁻¹ S k; see `Posterior`."""
        return linalg.half_solve(self.factor, self.root_precision[:, None] * k)

    def scatter(
        self, alphas: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw from N(K α, A) for each column α of `alphas`; return draws, shape (n, draws), and log priors."""
        K, S = self.gram.matrix, self.root_precision[:, None]
        R = linalg.factor_psd(K)
        z0 = rng.standard_normal((R.shape[1], alphas.shape[1]))
        f0 = R @ z0
        e = rng.standard_normal(f0.shape)
        c = alphas - S * linalg.solve(self.factor, S * f0 + e)
        f, z = f0 + K @ c, z0 + R.T @ c
        return f, -0.5 * (z * z).sum(0) - 0.5 * R.shape[1] * np.log(2 * np.pi)


@dataclass(frozen=True, eq=False)
class SitePosterior(MeasuredPosterior):
    """Gaussian approximation: a site of the precision W for each label, and its cavity.

    A row of weight w stands for w labels with equal sites, whose precisions W is the sum of. Its cavity is without one
    of them: without q W, q = 1/w, or without all of it where w is less than one.
    """

    @cached_property
    def left_share(self) -> np.ndarray | None:
        """q, the share of a row's site that its cavity is without, shape (n,); None is all of it."""
        w = self.likelihood.weights
        return None if w is None else 1.0 / np.maximum(w, 1.0)

    @cached_property
    def left_alpha(self) -> np.ndarray:
        """α of what the cavity is without, shape (n,)."""
        return self.alpha if self.left_share is None else self.left_share * self.alpha

    @cached_property
    def cavity_share(self) -> np.ndarray:
        """1 − q W A, the posterior variances in units of those of the cavities, shape (n,)."""
        q, c = self.left_share, self.B_inverse_diagonal
        return c if q is None else (1.0 - q) + q * c

    @cached_property
    def variance(self) -> np.ndarray:
        """Posterior variances A_ii, shape (n,)."""
        return self.measured_variance()

    @cached_property
    def site_covariance(self) -> linalg.SiteCovariance:
        """Products with A and A∘A."""
        return linalg.SiteCovariance(
            self.B_inverse.copy(order="F"),
            self.precision,
            self.root_precision,
            self.variance,
            left_share=self.left_share,
        )

    @cached_property
    def cavity(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f_i without the i-th site [CG2005, App. B]."""
        var = self.variance / self.cavity_share  # no cancellation
        return self.mean - var * self.left_alpha, var

    @property
    def start(self) -> Start:
        """A warm start for the engine's next run."""
        return Start(self.alpha, self.cavity)

    @cached_property
    def leave_one_out(self) -> Terms:
        """Log p(y_i | y without i) from the cavities [Srijith2012, eq. 2], with derivatives."""
        return self.likelihood.tilted(self.y, *self.cavity)

    def left_out_probabilities(self) -> np.ndarray:
        """Return the class probabilities of each training row without its own label, shape (n, r)."""
        return self.likelihood.probabilities(*self.cavity)

    def latent_with_pullback(
        self, Xnew: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray, np.ndarray], Gradient]]:
        """Return mean and variance of f at new rows, and the pullback to the hyperparameters.

        The pullback is exact: it includes the change of the sites with the parameters. It costs O(n³ + n² m), and no
        matrix of order m is formed.
        """
        values, alpha = self.gram.values, self.alpha
        k, pull_cross = self.gram.kernel.matrix(values, self.gram.X, Xnew)
        prior, pull_prior = self.gram.kernel.diagonal(values, Xnew)
        S = self.root_precision
        # (K + W⁻¹)⁻¹ k = S x, and x / S is the covariance of f at training rows with f at new ones
        x = linalg.solve(self.factor, S[:, None] * k)
        variance = prior - np.einsum("ij,ij->j", S[:, None] * x, k)
        kept = variance > 0.0

        def pullback(by_mean: np.ndarray, by_variance: np.ndarray) -> Gradient:
            by_variance = np.where(kept, by_variance, 0.0)
            along = x @ by_mean
            moved = self.site_pullback(along / S, -((x * x) @ by_variance) / self.precision)
            weighted = x * by_variance
            dK = weighted @ x.T
            dK *= S
            dK *= S[:, None]
            dK += moved.dK
            v = -0.5 * S * along
            dK += np.outer(v, alpha)
            dK += np.outer(alpha, v)
            weighted *= -2.0 * S[:, None]
            weighted += np.outer(alpha, by_mean)
            parts = zip(
                self.gram.pullback(dK), pull_cross(weighted), pull_prior(by_variance), strict=True
            )
            return Gradient([a + b + c for a, b, c in parts], moved.thresholds, moved.log_noise)

        return k.T @ alpha, np.where(kept, variance, 0.0), pullback

    def draw(self, draws: int, rng: np.random.Generator) -> LatentDraws:
        """Return independent draws of f at the training rows.

        They are f = f₀ − K S B⁻¹ (S f₀ + e) + h with f₀ ~ N(0, K) and e ~ N(0, I), which never
        inverts K. Densities are with respect to white noise z, f = R z and R Rᵀ = K, so that they
        exist for singular K.
        """
        W = self.precision
        f, log_prior = self.scatter(np.tile(self.alpha[:, None], draws), rng)
        # q(f) = N(f; 0, K) Π exp(ν f − ½ W f²) / Z, ν = α + W h
        nu = self.alpha + W * self.mean
        log_Z = 0.5 * nu @ self.mean - 0.5 * linalg.log_det(self.factor)
        log_q = log_prior + nu @ f - 0.5 * W @ (f * f) - log_Z
        return LatentDraws(f.T, log_prior, log_q)

    def evidence_dK(self, v: np.ndarray) -> np.ndarray:
        """Return the lower triangle of −½ (K + W⁻¹)⁻¹ + ½ (v αᵀ + α vᵀ).

        With v = ½ α it is the gradient of log N(0, K + W⁻¹) at the site means.
        """
        dK = empty(self.B_inverse.shape)
        linalg.site_gradient(self.B_inverse, self.root_precision, v, self.alpha, dK)
        return dK

    def site_pullback(self, by_natural: np.ndarray, by_precision: np.ndarray) -> SiteReaction:
        """Return the gradient terms that come from the change of the sites with the parameters.

        Parameters
        ----------
        by_natural : ndarray, shape (n,)
            Derivatives by δη = δν − h δW, the change of the natural means ν = α + W h at a fixed mean h.
        by_precision : ndarray, shape (n,)
            Derivatives by the precisions W.
        """
        raise NotImplementedError

    def marginal_pullback(self, by_mean: np.ndarray, by_variance: np.ndarray) -> np.ndarray:
        """Return the derivative by K, given those by posterior means and variances, with fixed sites.

        dA = Mᵀ dK M and dh = Mᵀ dK α with M = (I + W K)⁻¹ = S B⁻¹ S⁻¹.

        Parameters
        ----------
        by_mean, by_variance : ndarray, shape (n,)

        Returns
        -------
        ndarray, shape (n, n)
            Symmetric.
        """
        S, Binv = self.root_precision, linalg.fill_upper(self.B_inverse)
        # in full: NumPy would warn of what happens to be in the other triangle
        dK = linalg.fill_upper(linalg.weighted_square(Binv, by_variance / self.precision))
        dK *= S
        dK *= S[:, None]
        v = 0.5 * S * linalg.symv(Binv, by_mean / S)
        return linalg.fill_upper(linalg.add_outer(dK, 1.0, v, self.alpha))
