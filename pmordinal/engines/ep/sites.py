"""Sites of expectation propagation: solves for the posterior of given sites, and updates them [CG2005, App. B].

The engine iterates between the two, with plain steps and with the Newton steps that are here.

A row of weight w has w equal sites. What is kept of them (p, α, natural means) are their sums; a cavity is without
one site, so that all copies of a row have the same one, and each asks for the same new site. A row of weight below one
has one site, that of the likelihood to this power.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmordinal import linalg
from pmordinal.jit import njit
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.likelihood.smoothing import Terms
from pmordinal.linalg.workspace import empty
from pmordinal.posterior import Start

SMALL = 200  # up to so many rows, single precision is not faster
ROUNDS = 3  # largest number of Newton steps with one factorisation
LEAST_PRECISION_SHARE = 1e-12  # smallest site precision, as a share of the largest
LEAST_PRECISION = 1e-280  # smallest site precision in absolute terms


@dataclass(slots=True)
class Sites:
    """Sites to solve for: precisions p and natural means α + t + p h, given an earlier α and h = K α."""

    p: np.ndarray
    t: np.ndarray
    alpha: np.ndarray
    expected: float  # estimate of the residual
    by_newton: bool = False


@dataclass(slots=True)
class State:
    """The posterior of given sites, its cavities, and the new sites that match their moments."""

    p: np.ndarray
    S: np.ndarray
    L: np.ndarray
    X: np.ndarray
    alpha: np.ndarray
    h: np.ndarray
    a: np.ndarray
    c: np.ndarray
    D: np.ndarray
    lam: np.ndarray
    mu: np.ndarray
    terms: Terms
    weights: np.ndarray | None
    p_new: np.ndarray
    slope_gap: np.ndarray
    residual: float

    @property
    def single(self) -> bool:
        """Whether the factor is in single precision."""
        return self.L.itemsize == 4

    @property
    def log_evidence(self) -> float:
        """Log Z of these sites, stationary where they are at the fixed point [CG2005, App. B]."""
        w, one = self.weights, _one(self.alpha, self.weights)
        each = self.terms.value - 0.5 * np.log(self.D)
        total = each.sum() if w is None else w @ each
        return float(
            total - 0.5 * linalg.log_det(self.L) + 0.5 * (self.lam * one - self.h) @ self.alpha
        )

    def damped(self, size: float) -> Sites:
        """Return sites moved by this share towards the new ones."""
        p = _floored(self.p + size * (self.p_new - self.p))
        return Sites(p, size * self.slope_gap, self.alpha, self.residual)


def _one(total, weights: np.ndarray | None):
    """Return what one of the copies of a row has of their sum."""
    return total if weights is None else total / weights


def _all(one, weights: np.ndarray | None):
    """Return the sum over the copies of a row."""
    return one if weights is None else weights * one


def _ask(terms: Terms, alpha, p, a, copies) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the site precisions that match moments, the gap in α, and the residual."""
    p_new, gap = np.empty_like(p), np.empty_like(p)
    residual = _match(terms.d1, terms.curvature, terms.shrink, alpha, p, a, copies, p_new, gap)
    if np.isfinite(residual):
        return p_new, gap, residual
    return np.where(np.isfinite(p_new), p_new, p), np.nan_to_num(gap, posinf=0, neginf=0), np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def _match(d1, curvature, shrink, alpha, p, a, copies, p_new, gap):
    """Write the same to the last two, where all is finite, and return the residual, which is finite then."""
    highest = residual = 0.0
    for i in range(p.size):
        p_new[i] = copies[i] * curvature[i] / shrink[i]
        gap[i] = (copies[i] * d1[i] - alpha[i]) / shrink[i]
        if p_new[i] > highest:
            highest = p_new[i]
    least = max(LEAST_PRECISION_SHARE * highest, LEAST_PRECISION)
    for i in range(p.size):
        if p_new[i] < least:
            p_new[i] = least
        moved, slope = abs((p_new[i] - p[i]) * a[i]), abs(gap[i] * math.sqrt(a[i]))
        if moved > residual or math.isnan(moved):
            residual = moved
        if slope > residual or math.isnan(slope):
            residual = slope
    return residual


def _floored(p: np.ndarray) -> np.ndarray:
    return np.maximum(p, max(LEAST_PRECISION_SHARE * p.max(), LEAST_PRECISION))


class SiteProblem:
    """The covariance matrix and the data; keeps the last posterior covariance A that was computed."""

    def __init__(self, K: np.ndarray, y: np.ndarray, likelihood: OrdinalLikelihood, tol: float):
        self.K, self.y, self.likelihood, self.tol = K, y, likelihood, tol
        self.weights = likelihood.copies
        self.copies = np.ones(y.size) if self.weights is None else self.weights
        self.A: linalg.SiteCovariance | None = None
        self.A_residual = np.inf
        self._turn = 0
        self._rooms: dict[tuple[str, np.dtype], np.ndarray] = {}

    @cached_property
    def tilt(self) -> Callable[[np.ndarray, np.ndarray], Terms]:
        """The likelihood's terms under Gaussians, a function of their means and variances."""
        return self.likelihood.site_tilting(self.y)

    @cached_property
    def K_single(self) -> np.ndarray:
        """K in single precision."""
        return linalg.in_single(self.K)

    def room(self, name: str, dtype) -> np.ndarray:
        """Return a matrix to write to, always the same one for a name and precision."""
        if (name, dtype) not in self._rooms:
            self._rooms[name, dtype] = empty(self.K.shape, dtype)
        return self._rooms[name, dtype]

    def first(self, start: Start | None, single: bool) -> State:
        """Return the state of the sites that match the cavities of `start`, or the prior."""
        known = None if start is None else start.cavity
        if known is not None and known[0].size == len(self.K):
            mu, lam = known
        else:
            mu, lam = np.zeros(len(self.K)), self.K.diagonal()
        terms = self.tilt(mu, lam)
        # what it is where the cavities are those of a fixed point
        alpha = _all(terms.d1, self.weights)
        p = _floored(_all(terms.curvature / terms.shrink, self.weights))
        t = p * (mu - linalg.symv(self.K, alpha)) + alpha / terms.shrink - alpha
        return self.solve(Sites(p, t, alpha, np.inf), single)

    def solve(self, sites: Sites, single: bool) -> State:
        """Return the state of given sites; single precision is used if asked for and accurate enough."""
        p, t = sites.p, sites.t
        S = np.sqrt(p)
        single = single and linalg.is_well_conditioned(self.K, p)
        K = self.K_single if single else self.K
        L = linalg.cholesky_B(K, S, self.room("factor", K.dtype))
        alpha = sites.alpha + t - S * linalg.solve(L, S * linalg.symv(self.K, t))
        h = linalg.symv(self.K, alpha)
        X = linalg.triangular_inverse(L, self.room(f"inverse {self._turn}", K.dtype))
        c = linalg.column_squares(X)  # diag B⁻¹
        a = linalg.posterior_diagonal(self.K, c, p, S, L)
        w = self.weights
        D = c if w is None else (w - 1.0 + c) / w
        lam = a / D
        mu = h - lam * _one(alpha, w)  # [CG2005, eq. 26]
        terms = self.tilt(mu, lam)
        asked = _ask(terms, alpha, p, a, self.copies)
        return State(p, S, L, X, alpha, h, a, c, D, lam, mu, terms, w, *asked)

    def covariance(self, state: State) -> linalg.SiteCovariance:
        """Return the posterior covariance A: the last one if it gives good enough a step, else a new one."""
        if self.A is None or 0.1 * self.A_residual * state.residual > self.tol:
            Binv = linalg.gram_of_columns(state.X, state.X)
            self._turn = 1 - self._turn  # A uses the last buffer
            room = self.room("squared", Binv.dtype)
            share = None if self.weights is None else 1.0 / self.weights
            self.A = linalg.SiteCovariance(Binv, state.p, state.S, state.a, room, share)
            self.A_residual = state.residual
        return self.A

    def newton(self, state: State) -> Sites | None:
        """Return sites after Newton steps on a local model of the posterior; None if they do not help.

        In the model h changes by A z, which is exact, and λ to first order in the change of p.
        """
        A, w = self.covariance(state), self.weights
        expected = 0.1 * state.residual**2
        p, z = state.p, np.zeros_like(state.p)
        lam, terms = state.lam, state.terms
        p_new, gap, residual = state.p_new, state.slope_gap, state.residual
        best = None
        for _ in range(ROUNDS):
            gaps = p_new - p, gap
            dp, dz = _newton_step(A, state.D, lam, terms.times(w), w, *gaps, min(0.1, residual))
            p, z = np.maximum(p + dp, 0.1 * p), z + dz
            g = linalg.symv(
                self.K, z - state.S * linalg.solve(state.L, state.S * linalg.symv(self.K, z))
            )
            x = A.others_squared_times(p - state.p) / state.D**2
            lam = np.where(x > 0, state.lam / (1.0 + x / state.lam), state.lam - x)
            alpha = state.alpha + z - state.p * g
            terms = self.tilt(state.h + g - lam * _one(alpha, w), lam)
            a = lam / (1.0 + _one(p, w) * lam)
            p_new, gap, new = _ask(terms, alpha, p, a, self.copies)
            if not new < 0.7 * residual:
                break
            residual = new
            t = z + gap + (p_new - state.p) * g
            best = Sites(p_new, t, state.alpha, max(expected, residual), True)
            if residual <= max(expected, 0.1 * self.tol):
                break
        return best


def _newton_step(A: linalg.SiteCovariance, share, lam, terms: Terms, w, p_gap, slope_gap, rtol):
    """Return the changes of p and of z that close the gaps to first order; `terms` are times the weights."""
    D, L3, L4 = terms.shrink, terms.d3, terms.d4

    def respond(dp, slope_gap, p_gap):
        dlam = -A.others_squared_times(dp) / share**2
        dz = slope_gap + 0.5 * L3 * dlam / D
        dh = A.times(dz)
        return p_gap - (L3 * (dh / D - lam * _one(dz, w)) + 0.5 * L4 * dlam) / D**2, dz

    scale = A.diagonal
    rhs, _ = respond(np.zeros_like(lam), slope_gap, p_gap)
    u = linalg.conjugate_residuals(
        lambda u: u - scale * respond(u / scale, 0.0, 0.0)[0], scale * rhs, rtol
    )
    dp = u / scale
    return dp, respond(dp, slope_gap, p_gap)[1]
