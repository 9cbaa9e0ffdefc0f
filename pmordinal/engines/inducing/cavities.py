"""The cavity of each row, found from its marginal alone, so that no site needs to be kept.

A row depends on the weights through η, whose marginal under the current posterior is N(m, v). Its cavity N(μ, c) is the
Gaussian whose product with the likelihood has just this mean and variance. It minimises

    J = L(μ, c + λ) + ½ log c + ½ (m − μ)²/c + ½ v/c,   L(μ, V) = log ∫ P(y | f) N(f; μ, V) df,

which is convex in the natural parameters μ/c and x = 1/c, so that Newton steps with halving find it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pmordinal.likelihood.smoothing import Terms

STEPS = 60  # largest number of Newton steps
EXACT = 1e-12  # relative error at which a row is done: what it started from must not matter
NARROWER, WIDER = 0.2, 5.0  # largest changes of a precision in one step
FAR = 1.0  # error of a start above which a row begins anew

type Tilt = Callable[[np.ndarray, np.ndarray], Terms]


@dataclass(frozen=True, slots=True)
class Cavities:
    """Cavities of η and the likelihood averaged over them, one entry for each row.

    Attributes
    ----------
    mu, c : ndarray
        Means and variances.
    terms : Terms
        Of the likelihood under N(μ, c + λ).
    shrink : ndarray
        1 − c·curvature: variance of the product, in units of c.
    error : ndarray
        Of the mean in standard deviations, and of the relative variance: the larger.
    """

    mu: np.ndarray
    c: np.ndarray
    terms: Terms
    shrink: np.ndarray
    error: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean of the product of cavity and likelihood."""
        return self.mu + self.c * self.terms.d1

    @property
    def precision(self) -> np.ndarray:
        """Precision τ of the site on η."""
        return self.terms.curvature / self.shrink


def find_cavities(
    tilt_of: Callable[[np.ndarray | None], Tilt],
    m: np.ndarray,
    v: np.ndarray,
    prior: np.ndarray,
    lam: np.ndarray,
    exact: float = EXACT,
    start: np.ndarray | None = None,
) -> Cavities:
    """Return the cavities that belong to marginals N(m, v).

    A cavity is never wider than the prior. Where the product is narrower than v even for that one, as it can be before
    the iteration has converged, the cavity is the prior variance, and the site narrows the posterior.

    Parameters
    ----------
    tilt_of : callable
        Returns the function (mean, variance) → `Terms` for some of the rows; None is all.
    m, v : ndarray, shape (b,)
    prior : ndarray, shape (b,)
        Prior variances of η.
    lam : ndarray, shape (b,)
        Variances λ that a row has besides η.
    exact : float
        Relative error at which a row is done.
    start : ndarray, shape (2, b), optional
        Means and variances to start from: cavities of marginals nearby.
    """
    n = m.size
    widest = 1.0 / np.maximum(prior, v)
    fields, mu, c, shrink, error = np.empty((15, n)), *np.empty((4, n))
    active, tilt = np.arange(n), tilt_of(None)
    step = _Step(m, v, widest, lam, start)
    for count in range(STEPS):
        terms = tilt(step.mu, step.c + step.lam)
        kept, wrong = step.judge(terms)
        if active.size == n and kept.all():
            fields, mu, c, shrink, error = np.array(terms.rows), step.mu, step.c, step.D, wrong
        else:
            mu, c, shrink, error = (a.copy() for a in (mu, c, shrink, error))
            at = active[kept]
            fields[:, at] = np.array(terms.rows)[:, kept]
            mu[at], c[at], shrink[at] = step.mu[kept], step.c[kept], step.D[kept]
            error[at] = wrong[kept]
        todo = ~(kept & (wrong <= exact))
        if not todo.any() or count == STEPS - 1:
            break
        if count >= 2 or 2 * np.count_nonzero(todo) < todo.size:  # go on with those that are left
            active = active[todo]
            step.only(todo)
            tilt = tilt_of(active)
            wrong = wrong[todo]
        step.move()
        if count == 0 and start is not None:
            step.begin_anew(wrong > FAR)
    return Cavities(mu, c, Terms.of(fields), shrink, error)


class _Step:
    """Where the rows are on their way, and the steps that they take; one entry for each row still on it.

    On a step x and h − x M move along a line; h = μ/c, M is the product's mean where the step began.
    """

    def __init__(self, m, v, widest, lam, start):
        self.m, self.v, self.widest, self.lam = m, v, widest, lam
        self.mu, self.c = m, v
        if start is not None:
            self.mu, c = start
            self.c = np.clip(c, v, 1.0 / widest)
        none = np.zeros_like(m)
        # where the step began: the objective, x, h − x M, M, and the step's direction and size
        self.J = np.full_like(m, np.inf)
        self.x, self.h, self.M, self.dx, self.dh, self.size = none, none, none, none, none, none
        self.D = none

    def only(self, chosen) -> None:
        """Go on with some of the rows."""
        for name, value in vars(self).items():
            setattr(self, name, value[chosen])

    def judge(self, terms: Terms) -> tuple[np.ndarray, np.ndarray]:
        """Accept the points where J has not grown, plan the next step; return which ones, and errors."""
        c = self.c
        away = self.m - self.mu
        J = terms.value + 0.5 * np.log(c) + 0.5 * (away * away + self.v) / c
        kept = J <= self.J + 1e-12 * (1.0 + np.abs(J))
        kept |= self.size < 1e-12
        D = terms.shrink + self.lam * terms.curvature
        x, M, g = 1.0 / c, self.mu + c * terms.d1, c * D
        off = M - self.m
        is_widest = (x <= self.widest * (1.0 + 1e-14)) & (g <= self.v)
        wrong = np.where(is_widest, 0.0, np.abs(g / self.v - 1.0))
        wrong = np.maximum(wrong, np.abs(off) / np.sqrt(self.v))
        # Hessian of J by (h − x M, x), from the cumulants of the product, in units of g
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            ratio = c / D
            k3, k4 = ratio * np.sqrt(ratio) * terms.d3, ratio * ratio * terms.d4
            det = np.maximum(k4 + 2.0 - k3 * k3, 0.1)
            by_x = (self.v + off * off) / g - 1.0  # twice the derivative, in units of g
            u = off / np.sqrt(g)
            dx = -(2.0 * by_x + 2.0 * k3 * u) / det / g
            dx = np.clip(
                np.where(np.isfinite(dx), dx, 0.0), (NARROWER - 1.0) * x, (WIDER - 1.0) * x
            )
            dx = np.clip(x + dx, self.widest, np.maximum(1.0 / self.v, self.widest)) - x
            dh = (0.5 * k3 * dx * g - u) / np.sqrt(g)
        self.J, self.x, self.M = (
            np.where(kept, new, old) for new, old in ((J, self.J), (x, self.x), (M, self.M))
        )
        self.h = np.where(kept, -terms.d1, self.h)
        self.dx, self.dh = (
            np.where(kept, dx, self.dx),
            np.where(kept & np.isfinite(dh), dh, self.dh),
        )
        self.size = np.where(kept, 1.0, 0.25 * self.size)
        self.D = D
        return kept, wrong

    def begin_anew(self, chosen) -> None:
        """Let some of the rows start from their marginals."""
        self.mu = np.where(chosen, self.m, self.mu)
        self.c = np.where(chosen, self.v, self.c)
        self.J = np.where(chosen, np.inf, self.J)

    def move(self) -> None:
        """Take the planned steps."""
        self.c = 1.0 / (self.x + self.size * self.dx)
        self.mu = self.M + self.c * (self.h + self.size * self.dh)
