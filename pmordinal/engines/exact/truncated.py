"""Quantiles of the normal distribution truncated to an interval, accurate in both tails."""

import math

import numpy as np

from pmordinal.jit import njit
from pmordinal.links.probit import log_upper_tail

FAR = 6.0  # farther out, quantiles are computed from log tails
LEAST_UNIFORM = 2.0**-54  # replaces zero, so that quantiles are finite
TINIEST = 1e-300  # keeps quantiles finite if 1 − q is rounded to zero
SQRT_2PI = math.sqrt(2.0 * math.pi)
SQRT_HALF = math.sqrt(0.5)
# P. J. Acklam's approximation of the normal quantile, relative error 1e-9: A/B in the middle, C/D in the tails
ACKLAM_TAIL = 0.02425
ACKLAM_A = (
    -39.69683028665376,
    220.9460984245205,
    -275.9285104469687,
    138.3577518672690,
    -30.66479806614716,
    2.506628277459239,
)
ACKLAM_B = (
    -54.47609879822406,
    161.5858368580409,
    -155.6989798598866,
    66.80131188771972,
    -13.28068155288572,
)
ACKLAM_C = (
    -7.784894002430293e-03,
    -0.3223964580411365,
    -2.400758277161838,
    -2.549732539343734,
    4.374664141464968,
    2.938163982698783,
)
ACKLAM_D = (7.784695709041462e-03, 0.3224671290700398, 2.445134137142996, 3.754408661907416)


def uniforms(rng: np.random.Generator, n: int, draws: int) -> np.ndarray:
    """Return numbers between zero and one, both excluded, shape (n, draws)."""
    return np.maximum(rng.random((n, draws)), LEAST_UNIFORM)


@njit(cache=True, nogil=True)
def quantile_of(lo, hi, u):
    """Return the e with P(lo < N(0, 1) ≤ e) = u P(lo < N(0, 1) ≤ hi), of one interval.

    Examples
    --------
    >>> print(round(quantile_of(-np.inf, 0.0, 0.5), 4), round(quantile_of(40.0, np.inf, 0.5), 4))
    -0.6745 40.0173
    """
    flip = lo + hi < 0.0  # use the upper tail, where probabilities are accurate
    near, far = (-hi, -lo) if flip else (lo, hi)
    by_near, by_far = (u, 1.0 - u) if flip else (1.0 - u, u)
    if near < FAR:
        q = 0.5 * (by_near * math.erfc(near * SQRT_HALF) + by_far * math.erfc(far * SQRT_HALF))
        e = _upper_quantile(q)
    else:
        top = log_upper_tail(near)
        share = math.log(by_near + by_far * math.exp(log_upper_tail(far) - top))
        e = math.sqrt(near * near - 2.0 * share)
        for _ in range(4):  # Newton in log space; the start has an error of 1/near⁴
            tail = log_upper_tail(e)
            e += (tail - top - share) * math.exp(tail + 0.5 * e * e) * SQRT_2PI
    e = -e if flip else e
    return min(max(e, lo), hi)


@njit(cache=True, nogil=True)
def _upper_quantile(q):
    """Return the e with 1 − Φ(e) = q: Acklam's rational approximation and one step of Halley's method."""
    p = max(min(q, 1.0 - q), TINIEST)
    if p < ACKLAM_TAIL:
        r = math.sqrt(-2.0 * math.log(p))
        e = -_ratio(r, ACKLAM_C, ACKLAM_D)
    else:
        r = 0.5 - p
        e = r * _ratio(r * r, ACKLAM_A, ACKLAM_B)
    step = (0.5 * math.erfc(e * SQRT_HALF) - p) * math.exp(0.5 * e * e) * SQRT_2PI
    e += step / (1.0 - 0.5 * e * step)
    return e if q < 0.5 else -e


@njit(cache=True, nogil=True)
def _ratio(x, top, bottom):
    """Return the ratio of two polynomials, highest powers first; the denominator's last term is 1."""
    above = 0.0
    for coefficient in top:
        above = above * x + coefficient
    below = 0.0
    for coefficient in bottom:
        below = below * x + coefficient
    return above / (below * x + 1.0)
