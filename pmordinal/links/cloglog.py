"""Extreme-value (Gumbel-minimum) noise: F(z) = 1 − exp(−e^z), the proportional-hazards model.

With G = e^lo and D = e^hi − e^lo, L = −G + log(1 − e^−D). A shift multiplies G and D by e^−t, so
every derivative in t is G or the operator θ = D d/dD applied to B(D) = D/(e^D − 1):

    slope = G − B,  curvature = G − θB,  third = G − θ²B,  fourth = −G + θ³B.

With C = D + B − 1 ≥ 0 these are θB = −BC and θC = D − BC, hence the polynomials below; only C
itself cancels, for small D, and has a series there. The ends follow from dL/dhi = (1 + j)·B and
dL/dlo = −(G + j·B) with j = 1/(e^width − 1), which the shift leaves alone.
"""

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pmordinal.links.base import FAR, FloatArray, Interval, Link, log1mexp

#: Ends are limited to this inside the exponential only: e^700 times 700 is still finite. The exact L
#: at a lower end of 710 is below the smallest double.
_LARGEST = 700.0
#: All functions of D are exactly zero from here on.
_D_MAX = 750.0
#: The series of C to D⁸ has an error of 4e-17 here, the direct formula one of 4e-15.
_D_SMALL = 0.1


class CLogLog(Link):
    """Gumbel-minimum noise: its mean is −0.577 and its long tail is on the left.

    Examples
    --------
    >>> low = CLogLog().interval(-np.inf, 0.0, np.inf)
    >>> print(np.exp(low.log_prob).round(6), low.slope.round(6))
    0.632121 -0.581977
    """

    name: ClassVar[str] = "cloglog"
    noise_sd: ClassVar[float] = math.pi / math.sqrt(6)

    def interval(self, lo: ArrayLike, hi: ArrayLike, width: ArrayLike) -> Interval:
        """Return the log-probability of lo < e ≤ hi with all its derivatives."""
        lo, hi, w = np.broadcast_arrays(
            np.maximum(lo, -FAR), np.minimum(hi, FAR), np.minimum(width, FAR)
        )
        G = np.exp(np.minimum(lo, _LARGEST))
        share = -np.expm1(-w)
        D = np.minimum(np.exp(np.minimum(hi, _LARGEST)) * share, _D_MAX)

        D_safe = np.maximum(D, _D_SMALL)
        x = np.exp(-D_safe)
        ratio = D_safe / -np.expm1(-D_safe)
        B = np.asarray(ratio * x)
        C = np.asarray(ratio - 1)
        log_P = np.asarray(np.log1p(-x))
        small = D < _D_SMALL
        if np.count_nonzero(small):
            B[small], C[small], log_P[small] = _small(D[small], hi[small], w[small])

        BC = B * C
        sum_BC = B + C
        Q = C * sum_BC - D
        b2 = B * Q  # θ²B
        b3 = B * ((D - BC) * (C + sum_BC) - BC * C - D - C * Q)  # θ³B
        j = np.exp(-w) / share
        k = 1 + j
        end = hi + w * j
        lo_G = lo * G
        return Interval(
            log_prob=log_P - G,
            slope=G - B,
            curvature=G + BC,
            third=G - b2,
            fourth=b3 - G,
            upper=(k * B, k * BC, k * b2),
            lower=(-(G + j * B), G - j * BC, -(G + j * b2)),
            log_scale=(lo_G - B * end, -(lo_G + BC * end), lo_G - b2 * end),
        )

    def cdf(self, z: ArrayLike) -> FloatArray:
        """Return 1 − exp(−e^z)."""
        return -np.expm1(-np.exp(np.minimum(z, _LARGEST)))

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Return log(−log(1 − p))."""
        with np.errstate(divide="ignore"):  # quantiles of 0 and 1 are infinite
            return np.log(-np.log1p(-np.asarray(p, dtype=float)))

    def upper_quantile(self, p: ArrayLike) -> FloatArray:
        """Return log(−log p)."""
        with np.errstate(divide="ignore"):  # quantiles of 0 and 1 are infinite
            return np.log(-np.log(np.asarray(p, dtype=float)))

    def score(self, z: ArrayLike) -> FloatArray:
        """Return eᶻ − 1, capped where it would overflow."""
        return np.expm1(np.minimum(z, 700.0))

    def dscore(self, z: ArrayLike) -> FloatArray:
        """Return eᶻ, capped where it would overflow."""
        return np.exp(np.minimum(z, 700.0))

    def logpdf(self, z: Any, xp: Any = np) -> Any:
        """Return the log-density of the Gumbel-minimum distribution."""
        return z - xp.exp(z)

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> FloatArray:
        """Return Gumbel-minimum draws."""
        return -rng.gumbel(size=size)


def _small(
    D: FloatArray, hi: FloatArray, w: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return B, C and log(1 − e^−D) for small D, which may have underflowed to zero."""
    D2 = D * D
    # D/2 + D²/12 − D⁴/720 + D⁶/30240 − D⁸/1209600
    C = D / 2 + D2 / 12 * (1 - D2 / 60 * (1 - D2 / 42 * (1 - D2 / 40)))
    return 1 - D + C, C, hi + log1mexp(w) - np.log1p(C)
