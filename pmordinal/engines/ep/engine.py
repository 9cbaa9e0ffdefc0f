"""Expectation propagation [CG2005, section 3.2 and Appendix B].

Each label has a Gaussian site of precision p. The state is (p, α), with the posterior mean h = K α; the
natural means ν = α + p h of the papers would cancel when the noise is small. Away from the fixed point all
sites are updated at once, with one factorisation in each sweep, and damped if the residual does not fall.
Near it the sites take Newton steps, in which means are exact and variances are linear in the change of the
sites. These need only products with A and A∘A, so that two or three factorisations are enough.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import factorial
from typing import ClassVar, Self

import numpy as np

from pmordinal import linalg
from pmordinal.engines.base import ENGINES, Engine
from pmordinal.engines.ep.sites import SMALL, SiteProblem
from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.likelihood.smoothing import Terms, Triple
from pmordinal.posterior import Gradient, SitePosterior, SiteReaction, Start, Status

NEAR = 1.0  # Newton steps are tried below this residual
FLOOR = 1e-4  # below this residual, a stalled iteration has reached rounding errors
PLAIN = 3.0  # below this residual, in units of SAMPLED, one more plain sweep is enough
NOISE = 1e-6  # smallest residual in single precision
LOOSE = 1e-3  # tolerance inside an optimiser: the optimum changes by less than 1e-4 nats
SAMPLED = 3e-3  # tolerance inside a sampler: errors of the evidence are 1e-6 nats


@dataclass(frozen=True, eq=False)
class EPPosterior(SitePosterior):
    """Posterior with the sites of expectation propagation [CG2005, App. B].

    Attributes
    ----------
    inverse_factor : ndarray, shape (n, n)
        L⁻¹, the inverse of `factor`; zero above the diagonal.
    B_inverse_diagonal, variance, cavity
        Of the last sweep.
    site_terms : Terms
        The likelihood averaged over the cavities, to the power of weights below one.
    """

    inverse_factor: np.ndarray = field(repr=False)
    B_inverse_diagonal: np.ndarray = field(repr=False)
    variance: np.ndarray = field(repr=False)
    cavity: tuple[np.ndarray, np.ndarray] = field(repr=False)
    site_terms: Terms = field(repr=False)

    @cached_property
    def leave_one_out(self) -> Terms:
        """Log p(y_i | y without i) from the cavities, with derivatives; a site is what is left out."""
        w = self.likelihood.weights
        return self.site_terms if w is None or w.min() >= 1.0 else super().leave_one_out

    @cached_property
    def B_inverse(self) -> np.ndarray:
        """The lower triangle of B⁻¹, with zeros above it or the other half, shape (n, n)."""
        return linalg.gram_of_columns(self.inverse_factor)

    def evidence_gradient(self) -> Gradient:
        """Return the gradient of the evidence: at the fixed point the sites may be held fixed."""
        terms = self.site_terms.times(self.likelihood.copies)
        return Gradient(
            self.gram.pullback(self.evidence_dK(0.5 * self.alpha)),
            self.likelihood.threshold_gradient(self.y, terms.upper[0], terms.lower[0]),
            self.likelihood.noise_gradient(terms.log_noise[0]),
        )

    @cached_property
    def log_evidence_correction(self) -> float:
        """Second-order estimate of log Z − `log_evidence`, from the third and fourth cumulants."""
        off, S = self.site_covariance.off, self.root_precision
        terms, shrink, w = self.site_terms, self.cavity_share, self.likelihood.copies
        total, power = 0.0, off * off
        for order, cumulant in ((3, terms.d3), (4, terms.d4)):
            power = power * off  # A_ij = −off_ij / (S_i S_j)
            t = cumulant / (shrink * S) ** order
            pairs = (-1) ** order * linalg.symv(power, t if w is None else w * t)
            if w is not None:  # of a row's copies with each other
                pairs = w * (pairs + (w - 1.0) * (self.precision * self.variance) ** order * t)
            total += 0.5 * float(t @ pairs) / factorial(order)
        return total

    def loo_gradient(self) -> Gradient:
        """Return the exact gradient of Σ log p(y_i | y without i): the sites move with θ."""
        w, terms, none = self.likelihood.weights, self.leave_one_out, np.zeros(self.y.size)
        by_var = 0.5 * (terms.d1**2 - terms.curvature) - terms.d1 * self.left_alpha
        if w is not None:
            terms, by_var = terms.times(w), w * by_var
        # at fixed α, ∂J/∂λ = ½ (L'' + L'²) − L' α, α that of one site
        moved = self._react(terms.d1, by_var, none, none)
        by_threshold = self.likelihood.threshold_gradient(self.y, terms.upper[0], terms.lower[0])
        return Gradient(
            self.gram.pullback(moved.dK),
            by_threshold + moved.thresholds,
            self.likelihood.noise_gradient(terms.log_noise[0]) + moved.log_noise,
        )

    def site_pullback(self, by_natural: np.ndarray, by_precision: np.ndarray) -> SiteReaction:
        """Return the gradient terms from the change of the fixed point; see `SitePosterior`."""
        none = np.zeros(self.y.size)
        return self._react(none, none, by_natural, by_precision)

    def _react(self, by_mean, by_var, by_natural, by_precision) -> SiteReaction:
        """Pull derivatives by h − λ δα, by λ, and by the sites back through the fixed point.

        By implicit differentiation: one linear system of order n gives the derivatives x by the
        site precisions, and all others follow.
        """
        A, D, w = self.site_covariance, self.cavity_share, self.likelihood.copies
        terms = self.site_terms.times(w)
        lam = self.variance / D  # over the weight: of the sites' sum, one has that share
        lam = lam if w is None else lam / w
        L3, L4 = terms.d3, terms.d4

        def back(by_mean, by_var, by_natural):
            """Turn derivatives by h − λ δα, λ and η into those by λ, h and the slope L'."""
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
            self.likelihood.noise_gradient(total(terms.log_noise)),
        )


@ENGINES.register("ep")
@dataclass(frozen=True)
class EP(Engine):
    """Expectation propagation.

    Parameters
    ----------
    tol : float
        The iteration ends when no site changes by more than this, in units of its marginal.
    max_sweeps : int
        Largest number of sweeps; the status says if they were not enough.

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
    has_weights: ClassVar[bool] = True

    tol: float = 1e-8
    max_sweeps: int = 200

    def loosened(self, objective: str, sampled: bool = False) -> Self:
        """Return the engine with a larger tolerance if the objective is the evidence.

        The evidence is stationary in the sites: its error is quadratic in the residual, that of its gradient linear.
        """
        if objective != "evidence":
            return self
        return replace(self, tol=max(self.tol, SAMPLED if sampled else LOOSE))

    def __call__(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        start: Start | None = None,
    ) -> EPPosterior:
        """Return the posterior at the fixed point; see `Engine`."""
        problem = SiteProblem(gram.matrix, y, likelihood, self.tol)
        rough = 1e-3 if self.tol < NOISE else 10.0 * self.tol  # no single precision below it
        damping, near, best, previous, stalled, message = 1.0, NEAR, np.inf, np.inf, 0, ""
        sites, sweep = None, 0
        # A sampler's start is predicted: a single sweep mostly does, and it is in double precision.
        expected = 0.0 if start is not None and self.tol >= SAMPLED else np.inf
        while True:
            sweep += 1
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
            is_nearly_there = sweep == 1 and self.tol >= SAMPLED > residual / PLAIN
            newton = problem.newton(state) if residual < near and not is_nearly_there else None
            if newton is None:
                worse = residual > 0.9 * previous
                damping = max(0.6 * damping, 0.1) if worse else min(1.15 * damping, 1.0)
            sites = newton or state.damped(damping)
            previous, expected = residual, sites.expected
        status = self._status(message, sweep, residual)
        return EPPosterior(
            gram=gram,
            y=y,
            likelihood=likelihood,
            alpha=state.alpha,
            mean=state.h,
            precision=state.p,
            factor=state.L,
            log_evidence=state.log_evidence,
            status=status,
            inverse_factor=state.X,
            B_inverse_diagonal=state.c,
            variance=state.a,
            cavity=(state.mu, state.lam),
            site_terms=state.terms,
        )

    def _status(self, message: str, sweep: int, residual: float) -> Status:
        """Return the status: converged with this message, or not converged if it is empty."""
        return Status(
            converged=bool(message),
            iterations=sweep,
            message=message
            or f"no convergence in {self.max_sweeps} sweeps (residual {residual:.1e}): raise max_sweeps, or give "
            "the noise and length-scales proper priors",
            factorizations=sweep,
        )
