"""What tests/links/test_links.py needs to know of the link, in multiprecision arithmetic."""

import mpmath

from tests.links.test_links import REFERENCE


def _loglog_density(z):
    """Return the density and its first three derivatives."""
    G = mpmath.exp(-z)
    phi = G * mpmath.exp(-G)
    return [phi * p for p in (1, G - 1, G**2 - 3 * G + 1, G**3 - 6 * G**2 + 7 * G - 1)]


REFERENCE["loglog"] = (
    _loglog_density,
    lambda z: mpmath.exp(-mpmath.exp(-z)),  # P(noise ≤ z)
    lambda z: -mpmath.expm1(-mpmath.exp(-z)),  # P(noise > z)
)
