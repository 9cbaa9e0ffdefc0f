"""A normal distribution truncated to a box: its probability and draws, by minimax tilting [Botev2017].

Z = P(lower < z ≤ upper) for z ~ N(0, C). With C = L Lᵀ, D the diagonal of L and T = D⁻¹ L (ones on its diagonal),
z = L x for white noise x, and the box is the chain of intervals

    lower_k/D_k − c_k < x_k ≤ upper_k/D_k − c_k,    c_k = Σ_{j<k} T_kj x_j.

A proposal draws x_k ~ N(μ_k, 1) in its interval, one k after the other. Its weight exp ψ(x; μ), the density of N(0, I)
over that of the proposal, has the mean Z for any tilt μ:

    ψ(x; μ) = Σ_k ½ μ_k² − x_k μ_k + log P(a_k < e ≤ b_k),    (a, b)_k = (lower, upper)_k/D_k − c_k − μ_k

Botev takes the μ that makes the largest weight smallest. There ∂ψ/∂μ = 0 and ∂ψ/∂x = 0: with m(t) the mean of
e ~ N(0, 1) in the interval that the shift t = c + μ leaves,

    x = μ + m,    μ = (T − I)ᵀ m;    hence    t + m(t) = T Tᵀ m(t),

n equations whose Jacobian V + T Tᵀ κ (V the variance of e, κ = 1 − V) is never singular: a Newton step costs one
factorisation of I + W^½ T Tᵀ W^½, W = κ/V. ψ is concave in x, so that its value there is an upper bound of all log
weights: accepting proposals with probability exp(ψ − bound) leaves independent, exact draws.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from pmordinal import linalg
from pmordinal.engines.exact.truncated import quantile_of
from pmordinal.jit import njit
from pmordinal.links import LINKS
from pmordinal.links.base import Interval
from pmordinal.links.probit import log_interval_of

PROBIT = LINKS["probit"]
BLOCK = 64  # variables that are drawn between two matrix products
ROUNDING = 1e-14  # residuals below this, relative to the terms of their sum, are rounding errors
STEPS = 30  # Newton steps, before an easier problem is solved first
# no easier problem is tried if all conditional standard deviations are above this share of the marginal
EASY = 0.5
INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)


def greedy_order(C: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the variables in an order that puts improbable intervals first [Botev2017].

    The next one is always the least probable, given the conditional means of those before it.
    """
    n = lower.size
    width = upper - lower
    order, rest = np.arange(n), np.diagonal(C).copy()
    mean = np.zeros(n)
    L = np.zeros((n, n), order="F")  # rows in the original numbering
    for k in range(n):
        left = order[k:]
        sd = np.sqrt(rest[left])
        log_p = PROBIT.log_interval(
            (lower[left] - mean[left]) / sd, (upper[left] - mean[left]) / sd, width[left] / sd
        )
        best = int(np.argmin(log_p))
        i = left[best]
        order[k], order[k + best] = i, order[k]
        left = order[k + 1 :]
        s = sd[best]
        e = PROBIT.interval((lower[i] - mean[i]) / s, (upper[i] - mean[i]) / s, width[i] / s).slope
        column = (C[:, i] - L[:, :k] @ L[i, :k]) / s
        L[:, k] = column
        # rounding must not make a variance of a nearly singular C negative
        rest[left] = np.maximum(rest[left] - column[left] ** 2, 1e-14 * C[left, left])
        mean[left] += column[left] * e
    return order


class Proposals(NamedTuple):
    """Weighted draws of a `Box`.

    Attributes
    ----------
    u : ndarray, shape (n, draws)
        The uniform random numbers that they were made from.
    x : ndarray, shape (n, draws)
        White noise; `Box.alpha` and `Box.values` are linear in it.
    log_weights : ndarray, shape (draws,)
        The average of their exponentials is an unbiased estimate of the box's probability.
    """

    u: np.ndarray
    x: np.ndarray
    log_weights: np.ndarray


class BoxGradient(NamedTuple):
    """Derivatives of an estimated log probability by C (symmetric), lower and upper."""

    C: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True, eq=False)
class Box:
    """N(0, C) truncated to a box, with its minimax tilt; created by `Box.solve`.

    Attributes
    ----------
    order : ndarray of int, shape (n,)
        The order in which variables are drawn.
    L : ndarray, shape (n, n)
        Lower Cholesky factor of C in that order.
    lower, upper, width : ndarray, shape (n,)
        The box in units of the diagonal of L, in that order.
    shift : ndarray, shape (n,)
        The solution t of the equations above.
    converged : bool
        Whether t is a solution: only then is `bound` a bound.
    iterations : int
    """

    order: np.ndarray
    L: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    width: np.ndarray
    shift: np.ndarray
    converged: bool
    iterations: int

    @classmethod
    def solve(
        cls,
        C: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        order: np.ndarray | None = None,
        start: np.ndarray | None = None,
        tol: float = 1e-10,
    ) -> "Box":
        """Return the box with its tilt.

        Parameters
        ----------
        C : ndarray, shape (n, n)
            Positive definite.
        lower, upper : ndarray, shape (n,)
            Ends of the box; one of each pair may be infinite.
        order : ndarray of int, shape (n,), optional
            Default is `greedy_order`.
        start : ndarray, shape (n,), optional
            The `start` of a box nearby.
        tol : float
            Largest residual, relative to the largest shift.
        """
        order = greedy_order(C, lower, upper) if order is None else order
        L, info = lapack.dpotrf(np.asfortranarray(C[np.ix_(order, order)]), lower=1, clean=1)
        if info:
            raise np.linalg.LinAlgError(f"C is not positive definite (order {info})")
        D = np.diagonal(L)
        lo, hi = lower[order] / D, upper[order] / D
        width = (upper - lower)[order] / D
        S = C[np.ix_(order, order)] / D / D[:, None]
        t = np.zeros(lo.size)
        if start is not None and start.size == lo.size:
            m = D * start[order]
            t = S @ m - m
        t, converged, iterations = _saddle(S, lo, hi, width, t, tol)
        if not converged and D.min() < EASY * np.sqrt(np.diagonal(C).max()):
            # start from the solution with white noise that doubles the least conditional sd
            easier = cls.solve(
                C + 3.0 * D.min() ** 2 * np.eye(D.size), lower, upper, order, None, tol
            )
            m = D * easier.start[order]
            t, converged, more = _saddle(S, lo, hi, width, S @ m - m, tol)
            iterations += easier.iterations + more
        return cls(order, L, lo, hi, width, t, converged, iterations)

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.order.size

    @cached_property
    def scale(self) -> np.ndarray:
        """D, the standard deviation of each variable given those before it."""
        return np.diagonal(self.L).copy()

    @cached_property
    def T(self) -> np.ndarray:
        """D⁻¹ L minus its diagonal of ones, shape (n, n), in C order."""
        T = np.ascontiguousarray(self.L) / self.scale[:, None]
        np.fill_diagonal(T, 0.0)
        return T

    @cached_property
    def interval(self) -> Interval:
        """The intervals at the solution: `slope` is m, `curvature` is κ."""
        return PROBIT.interval(self.lower - self.shift, self.upper - self.shift, self.width)

    @property
    def start(self) -> np.ndarray:
        """D⁻¹ m in the original order: a warm start for any order of the variables."""
        out = np.empty(self.n)
        out[self.order] = self.interval.slope / self.scale
        return out

    @cached_property
    def tilt(self) -> np.ndarray:
        """μ, shape (n,)."""
        return self.interval.slope @ self.T

    @cached_property
    def bound(self) -> float:
        """An upper bound of all log weights: ψ at the solution."""
        mu, m = self.tilt, self.interval.slope
        return float((self.interval.log_prob - mu * (0.5 * mu + m)).sum())

    def propose(self, u: np.ndarray) -> Proposals:
        """Return one weighted draw for each column of uniform numbers, shape (n, draws)."""
        n, draws = u.shape
        x, log_weights = np.empty((n, draws)), np.zeros(draws)
        box = (self.T, self.lower, self.upper, self.width, self.tilt)
        for i in range(0, n, BLOCK):
            j = min(i + BLOCK, n)
            _propose(i, *box, u, self.T[i:j, :i] @ x[:i], x, log_weights)
        return Proposals(u, x, log_weights)

    def accept(self, log_weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return which proposals accept–reject keeps as exact, independent draws, shape (draws,)."""
        return np.log(rng.random(log_weights.size)) < log_weights - self.bound

    def alpha(self, x: np.ndarray) -> np.ndarray:
        """Return C⁻¹ z in the original order, shape (n, draws)."""
        out = np.empty_like(x)
        out[self.order] = lapack.dtrtrs(self.L, x, lower=1, trans=1)[0]
        return out

    def values(self, x: np.ndarray) -> np.ndarray:
        """Return z in the original order, shape (n, draws)."""
        out = np.empty_like(x)
        out[self.order] = blas.dtrmm(1.0, self.L, x, lower=1)
        return out

    def gradient(self, proposals: Proposals) -> BoxGradient:
        """Return the exact gradient of log mean exp(log weights), the uniform numbers held fixed.

        Draws are functions of C and the box; the chain rule goes back through them, through the tilt (by the implicit
        function theorem) and through the Cholesky factorisation.
        """
        u, x, log_weights = proposals
        n = self.n
        p = np.exp(log_weights - log_weights.max())
        p /= p.sum()
        mu, T = self.tilt, self.T
        dT = np.zeros((n, n))
        d_lo, d_hi, d_mu = np.empty(n), np.empty(n), np.empty(n)
        by_c = np.empty_like(x)
        for i in reversed(range(0, n, BLOCK)):
            j = min(i + BLOCK, n)
            part = slice(i, j)
            t = T[part, :j] @ x[:j] + mu[part, None]
            lo, hi = self.lower[part, None] - t, self.upper[part, None] - t
            e = x[part] - mu[part, None]
            log_P = PROBIT.log_interval(lo, hi, self.width[part, None])
            log_u, log_v = np.log(u[part]), np.log1p(-u[part])
            # Φ(e) = (1 − u) Φ(lo) + u Φ(hi)
            half = 0.5 * e * e
            e_lo = np.exp(np.minimum(log_v + half - 0.5 * lo * lo, 0.0))
            e_hi = np.exp(np.minimum(log_u + half - 0.5 * hi * hi, 0.0))
            P_lo = -INV_SQRT_2PI * np.exp(-0.5 * lo * lo - log_P)
            P_hi = INV_SQRT_2PI * np.exp(-0.5 * hi * hi - log_P)
            by_x = T[j:, part].T @ by_c[j:] - mu[part, None] * p
            for k in range(j - 1, i - 1, -1):
                r = k - i
                by_x[r] += T[k + 1 : j, k] @ by_c[k + 1 : j]
                by_lo = P_lo[r] * p + by_x[r] * e_lo[r]
                by_hi = P_hi[r] * p + by_x[r] * e_hi[r]
                np.negative(by_lo + by_hi, out=by_c[k])
                d_lo[k], d_hi[k] = by_lo.sum(), by_hi.sum()
            d_mu[part] = by_x.sum(1) + by_c[part].sum(1) - e @ p
            dT[part, :j] = by_c[part] @ x[:j].T
        d_lo, d_hi = self._through_tilt(d_mu, dT, d_lo, d_hi)
        return self._through_factor(np.tril(dT, -1), d_lo, d_hi)

    def _through_tilt(self, d_mu, dT, d_lo, d_hi) -> tuple[np.ndarray, np.ndarray]:
        """Add the terms that come from the change of the tilt to `dT` and to the derivatives by the ends."""
        T, q = self.T, self.interval
        m, W = q.slope, _site_precision(q)
        root = np.sqrt(W)
        S = self.L @ self.L.T / self.scale / self.scale[:, None]
        by_m = T @ d_mu  # μ = Tᵀ m
        dT += np.outer(m, d_mu)
        B = linalg.cholesky_B(S, root)
        lam = -root * linalg.solve(B, root * by_m)  # (V + κ S) λ = −κ ∂m
        by_m = by_m - lam + S @ lam
        # S = (T + I)(T + I)ᵀ
        dT += np.outer(lam, m @ T + m) + np.outer(m, lam @ T + lam)
        return d_lo + by_m * q.lower[1], d_hi + by_m * q.upper[1]

    def _through_factor(self, dT, d_lo, d_hi) -> BoxGradient:
        D, L, T = self.scale, self.L, self.T
        dL = dT / D[:, None]
        lo, hi = (
            np.where(np.isfinite(self.lower), self.lower, 0.0),
            np.where(np.isfinite(self.upper), self.upper, 0.0),
        )
        np.fill_diagonal(dL, -((dT * T).sum(1) + d_lo * lo + d_hi * hi) / D)
        # dC = L⁻ᵀ Φ(Lᵀ dL) L⁻¹, symmetrised; Φ takes the lower triangle and half the diagonal
        inner = np.tril(L.T @ dL)
        inner[np.diag_indices(self.n)] *= 0.5
        right = lapack.dtrtrs(L, inner.T, lower=1, trans=1)[0]  # L⁻ᵀ Φᵀ
        half = lapack.dtrtrs(L, right.T, lower=1, trans=1)[0]
        dC = np.empty_like(half)
        dC[np.ix_(self.order, self.order)] = 0.5 * (half + half.T)
        by_lower, by_upper = np.empty_like(D), np.empty_like(D)
        by_lower[self.order], by_upper[self.order] = d_lo / D, d_hi / D
        return BoxGradient(dC, by_lower, by_upper)


@njit(cache=True, nogil=True)
def _propose(i, T, lower, upper, width, mu, u, c, x, log_weights):
    """Draw the rows of x from i on, as many as `c` has, and update the log weights.

    `c` holds the contribution of the rows before i to their means; it is overwritten.
    """
    for row in range(c.shape[0]):
        k, shift = i + row, c[row]
        for j in range(i, k):
            factor, known = T[k, j], x[j]
            for d in range(shift.size):
                shift[d] += factor * known[d]
        tilt = mu[k]
        for d in range(shift.size):
            t = shift[d] + tilt
            lo, hi = lower[k] - t, upper[k] - t
            e = quantile_of(lo, hi, u[k, d])
            x[k, d] = tilt + e
            log_weights[d] += log_interval_of(lo, hi, width[k]) - tilt * (0.5 * tilt + e)


def _site_precision(q: Interval) -> np.ndarray:
    """Return κ / V, which is never negative."""
    assert q.variance is not None
    return q.curvature / np.maximum(q.variance, 1e-300)


def _saddle(S, lo, hi, width, t, tol: float) -> tuple[np.ndarray, bool, int]:
    """Solve t + m(t) = S m(t); return t, whether it has converged, and the number of Newton steps."""

    def evaluate(t):
        q = PROBIT.interval(lo - t, hi - t, width)
        there = S @ q.slope
        residual = t + q.slope - there
        return q, residual, 1.0 + np.max(np.abs(there))

    q, residual, size = evaluate(t)
    norm = np.linalg.norm(residual)
    for step in range(STEPS):
        if np.max(np.abs(residual)) <= tol * size:
            return t, True, step
        W = _site_precision(q)
        root = np.sqrt(W)
        # (V + S κ) dt = −residual, with V dt for the unknown
        B = linalg.cholesky_B(S, root)
        move = residual - S @ (root * linalg.solve(B, root * residual))
        dt = -move / np.maximum(q.variance, 1e-300)
        length = 1.0
        while length > 1e-10:
            new = t + length * dt
            q_new, r_new, size_new = evaluate(new)
            n_new = np.linalg.norm(r_new)
            if n_new < (1.0 - 1e-4 * length) * norm:
                break
            length *= 0.5
        else:
            floor = ROUNDING * np.max(np.abs(S) @ np.abs(q.slope))
            return t, bool(np.max(np.abs(residual)) <= floor), step
        t, q, residual, size, norm = new, q_new, r_new, size_new, n_new
    return t, False, STEPS
