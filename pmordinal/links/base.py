"""The class `Link`: a distribution of the noise, with the log-probability of an interval under it.

A datum of class k has the likelihood P(b_k < f + s·e ≤ b_{k+1}) = F(hi) − F(lo) with
lo = (b_k − f)/s and hi = (b_{k+1} − f)/s [CG2005]; F is the distribution function of the noise e,
and the link is its inverse. All engines see the data only through :class:`Interval`.

Notation, shared by the links: φ = F' is the density, ψ = −(log φ)' its score, P = F(hi) − F(lo),
r1 = φ(hi)/P and r2 = φ(lo)/P, m = r2 − r1 the slope.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

type FloatArray = NDArray[np.float64]
type Triple = tuple[FloatArray, FloatArray, FloatArray]

#: Replaces an infinite end: its square is finite and every density there is exactly zero, so
#: that "0 · end" is 0 and not NaN.
FAR = 1e150


@dataclass(frozen=True, slots=True)
class Interval:
    """L = log(F(hi) − F(lo)) and its derivatives, in units of the noise.

    The shift t moves both ends down, to hi − t and lo − t; it is f/s, so derivatives in f are those
    in t over powers of s. All arrays have the same shape.

    Parameters
    ----------
    log_prob : ndarray
        L.
    slope : ndarray
        dL/dt.
    curvature : ndarray
        −d²L/dt², never negative: all links are log-concave, and it is computed as a sum of
        non-negative terms.
    third, fourth : ndarray
        d³L/dt³ and d⁴L/dt⁴.
    upper : tuple of ndarray
        dL/dhi, d²L/dhi dt, d³L/dhi dt²; zero where hi = ∞.
    lower : tuple of ndarray
        dL/dlo, d²L/dlo dt, d³L/dlo dt²; zero where lo = −∞.
    log_scale : tuple of ndarray
        −(hi ∂/∂hi + lo ∂/∂lo) of L, dL/dt and d²L/dt²: their derivatives in log s at fixed f. The
        factors 1/s and 1/s² that turn t into f are the caller's.
    variance : ndarray, optional
        Variance of the noise given the interval where it is 1 − curvature (probit), accurate also
        where it is small; None for the other links.
    """

    log_prob: FloatArray
    slope: FloatArray
    curvature: FloatArray
    third: FloatArray
    fourth: FloatArray
    upper: Triple
    lower: Triple
    log_scale: Triple
    variance: FloatArray | None = None


class Link(ABC):
    """Distribution of the noise, named after the link function, the inverse of its cdf.

    To add a link, write a file with one subclass and name it in ``links/__init__.py``; the contract
    tests then find it.
    """

    #: Name by which users ask for the link.
    name: ClassVar[str]
    #: Standard deviation of the noise in its own units.
    noise_sd: ClassVar[float]
    #: Whether noise of scale s plus N(0, λ) has the same distribution with scale² s² + λ.
    closed_form_smoothing: ClassVar[bool] = False
    #: How far from the real line the probability of an interval has no singularity and does not grow.
    strip: ClassVar[float] = 0.0
    #: Whether the noise is standard normal, so that noisy latent values are jointly normal.
    is_normal: ClassVar[bool] = False

    @abstractmethod
    def interval(self, lo: ArrayLike, hi: ArrayLike, width: ArrayLike) -> Interval:
        """Return the log-probability of lo < e ≤ hi with all its derivatives.

        Parameters
        ----------
        lo, hi : array_like
            Ends of the intervals, lo < hi, infinite ones included. They broadcast.
        width : array_like
            hi − lo, computed before hi and lo were rounded: for narrow intervals the difference of
            the ends has no digits left. Infinite where an end is.

        Returns
        -------
        Interval
            Value and derivatives, of the broadcast shape.
        """

    def log_interval(self, lo: ArrayLike, hi: ArrayLike, width: ArrayLike) -> FloatArray:
        """Return only the `log_prob` of `interval`; links override it if that is much faster."""
        return self.interval(lo, hi, width).log_prob

    def latent_terms(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        f: ArrayLike,
        noise: ArrayLike,
        var: ArrayLike = 0.0,
    ) -> Iterable[FloatArray]:
        """Return log P(lower < f + noise·e ≤ upper) and its derivatives in latent units.

        A positive `var` adds a Gaussian to f; only links closed under Gaussian smoothing may have
        it.

        Returns
        -------
        iterable of 15 ndarrays
            L and its first four derivatives in f, the second negated; the derivatives of L and of its
            first two derivatives in `upper`, in `lower` and
            in the logarithm of the noise; and one minus var times the third row, without cancellation.
        """
        lower, upper, f = (np.asarray(a, dtype=np.float64) for a in (lower, upper, f))
        s2: FloatArray = np.square(np.asarray(noise, dtype=np.float64)) + np.asarray(var)
        s: FloatArray = np.sqrt(s2)
        s3 = s * s2
        width = (upper - lower) / s
        with np.errstate(over="ignore"):  # cloglog: e^700/s⁴ is infinite, correctly
            q = self.interval((lower - f) / s, (upper - f) / s, width)
            return [
                q.log_prob,
                q.slope / s,
                q.curvature / s2,
                q.third / s3,
                q.fourth / (s2 * s2),
                *(q.upper[0] / s, q.upper[1] / s2, q.upper[2] / s3),
                *(q.lower[0] / s, q.lower[1] / s2, q.lower[2] / s3),
                q.log_scale[0],
                (q.log_scale[1] - q.slope) / s,
                (q.log_scale[2] + 2.0 * q.curvature) / s2,
                np.ones_like(q.slope),
            ]

    def latent_function(
        self, lower: FloatArray, upper: FloatArray, noise: float | FloatArray
    ) -> Callable[[FloatArray, FloatArray], Iterable[FloatArray]]:
        """Return `latent_terms` as a function of f and var, for fixed intervals."""
        return lambda f, var: self.latent_terms(lower, upper, f, noise, var)

    @abstractmethod
    def cdf(self, z: ArrayLike) -> FloatArray:
        """Return F(z)."""

    @abstractmethod
    def quantile(self, p: ArrayLike) -> FloatArray:
        """Return the z with F(z) = p, infinite for p = 0 and p = 1."""

    @abstractmethod
    def upper_quantile(self, p: ArrayLike) -> FloatArray:
        """Return the z with 1 − F(z) = p, accurate where p is small."""

    @abstractmethod
    def score(self, z: ArrayLike) -> FloatArray:
        """Return ψ(z) = −d log φ/dz, which increases and vanishes at zero."""

    @abstractmethod
    def dscore(self, z: ArrayLike) -> FloatArray:
        """Return dψ/dz."""

    @abstractmethod
    def logpdf(self, z: Any, xp: Any = np) -> Any:
        """Return log φ(z), with `xp` either numpy or pytensor.tensor."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> FloatArray:
        """Return independent draws of the noise."""

    def __repr__(self) -> str:
        """Return the Python expression that creates this link."""
        return f"{type(self).__name__}()"


def outward_ends(lo: ArrayLike, hi: ArrayLike, width: ArrayLike) -> FloatArray:
    """Return z = (hi, −lo) as the two rows of one array of the broadcast shape; infinities become large numbers.

    Measured outwards the ends have the same formulas under symmetric noise, and the reflection
    e → −e swaps the rows.

    Examples
    --------
    >>> print(outward_ends([-1.0, -np.inf], [2.0, 3.0], [3.0, np.inf]))
    [[2.e+000 3.e+000]
     [1.e+000 1.e+150]]
    """
    shape = np.shape(lo)
    if np.shape(hi) != shape or np.shape(width) != shape:  # broadcast_shapes is slow
        shape = np.broadcast_shapes(shape, np.shape(hi), np.shape(width))
    z = np.empty((2, *shape))
    np.minimum(hi, FAR, out=z[0, ...])
    np.minimum(np.negative(lo), FAR, out=z[1, ...])
    return z


def log1mexp(w: FloatArray) -> FloatArray:
    """Return log(1 − e^(−w)) for w > 0, to full relative accuracy at both ends.

    Examples
    --------
    >>> print(log1mexp(np.array([1e-20, 50.0])))
    [-4.60517019e+01 -1.92874985e-22]
    """
    # Mask the arguments, not the results, so that the unused branch takes no log(0).
    wide = np.log1p(-np.exp(-np.maximum(w, 0.5)))
    return np.where(w < math.log(2), np.log(-np.expm1(-w)), wide)
