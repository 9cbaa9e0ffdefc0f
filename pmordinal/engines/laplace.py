"""Laplace approximation, the MAP approach of [CG2005, section 3.1 and Appendix A].

The mode is found by Newton steps with step halving. Close to it further steps use the same Cholesky factor,
so that an evaluation costs about four factorisations, or two from a warm start.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from pmordinal import linalg
from pmordinal.engines.base import ENGINES, Engine
from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.likelihood.smoothing import Terms, Triple
from pmordinal.linalg.workspace import empty
from pmordinal.posterior import Gradient, SitePosterior, SiteReaction, Start, Status

SMALL = 200  # up to so many rows, single precision is not faster
STEEP = 1e8  # above this curvature, in prior precisions, Newton steps fail at the start
FLOOR = 1e-4  # below this decrement, a stalled iteration has reached rounding errors
LOOSE = 1e-6  # tolerance inside an optimiser: the evidence changes by less than that
SAMPLED = 1e-5  # tolerance inside a sampler
CLOSE = 5.0  # below this decrement, in posterior standard deviations, the factor is used again
MOST_STEPS = 16  # largest number of steps with one factor


@dataclass(frozen=True, eq=False)
class LaplacePosterior(SitePosterior):
    """Posterior N(f_MAP, (K⁻¹ + Λ)⁻¹) [CG2005, eq. 10].

    Attributes
    ----------
    at_mode : Terms
        The likelihood at the mode, times the weights.
    """

    at_mode: Terms = field(repr=False)

    @property
    def start(self) -> Start:
        """A warm start for the engine's next run, without cavities."""
        return Start(self.alpha)

    @cached_property
    def log_evidence_correction(self) -> float:
        """Second-order estimate of log Z − `log_evidence`, from the third and fourth derivative at the mode."""
        A, a, S, terms = self.site_covariance, self.variance, self.root_precision, self.at_mode
        cubes = -((A.off / S / S[:, None]) ** 3)  # A_ij³ off the diagonal
        slope = terms.d3 * a
        by_pairs = slope @ A.times(slope) / 8.0 + terms.d3 @ linalg.symv(cubes, terms.d3) / 12.0
        return float(terms.d4 @ a**2 / 8.0 + by_pairs + terms.d3**2 @ a**3 / 12.0)

    def evidence_gradient(self) -> Gradient:
        """Return the gradient of the evidence, including the change of the mode [CG2005, App. A]."""
        K, S, g = self.gram.matrix, self.root_precision, self.alpha
        Binv, terms, A = self.B_inverse, self.at_mode, self.variance
        by_mode = 0.5 * A * terms.d3  # −½ log|B| depends on the mode through W = −L''
        u = by_mode - S * linalg.symv(Binv, S * linalg.symv(K, by_mode))  # (I + W K)⁻¹ by_mode
        pull = linalg.symv(K, u)  # derivative of the evidence by the slope L' of each datum

        def total(by: Triple) -> np.ndarray:
            return by[0] + pull * by[1] + 0.5 * A * by[2]

        return Gradient(
            self.gram.pullback(self.evidence_dK(0.5 * g + u)),
            self.likelihood.threshold_gradient(self.y, total(terms.upper), total(terms.lower)),
            self.likelihood.noise_gradient(total(terms.log_noise)),
        )

    def loo_gradient(self) -> Gradient:
        """Return the exact gradient of Σ log p(y_i | y without i), the mode's motion included."""
        A, D, w = self.site_covariance, self.cavity_share, self.likelihood.weights
        _, lam = self.cavity
        at_mode, terms = self.at_mode, self.leave_one_out
        # the cavity is λ = A/D and μ = f − λ L'(f), L' of as much as is left out
        by_slope = -lam * terms.d1
        by_A = (0.5 * (terms.d1**2 - terms.curvature) - self.left_alpha * terms.d1) / D**2
        if w is not None:
            by_slope, by_A, terms = w * self.left_share * by_slope, w * by_A, terms.times(w)
        by_W = -A.others_squared_times(by_A)
        by_f = terms.d1 - by_W * at_mode.d3 - by_slope * at_mode.curvature
        pull = by_slope + A.times(by_f)

        def total(direct: Triple, mode: Triple) -> np.ndarray:
            return direct[0] + pull * mode[1] - by_W * mode[2]

        return Gradient(
            self.gram.pullback(self.marginal_pullback(by_f, by_A)),
            self.likelihood.threshold_gradient(
                self.y, total(terms.upper, at_mode.upper), total(terms.lower, at_mode.lower)
            ),
            self.likelihood.noise_gradient(total(terms.log_noise, at_mode.log_noise)),
        )

    def site_pullback(self, by_natural: np.ndarray, by_precision: np.ndarray) -> SiteReaction:
        """Return the gradient terms from the change of the mode; see `SitePosterior`."""
        at_mode = self.at_mode
        by_f = -at_mode.d3 * by_precision  # W = −L''(f)
        by_slope = by_natural + self.site_covariance.times(by_f)

        def total(by: Triple) -> np.ndarray:
            return by_slope * by[1] - by_precision * by[2]

        return SiteReaction(
            self.marginal_pullback(by_f, np.zeros_like(by_f)),
            self.likelihood.threshold_gradient(self.y, total(at_mode.upper), total(at_mode.lower)),
            self.likelihood.noise_gradient(total(at_mode.log_noise)),
        )


@ENGINES.register("laplace")
@dataclass(frozen=True)
class Laplace(Engine):
    """Laplace approximation at the mode of the latent function.

    Parameters
    ----------
    tol : float
        The iteration ends when the Newton decrement, in posterior standard deviations, is below this.
    max_iterations : int
        Largest number of Newton steps; the status says if they were not enough.
    """

    name: ClassVar[str] = "laplace"
    objectives: ClassVar[tuple[str, ...]] = ("evidence", "loo")
    has_latent_pullback: ClassVar[bool] = True
    has_weights: ClassVar[bool] = True
    fewest_iterations: ClassVar[int] = 2

    tol: float = 1e-8
    max_iterations: int = 100

    def loosened(self, objective: str, sampled: bool = False) -> Self:
        """Return the engine with a larger tolerance, still too small to disturb an optimiser or sampler."""
        return replace(self, tol=max(self.tol, SAMPLED if sampled else LOOSE))

    def __call__(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        start: Start | None = None,
    ) -> LaplacePosterior:
        """Return the Laplace approximation; see `Engine`."""
        K = gram.matrix
        mode = _Mode(K, y, likelihood, None if start is None else start.alpha)
        spent = 1
        if mode.is_steep:  # solve with twice the noise first, and start from that mode
            easier = self(gram, y, replace(likelihood, noise=2.0 * likelihood.noise), start)
            mode = _Mode(K, y, likelihood, easier.alpha)
            spent += easier.status.factorizations
            del easier
        # Residuals are in double precision, so a factor in single precision is enough, at half the cost.
        can_be_single = y.size > SMALL and linalg.is_well_conditioned(K, mode.terms.curvature)
        K_step = linalg.in_single(K) if can_be_single else K
        buffer = empty(K.shape, K_step.dtype)
        message, iterations = "", 0
        decrement = 1.0  # optimistic: assumes quadratic convergence, which is checked below
        while True:
            while not message and iterations < self.max_iterations:
                spent += 1
                S = np.sqrt(mode.terms.curvature)
                if K_step is not K and not linalg.is_well_conditioned(K, mode.terms.curvature):
                    K_step, buffer = K, empty(K.shape)
                L = linalg.cholesky_B(K_step, S, buffer)
                previous = decrement
                decrement, error, steps = mode.descend(L, S, self.tol, previous)
                iterations += steps
                if error <= 0.01 * self.tol or decrement <= self.tol:
                    message = "converged"
                elif decrement > 0.5 * previous and decrement < FLOOR:
                    message = f"converged to the rounding floor (decrement {decrement:.1e})"
            W = np.maximum(mode.terms.curvature, 1e-280)  # not zero, as leave-one-out divides by it
            S = np.sqrt(W)
            L = linalg.cholesky_B(K, S)
            if not message or iterations > 1 or mode.step(L, S)[2] <= self.tol:
                break
            spent, message = spent + 1, ""  # one step was not enough
        log_evidence = mode.objective - 0.5 * linalg.log_det(L)  # [CG2005, eq. 11]
        status = self._status(message, iterations, decrement, spent)
        return LaplacePosterior(
            gram=gram,
            y=y,
            likelihood=likelihood,
            alpha=mode.alpha,
            mean=mode.f,
            precision=W,
            factor=L,
            log_evidence=log_evidence,
            status=status,
            at_mode=mode.terms,
        )

    def _status(self, message: str, iterations: int, decrement: float, spent: int) -> Status:
        """Return the status: converged with this message, or not converged if it is empty."""
        if message:
            return Status(True, iterations, message, spent)
        message = (
            f"no convergence in {self.max_iterations} Newton steps (decrement {decrement:.1e}): "
            "raise max_iterations, or give the noise and length-scales proper priors"
        )
        return Status(False, iterations, message, spent)


class _Mode:
    """The iterate f = K α, its likelihood terms and the objective −S(f) [CG2005, eq. 9]."""

    def __init__(self, K, y, likelihood, alpha: np.ndarray | None):
        self.K, self.log_prob, self.weights = K, likelihood.at(y), likelihood.weights
        self.alpha = self.f = np.zeros(y.size)
        if alpha is not None and alpha.size == y.size:
            f = linalg.symv(K, alpha)
            terms, objective = self._evaluate(alpha, f)
            r = terms.d1 - alpha
            if r @ linalg.symv(K, r) < CLOSE**2:  # bounds the decrement: it is close
                self._move(alpha, f, terms, objective)
                return
        self._move(self.alpha, self.f, *self._evaluate(self.alpha, self.f))
        if alpha is not None and alpha.size == y.size and objective > self.objective:
            self._move(alpha, f, terms, objective)

    def _evaluate(self, alpha, f) -> tuple[Terms, float]:
        with np.errstate(over="ignore"):  # a step too far, or a start: the next one is nearer
            terms = self.log_prob(f).times(self.weights)
        return terms, float(terms.value.sum() - 0.5 * alpha @ f)

    @property
    def _slack(self) -> float:
        return 1e-12 * (1.0 + abs(self.objective))  # rounding of the sum

    @property
    def is_steep(self) -> bool:
        """Whether the curvature is so large that Newton steps make no progress (cloglog: −e^z)."""
        return bool(np.any(self.terms.curvature * np.diagonal(self.K) > STEEP))

    def _move(self, alpha, f, terms, objective) -> None:
        self.alpha, self.f, self.terms, self.objective = alpha, f, terms, objective

    def step(self, L, S) -> tuple[np.ndarray, np.ndarray, float]:
        """Return a Newton step from the residual of f = K L'(f), in α and f, and its decrement.

        The curvature S² is the one that was factorised.
        """
        r = self.terms.d1 - self.alpha
        da = r - S * linalg.solve(L, S * linalg.symv(self.K, r))  # (I + W K)⁻¹ r
        df = linalg.symv(self.K, da)
        return da, df, float(np.sqrt(max(da @ df + (S * df) @ (S * df), 0.0)))

    def descend(self, L, S, tol: float, previous: float) -> tuple[float, float, int]:
        """Take a Newton step that does not lower the objective, and further ones with the same factor.

        `previous` is the decrement of the step before.

        Returns
        -------
        decrement, error : float
            Decrement of the last step, and an estimate of the next one.
        steps : int
        """
        da, df, decrement = self.step(L, S)
        size = 1.0
        while not self._try(da, df, size) and size >= 1e-10:
            size *= 0.5
        if size < 1e-10:
            self._try(da, df, size, anyway=True)
        shrinking = max(decrement / previous, float(np.finfo(L.dtype).eps))
        error = decrement * min(shrinking, 1.0)
        steps = 1
        while error > 0.01 * tol and decrement < CLOSE and steps < MOST_STEPS:
            da, df, new = self.step(L, S)
            if not new < 0.5 * decrement or not self._try(da, df):
                break
            # linear convergence: the next step is smaller by the same ratio
            error, decrement = new * new / decrement, new
            steps += 1
        return decrement, error, steps

    def _try(self, da, df, size: float = 1.0, anyway: bool = False) -> bool:
        """Move by a step unless that lowers the objective; return whether it has moved."""
        alpha, f = self.alpha + size * da, self.f + size * df
        terms, objective = self._evaluate(alpha, f)
        if anyway or objective >= self.objective - self._slack:
            self._move(alpha, f, terms, objective)
            return True
        return False
