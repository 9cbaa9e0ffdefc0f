"""Likelihood of an interval at a latent value or averaged over a Gaussian, with all derivatives.

The average Z(μ) = ∫ P(b_l < f + s e ≤ b_u | f) N(f; μ, λ) df is closed form for the probit link.
For any other link it is a quadrature in log space, over the latent value or over the noise,
whichever is the narrower: then the integrand has no feature finer than about one unit of the
variable.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pmordinal.likelihood.quadrature import find_mode, plain_rule, sinh_rule
from pmordinal.links import LINKS, Link

SHARP = 4.0  # sd of a Gaussian, in units of the noise, up to which the usual rule resolves ends of intervals
FINEST = 40  # times as many nodes, at most
MOST = 5000  # averages at a time

Triple = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(slots=True, eq=False)
class Terms:
    """A log likelihood L(f), one entry per datum, and its derivatives.

    Attributes
    ----------
    value, d1, curvature, d3, d4 : ndarray, shape (n,)
        L, L', −L'' (never negative), L''', L'''' in f (or in the Gaussian's mean).
    upper, lower, log_noise : tuple of three ndarrays, shape (n,)
        The derivatives of (L, L', L'') with respect to the upper and lower threshold of each
        datum's class and to the logarithm of the noise.
    shrink : ndarray, shape (n,)
        1 − λ·curvature for a Gaussian of variance λ: the factor by which the datum shrinks it, free
        of cancellation. One where there is no Gaussian.
    """

    value: np.ndarray
    d1: np.ndarray
    curvature: np.ndarray
    d3: np.ndarray
    d4: np.ndarray
    upper: Triple
    lower: Triple
    log_noise: Triple
    shrink: np.ndarray

    @classmethod
    def of(cls, rows: Iterable[np.ndarray]) -> "Terms":
        """Return the terms whose fifteen arrays are `rows`, in order."""
        value, d1, curvature, d3, d4, u0, u1, u2, l0, l1, l2, s0, s1, s2, shrink = rows
        triples = (u0, u1, u2), (l0, l1, l2), (s0, s1, s2)
        return cls(value, d1, curvature, d3, d4, *triples, shrink)

    @property
    def rows(self) -> list[np.ndarray]:
        """The fifteen arrays that `of` takes."""
        first = (self.value, self.d1, self.curvature, self.d3, self.d4)
        return [*first, *self.upper, *self.lower, *self.log_noise, self.shrink]

    def times(self, weights: np.ndarray | None) -> "Terms":
        """Return the terms of so many equal data each, `shrink` being that of one; None is one of each."""
        if weights is None:
            return self
        return Terms.of([*(weights * part for part in self.rows[:-1]), self.shrink])


def interval_terms(link: Link, lower, upper, f, noise, var=0.0) -> Terms:
    """Return log P(lower < f + noise·e ≤ upper) and its derivatives, in latent units.

    A positive `var` adds a Gaussian to f; only links closed under Gaussian smoothing may have it.
    """
    return Terms.of(link.latent_terms(lower, upper, f, noise, var))


def smooth(link: Link, lower, upper, mean, noise, sd) -> Terms:
    """Return log ∫ P(lower < f + noise·e ≤ upper) N(f; mean, sd²) df and its derivatives.

    Parameters
    ----------
    link : Link
        Distribution of e.
    lower, upper, mean, sd : ndarray, shape (n,)
    noise : float or ndarray, shape (n,)
    """
    fields = np.empty((15, mean.size))
    noise = np.broadcast_to(np.asarray(noise, dtype=float), mean.shape)
    wide = sd >= noise
    for rows, average in ((wide, _over_noise), (~wide, _over_latent)):
        if rows.any():
            fields[:, rows] = average(
                link, lower[rows], upper[rows], mean[rows], noise[rows], sd[rows]
            )
    return Terms.of(fields)


def smooth_power(link: Link, lower, upper, mean, noise, sd, power) -> Terms:
    """Return log ∫ P(lower < f + noise·e ≤ upper)^power N(f; mean, sd²) df and its derivatives.

    Parameters
    ----------
    link : Link
    lower, upper, mean, sd, power : ndarray, shape (n,)
        Powers are at most one.
    noise : float or ndarray, shape (n,)
    """
    fields = np.empty((15, mean.size))
    noise = np.broadcast_to(np.asarray(noise, dtype=float), mean.shape)
    # the ends of the interval are as sharp as the noise, at a distance of about sd
    finer = np.clip(np.ceil(sd / (SHARP * noise)), 1.0, FINEST).astype(int)
    for level in np.unique(finer):
        for rows in np.array_split(*_in_parts(np.flatnonzero(finer == level), level)):
            at = (lower[rows], upper[rows], mean[rows], noise[rows], sd[rows])
            fields[:, rows] = _over_latent(link, *at, power[rows], int(level))
    return Terms.of(fields)


def _in_parts(rows: np.ndarray, level: int) -> tuple[np.ndarray, int]:
    return rows, max(1, rows.size * int(level) // MOST)


def _over_latent(link, lower, upper, mean, noise, sd, power=None, finer: int = 1):
    """Average over u, f = mean + sd·u."""

    def slope(u):
        terms = interval_terms(link, lower, upper, mean + sd * u, noise).times(power)
        return sd * terms.d1 - u, sd * sd * terms.curvature + 1.0

    zero = np.zeros_like(mean)
    end = _turn(slope(zero)[0], lower - mean, upper - mean, noise, sd)
    # the noise is at least sd: in units of sd the edge of its strip is π away, or more
    if power is None and link.strip >= np.pi:
        nodes, log_weights = plain_rule()
        u = find_mode(slope, zero, end)[:, None] + nodes
    else:
        u, log_weights = _nodes(slope, zero, end, finer)
    f = mean[:, None] + sd[:, None] * u
    inner = interval_terms(link, lower[:, None], upper[:, None], f, noise[:, None])
    inner = inner.times(None if power is None else power[:, None])
    log_density = log_weights - 0.5 * u * u - 0.5 * np.log(2 * np.pi)
    pi = _weights(log_density + inner.value)[0]
    shrink = (pi * (u - (pi * u).sum(1, keepdims=True)) ** 2).sum(1)  # 1 − λ·curvature = Var u
    return [*_mixture(log_density, inner), shrink]


def _over_noise(link, lower, upper, mean, noise, sd):
    """Average over the noise e, by quadrature: given e, the likelihood is that of a probit interval."""
    probit = LINKS["probit"]

    def slope(e):
        terms = interval_terms(probit, lower, upper, mean + noise * e, 0.0, sd * sd)
        return noise * terms.d1 - link.score(e), noise**2 * terms.curvature + link.dscore(e)

    zero = np.zeros_like(mean)
    e, log_weights = _nodes(
        slope, zero, _turn(slope(zero)[0], lower - mean, upper - mean, sd, noise)
    )
    shift = noise[:, None] * e
    centre, var = mean[:, None] + shift, sd[:, None] ** 2
    inner = interval_terms(probit, lower[:, None], upper[:, None], centre, 0.0, var)
    # derivatives by thresholds are those of the inner interval; noise·e shifts it as the mean does
    by_noise = (shift * inner.d1, -shift * inner.curvature, shift * inner.d3)
    density = log_weights + link.logpdf(e)
    pi = _weights(density + inner.value)[0]
    slopes = sd[:, None] * inner.d1
    spread = (pi * (slopes - (pi * slopes).sum(1, keepdims=True)) ** 2).sum(1)
    # Total variance = mean variance + variance of means.
    shrink = (pi * inner.shrink).sum(1) + spread
    return [*_mixture(density, inner, by_noise), shrink]


def _turn(slope, lower, upper, other, unit):
    """Return a point, in `unit`, where the slope has changed its sign: 40 of both scales into the interval."""
    up = slope > 0
    reach = 40.0 * (1.0 + other / unit)
    low, high = np.where(up, lower, 0.0) / unit, np.where(up, 0.0, upper) / unit
    return np.where(up, np.maximum(low, 0.0) + reach, np.minimum(high, 0.0) - reach)


def _nodes(slope, start, end, finer: int = 1):
    """Nodes and log weights of a rule centred at the mode and no wider than the integrand."""
    mode = find_mode(slope, start, end)
    width = 1.0 / np.sqrt(np.maximum(slope(mode)[1], 1.0))
    nodes, log_weights = sinh_rule() if finer == 1 else sinh_rule(96 * finer + 1)
    return mode[:, None] + width[:, None] * nodes, log_weights + np.log(width)[:, None]


def _weights(log_terms):
    top = log_terms.max(1, keepdims=True)
    pi = np.exp(log_terms - top)
    total = pi.sum(1, keepdims=True)
    return pi / total, (top + np.log(total))[:, 0]


def _where(kept, terms: Terms) -> Terms:
    """Set the derivatives to zero at all nodes that are not kept."""

    def triple(x: Triple) -> Triple:
        return tuple(np.where(kept, part, 0.0) for part in x)  # type: ignore[return-value]

    parts = (terms.d1, terms.curvature, terms.d3, terms.d4)
    d1, curvature, d3, d4 = (np.where(kept, part, 0.0) for part in parts)
    triples = triple(terms.upper), triple(terms.lower), triple(terms.log_noise)
    return Terms(terms.value, d1, curvature, d3, d4, *triples, terms.shrink)


def _mixture(log_density, inner: Terms, by_noise: Triple | None = None):
    """Return the log of a mixture of likelihoods; derivatives are averages plus (joint) cumulants."""
    pi, value = _weights(log_density + inner.value)
    if not np.isfinite(inner.d4).all():  # cloglog, at nodes of weight zero
        inner = _where(pi > 0.0, inner)

    def mean(x):
        return (pi * x).sum(1)

    def centred(x):
        return x - mean(x)[:, None]

    l1, l2, l3 = centred(inner.d1), centred(-inner.curvature), centred(inner.d3)
    var = mean(l1 * l1)
    d2 = mean(-inner.curvature) + var
    d3 = mean(inner.d3) + 3 * mean(l1 * l2) + mean(l1**3)
    d4 = mean(inner.d4) + 4 * mean(l1 * l3) + 3 * mean(l2 * l2) + 6 * mean(l1 * l1 * l2)
    d4 += mean(l1**4) - 3 * var**2
    out = [value, mean(inner.d1), np.maximum(-d2, 0.0), d3, d4]
    for g0, g1, g2 in (inner.upper, inner.lower, by_noise or inner.log_noise):
        c0 = centred(g0)
        first = mean(g1) + mean(c0 * l1)
        second = mean(g2) + mean(c0 * l2) + 2 * mean(centred(g1) * l1) + mean(c0 * l1 * l1)
        out += [mean(g0), first, second]
    return out
