"""What every engine returns: a Gaussian for the latent function, and all that prediction needs.

With Gaussian sites of precision W the posterior of f is N(h, A), h = K α and A = (K⁻¹ + W)⁻¹;
everything is expressed by B = I + W^½ K W^½, so K may be singular.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from pmordinal import linalg
from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.smoothing import Terms


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
        Cholesky factorisations spent.
    """

    converged: bool
    iterations: int
    message: str
    factorizations: int = 0


@dataclass(frozen=True)
class Gradient:
    """Gradient of an objective: one array per kernel parameter, thresholds, log noise."""

    parameters: list[np.ndarray]
    thresholds: np.ndarray
    log_noise: float

    def __add__(self, other: "Gradient") -> "Gradient":
        """Return the gradient of the sum."""
        return Gradient(
            [a + b for a, b in zip(self.parameters, other.parameters, strict=True)],
            self.thresholds + other.thresholds,
            self.log_noise + other.log_noise,
        )


@dataclass(frozen=True)
class SiteReaction:
    """What the motion of the sites adds to a gradient: by K, shape (n, n), thresholds, log noise."""

    dK: np.ndarray
    thresholds: np.ndarray
    log_noise: float


@dataclass(frozen=True)
class Start:
    """What a warm start needs of an earlier posterior: O(n) numbers.

    Attributes
    ----------
    alpha : ndarray, shape (n,)
        Used by engines without cavities.
    cavity : tuple of two ndarrays, shape (n,), optional
        Cavity means and variances.
    """

    alpha: np.ndarray
    cavity: tuple[np.ndarray, np.ndarray] | None = None


@dataclass(frozen=True, eq=False)
class LatentDraws:
    """Draws of the latent function with their log densities, of one measure.

    Attributes
    ----------
    f : ndarray, shape (draws, n)
    log_prior : ndarray, shape (draws,)
        Of the Gaussian process.
    log_q : ndarray, shape (draws,)
        Of the distribution that they were drawn from.
    source : str
        How they were drawn, where that needs saying.
    """

    f: np.ndarray
    log_prior: np.ndarray
    log_q: np.ndarray
    source: str = ""


@dataclass(frozen=True, eq=False)
class Posterior:
    """Gaussian approximation to the posterior of the latent function at the training rows.

    Attributes
    ----------
    gram : Gram
        Covariance bound to the training rows.
    y : ndarray of int, shape (n,)
        Class codes.
    likelihood : OrdinalLikelihood
    alpha : ndarray, shape (n,)
        E f* = k*ᵀ α.
    mean : ndarray, shape (n,)
        Posterior mean h = K α.
    precision : ndarray, shape (n,)
        Site precisions W.
    factor : ndarray, shape (n, n)
        Lower Cholesky factor of B.
    log_evidence : float
    status : Status
    """

    gram: Gram
    y: np.ndarray
    likelihood: OrdinalLikelihood
    alpha: np.ndarray
    mean: np.ndarray
    precision: np.ndarray
    factor: np.ndarray = field(repr=False)
    log_evidence: float
    status: Status

    def remember(self, **known: object) -> Self:
        """Store cached properties that the engine has computed already; return the posterior.

        The inverse of the factor may come along as `_root`.
        """
        self.__dict__.update(known)
        return self

    @classmethod
    def restore(cls, support: np.ndarray, **fields: Any) -> "Posterior":
        """Return the posterior with these fields and `support`; the factor is computed again."""
        K = fields["gram"].matrix
        factor = linalg.cholesky_B(K, np.sqrt(fields["precision"]))
        return cls(factor=factor, **fields)

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
        """The other rows, whose labels the posterior has not seen."""
        return np.setdiff1d(np.arange(self.y.size), self.support)

    @property
    def support_gram(self) -> Gram:
        """Covariance bound to the rows of `support`."""
        return self.gram

    @cached_property
    def root_precision(self) -> np.ndarray:
        """W^½, shape (n,)."""
        return np.sqrt(self.precision)

    @cached_property
    def B_inverse(self) -> np.ndarray:
        """B⁻¹ in full, shape (n, n)."""
        X = self.__dict__.pop("_root", None)
        return linalg.fill_upper(
            linalg.lower_inverse(self.factor) if X is None else linalg.gram_of_columns(X)
        )

    @cached_property
    def B_inverse_diagonal(self) -> np.ndarray:
        """The diagonal of B⁻¹, 1 − W A: the share of its cavity that each site leaves, shape (n,)."""
        return np.diagonal(self.B_inverse).copy()

    def _site_variance(self) -> np.ndarray:
        K, c, W = self.gram.matrix, self.B_inverse_diagonal, self.precision
        return linalg.posterior_diagonal(K, c, W, self.root_precision, self.factor)

    @cached_property
    def variance(self) -> np.ndarray:
        """Posterior variances A_ii, shape (n,)."""
        return self._site_variance()

    @cached_property
    def site_covariance(self) -> linalg.SiteCovariance:
        """Products with A and A∘A."""
        return linalg.SiteCovariance(
            self.B_inverse.copy(order="F"), self.precision, self.root_precision, self.variance
        )

    @cached_property
    def cavity(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f_i without the i-th site [CG2005, App. B]."""
        var = self.variance / self.B_inverse_diagonal  # no cancellation
        return self.mean - var * self.alpha, var

    @property
    def start(self) -> Start:
        """What the engine can start from next time."""
        return Start(self.alpha, self.cavity)

    @cached_property
    def leave_one_out(self) -> Terms:
        """Log p(y_i | y without i) from the cavities [Srijith2012, eq. 2], with derivatives."""
        return self.likelihood.tilted(self.y, *self.cavity)

    def latent(self, Xnew: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of f at new rows [CG2005, eqs. 16–17].

        Parameters
        ----------
        Xnew : ndarray, shape (m, d)

        Returns
        -------
        mean, variance : ndarray, shape (m,)
        """
        k = self.support_gram.cross(Xnew)
        v = linalg.half_solve(self.factor, self.root_precision[:, None] * k)
        prior = self.gram.cross_diagonal(Xnew)
        return k.T @ self.alpha, np.maximum(prior - (v * v).sum(0), 0.0)

    def probabilities(self, Xnew: np.ndarray | None = None) -> np.ndarray:
        """Return the class probabilities of new rows, default the training rows, shape (m, r)."""
        moments = (self.mean, self.variance) if Xnew is None else self.latent(Xnew)
        return self.likelihood.probabilities(*moments)

    def components(self, draws: int, rng: np.random.Generator) -> np.ndarray:
        """Return the α of the Gaussians that draws of f at new rows come from, shape (s, draws), or (s, 1) for one."""
        return self.alpha[:, None]

    def left_out_probabilities(self) -> np.ndarray:
        """Return the class probabilities of each training row without its own label, shape (n, r)."""
        return self.likelihood.probabilities(*self.cavity)

    @cached_property
    def in_sample(self) -> np.ndarray:
        """Log probability that a new label at each training row equals the one there, shape (n,)."""
        return self.likelihood.tilted(self.y, self.mean, self.variance).value

    def latent_with_pullback(
        self, Xnew: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray, np.ndarray], Gradient]]:
        """Return mean and variance of f at new rows, and the pullback of cotangents of both.

        The pullback is exact: the sites move with the parameters. It costs O(n³ + n² m), and no
        matrix of order m is formed.

        Parameters
        ----------
        Xnew : ndarray, shape (m, d)

        Returns
        -------
        mean, variance : ndarray, shape (m,)
        pullback : callable
            Takes the cotangents of mean and variance and returns a `Gradient`.
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

    def draw(self, draws: int, rng: np.random.Generator) -> "LatentDraws":
        """Return independent draws of f at the training rows.

        They are f = f₀ − K S B⁻¹ (S f₀ + e) + h with f₀ ~ N(0, K) and e ~ N(0, I), which never
        inverts K. Densities are with respect to white noise z, f = R z and R Rᵀ = K, so that they
        exist for singular K.
        """
        W = self.precision
        f, log_prior = self._scatter(np.tile(self.alpha[:, None], draws), rng)
        # q(f) = N(f; 0, K) Π exp(ν f − ½ W f²) / Z, ν = α + W h
        nu = self.alpha + W * self.mean
        log_Z = 0.5 * nu @ self.mean - 0.5 * linalg.log_det(self.factor)
        log_q = log_prior + nu @ f - 0.5 * W @ (f * f) - log_Z
        return LatentDraws(f.T, log_prior, log_q)

    def _scatter(
        self, alphas: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return one draw of N(K α, A) for each column α, shape (n, draws), and their log prior densities."""
        K, S = self.gram.matrix, self.root_precision[:, None]
        R = linalg.factor_psd(K)
        z0 = rng.standard_normal((R.shape[1], alphas.shape[1]))
        f0 = R @ z0
        e = rng.standard_normal(f0.shape)
        c = alphas - S * linalg.solve(self.factor, S * f0 + e)
        f, z = f0 + K @ c, z0 + R.T @ c
        return f, -0.5 * (z * z).sum(0) - 0.5 * R.shape[1] * np.log(2 * np.pi)

    @cached_property
    def log_evidence_error(self) -> float | None:
        """Standard error of `log_evidence`, where it is estimated from draws."""
        return None

    @cached_property
    def log_evidence_correction(self) -> float | None:
        """Estimate of what `log_evidence` misses, where the engine has one."""
        return None

    def evidence_gradient(self) -> Gradient:
        """Return the exact gradient of `log_evidence`."""
        raise NotImplementedError

    def evidence_dK(self, v: np.ndarray) -> np.ndarray:
        """Return the lower triangle of −½ (K + W⁻¹)⁻¹ + ½ (v αᵀ + α vᵀ).

        It overwrites B⁻¹, which is recomputed if asked for. With v = ½ α it is the gradient of
        log N(0, K + W⁻¹) at the site means.
        """
        X = self.__dict__.pop("_root", None)
        if X is None:
            dK = self.B_inverse
            del self.__dict__["B_inverse"]
        else:
            dK = linalg.gram_of_columns(X)
        linalg.site_gradient(dK, self.root_precision, v, self.alpha)
        return dK

    def loo_gradient(self) -> Gradient:
        """Return the exact gradient of the leave-one-out log predictive probability."""
        raise NotImplementedError

    def site_pullback(self, by_natural: np.ndarray, by_precision: np.ndarray) -> SiteReaction:
        """Return what cotangents of the sites give, the sites being functions of the parameters.

        Parameters
        ----------
        by_natural : ndarray, shape (n,)
            By δη = δν − h δW, the change of the natural means ν = α + W h at a fixed mean h.
        by_precision : ndarray, shape (n,)
            By the precisions W.
        """
        raise NotImplementedError

    def validation_gradient(self) -> Gradient:
        """Return the exact gradient of the log predictive probability of the rows outside `support`."""
        raise NotImplementedError

    def marginal_pullback(self, by_mean: np.ndarray, by_variance: np.ndarray) -> np.ndarray:
        """Return dK for cotangents of the posterior means and variances, the sites held fixed.

        dA = Mᵀ dK M and dh = Mᵀ dK α with M = (I + W K)⁻¹ = S B⁻¹ S⁻¹.

        Parameters
        ----------
        by_mean, by_variance : ndarray, shape (n,)

        Returns
        -------
        ndarray, shape (n, n)
            Symmetric.
        """
        S, Binv = self.root_precision, self.B_inverse
        dK = linalg.weighted_square(Binv, by_variance / self.precision)
        dK *= S
        dK *= S[:, None]
        v = 0.5 * S * linalg.symv(Binv, by_mean / S)
        return linalg.fill_upper(linalg.add_outer(dK, 1.0, v, self.alpha))
