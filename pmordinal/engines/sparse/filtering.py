"""Assumed density filtering of a few labels, and its derivatives, taken backwards through the steps.

Labels enter one at a time. Before label t enters, its latent value is N(μ_t, λ_t); the tilted
moments give γ = dL/dμ and ν = −d²L/dμ² [Srijith2012, eq. 5], and with the covariances c_t(x) =
cov(f(x), f_t) of that moment

    E f(x) += γ_t c_t(x),    Var f(x) −= ν_t c_t(x)²,    c_t(x) = k(x, t) − Σ_{q<t} ν_q c_q(t)
    c_q(x).

So c(x) = M⁻¹ k(x), with M unit lower triangular: M_tq = ν_q c_q(t). Neither K nor the site
precisions p = ν/(1 − λν) are ever inverted: K may be singular and p may be zero.

A "cotangent" of a quantity is the derivative of the final result by it.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import blas

from pmordinal import linalg
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.likelihood.smoothing import Terms

LEAST_VARIANCE = 1e-15  # smallest variance, as a share of the prior variance


class Rule(Protocol):
    """How a label changes the distribution of its latent value: (μ, λ) → (γ, ν), and derivatives.

    The Gaussian site exp(b f − ½ p f²) has the same effect; `dp` is the cotangent of its `p`.
    """

    p: np.ndarray
    b: np.ndarray
    dp: np.ndarray

    def forward(self, t: int, mean: float, var: float) -> tuple[float, float]:
        """Return γ and ν of label t."""

    def back(self, t: int, dgamma: float, dnu: float) -> tuple[float, float]:
        """Return the cotangents of μ and λ; add up those of the rule's own parameters."""

    def forget(self) -> None:
        """Set the added-up cotangents to zero."""


class Filter:
    """One pass through the labels, in the given order.

    Parameters
    ----------
    K : ndarray, shape (s, s)
        Covariance of the latent values, in the order in which the labels enter.
    rule : Rule

    Attributes
    ----------
    C : ndarray, shape (s, s)
        C_rt = c_t(r).
    gamma, nu : ndarray, shape (s,)
    """

    def __init__(self, K: np.ndarray, rule: Rule):
        s = len(K)
        self.K, self.rule = K, rule
        self.C = C = np.empty((s, s), order="F")
        self.gamma, self.nu = np.empty(s), np.empty(s)
        for t in range(s):
            row = C[t, :t]
            C[:, t] = K[:, t] - C[:, :t] @ (self.nu[:t] * row)
            C[t, t] = max(C[t, t], LEAST_VARIANCE * K[t, t])
            self.gamma[t], self.nu[t] = rule.forward(t, float(row @ self.gamma[:t]), C[t, t])

    @property
    def M(self) -> np.ndarray:
        """The unit lower triangular matrix M with c(x) = M⁻¹ k(x)."""
        M = np.tril(self.C * self.nu, -1)
        np.fill_diagonal(M, 1.0)
        return np.asfortranarray(M)

    @property
    def alpha(self) -> np.ndarray:
        """The α of E f(x) = k(x)ᵀ α, shape (s,)."""
        return blas.dtrsv(self.M, self.gamma, lower=1, trans=1, diag=1)

    @property
    def mean(self) -> np.ndarray:
        """Posterior means after all labels, shape (s,)."""
        return self.C @ self.gamma

    @property
    def variance(self) -> np.ndarray:
        """Posterior variances after all labels, shape (s,)."""
        k = np.diagonal(self.K)
        return np.maximum(k - (self.C**2) @ self.nu, LEAST_VARIANCE * k)

    def back(self, dC: np.ndarray, dgamma: np.ndarray, dnu: np.ndarray) -> np.ndarray:
        """Return the symmetric cotangent of K, given those of C, γ and ν, which are overwritten."""
        C, nu, gamma = self.C, self.nu, self.gamma
        dK = np.empty_like(C)
        for t in range(len(C) - 1, -1, -1):
            dmean, dvar = self.rule.back(t, dgamma[t], dnu[t])
            dC[t, t] += dvar
            dK[:, t] = g = dC[:, t]
            row = C[t, :t]
            dC[:, :t] -= np.outer(g, nu[:t] * row)
            dw = -(g @ C[:, :t])
            dC[t, :t] += dw * nu[:t] + dmean * gamma[:t]
            dnu[:t] += dw * row
            dgamma[:t] += dmean * row
        return 0.5 * (dK + dK.T)

    def back_from_M(self, dM: np.ndarray, dgamma: np.ndarray, dnu: np.ndarray) -> np.ndarray:
        """Return the symmetric cotangent of K, given those of M (below its diagonal), γ and ν."""
        below = np.tril(dM, -1)
        dnu = dnu + (below * self.C).sum(0)
        return self.back(np.asfortranarray(below * self.nu), dgamma.copy(), dnu)


@dataclass(eq=False)
class ByLabel:
    """Cotangents of the thresholds and of the log noise, one for each label.

    Attributes
    ----------
    upper, lower, log_noise : ndarray, shape (s,)
    """

    upper: np.ndarray
    lower: np.ndarray
    log_noise: np.ndarray

    def add(self, t: int | slice, terms: Terms, dgamma, dnu) -> None:
        """Add the terms that come through γ = L' and ν = −L'' of the labels t."""
        for total, by in (
            (self.upper, terms.upper),
            (self.lower, terms.lower),
            (self.log_noise, terms.log_noise),
        ):
            total[t] += dgamma * by[1] - dnu * by[2]


def back_through_moments(terms: Terms, dgamma, dnu):
    """Return the cotangents of mean and variance, given those of γ = L' and ν = −L''.

    The derivative of L by the variance is ½ (L'' + L'²); those of L' and L'' follow from it.
    """
    L1, L2, L3, L4 = terms.d1, -terms.curvature, terms.d3, terms.d4
    dmean = dgamma * L2 - dnu * L3
    dvar = dgamma * (0.5 * L3 + L1 * L2) - dnu * (0.5 * L4 + L2**2 + L1 * L3)
    return dmean, dvar


class Tilted:
    """The rule of assumed density filtering, which matches the moments of likelihood × Gaussian.

    Parameters
    ----------
    y : ndarray of int, shape (s,)
    likelihood : OrdinalLikelihood
    """

    def __init__(self, y: np.ndarray, likelihood: OrdinalLikelihood):
        self.y, self.likelihood = y, likelihood
        self.terms: list[Terms] = []
        self.p, self.b = np.empty(y.size), np.empty(y.size)
        self.forget()

    def forget(self) -> None:
        """Set the added-up cotangents to zero."""
        self.dp, *three = np.zeros((4, self.y.size))
        self.by = ByLabel(*three)

    def forward(self, t: int, mean: float, var: float) -> tuple[float, float]:
        """Return γ and ν of label t [Srijith2012, eq. 5]."""
        row = slice(t, t + 1)
        terms = self.likelihood.of_rows(row).tilted(self.y[row], np.array([mean]), np.array([var]))
        self.terms.append(terms)
        p, b = sites_of(terms, mean)
        self.p[t], self.b[t] = p.item(), b.item()
        return terms.d1.item(), terms.curvature.item()

    def back(self, t: int, dgamma: float, dnu: float) -> tuple[float, float]:
        """Return the cotangents of μ and λ."""
        terms = self.terms[t]
        dnu += self.dp[t] / terms.shrink.item() ** 2  # p = ν/(1 − λν)
        self.by.add(slice(t, t + 1), terms, dgamma, dnu)
        dmean, dvar = back_through_moments(terms, dgamma, dnu)
        return dmean.item(), dvar.item() + self.dp[t] * self.p[t] ** 2


class Gaussian:
    """The rule of a Gaussian site exp(b f − ½ p f²).

    Parameters
    ----------
    p, b : ndarray, shape (s,)
    """

    def __init__(self, p: np.ndarray, b: np.ndarray):
        self.p, self.b = p, b
        self.marginals = np.empty((2, b.size))
        self.forget()

    def forget(self) -> None:
        """Set the added-up cotangents to zero."""
        self.dp, self.db = np.zeros((2, self.b.size))

    def forward(self, t: int, mean: float, var: float) -> tuple[float, float]:
        """Return γ = (b − p μ)/(1 + p λ) and ν = p/(1 + p λ)."""
        self.marginals[:, t] = mean, var
        scale = 1.0 + self.p[t] * var
        return (self.b[t] - self.p[t] * mean) / scale, self.p[t] / scale

    def back(self, t: int, dgamma: float, dnu: float) -> tuple[float, float]:
        """Return the cotangents of μ and λ."""
        mean, var = self.marginals[:, t]
        scale = 1.0 + self.p[t] * var
        gamma, nu = (self.b[t] - self.p[t] * mean) / scale, self.p[t] / scale
        self.db[t] += dgamma / scale
        self.dp[t] += (dnu / scale - dgamma * (mean + var * gamma)) / scale
        return -dgamma * nu, -nu * (dgamma * gamma + dnu * nu)


def sites_of(terms: Terms, mean) -> tuple[np.ndarray, np.ndarray]:
    """Return the sites p = ν/(1 − λν) and b = p m, with m = μ + γ/ν [Srijith2012, eq. 5]."""
    p = terms.curvature / terms.shrink
    return p, p * mean + terms.d1 / terms.shrink


@dataclass(eq=False)
class Sweep:
    """One sweep of expectation propagation: all sites are updated at once from their cavities.

    Parameters
    ----------
    before : Filter
    y : ndarray of int, shape (s,)
    likelihood : OrdinalLikelihood
    """

    before: Filter
    y: np.ndarray
    likelihood: OrdinalLikelihood

    def __post_init__(self) -> None:
        """Compute the cavities, and new sites that match the moments of likelihood × cavity."""
        before, self.alpha = self.before, self.before.alpha
        L = linalg.cholesky_B(before.K, np.sqrt(before.rule.p))
        self.D = linalg.column_squares(linalg.triangular_inverse(L))  # 1 − p A without cancellation
        self.lam = before.variance / self.D
        self.mean = before.mean - self.lam * self.alpha
        self.terms = self.likelihood.tilted(self.y, self.mean, self.lam)
        self.after = Filter(before.K, Gaussian(*sites_of(self.terms, self.mean)))

    def back(self, dp: np.ndarray, db: np.ndarray, by: ByLabel) -> np.ndarray:
        """Return the cotangent of K, given those of the new sites."""
        terms, shrink, before = self.terms, self.terms.shrink, self.before
        p, b = sites_of(terms, self.mean)
        dshrink = -(dp * p + db * b) / shrink
        dgamma, dnu = db / shrink, (dp + db * self.mean) / shrink - self.lam * dshrink
        by.add(slice(None), terms, dgamma, dnu)
        dmean, dlam = back_through_moments(terms, dgamma, dnu)
        dmean = dmean + db * p
        dlam = dlam - terms.curvature * dshrink - dmean * self.alpha  # cavity mean h − λ α
        dvar = dlam / self.D**2  # λ = A/(1 − p A)
        before.rule.dp += dlam * self.lam**2
        dC = np.outer(dmean, before.gamma) - 2.0 * dvar[:, None] * before.C * before.nu
        dgamma, dnu = before.C.T @ dmean, -((before.C**2).T @ dvar)
        g = blas.dtrsv(before.M, -dmean * self.lam, lower=1, diag=1)  # α = M⁻ᵀ γ
        dM = np.tril(np.outer(-self.alpha, g), -1)
        dK = before.back(dC + dM * before.nu, dgamma + g, dnu + (dM * before.C).sum(0))
        dK.flat[:: len(dK) + 1] += dvar
        return dK


class Chain:
    """The filter's pass through the basis, followed by sweeps of expectation propagation.

    Parameters
    ----------
    K : ndarray, shape (s, s)
        Covariance in the order in which the labels enter.
    y : ndarray of int, shape (s,)
    likelihood : OrdinalLikelihood
    sweeps : int
    """

    def __init__(
        self, K: np.ndarray, y: np.ndarray, likelihood: OrdinalLikelihood, sweeps: int = 0
    ):
        self.first = Tilted(y, likelihood)
        self.last = Filter(K, self.first)
        self.sweeps: list[Sweep] = []
        for _ in range(sweeps):
            self.sweeps.append(Sweep(self.last, y, likelihood))
            self.last = self.sweeps[-1].after

    def back(
        self, dM: np.ndarray, dgamma: np.ndarray, dnu: np.ndarray
    ) -> tuple[np.ndarray, ByLabel]:
        """Return the cotangents of K and of the likelihood, given those of the last M, γ and ν."""
        self.first.forget()
        for sweep in self.sweeps:
            sweep.after.rule.forget()
        dK = self.last.back_from_M(dM, dgamma, dnu)
        for sweep in reversed(self.sweeps):
            rule = sweep.after.rule
            assert isinstance(rule, Gaussian)
            dK += sweep.back(rule.dp, rule.db, self.first.by)
        return dK, self.first.by
