"""Gaussian noise: F = Φ.

The derivatives of L in the shift are the cumulants of e ~ N(0, 1) truncated to (lo, hi): slope m,
1 − curvature = V the variance, then κ3 and κ4. No formula serves everywhere:

- boundary terms, from the densities r at the ends and the ends' distances d from the mean, keep
  their digits where the derivatives may be tiny: in wide intervals around zero;
- in the tails and in narrow intervals they cancel (V is as small as 1/lo² or width²/12, and is one
  minus their sum); there the moments come from Gauss–Legendre quadrature.

Arrays with two rows belong to the ends z = (hi, −lo), measured outwards, which makes the formulas
of both ends the same and the reflection e → −e a swap of the rows.
"""

import math
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from pmordinal.links.base import FloatArray, Interval, Link, outward_ends

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
_SQRT_HALF = math.sqrt(0.5)

#: Quadrature is used if both ends lie beyond this on one side, or below this width.
_TAIL = 2.5
_NARROW = 1.0
#: All other intervals are more probable than this.
_LEAST = 1e-3
#: The quadrature stops where the integrand has fallen by e^−40, below the last digit.
_DROP = 40.0
#: Beyond this width the far end of a quadrature interval has density 0 in double precision.
_WIDEST = 50.0
#: 22 nodes integrate x⁴·exp(−40x) on (0, 1) to rounding, 12 do so for exponents up to 4.
_FEW_NODES_DROP = 4.0


def _rule(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return the exponents' basis (−x, −x²) and the weights times x⁰ … x⁴, nodes on (0, 1)."""
    x, weight = np.polynomial.legendre.leggauss(n_nodes)
    x = (x + 1) / 2
    return np.stack([-x, -x * x], axis=1), weight / 2 * x ** np.arange(5)[:, None]


_FEW, _MANY = _rule(12), _rule(22)


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

    def interval(self, lo: ArrayLike, hi: ArrayLike, width: ArrayLike) -> Interval:
        """Return the log-probability of lo < e ≤ hi with all its derivatives."""
        z = outward_ends(lo, hi, width)
        shape = z.shape[1:]
        inner = np.minimum(z[0], z[1])
        quadrature = np.flatnonzero((inner < -_TAIL) | np.less(width, _NARROW))

        # L, m, r and d, in one array so that the quadrature replaces its rows in one assignment.
        terms = np.empty((6, *shape))
        m, r, d = terms[1, ...], terms[2:4], terms[4:]
        beyond = ndtr(-z)
        # Not log(P), which rounds to zero in wide intervals. The bounds concern only rows that the
        # quadrature replaces.
        np.log1p(-np.minimum(beyond[0] + beyond[1], 1 - _LEAST), out=terms[0, ...])
        P = np.maximum(ndtr(inner) - np.minimum(beyond[0], beyond[1]), _LEAST)
        np.exp(z * z * -0.5, out=r)
        r *= _INV_SQRT_2PI / P
        np.subtract(r[1], r[0], out=m)
        np.subtract(z[0], m, out=d[0, ...])
        np.add(z[1], m, out=d[1, ...])
        if quadrature.size:
            w = np.asarray(width)
            w = w if w.shape == shape else np.broadcast_to(w, shape)
            rows, cumulants = _quadrature(z.reshape(2, -1).take(quadrature, 1), w.take(quadrature))
            terms.reshape(6, -1)[:, quadrature] = rows

        rd = r * d
        curvature = np.asarray(rd[0] + rd[1])
        V = np.asarray(1 - curvature)
        if quadrature.size:
            V.put(quadrature, cumulants[0])
        mixed = rd * d - r * V  # not r·(d² − V): the square overflows at ends where r = 0
        k3 = np.asarray(mixed[1] - mixed[0])
        if quadrature.size:
            k3.put(quadrature, cumulants[1])
        # The log-scale derivatives are −(hi ∂/∂hi + lo ∂/∂lo). For the Gaussian that of L is
        # E e² − 1; its commutator with d/dt turns the other two into cumulants as well, where no
        # end cancels the other.
        m_k3 = m * k3
        V_curvature = V * curvature
        mixed_d = mixed * d
        k4 = np.asarray(2 * V_curvature - m_k3 - mixed_d[0] - mixed_d[1])
        if quadrature.size:
            k4.put(quadrature, cumulants[2])
        return Interval(
            log_prob=terms[0],
            slope=m,
            curvature=curvature,
            third=k3,
            fourth=k4,
            upper=(r[0], rd[0], mixed[0]),
            lower=(-r[1], rd[1], -mixed[1]),
            log_scale=(
                m * m - curvature,
                m * (V - curvature) + k3,
                2 * (m_k3 - V_curvature) + k4,
            ),
            variance=V,
        )

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
        a, b = lo[i], hi[i]
        if a + b < 0.0:
            a, b = -b, -a
        middle = 0.5 * (a + b)
        if width[i] * (1.0 + middle) < 0.02:  # the next term of the series is below 1e-17
            w2, m2 = width[i] ** 2, middle * middle
            series = w2 * ((m2 - 1.0) / 24.0 + w2 * (m2 * (m2 - 6.0) + 3.0) / 1920.0)
            out[i] = math.log(width[i]) - 0.5 * m2 - _LOG_SQRT_2PI + math.log1p(series)
        elif a < 0.0:
            below, above = math.erfc(-a * _SQRT_HALF), math.erfc(b * _SQRT_HALF)
            out[i] = math.log1p(-0.5 * (below + above))
        elif a < 30.0:
            out[i] = math.log(0.5 * (math.erfc(a * _SQRT_HALF) - math.erfc(b * _SQRT_HALF)))
        else:
            near, far = _log_far_tail(a), _log_far_tail(b)
            out[i] = near + math.log1p(-math.exp(far - near))
    return out


@njit(cache=True, nogil=True)
def _log_far_tail(z):
    """Return log(1 − Φ(z)) for z > 30, where the asymptotic series is good to ten digits."""
    if z > 1e100:
        return -math.inf
    u = 1.0 / (z * z)
    return (
        math.log1p(-u * (1.0 - 3.0 * u * (1.0 - 5.0 * u))) - 0.5 / u - _LOG_SQRT_2PI - math.log(z)
    )


def _quadrature(z: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rows (L, m, r, r, d, d) and (V, κ3, κ4) from the moments of e.

    After a reflection that makes the midpoint positive, t = e − near has a density ∝
    exp(−near·t − t²/2) on (0, width), falling all the way.
    """
    flip = z[0] < z[1]
    near = -np.minimum(z[0], z[1])
    width = np.minimum(width, _WIDEST)
    square = near * near
    T = np.minimum(width, 2 * _DROP / (near + np.sqrt(square + 2 * _DROP)))
    powers = np.empty((3, near.size))  # T², T³, T⁴
    T2 = np.multiply(T, T, out=powers[0])
    np.multiply(T2, T, out=powers[1])
    np.multiply(T2, T2, out=powers[2])
    exponent = np.empty((2, near.size))
    np.multiply(near, T, out=exponent[0])
    np.multiply(T2, 0.5, out=exponent[1])
    basis, weights = _FEW if (exponent[0] + exponent[1]).max() < _FEW_NODES_DROP else _MANY
    density = basis @ exponent
    np.exp(density, out=density)
    # Raw moments of t/T, whose cumulants lose no more than two digits: the mean is only a few
    # standard deviations from 0.
    moments = weights @ density
    total = moments[0]
    e1, e2, e3, e4 = moments[1:] / total
    total *= T

    cumulants = np.empty((3, near.size))
    V, k3, k4 = cumulants
    e1_squared = e1 * e1
    np.subtract(e2, e1_squared, out=V)
    V3 = 3 * V
    np.subtract(e3, e1 * (V3 + e1_squared), out=k3)
    np.subtract(e4 - 4 * e1 * k3, V3 * (e2 + e1_squared) + e1_squared * e1_squared, out=k4)
    cumulants *= powers

    far_first = np.empty((2, 2, near.size))  # (r, d) × (far end, near end)
    (r_far, r_near), (d_far, d_near) = far_first
    np.divide(1.0, total, out=r_near)
    np.multiply(np.exp(-width * (near + 0.5 * width)), r_near, out=r_far)
    np.multiply(e1, T, out=d_near)
    np.subtract(width, d_near, out=d_far)

    terms = np.empty((6, near.size))
    np.subtract(np.log(total), 0.5 * square + _LOG_SQRT_2PI, out=terms[0])
    m = np.add(near, d_near, out=terms[1])
    np.negative(m, out=m, where=flip)
    np.negative(k3, out=k3, where=flip)
    terms[2:] = np.where(flip, far_first[:, ::-1], far_first).reshape(4, -1)
    return terms, cumulants
