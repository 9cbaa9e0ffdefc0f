"""Gaussian noise: F = Φ, the standard normal cdf.

The derivatives of L in the shift are the cumulants of e ~ N(0, 1) truncated to (lo, hi): slope m,
1 − curvature = V the variance, then κ3 and κ4. No formula serves everywhere:

- boundary terms, from the densities r at the ends and the ends' distances d from the mean, keep
  their digits where the derivatives may be tiny: in wide intervals around zero;
- in the tails and in narrow intervals they cancel (V is as small as 1/lo² or width²/12, and is one
  minus their sum); there the moments come from Gauss–Legendre quadrature.

The ends are hi and −lo, measured outwards, which makes the formulas of both the same and the
reflection e → −e a swap.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from pmordinal.jit import njit
from pmordinal.links.base import FAR, FloatArray, Interval, Link

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
_SQRT_HALF = math.sqrt(0.5)

#: Quadrature is used if both ends lie beyond this on one side, or below this width.
_TAIL = 2.5
_NARROW = 1.0
#: The quadrature stops where the integrand has fallen by e^−40, below the last digit.
_DROP = 40.0
#: Beyond this width the far end of a quadrature interval has density 0 in double precision.
_WIDEST = 50.0
#: Beyond this the tail's asymptotic series is good to ten digits, and erfc nears its underflow.
_FAR_TAIL = 30.0
#: 22 nodes integrate x⁴·exp(−40x) on (0, 1) to rounding, 12 do so for exponents up to 4.
_FEW_NODES_DROP = 4.0


def _rule(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes on (0, 1) and their weights."""
    x, weight = np.polynomial.legendre.leggauss(n_nodes)
    return (x + 1) / 2, weight / 2


_FEW_X, _FEW_WEIGHT = _rule(12)
_MANY_X, _MANY_WEIGHT = _rule(22)
#: Where `fill_rows` keeps the variance of the noise given the interval.
_VARIANCE = 15


class Probit(Link):
    """Standard normal noise.

    Examples
    --------
    >>> half = Probit().interval(0.0, np.inf, np.inf)
    >>> print(np.exp(half.log_prob).round(6), half.slope.round(6))
    0.5 0.797885
    """

    name: ClassVar[str] = "probit"
    noise_sd: ClassVar[float] = 1.0
    closed_form_smoothing: ClassVar[bool] = True
    is_normal: ClassVar[bool] = True

    def interval(self, lo: ArrayLike, hi: ArrayLike, width: ArrayLike) -> Interval:
        """Return the log-probability of lo < e ≤ hi with all its derivatives."""
        rows = _evaluate(lo, hi, width, 0.0, 1.0, 0.0)
        L, m, curvature, k3, k4, *ends = rows[:11]
        V = rows[_VARIANCE]
        # The log-scale derivatives are −(hi ∂/∂hi + lo ∂/∂lo). For the Gaussian that of L is
        # E e² − 1; its commutator with d/dt turns the other two into cumulants as well, where no
        # end cancels the other.
        log_scale = (
            m * m - curvature,
            m * (V - curvature) + k3,
            2 * (m * k3 - V * curvature) + k4,
        )
        return Interval(L, m, curvature, k3, k4, tuple(ends[:3]), tuple(ends[3:]), log_scale, V)

    def latent_terms(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        f: ArrayLike,
        noise: ArrayLike,
        var: ArrayLike = 0.0,
    ) -> FloatArray:
        """Return the rows of `Link.latent_terms`, in compiled code."""
        return _evaluate(lower, upper, np.subtract(upper, lower), f, noise, var)[:_VARIANCE]

    def latent_function(
        self, lower: FloatArray, upper: FloatArray, noise: float | FloatArray
    ) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """Return `latent_terms` as a function of f and var; the intervals are copied once."""
        arguments = arguments_of(lower, upper, noise)

        def evaluate(f: FloatArray, var: FloatArray) -> FloatArray:
            arguments[3], arguments[5] = f, var
            out = np.empty((_VARIANCE + 1, lower.size))
            fill_rows(arguments, out)
            return out[:_VARIANCE]

        return evaluate

    def log_interval(self, lo: ArrayLike, hi: ArrayLike, width: ArrayLike) -> FloatArray:
        """Return `log_prob` of `interval` alone, in compiled code."""
        arrays = np.broadcast_arrays(lo, hi, width)
        flat = (np.ascontiguousarray(a, dtype=float).reshape(-1) for a in arrays)
        return _log_intervals(*flat).reshape(arrays[0].shape)

    def cdf(self, z: ArrayLike) -> FloatArray:
        """Return Φ(z)."""
        return ndtr(z)

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Return Φ⁻¹(p)."""
        return ndtri(p)

    def upper_quantile(self, p: ArrayLike) -> FloatArray:
        """Return Φ⁻¹(1 − p)."""
        return -ndtri(p)

    def score(self, z: ArrayLike) -> FloatArray:
        """Return z."""
        return np.asarray(z, dtype=float)

    def dscore(self, z: ArrayLike) -> FloatArray:
        """Return one."""
        return np.ones(np.shape(z))

    def logpdf(self, z: Any, xp: Any = np) -> Any:
        """Return the log-density of N(0, 1)."""
        return -0.5 * z * z - _LOG_SQRT_2PI

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> FloatArray:
        """Return standard normal draws."""
        return rng.standard_normal(size)


@njit(cache=True, nogil=True)
def _log_intervals(lo, hi, width):
    """Return log(Φ(hi) − Φ(lo)) of each interval."""
    out = np.empty(lo.size)
    for i in range(lo.size):
        out[i] = log_interval_of(lo[i], hi[i], width[i])
    return out


@njit(cache=True, nogil=True)
def log_interval_of(lo, hi, width):
    """Return log(Φ(hi) − Φ(lo)) of one interval, for compiled code."""
    a, b = lo, hi
    if a + b < 0.0:
        a, b = -b, -a
    middle = 0.5 * (a + b)
    if width * (1.0 + middle) < 0.02:  # the next term of the series is below 1e-17
        w2, m2 = width**2, middle * middle
        series = w2 * ((m2 - 1.0) / 24.0 + w2 * (m2 * (m2 - 6.0) + 3.0) / 1920.0)
        return math.log(width) - 0.5 * m2 - _LOG_SQRT_2PI + math.log1p(series)
    if a < 0.0:
        below, above = math.erfc(-a * _SQRT_HALF), math.erfc(b * _SQRT_HALF)
        return math.log1p(-0.5 * (below + above))
    if a < _FAR_TAIL:
        return math.log(0.5 * (math.erfc(a * _SQRT_HALF) - math.erfc(b * _SQRT_HALF)))
    near, far = log_upper_tail(a), log_upper_tail(b)
    return near + math.log1p(-math.exp(far - near))


@njit(cache=True, nogil=True)
def log_upper_tail(z):
    """Return log(1 − Φ(z)) of one number, for compiled code."""
    return math.log(0.5 * math.erfc(z * _SQRT_HALF)) if z < _FAR_TAIL else _log_far_tail(z)


@njit(cache=True, nogil=True)
def _log_far_tail(z):
    """Return log(1 − Φ(z)) far out, by the asymptotic series."""
    if z > 1e100:
        return -math.inf
    u = 1.0 / (z * z)
    return (
        math.log1p(-u * (1.0 - 3.0 * u * (1.0 - 5.0 * u))) - 0.5 / u - _LOG_SQRT_2PI - math.log(z)
    )


def _evaluate(*given: ArrayLike) -> FloatArray:
    """Return the rows of `fill_rows` for lower, upper, width, f, noise and var, which broadcast."""
    shape = np.broadcast(*given).shape
    arguments = np.empty((len(given), *shape))
    for i, values in enumerate(given):
        arguments[i] = values
    out = np.empty((_VARIANCE + 1, *shape))
    fill_rows(arguments.reshape(len(given), -1), out.reshape(_VARIANCE + 1, -1))
    return out


def arguments_of(lower: FloatArray, upper: FloatArray, noise: float | FloatArray) -> FloatArray:
    """Return the arguments of `fill_rows` for intervals and noise; f and var are left to be written."""
    arguments = np.empty((6, lower.size))
    arguments[0], arguments[1], arguments[4] = lower, upper, noise
    np.subtract(upper, lower, out=arguments[2])
    return arguments


@njit(cache=True, nogil=True, error_model="numpy")
def fill_rows(arguments, out):
    """Write the rows of `Link.latent_terms` and a last one, the variance of the noise in the interval.

    Parameters
    ----------
    arguments : ndarray, shape (6, n)
        Lower end, upper end, width, f, noise and var.
    out : ndarray, shape (16, n)
    """
    for i in range(arguments.shape[1]):
        lower, upper, width = arguments[0, i], arguments[1, i], arguments[2, i]
        f, noise, var = arguments[3, i], arguments[4, i], arguments[5, i]
        noise2 = noise * noise
        s2 = noise2 + var
        s = math.sqrt(s2)
        hi, lo = min((upper - f) / s, FAR), min((f - lower) / s, FAR)  # pointing outwards
        w = width / s
        if min(hi, lo) < -_TAIL or w < _NARROW:
            L, m, r1, r2, d1, d2, V, k3, k4 = _quadrature(hi, lo, w)
            a1, a2 = r1 * d1, r2 * d2
            curvature = a1 + a2
            c1, c2 = a1 * d1 - r1 * V, a2 * d2 - r2 * V
        else:
            beyond1, beyond2 = 0.5 * math.erfc(hi * _SQRT_HALF), 0.5 * math.erfc(lo * _SQRT_HALF)
            L = math.log1p(-(beyond1 + beyond2))  # log(P) would round to zero
            P = 0.5 * math.erfc(-min(hi, lo) * _SQRT_HALF) - min(beyond1, beyond2)
            r1 = math.exp(-0.5 * hi * hi) * _INV_SQRT_2PI / P
            r2 = math.exp(-0.5 * lo * lo) * _INV_SQRT_2PI / P
            m = r2 - r1
            d1, d2 = hi - m, lo + m
            a1, a2 = r1 * d1, r2 * d2
            curvature = a1 + a2
            V = 1.0 - curvature
            # not r·(d² − V): the square overflows at ends where r = 0
            c1, c2 = a1 * d1 - r1 * V, a2 * d2 - r2 * V
            k3 = c2 - c1
            k4 = 2.0 * V * curvature - m * k3 - c1 * d1 - c2 * d2
        s3, share = s * s2, noise2 / s2  # share = d log s / d log noise
        out[0, i], out[1, i], out[2, i] = L, m / s, curvature / s2
        out[3, i], out[4, i] = k3 / s3, k4 / (s2 * s2)
        out[5, i], out[6, i], out[7, i] = r1 / s, a1 / s2, c1 / s3
        out[8, i], out[9, i], out[10, i] = -r2 / s, a2 / s2, -c2 / s3
        # Not −(hi ∂/∂hi + lo ∂/∂lo), in which one end cancels the other; see `interval`.
        out[11, i] = share * (m * m - curvature)
        out[12, i] = share * (m * (V - curvature) + k3 - m) / s
        out[13, i] = share * (2.0 * (m * k3 + (1.0 - V) * curvature) + k4) / s2
        out[14, i] = (noise2 + var * V) / s2  # 1 − λ(1 − V)/(s² + λ), without cancellation
        out[15, i] = V


@njit(inline="always", error_model="numpy")
def _quadrature(hi, lo, width):
    """Return L, m, (r, r), (d, d), V, κ3 and κ4 from the moments of e; the ends are outward.

    After a reflection that makes the midpoint positive, t = e − near has a density ∝
    exp(−near·t − t²/2) on (0, width), falling all the way.
    """
    near = -min(hi, lo)
    width = min(width, _WIDEST)
    T = min(width, 2.0 * _DROP / (near + math.sqrt(near * near + 2.0 * _DROP)))
    linear, square = near * T, 0.5 * T * T
    few = linear + square < _FEW_NODES_DROP
    x, weight = (_FEW_X, _FEW_WEIGHT) if few else (_MANY_X, _MANY_WEIGHT)
    total = e1 = e2 = e3 = e4 = 0.0
    for k in range(x.size):
        u = x[k]
        mass = weight[k] * math.exp(-u * (linear + u * square))
        total += mass
        mass *= u
        e1 += mass
        mass *= u
        e2 += mass
        mass *= u
        e3 += mass
        e4 += mass * u
    # Raw moments of t/T, whose cumulants lose no more than two digits: the mean is only a few
    # standard deviations from 0.
    e1, e2, e3, e4 = e1 / total, e2 / total, e3 / total, e4 / total
    total *= T
    mean2 = e1 * e1
    V = e2 - mean2
    k3 = e3 - e1 * (3.0 * V + mean2)
    k4 = e4 - 4.0 * e1 * k3 - (3.0 * V * (e2 + mean2) + mean2 * mean2)
    V, k3, k4 = V * T * T, k3 * T**3, k4 * T**4
    r_near, d_near = 1.0 / total, e1 * T
    r_far, d_far = math.exp(-width * (near + 0.5 * width)) * r_near, width - d_near
    L = math.log(total) - 0.5 * near * near - _LOG_SQRT_2PI
    m = near + d_near
    if hi < lo:
        return L, -m, r_near, r_far, d_near, d_far, V, -k3, k4
    return L, m, r_far, r_near, d_far, d_near, V, k3, k4
