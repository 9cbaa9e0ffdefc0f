"""Logistic noise: F(z) = σ(z) = 1/(1 + e^−z), the proportional-odds model.

Everything is in closed form, because P factors into σ(hi)·σ(−lo)·(1 − e^−width): L is a sum of
three negative terms, and its derivatives are sums over the two ends. With z = (hi, −lo) both ends
have the same formulas, even and odd derivatives differing in a sign.
"""

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from pmordinal.links.base import FAR, FloatArray, Interval, Link, log1mexp, outward_ends


class Logit(Link):
    """Standard logistic noise.

    Examples
    --------
    >>> half = Logit().interval(0.0, np.inf, np.inf)
    >>> print(np.exp(half.log_prob).round(6), half.slope)
    0.5 0.5
    """

    name: ClassVar[str] = "logit"
    noise_sd: ClassVar[float] = math.pi / math.sqrt(3)
    strip: ClassVar[float] = math.pi

    def interval(self, lo: ArrayLike, hi: ArrayLike, width: ArrayLike) -> Interval:
        """Return the log-probability of lo < e ≤ hi with all its derivatives."""
        z = outward_ends(lo, hi, width)
        w = np.minimum(width, FAR)

        e = np.exp(-np.abs(z))
        s = 1 / (1 + e)  # σ(|z|)
        es = e * s  # σ(−|z|)
        below = np.where(z > 0, es, s)  # σ(−z)
        d1 = es * s  # σ'
        d2 = np.copysign((e - 1) * s * d1, -z)  # σ''
        d3 = d1 - 6 * d1 * d1  # σ'''
        log_sigma = np.minimum(z, 0) - np.log1p(e)

        gap = 1 / -np.expm1(-w) * np.exp(-w)  # 1/(e^w − 1), without overflow
        first = below + gap
        z_below = z * below
        z_d1 = z * d1
        z_d2 = z * d2
        return Interval(
            log_prob=log_sigma[0] + log_sigma[1] + log1mexp(w),
            slope=below[1] - below[0],
            curvature=d1[0] + d1[1],
            third=d2[0] - d2[1],
            fourth=-(d3[0] + d3[1]),
            upper=(first[0], d1[0], -d2[0]),
            lower=(-first[1], d1[1], d2[1]),
            log_scale=(
                -(z_below[0] + z_below[1] + w * gap),
                z_d1[1] - z_d1[0],
                z_d2[0] + z_d2[1],
            ),
        )

    def cdf(self, z: ArrayLike) -> FloatArray:
        """Return σ(z)."""
        return expit(z)

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Return log(p/(1 − p))."""
        return logit(p)

    def upper_quantile(self, p: ArrayLike) -> FloatArray:
        """Return log((1 − p)/p)."""
        return -logit(p)

    def score(self, z: ArrayLike) -> FloatArray:
        """Return tanh(z/2)."""
        return np.tanh(0.5 * np.asarray(z))

    def dscore(self, z: ArrayLike) -> FloatArray:
        """Return half the squared hyperbolic secant of z/2."""
        return 2.0 * expit(z) * expit(-np.asarray(z))

    def logpdf(self, z: Any, xp: Any = np) -> Any:
        """Return the log-density of the logistic distribution."""
        a = xp.abs(z)
        return -a - 2 * xp.log1p(xp.exp(-a))

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> FloatArray:
        """Return logistic draws."""
        return rng.logistic(size=size)
