"""From target ranks to target values: uniform between successive values, exponential tails.

[HB2007, section 5.3]: the density is constant between successive boundaries [HB2007, eq. 8] of the training
values, and a mass ε = 1/(2N) lies in each tail. The paper does not say how fast the tails fall: here the scale
of a tail is the mean excess of the √N outermost training values, the maximum likelihood fit of an
exponential (a density continuous at the ends would make tails of any length where the model gives the
outermost ranks a small probability). Equation 8 at n = N needs y_(N+1) = ∞; the outermost cells end at
the extreme values instead, and the tails lie beyond.
"""

from dataclasses import dataclass, field

import numpy as np

from pmordinal.modl.encode import midpoints


@dataclass(frozen=True)
class ValueScale:
    """The empirical scale of the training target.

    Parameters
    ----------
    values : ndarray, shape (M,)
        Distinct training values, sorted.
    counts : ndarray of int, shape (M,)
        How often each occurs.
    """

    values: np.ndarray
    counts: np.ndarray
    n: int = field(init=False)
    knots: np.ndarray = field(init=False)
    ranks: np.ndarray = field(init=False)
    first: np.ndarray = field(init=False)
    second: np.ndarray = field(init=False)
    tail_scales: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the knots of the map between values and ranks, and its moments."""
        n = int(self.counts.sum())
        knots = np.concatenate((self.values[:1], midpoints(self.values), self.values[-1:]))
        ranks = np.concatenate(([0.0], np.cumsum(self.counts) / n))
        ranks[-1] = 1.0
        step, low, high = np.diff(knots), ranks[:-1], ranks[1:]
        first = np.concatenate(([0.0], np.cumsum(step * (low + high) / 2)))
        second = np.concatenate(
            ([0.0], np.cumsum(step * (low * low + low * high + high * high) / 3))
        )
        tails = (
            _mean_excess(self.values, self.counts),
            _mean_excess(-self.values[::-1], self.counts[::-1]),
        )
        for name, value in (
            ("n", n), ("knots", knots), ("ranks", ranks), ("first", first), ("second", second),
            ("tail_scales", tails),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def tail(self) -> float:
        """Probability of each tail, ε = 1/(2N)."""
        return 0.5 / self.n

    def boundaries_at(self, edges: np.ndarray) -> np.ndarray:
        """Return the value boundaries of inner segment edges, which lie between distinct values."""
        at = np.searchsorted(np.cumsum(self.counts), np.rint(edges * self.n))
        return self.knots[at + 1]

    def rank_of(self, y: np.ndarray) -> np.ndarray:
        """Return the normalised rank of values, linear between knots, 0 and 1 beyond the ends."""
        return np.interp(y, self.knots, self.ranks)

    def value_of(self, ranks: np.ndarray) -> np.ndarray:
        """Return the value at normalised ranks."""
        return np.interp(ranks, self.ranks, self.knots)

    def slope(self, y: np.ndarray) -> np.ndarray:
        """Return d rank / d value at y, for y within the training values."""
        cell = np.clip(np.searchsorted(self.knots, y, side="right") - 1, 0, len(self.values) - 1)
        return (np.diff(self.ranks) / np.diff(self.knots))[cell]

    def moments(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ∫ rank and ∫ rank² over values from the smallest training value to y."""
        cell = np.clip(np.searchsorted(self.knots, y, side="right") - 1, 0, len(self.values) - 1)
        step = y - self.knots[cell]
        low, high = self.ranks[cell], self.rank_of(y)
        first = self.first[cell] + step * (low + high) / 2
        return first, self.second[cell] + step * (low * low + low * high + high * high) / 3

    def require_spread(self) -> None:
        """Raise if the target is constant, since it has no density of values."""
        if len(self.values) < 2:
            raise ValueError(
                "the training target is constant: its values have no density; use nlrpd, or fit on a target "
                "that varies"
            )


@dataclass(frozen=True)
class ValueDistribution:
    """Predictive distributions of the target value for n rows.

    Parameters
    ----------
    scale : ValueScale
        Scale of the training target.
    edges : ndarray, shape (S + 1,)
        Segment edges in ranks.
    density : ndarray, shape (n, S)
        Rank density on the segments.
    """

    scale: ValueScale
    edges: np.ndarray
    density: np.ndarray

    @property
    def cdf_at_edges(self) -> np.ndarray:
        """Rank cdf at the segment edges, shape (n, S + 1)."""
        mass = self.density * np.diff(self.edges)
        cdf = np.concatenate((np.zeros((len(mass), 1)), np.cumsum(mass, axis=1)), axis=1)
        return cdf / cdf[:, -1:]

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Return the log predictive density of the value y, one per row [HB2007, eqs. 6 and 7]."""
        self.scale.require_spread()
        bottom, top = self.scale.values[0], self.scale.values[-1]
        inside = np.clip(y, bottom, top)
        segment = np.searchsorted(self.scale.boundaries_at(self.edges[1:-1]), inside, side="right")
        d = self.density[np.arange(len(y)), segment]
        tail = self.scale.tail
        out = np.log1p(-2.0 * tail) + np.log(d) + np.log(self.scale.slope(inside))
        low, high = self.scale.tail_scales
        out = np.where(y < bottom, np.log(tail / low) - (bottom - y) / low, out)
        return np.where(y > top, np.log(tail / high) - (y - top) / high, out)

    def quantile(self, q: np.ndarray) -> np.ndarray:
        """Return value quantiles, shape (n, len(q))."""
        if len(self.scale.values) < 2:
            return np.full((len(self.density), len(q)), self.scale.values[0])
        tail = self.scale.tail
        cdf = self.cdf_at_edges
        inner = np.clip((q - tail) / (1.0 - 2.0 * tail), 0.0, 1.0)
        ranks = np.array([np.interp(inner, row, self.edges) for row in cdf]).reshape(-1, len(q))
        values = self.scale.value_of(ranks)
        low, high = self.scale.tail_scales
        with np.errstate(divide="ignore"):  # q = 0 and 1 give ∓∞
            below = np.log(np.minimum(q / tail, 1.0))
            above = np.log(np.minimum((1.0 - q) / tail, 1.0))
        return values + low * below - high * above

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return the continuous ranked probability score of each row, in closed form.

        ∫ (F(u) − 1{y ≤ u})² du; the paper's indicator is reversed, and its sign is that of a gain.
        """
        self.scale.require_spread()
        scale, tail = self.scale, self.scale.tail
        bottom, top = scale.values[0], scale.values[-1]
        knots = np.concatenate(([bottom], scale.boundaries_at(self.edges[1:-1]), [top]))
        # F = P + Q rank on each segment
        Q = (1.0 - 2.0 * tail) * self.density
        P = tail + (1.0 - 2.0 * tail) * self.cdf_at_edges[:, :-1] - Q * self.edges[:-1]
        inside = np.clip(y, bottom, top)[:, None]
        cut = np.clip(inside, knots[:-1], knots[1:])  # y, clipped to each segment

        def integral(P: np.ndarray, Q: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
            a1, a2 = scale.moments(a)
            b1, b2 = scale.moments(b)
            return (P * P * (b - a) + 2 * P * Q * (b1 - a1) + Q * Q * (b2 - a2)).sum(axis=1)

        total = integral(P, Q, knots[:-1], cut) + integral(1 - P, -Q, cut, knots[1:])
        low, high = self.scale.tail_scales
        return (
            total
            + _tail_crps(np.maximum(bottom - y, 0.0), low, tail)
            + _tail_crps(np.maximum(y - top, 0.0), high, tail)
        )


def _mean_excess(values: np.ndarray, counts: np.ndarray) -> float:
    """Return the mean distance of the about √N smallest instances from the next larger value."""
    end = np.cumsum(counts)
    if len(values) < 2:
        return 0.0
    k = int(np.clip(np.searchsorted(end, np.sqrt(end[-1])), 0, len(values) - 2))
    return float((counts[: k + 1] * (values[k + 1] - values[: k + 1])).sum() / end[k])


def _tail_crps(excess: np.ndarray, scale: float, tail: float) -> np.ndarray:
    """Return the score of one exponential tail when y lies `excess` beyond its start."""
    e = np.exp(-excess / scale)
    beyond = tail**2 * scale / 2 * e**2
    return beyond + excess - 2 * tail * scale * (1 - e) + tail**2 * scale / 2 * (1 - e**2)
