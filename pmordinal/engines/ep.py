"""Expectation propagation [CG2005, section 3.2 and Appendix B].

Every datum has a Gaussian site of precision p. The state is (p, α), with the posterior mean h = K
α: the natural means ν = α + p h of the papers cancel when the noise is small. Away from the fixed
point all sites are updated at once, one factorisation a sweep, damped where that stops helping.
Near it the sites take Newton steps in which means are exact and variances are linear in the change
of the sites: products with A and A∘A, so that two or three factorisations finish.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import factorial
from typing import ClassVar, Self

import numpy as np

from pmordinal import linalg, routines, sweeps
from pmordinal.engines.base import ENGINES, Engine
from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.links.probit import Probit, arguments_of, fill_rows
from pmordinal.posterior import Gradient, Posterior, SiteReaction, Start, Status
from pmordinal.smoothing import Terms, Triple

SMALL = 200  # rows up to which single precision does not pay
NEAR = 1.0  # residual below which Newton steps pay
FLOOR = 1e-4  # residual below which a stalled iteration is at the rounding floor, not lost
PLAIN = 3.0  # residual, in tolerances, below which another plain sweep will do
ROUNDS = 3  # Newton steps with one factorisation
NOISE = 1e-6  # what single precision leaves of a residual
LOOSE = 1e-4  # residual that suffices inside an optimiser: the optimum moves by less than 1e-4 nats
SAMPLED = (
    3e-3  # and inside a sampler: the evidence moves by 1e-6 nats, its gradient by 1e-4 of itself
)


class EPPosterior(Posterior):
    """Posterior with the sites of expectation propagation [CG2005, App. B]."""

    def evidence_gradient(self) -> Gradient:
        """Return the gradient of the evidence: at the fixed point the sites may be held fixed."""
        terms = self.leave_one_out
        return Gradient(
            self.gram.pullback(self.evidence_dK(0.5 * self.alpha)),
            self.likelihood.threshold_gradient(self.y, terms.upper[0], terms.lower[0]),
            float(terms.log_noise[0].sum()),
        )

    @cached_property
    def log_evidence_correction(self) -> float:
        """Second-order estimate of log Z − `log_evidence`, from the third and fourth cumulants."""
        off, S = self.site_covariance.off, self.root_precision
        terms, shrink = self.leave_one_out, self.B_inverse_diagonal
        total, power = 0.0, off * off
        for order, cumulant in ((3, terms.d3), (4, terms.d4)):
            power = power * off  # A_ij = −off_ij / (S_i S_j)
            t = cumulant / (shrink * S) ** order
            total += (-1) ** order * 0.5 * float(t @ linalg.symv(power, t)) / factorial(order)
        return total

    def loo_gradient(self) -> Gradient:
        """Return the exact gradient of Σ log p(y_i | y without i): the sites move with θ."""
        terms, none = self.leave_one_out, np.zeros(self.y.size)
        # at fixed α, ∂J/∂λ = ½ (L'' + L'²) − L' α
        moved = self._react(terms.d1, -0.5 * (terms.curvature + terms.d1**2), none, none)
        by_threshold = self.likelihood.threshold_gradient(self.y, terms.upper[0], terms.lower[0])
        return Gradient(
            self.gram.pullback(moved.dK),
            by_threshold + moved.thresholds,
            float(terms.log_noise[0].sum()) + moved.log_noise,
        )

    def site_pullback(self, by_natural: np.ndarray, by_precision: np.ndarray) -> SiteReaction:
        """Return the reaction of the fixed point to cotangents of its sites; see `Posterior`."""
        none = np.zeros(self.y.size)
        return self._react(none, none, by_natural, by_precision)

    def _react(self, by_mean, by_var, by_natural, by_precision) -> SiteReaction:
        """Pull cotangents of h − λ δα, of λ, and of the sites through the fixed point.

        It is differentiated implicitly; all of its reaction is in the cotangent x of the site
        precisions, one linear system of order n.
        """
        A, terms = self.site_covariance, self.leave_one_out
        _, lam = self.cavity
        D = self.B_inverse_diagonal
        L3, L4 = terms.d3, terms.d4

        def back(by_mean, by_var, by_natural):
            """Pull cotangents of h − λ δα, λ and η back to those of λ, h and the slope L'."""
            by_h = by_mean / D
            by_slope = by_natural + A.times(by_h) - lam * by_mean
            return by_var + 0.5 * L3 / D * by_slope, by_h, by_slope

        def to_precision(by_var):
            return -A.others_squared_times(by_var / D**2)

        scale = self.variance

        def operator(z):
            x = scale * z
            return z - to_precision(back(-L3 / D**2 * x, -0.5 * L4 / D**2 * x, 0.0)[0]) / scale

        direct = by_precision + to_precision(back(by_mean, by_var, by_natural)[0])
        z = linalg.conjugate_residuals(operator, direct / scale, rtol=1e-10)
        x = scale * z / D**2
        by_var, by_h, by_slope = back(by_mean - L3 * x, by_var - 0.5 * L4 * x, by_natural)

        def total(by: Triple) -> np.ndarray:
            return by_slope / D * by[1] - x * by[2]

        return SiteReaction(
            self.marginal_pullback(by_h, by_var / D**2),
            self.likelihood.threshold_gradient(self.y, total(terms.upper), total(terms.lower)),
            float(total(terms.log_noise).sum()),
        )


@ENGINES.register("ep")
@dataclass(frozen=True)
class EP(Engine):
    """Expectation propagation.

    Parameters
    ----------
    tol : float
        Largest change of a site, in units of its marginal, at which the sites are accepted.
    max_sweeps : int
        Factorisations before giving up (and saying so in the status).

    Examples
    --------
    >>> import pymc as pm
    >>> from pmordinal.gram import Gram, lower
    >>> gram = Gram(lower(pm.gp.cov.ExpQuad(1, ls=1.0)), [[0.0], [1.0]], [1.0])
    >>> posterior = EP()(gram, np.array([0, 1]), OrdinalLikelihood([0.0], noise=0.5))
    >>> posterior.status.message, round(posterior.log_evidence, 4)
    ('converged', -1.775)
    """

    name: ClassVar[str] = "ep"
    objectives: ClassVar[tuple[str, ...]] = ("evidence", "loo", "bound")
    has_latent_pullback: ClassVar[bool] = True

    tol: float = 1e-8
    max_sweeps: int = 200

    def loosened(self, objective: str, sampled: bool = False) -> Self:
        """Return the engine with a wider tolerance for the evidence, stationary in the sites.

        Its error is quadratic in the residual and its gradient's is linear, far below what L-BFGS or NUTS sees.
        """
        if objective != "evidence":
            return self
        return replace(self, tol=max(self.tol, SAMPLED if sampled else LOOSE))

    def __call__(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        start: Posterior | Start | None = None,
    ) -> EPPosterior:
        """Return the posterior at the fixed point; see `Engine`."""
        problem = _Problem(gram.matrix, y, likelihood, self.tol)
        rough = 1e-3 if self.tol < NOISE else 10.0 * self.tol  # not the last sweep but one
        damping, near, best, previous, stalled, message = 1.0, NEAR, np.inf, np.inf, 0, ""
        sites, sweep = None, 0
        while True:
            sweep += 1
            expected = np.inf if sites is None else sites.expected
            single = y.size > SMALL and expected > rough and sweep < self.max_sweeps
            state = problem.solve(sites, single) if sites else problem.first(start, single)
            residual = state.residual
            stalled = 0 if residual < 0.5 * best else stalled + 1
            best = min(best, residual)
            if not state.single:
                if residual <= self.tol:
                    message = "converged"
                elif stalled >= 4 and best < FLOOR and residual < 2.0 * best:
                    message = f"converged to the rounding floor (residual {residual:.1e})"
            if message or sweep == self.max_sweeps:
                break
            if sites and sites.by_newton and residual > max(0.5 * previous, 1e-3 * state.single):
                near *= 0.1
            is_nearly_there = sweep == 1 and residual < PLAIN * self.tol
            newton = problem.newton(state) if residual < near and not is_nearly_there else None
            if newton is None:
                worse = residual > 0.9 * previous
                damping = max(0.6 * damping, 0.1) if worse else min(1.15 * damping, 1.0)
            sites = newton or state.damped(damping)
            previous = residual
        status = self._status(message, sweep, residual)
        posterior = EPPosterior(
            gram, y, likelihood, state.alpha, state.h, state.p, state.L, state.log_evidence, status
        )
        return posterior.remember(
            root_precision=state.S,
            _root=state.X,
            B_inverse_diagonal=state.c,
            variance=state.a,
            leave_one_out=state.terms,
        )

    def _status(self, message: str, sweep: int, residual: float) -> Status:
        """Return the status of an iteration that ended with a message, or with none."""
        lost = (
            f"no convergence in {self.max_sweeps} sweeps (residual {residual:.1e}): raise "
            "max_sweeps, or give the noise and length-scales proper priors"
        )
        return Status(bool(message), sweep, message or lost, sweep)


@dataclass(frozen=True, slots=True)
class _Sites:
    """Sites to solve for: precisions p and natural means α + t + p h, (α, h) a known pair."""

    p: np.ndarray
    t: np.ndarray
    alpha: np.ndarray
    expected: float  # residual
    by_newton: bool = False


@dataclass(frozen=True, slots=True)
class _State:
    """The posterior of given sites, its cavities, and the sites that these ask for."""

    p: np.ndarray
    S: np.ndarray
    L: np.ndarray
    X: np.ndarray
    alpha: np.ndarray
    h: np.ndarray
    a: np.ndarray
    c: np.ndarray
    lam: np.ndarray
    terms: Terms
    p_new: np.ndarray
    slope_gap: np.ndarray
    residual: float

    @property
    def single(self) -> bool:
        """Whether the factor is in single precision."""
        return self.L.dtype == np.float32

    @property
    def log_evidence(self) -> float:
        """Log Z of these sites, stationary where they are at the fixed point [CG2005, App. B]."""
        return float(
            self.terms.value.sum()
            - 0.5 * np.log(self.c).sum()
            - 0.5 * linalg.log_det(self.L)
            + 0.5 * (self.lam * self.alpha - self.h) @ self.alpha
        )

    def damped(self, size: float) -> _Sites:
        """Return sites moved by that share towards those asked for."""
        p = self.p + size * (self.p_new - self.p)
        return _Sites(p, size * self.slope_gap, self.alpha, self.residual)


def _ask(terms: Terms, alpha, p, a) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the site precisions that match moments, the gap in α, and the residual."""
    p_new = _floored(terms.curvature / terms.shrink)
    gap = (terms.d1 - alpha) / terms.shrink
    residual = float(max(np.abs((p_new - p) * a).max(), np.abs(gap * np.sqrt(a)).max()))
    if np.isfinite(residual):
        return p_new, gap, residual
    return np.where(np.isfinite(p_new), p_new, p), np.nan_to_num(gap, posinf=0, neginf=0), np.inf


def _floored(p: np.ndarray) -> np.ndarray:
    return np.maximum(p, max(sweeps.LEAST * p.max(), sweeps.TINY))


class _Problem:
    """The covariance matrix, the data, and the last A that was worth computing."""

    def __init__(self, K: np.ndarray, y: np.ndarray, likelihood: OrdinalLikelihood, tol: float):
        self.K, self.y, self.likelihood, self.tol = K, y, likelihood, tol
        is_small = y.size <= SMALL and isinstance(likelihood.link, Probit)
        self.arguments = arguments_of(*likelihood.bounds(y), likelihood.noise) if is_small else None
        self.A: linalg.SiteCovariance | None = None
        self.A_residual = np.inf
        self._turn = 0
        self._rooms: dict[tuple[str, np.dtype], np.ndarray] = {}

    @cached_property
    def tilt(self) -> Callable[[np.ndarray, np.ndarray], Terms]:
        """The likelihood's terms under Gaussians, a function of their means and variances."""
        return self.likelihood.tilting(self.y)

    @cached_property
    def K_single(self) -> np.ndarray:
        """K in single precision."""
        return linalg.in_single(self.K)

    def room(self, name: str, dtype) -> np.ndarray:
        """Return a matrix to work in, the same for the same name and precision."""
        if (name, dtype) not in self._rooms:
            self._rooms[name, dtype] = linalg.empty(self.K.shape, dtype)
        return self._rooms[name, dtype]

    def first(self, start: Posterior | Start | None, single: bool) -> _State:
        """Return the state of the sites that the cavities of `start`, or those of the prior, ask for."""
        known = None if start is None else start.cavity
        if known is not None and known[0].size == len(self.K):
            mu, lam = known
        else:
            mu, lam = np.zeros(len(self.K)), np.diagonal(self.K)
        if self.arguments is not None:
            self.arguments[3], self.arguments[5] = mu, lam
            rows, (alpha, h, p, t) = np.empty((16, mu.size)), np.empty((4, mu.size))
            fill_rows(self.arguments, rows)
            sweeps.begin(self.K, self.arguments, rows, alpha, h, p, t)
            state = self._sweep(p, t, alpha)
            return state or self.solve(_Sites(p, t, alpha, np.inf), single)
        terms = self.tilt(mu, lam)
        alpha = terms.d1  # what it is where the cavities are those of a fixed point
        p = _floored(terms.curvature / terms.shrink)
        t = p * (mu - linalg.symv(self.K, alpha)) + alpha / terms.shrink - alpha
        return self.solve(_Sites(p, t, alpha, np.inf), single)

    def solve(self, sites: _Sites, single: bool) -> _State:
        """Factorise B for the given sites, in single precision if asked and if that will do."""
        p, t = _floored(sites.p), sites.t
        if self.arguments is not None:
            state = self._sweep(p, t, sites.alpha)
            if state is not None:
                return state
        S = np.sqrt(p)
        single = single and linalg.is_well_conditioned(self.K, p)
        K = self.K_single if single else self.K
        L = linalg.cholesky_B(K, S, self.room("factor", K.dtype))
        alpha = sites.alpha + t - S * linalg.solve(L, S * linalg.symv(self.K, t))
        h = linalg.symv(self.K, alpha)
        X = linalg.triangular_inverse(L, self.room(f"inverse {self._turn}", K.dtype))
        c = np.einsum("ij,ij->j", X, X).astype(float)  # diag B⁻¹
        a = linalg.posterior_diagonal(self.K, c, p, S, L)
        lam = a / c
        terms = self.tilt(h - lam * alpha, lam)  # [CG2005, eq. 26]
        return _State(p, S, L, X, alpha, h, a, c, lam, terms, *_ask(terms, alpha, p, a))

    def _sweep(self, p, t, alpha) -> _State | None:
        """Do the same in compiled code; None where that loses too many digits."""
        n, alpha = p.size, alpha.copy()
        L, X = np.empty((n, n), order="F"), np.empty((n, n), order="F")
        S, h, a, c, lam = np.empty((5, n))
        fixed = routines.addresses(), *routines.room(), self.K, self.arguments
        reason = sweeps.solve(*fixed, L, X, alpha, p, t, S, h, a, c, lam)
        if reason == sweeps.NOT_POSITIVE:
            raise np.linalg.LinAlgError("B = I + S K S is not positive definite")
        if reason == sweeps.NO_DIGITS:
            return None
        rows = np.empty((16, n))
        fill_rows(self.arguments, rows)
        terms = Terms.of(rows[:15])
        return _State(p, S, L, X, alpha, h, a, c, lam, terms, *_ask(terms, alpha, p, a))

    def covariance(self, state: _State) -> linalg.SiteCovariance:
        """Return A, an old one where the step that it gives is good enough to finish."""
        if self.A is None or 0.1 * self.A_residual * state.residual > self.tol:
            Binv = linalg.gram_of_columns(state.X)
            self._turn = 1 - self._turn  # A keeps the matrix
            room = self.room("squared", Binv.dtype)
            self.A = linalg.SiteCovariance(Binv, state.p, state.S, state.a, room)
            self.A_residual = state.residual
        return self.A

    def newton(self, state: _State) -> _Sites | None:
        """Return sites after Newton steps on a model of the posterior, None if they do not help.

        In the model h moves by A z exactly, and λ to first order in the change of p.
        """
        A = self.covariance(state)
        expected = 0.1 * state.residual**2
        p, z = state.p, np.zeros_like(state.p)
        lam, terms = state.lam, state.terms
        p_new, gap, residual = state.p_new, state.slope_gap, state.residual
        best = None
        for _ in range(ROUNDS):
            dp, dz = _newton_step(A, state.c, lam, terms, p_new - p, gap, min(0.1, residual))
            p, z = np.maximum(p + dp, 0.1 * p), z + dz
            g = linalg.symv(
                self.K, z - state.S * linalg.solve(state.L, state.S * linalg.symv(self.K, z))
            )
            x = A.others_squared_times(p - state.p) / state.c**2
            lam = np.where(x > 0, state.lam / (1.0 + x / state.lam), state.lam - x)
            alpha = state.alpha + z - state.p * g
            terms = self.tilt(state.h + g - lam * alpha, lam)
            p_new, gap, new = _ask(terms, alpha, p, lam / (1.0 + p * lam))
            if not new < 0.7 * residual:
                break
            residual = new
            t = z + gap + (p_new - state.p) * g
            best = _Sites(p_new, t, state.alpha, max(expected, residual), True)
            if residual <= max(expected, 0.1 * self.tol):
                break
        return best


def _newton_step(A: linalg.SiteCovariance, c, lam, terms: Terms, p_gap, slope_gap, rtol):
    """Return the changes of p and of z that close the gaps to first order."""
    D, L3, L4 = terms.shrink, terms.d3, terms.d4

    def respond(dp, slope_gap, p_gap):
        dlam = -A.others_squared_times(dp) / c**2
        dz = slope_gap + 0.5 * L3 * dlam / D
        dh = A.times(dz)
        return p_gap - (L3 * (dh / D - lam * dz) + 0.5 * L4 * dlam) / D**2, dz

    scale = A.diagonal
    rhs, _ = respond(np.zeros_like(lam), slope_gap, p_gap)
    u = linalg.conjugate_residuals(
        lambda u: u - scale * respond(u / scale, 0.0, 0.0)[0], scale * rhs, rtol
    )
    dp = u / scale
    return dp, respond(dp, slope_gap, p_gap)[1]
