"""What every engine returns: a Gaussian for the latent function, and all that prediction needs.

With Gaussian sites of precision W the posterior of f is N(h, A), h = K α and A = (K⁻¹ + W)⁻¹; everything is
expressed by B = I + W^½ K W^½, so K may be singular.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from scipy.linalg import blas

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


@dataclass(frozen=True)
class Start:
    """What a warm start needs of an earlier posterior: O(n) numbers.

    Attributes
    ----------
    alpha : ndarray, shape (n,)
    cavity : tuple of two ndarrays, shape (n,)
        Cavity means and variances.
    """

    alpha: np.ndarray
    cavity: tuple[np.ndarray, np.ndarray]


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
        """Store cached properties that the engine has computed already, and return the posterior."""
        self.__dict__.update(known)
        return self

    @cached_property
    def root_precision(self) -> np.ndarray:
        """W^½, shape (n,)."""
        return np.sqrt(self.precision)

    @cached_property
    def B_inverse(self) -> np.ndarray:
        """B⁻¹ in full, shape (n, n)."""
        return linalg.fill_upper(linalg.gram_of_columns(self.B_inverse_root))

    @cached_property
    def B_inverse_root(self) -> np.ndarray:
        """L⁻¹, the inverse of the factor: B⁻¹ = L⁻ᵀ L⁻¹, shape (n, n)."""
        return linalg.triangular_inverse(self.factor)

    @cached_property
    def B_inverse_diagonal(self) -> np.ndarray:
        """diag B⁻¹ = 1 − W A, the factor by which each site shrinks its cavity, shape (n,)."""
        return np.einsum("ij,ij->j", self.B_inverse_root, self.B_inverse_root)

    @cached_property
    def variance(self) -> np.ndarray:
        """Posterior variances A_ii, shape (n,)."""
        return linalg.posterior_diagonal(
            self.gram.matrix,
            self.B_inverse_diagonal,
            self.precision,
            self.root_precision,
            self.factor,
        )

    @cached_property
    def site_covariance(self) -> linalg.SiteCovariance:
        """Products with A and A∘A."""
        return linalg.SiteCovariance(
            self.B_inverse, self.precision, self.root_precision, self.variance
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
        k = self.gram.cross(Xnew)
        v = linalg.half_solve(self.factor, self.root_precision[:, None] * k)
        prior = self.gram.cross_diagonal(Xnew)
        return k.T @ self.alpha, np.maximum(prior - (v * v).sum(0), 0.0)

    def evidence_gradient(self) -> Gradient:
        """Return the exact gradient of `log_evidence`."""
        raise NotImplementedError

    def loo_gradient(self) -> Gradient:
        """Return the exact gradient of the leave-one-out log predictive probability."""
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
        root = np.sqrt(np.abs(by_variance)) / S
        dK = np.zeros(Binv.shape, order="F")
        for sign in (1.0, -1.0):  # a symmetric product of two halves costs half of a general one
            rows = np.flatnonzero(sign * by_variance > 0)
            if rows.size:
                half = np.asfortranarray(Binv[:, rows] * root[rows])
                dK = blas.dsyrk(sign, half, beta=1.0, c=dK, lower=1, overwrite_c=1)
        dK *= S
        dK *= S[:, None]
        linalg.fill_upper(dK)
        v = 0.5 * S * linalg.symv(Binv, by_mean / S)
        dK = blas.dger(1.0, v, self.alpha, a=dK, overwrite_a=1)
        return blas.dger(1.0, self.alpha, v, a=dK, overwrite_a=1)
