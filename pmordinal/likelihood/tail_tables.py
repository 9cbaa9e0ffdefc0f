"""Likelihoods averaged over a Gaussian for very many data: interpolated values, no derivatives.

Links with a closed form use it. For the others the tails of noise plus a Gaussian are tabulated, once for each link:
the distribution of s e + √λ g, divided by √(s² + λ), depends only on the angle φ = atan(√λ / s), and smoothly so on all
of 0 ≤ φ ≤ π/2. The table has the log tails with their exact derivatives, for bicubic Hermite interpolation. Far tails
and narrow intervals, for which it is not accurate, are left to quadrature.
"""

import math
from functools import lru_cache

import numpy as np

from pmordinal.jit import njit
from pmordinal.likelihood.smoothing import smooth
from pmordinal.links import Link

FEW = 2000  # up to so many averages are computed by quadrature
MOST = 5000  # at most so many of them at a time
REACH, STEP = 16.0, 0.1  # range and grid of the table, in units of √(s² + λ)
ANGLES = 49
# Farther out, or if less probable, the tails change too fast with the angle to be interpolated.
NEAR, LEAST_LOG_PROB = 8.0, -12.0
EDGE = 1e-5  # distance of the first and last angle from 0 and π/2: quadrature needs s > 0 and λ > 0
NARROW = 0.01  # narrower: a difference of interpolated tails is inaccurate


def log_smooth(link: Link, lower, upper, mean, noise, var) -> np.ndarray:
    """Return log ∫ P(lower < f + noise·e ≤ upper) N(f; mean, var) df for arrays that broadcast.

    Exact for links that are closed under smoothing and for few data; otherwise interpolated.
    """
    scale = np.sqrt(noise * noise + var)
    if link.closed_form_smoothing:
        return link.log_interval(
            (lower - mean) / scale, (upper - mean) / scale, (upper - lower) / scale
        )
    arrays = np.broadcast_arrays(lower, upper, mean, np.sqrt(var), scale, noise)
    shape = arrays[0].shape
    lower, upper, mean, sd, scale, noise = (a.ravel() for a in arrays)
    value, rest = np.empty(mean.size), np.arange(mean.size)
    if mean.size > FEW:
        lo, hi, width = (lower - mean) / scale, (upper - mean) / scale, (upper - lower) / scale
        value = _interpolate(*_table(link), lo, hi, np.arctan2(sd, noise))
        near = np.maximum(lo, -hi)  # how far out the whole interval lies
        outside = (near > NEAR) | (width < NARROW) | (value < LEAST_LOG_PROB)
        rest = np.flatnonzero(outside)
    for i in range(0, rest.size, MOST):
        part = rest[i : i + MOST]
        terms = smooth(link, lower[part], upper[part], mean[part], noise[part], sd[part])
        value[part] = terms.value
    return value.reshape(shape)


@lru_cache(maxsize=8)
def _table(link: Link) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper log tails with their derivatives, each of shape (angles, points, 4).

    The four are the value L, ∂L/∂z, ∂L/∂φ and ∂²L/∂z∂φ, in units of the grid.
    """
    z = np.arange(-REACH, REACH + 0.5 * STEP, STEP)
    angles = np.linspace(0.0, 0.5 * np.pi, ANGLES)
    tables = np.empty((2, ANGLES, z.size, 4))
    infinite, zero = np.full(z.size, np.inf), np.zeros(z.size)
    for i, phi in enumerate(np.clip(angles, EDGE, 0.5 * np.pi - EDGE)):
        s, c = math.sin(phi), math.cos(phi)
        for table, lower, upper in ((tables[0], -infinite, zero), (tables[1], zero, infinite)):
            terms = smooth(link, lower, upper, -z, c, np.full(z.size, s))
            L1, L2, L3 = terms.d1, -terms.curvature, terms.d3
            # λ = sin²φ and noise = cos φ; the derivative in λ is ½ (L'' + L'²); z is minus the mean
            by_angle = s * c * (L2 + L1 * L1) - s / c * terms.log_noise[0]
            mixed = s * c * (L3 + 2.0 * L1 * L2) - s / c * terms.log_noise[1]
            step = angles[1]
            table[i].T[:] = terms.value, -L1 * STEP, by_angle * step, -mixed * STEP * step
    return tables[0], tables[1]


@njit(cache=True, nogil=True)
def _interpolate(below, above, lo, hi, angle):
    """Return log(G(hi) − G(lo)) from the upper or lower tail, whichever is smaller."""
    out = np.empty(lo.size)
    for i in range(lo.size):
        a, b = lo[i], hi[i]
        if a + b > 0.0:
            near, far = _lookup(above, a, angle[i]), _lookup(above, b, angle[i])
        else:
            near, far = _lookup(below, b, angle[i]), _lookup(below, a, angle[i])
        out[i] = near + math.log1p(-math.exp(min(far - near, -1e-12)))
    return out


@njit(cache=True, nogil=True)
def _lookup(table, z, angle):
    """Return the log tail at z and the angle; 0 or −∞ outside the table."""
    n = table.shape[1]
    x = (z + REACH) / STEP
    rising = table[0, 0, 0] < table[0, n - 1, 0]
    if x <= 0.0:
        return -math.inf if rising else 0.0
    if x >= n - 1:
        return 0.0 if rising else -math.inf
    y = angle / (0.5 * math.pi) * (ANGLES - 1)
    j, i = int(x), min(int(y), ANGLES - 2)
    t, u = x - j, y - i
    total = 0.0
    for k in range(2):
        # cubic Hermite polynomials: value and slope at this end
        v = u if k == 0 else 1.0 - u
        p = (1.0 + 2.0 * v) * (1.0 - v) ** 2
        q = v * (1.0 - v) ** 2 * (1.0 if k == 0 else -1.0)
        for m in range(2):
            w = t if m == 0 else 1.0 - t
            f = (1.0 + 2.0 * w) * (1.0 - w) ** 2
            g = w * (1.0 - w) ** 2 * (1.0 if m == 0 else -1.0)
            e = table[i + k, j + m]
            total += p * (f * e[0] + g * e[1]) + q * (f * e[2] + g * e[3])
    return total
