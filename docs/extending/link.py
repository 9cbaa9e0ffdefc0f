"""Gumbel-maximum noise: F(z) = exp(−e^−z), whose long tail is on the right.

With G = e^−hi and D = e^−lo − e^−hi the interval has L = −G + log(1 − e^−D). A shift of both ends by −t multiplies G
and D by e^t, so that every derivative in t is θ = D d/dD applied to B(D) = D/(e^D − 1), and G:

    slope = B − G,  curvature = G − θB,  third = θ²B − G,  fourth = θ³B − G.

With C = D + B − 1 ≥ 0, θB = −BC and θC = D − BC. The ends follow from dL/dhi = G + j·B and dL/dlo = −(1 + j)·B with
j = 1/(e^width − 1), which the shift leaves alone.
"""

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pmordinal.links.base import FAR, FloatArray, Interval, Link, log1mexp


class LogLog(Link):
    """Gumbel-maximum noise, of mean 0.577."""

    name: ClassVar[str] = "loglog"
    noise_sd: ClassVar[float] = math.pi / math.sqrt(6)

    def interval(self, lo: ArrayLike, hi: ArrayLike, width: ArrayLike) -> Interval:
        """Return the log-probability of lo < e ≤ hi with all its derivatives."""
        lo, hi, w = np.broadcast_arrays(
            np.maximum(lo, -FAR), np.minimum(hi, FAR), np.minimum(width, FAR)
        )
        G = np.exp(np.minimum(-hi, 700.0))  # cut where e^z would overflow
        share = -np.expm1(-w)
        D = np.clip(np.exp(np.minimum(-lo, 700.0)) * share, 1e-300, 750.0)

        B = D * np.exp(-D) / -np.expm1(-D)
        # C = D + B − 1 cancels for small D and has a series there
        D2 = np.minimum(D, 0.1) ** 2
        series = np.minimum(D, 0.1) / 2 + D2 / 12 * (1 - D2 / 60 * (1 - D2 / 42 * (1 - D2 / 40)))
        C = np.where(D < 0.1, series, D + B - 1)
        log_D = -lo + log1mexp(w)  # D itself may have underflowed; 1 − e^−D = D/(1 + C)
        log_P = np.where(D < 0.1, log_D - np.log1p(C), log1mexp(D))

        BC, Q = B * C, C * (B + C) - D
        b2 = B * Q  # θ²B
        b3 = B * ((D - BC) * (B + 2 * C) - BC * C - D - C * Q)  # θ³B
        j = np.exp(-w) / share
        hi_G, end = hi * G, lo - w * j
        return Interval(
            log_prob=log_P - G,
            slope=B - G,
            curvature=G + BC,
            third=b2 - G,
            fourth=b3 - G,
            upper=(G + j * B, G - j * BC, G + j * b2),
            lower=(-(1 + j) * B, (1 + j) * BC, -(1 + j) * b2),
            log_scale=(B * end - hi_G, -(BC * end + hi_G), b2 * end - hi_G),
        )

    def cdf(self, z: ArrayLike) -> FloatArray:
        """Return exp(−e^−z)."""
        return np.exp(-np.exp(np.minimum(np.negative(z), 700.0)))

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Return −log(−log p)."""
        with np.errstate(divide="ignore"):  # the ends of the support are infinite, rightly
            return -np.log(-np.log(np.asarray(p, dtype=float)))

    def upper_quantile(self, p: ArrayLike) -> FloatArray:
        """Return −log(−log(1 − p))."""
        with np.errstate(divide="ignore"):
            return -np.log(-np.log1p(-np.asarray(p, dtype=float)))

    def score(self, z: ArrayLike) -> FloatArray:
        """Return 1 − e^−z."""
        return -np.expm1(np.minimum(np.negative(z), 700.0))

    def dscore(self, z: ArrayLike) -> FloatArray:
        """Return e^−z."""
        return np.exp(np.minimum(np.negative(z), 700.0))

    def logpdf(self, z: Any, xp: Any = np) -> Any:
        """Return the log-density."""
        return -z - xp.exp(-z)

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> FloatArray:
        """Return independent draws."""
        return rng.gumbel(size=size)
