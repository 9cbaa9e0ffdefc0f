"""Finds the posterior of the weights: Newton steps to the mode, then expectation propagation from there.

The state is (w, S) alone, Λ = I + S; sites are found anew in each pass. Near the fixed point the sums of a pass
change little, so that steps are taken whole; they are damped when the residual does not fall.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack

from pmordinal import linalg
from pmordinal.engines.inducing.acceleration import Anderson
from pmordinal.engines.inducing.blocks import Blocks, over_blocks, rows_in
from pmordinal.engines.inducing.passes import (
    carried_mode_pass,
    carried_pass,
    newton_pass,
    prior_pass,
    site_pass,
)
from pmordinal.engines.inducing.pieces import MOST_KEPT, Kept, Shared, State

FLOOR = 1e-5  # below this residual, a stalled iteration has reached rounding errors
NEAR = 0.5  # Newton steps of a start end below this decrement
STALLED = 4  # passes without progress at the rounding floor
HOPELESS = 40  # passes without progress anywhere
LEAST_DAMPING = 0.05
ACCELERATED = 3.0  # below this residual steps are accelerated


@dataclass(frozen=True, eq=False)
class Solution:
    """Where an iteration ended.

    Attributes
    ----------
    w : ndarray, shape (m,)
        Posterior mean of the weights.
    S : ndarray, shape (m, m)
        Posterior precision minus one, symmetric.
    C : ndarray, shape (m, m)
        Lower Cholesky factor of Λ = I + S.
    of_rows : ndarray, shape (m, m)
        Σ τ φ φᵀ of the sites at this state: S, but for the residual.
    log_evidence : float
    excess : float
        Sum of λ over the noise variance.
    residual : float
        Of the last pass, in posterior standard deviations.
    passes : int
    message : str
        Empty if it did not converge.
    """

    w: np.ndarray
    S: np.ndarray
    C: np.ndarray
    of_rows: np.ndarray
    log_evidence: float
    excess: float
    residual: float
    passes: int
    message: str


class Iteration:
    """The rows and the hyperparameters of one run; counts its passes.

    Parameters
    ----------
    blocks : sequence of Block, or Elsewhere
    shared : Shared
    tol : float
    max_passes : int
    cavities : ndarray, shape (2, n), optional
        Means and variances of cavities to start from.
    """

    def __init__(
        self,
        blocks: Blocks,
        shared: Shared,
        tol: float,
        max_passes: int,
        cavities: np.ndarray | None = None,
    ):
        self.passes, self.n, self.kept = 0, rows_in(blocks), None
        if isinstance(blocks, Sequence):
            same = cavities is not None and cavities.shape[1] == self.n
            self.kept = Kept(blocks, cavities if same else None)
            if self.n * shared.m > MOST_KEPT:
                self.kept.forget_features()
            shared = replace(shared, kept=self.kept)
        self.blocks, self.shared, self.tol, self.max_passes = blocks, shared, tol, max_passes

    def _run(self, function, w, C=None) -> dict[str, np.ndarray]:
        self.passes += 1
        state = State(**self.shared.as_dict(), w=w, C=C)
        with np.errstate(
            all="ignore"
        ):  # far from the solution; what is not finite is seen by the caller
            return over_blocks(function, self.blocks, state)

    def begin(self, before: State | None, at_mode: bool) -> tuple[np.ndarray, np.ndarray] | None:
        """Return w and S to start from: carried over from other parameters, or those of the prior's cavities.

        None if these are not finite.
        """
        self.passes += 1
        with np.errstate(all="ignore"):
            if before is None:
                found = over_blocks(prior_pass, self.blocks, self.shared)
            else:
                function = carried_mode_pass if at_mode else carried_pass
                found = over_blocks(function, self.blocks, (before, self.shared))
        S = _full(found["S"])
        if not (np.isfinite(S).all() and np.isfinite(found["r"]).all()):
            return None
        return linalg.solve(factor(S), found["r"]), S

    def mode(self, w: np.ndarray, near: float) -> Solution:
        """Return the mode of the weights, by Newton steps until one is shorter than `near` standard deviations."""
        found = self._run(newton_pass, w)
        value = found["value"] - 0.5 * w @ w
        best, stalled, message = np.inf, 0, ""
        while True:
            S = _full(found["S"])
            C = factor(S)
            step = linalg.solve(C, found["slope"] - w)
            decrement = _length(C, step)
            stalled = 0 if decrement < 0.5 * best else stalled + 1
            best = min(best, decrement)
            if decrement <= near:
                message = "converged"
            elif stalled >= STALLED and best < FLOOR:
                message = f"converged to the rounding floor (decrement {decrement:.1e})"
            if message or self.passes >= self.max_passes:
                break
            size, slack = 1.0, 1e-12 * (1.0 + abs(value))
            while True:
                new = w + size * step
                tried = self._run(newton_pass, new)
                higher = tried["value"] - 0.5 * new @ new
                if higher >= value - slack or size < 1e-8 or self.passes >= self.max_passes:
                    break
                size *= 0.5 if np.isfinite(higher) else 0.1
            if not higher >= value - slack:  # no way up: rounding, or no passes left
                break
            w, value, found = new, higher, tried
        log_evidence = float(value - 0.5 * linalg.log_det(C))
        excess = float(found["excess"])
        return Solution(w, S, C, S, log_evidence, excess, decrement, self.passes, message)

    def sites(self, w: np.ndarray, S: np.ndarray) -> Solution | None:
        """Return the fixed point of expectation propagation from this state; None if it leads nowhere."""
        C = factor(S)
        history, metric = Anderson(), C
        damping, best, previous, stalled, message = 1.0, np.inf, np.inf, 0, ""
        while True:
            found = self._run(site_pass, w, C)
            new = _full(found["S"])
            if not (np.isfinite(new).all() and np.isfinite(found["r"]).all()):
                return None
            residual = self._residual(w, C, S, new, found)
            stalled = 0 if residual < 0.9 * best else stalled + 1
            best = min(best, residual)
            if residual <= self.tol:
                message = "converged"
            elif stalled >= STALLED and best < FLOOR and residual < 2.0 * best:
                message = f"converged to the rounding floor (residual {residual:.1e})"
            if message or self.passes >= self.max_passes or stalled >= HOPELESS:
                break
            r = w + S @ w
            step = found["r"] - r, new - S
            if residual > 2.0 * previous or residual > ACCELERATED:
                history.forget()
            if not history.points:
                metric = C
            worse = residual > 0.9 * previous and not history.points
            damping = max(0.6 * damping, LEAST_DAMPING) if worse else min(1.15 * damping, 1.0)
            moved = None
            if residual <= ACCELERATED:
                moved = self._accelerated(history, metric, r, S, step)
            if moved is None:
                r, S = r + damping * step[0], S + damping * step[1]
                C = factor(S)
            else:
                r, S, C = moved
            previous = residual
            w = linalg.solve(C, r)
        log_evidence = found["value"] - 0.5 * w @ w - 0.5 * linalg.log_det(C)
        log_evidence += 0.5 * (w.size - (linalg.triangular_inverse(C) ** 2).sum())
        excess = float(found["excess"])
        return Solution(w, S, C, new, float(log_evidence), excess, residual, self.passes, message)

    @staticmethod
    def _accelerated(history: Anderson, metric, r, S, step):
        """Return r, S and the factor of I + S after an accelerated step; None if there is none."""
        m = r.size
        lengths = linalg.half_solve(metric, linalg.half_solve(metric, step[1]).T)
        measured = np.concatenate([linalg.half_solve(metric, step[0]), lengths.ravel()])
        point = np.concatenate([r, S.ravel()])
        moved = history.next(point, np.concatenate([step[0], step[1].ravel()]), measured)
        r, S = moved[:m], np.asfortranarray(moved[m:].reshape(m, m))
        try:
            return r, S, factor(S)
        except np.linalg.LinAlgError:
            history.forget()
            return None

    def _residual(self, w, C, S, new, found) -> float:
        """Return how far a pass would move the posterior, in its own standard deviations."""
        # by a step with the old precision, to which the new one is close where it matters
        moved = linalg.solve(C, found["r"] - w - new @ w)
        half = linalg.half_solve(C, linalg.half_solve(C, new - S).T)
        error = np.sqrt(found["error"])
        return float(max(_length(C, moved), np.sqrt((half * half).sum()), error))


def factor(S: np.ndarray) -> np.ndarray:
    """Return the lower Cholesky factor of I + S."""
    C = np.array(S, order="F")
    C.flat[:: len(C) + 1] += 1.0
    C, info = lapack.dpotrf(C, lower=1, clean=1, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError(f"I + S is not positive definite (order {info})")
    return C


def _full(lower: np.ndarray) -> np.ndarray:
    return linalg.fill_upper(np.asfortranarray(lower))


def _length(C: np.ndarray, step: np.ndarray) -> float:
    """Return |Cᵀ step|, the length of a step in posterior standard deviations."""
    moved = C.T @ np.clip(step, -1e100, 1e100)
    return float(np.sqrt(moved @ moved))
