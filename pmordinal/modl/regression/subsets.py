"""Selective naive Bayes: the most probable subset of predictors, and an average over subsets.

Prior and fast forward–backward search of Boullé (2007) [B2007], carried over to ranks by [HB2007, section 3.3];
averaging by compression rates is [B2007].

The paper scores a subset by the likelihood of the instances that also made the tables, takes the grids as given,
and remarks that this lets the selection overfit [HB2007, section 5.3]. By default we use the joint posterior of
subset and grids: the cost includes the prior of each selected partition, and each instance is scored by tables without
itself (which integrates the cell probabilities out). ``joint=False`` is the paper's method.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import batched
from math import ceil, log, log2

import numpy as np
from rich.progress import Progress

from pmordinal.jit import njit
from pmordinal.modl.interrupt import BUDGET
from pmordinal.modl.partition.criterion import log_binomial, part_prior, size_prior
from pmordinal.modl.partition.grid import Grid
from pmordinal.modl.partition.least_gain import least_gain
from pmordinal.modl.regression.density import Segments


def subset_prior(n_predictors: int, n_selected: int) -> float:
    """Return −log p(subset): log (K + 1) + log C(K + k − 1, k) for k of K predictors.

    Examples
    --------
    >>> round(subset_prior(10, 0), 4) == round(float(np.log(11)), 4)
    True
    """
    prior = log(n_predictors + 1)
    if n_selected == 0:
        return prior
    return prior + float(log_binomial(n_predictors + n_selected - 1, n_selected))  # [B2007]


@dataclass(frozen=True)
class Candidate:
    """One informative predictor, with the tables that the search needs.

    Parameters
    ----------
    table : ndarray, shape (I + 1, S)
        Rank densities of its parts on the segments.
    part : ndarray of int64, shape (n,)
        Row of `table` for each training instance.
    first : ndarray of int64, shape (J + 1,)
        First segment of each of its target intervals, and S.
    home : ndarray of int64, shape (n,)
        Its target interval at the rank of each training instance.
    own : ndarray, shape (n,)
        Factor on the density in the instance's own cell that takes the instance out of the counts,
        (N_ij − 1 + a) / (N_ij + a); 1 to score with the instance counted.
    prior : float
        −log prior of its partition, added to the cost if it is selected.
    """

    table: np.ndarray
    part: np.ndarray
    first: np.ndarray
    home: np.ndarray
    own: np.ndarray
    prior: float

    @classmethod
    def of(
        cls, grid: Grid, part: np.ndarray, segments: Segments, segment: np.ndarray,
        smoothing: float, joint: bool,
    ) -> "Candidate":  # fmt: skip
        """Return the candidate of a grid; `joint` includes the prior of its partition and leaves instances out."""
        middle = 0.5 * (segments.edges[:-1] + segments.edges[1:])
        interval = np.searchsorted(grid.y_ranks, middle, side="right")
        home = interval[segment]
        count = grid.counts[part, home]
        own = (count - 1 + smoothing) / (count + smoothing) if joint else np.ones(len(part))
        n_values = None if grid.groups is None else sum(map(len, grid.groups))
        if n_values is not None and grid.missing_part is not None:
            n_values += 1
        prior = (
            size_prior(grid.n, n_values) + part_prior(grid.n, grid.I, n_values) if joint else 0.0
        )
        first = np.searchsorted(interval, np.arange(grid.J + 1))
        table = segments.density_table(grid, smoothing)
        return cls(table, part, first, home, own, float(prior))


@njit(cache=True, nogil=True)
def score_change(mass, own_density, home, table, part, first, own, sign):
    """Return Σ_n log density at each instance's own rank, if a predictor is added or removed.

    The predictor's density is constant on each of its own target intervals, so that the masses of these suffice.

    Parameters
    ----------
    mass : ndarray, shape (n, S + 1)
        Mass of each row's density before each segment.
    own_density : ndarray, shape (n,)
        Density of each row at its own rank.
    home : ndarray of int, shape (n,)
        Target interval of each row.
    table, part, first, own
        The fields of a `Candidate`.
    sign : int
        +1 to add the predictor, −1 to remove it.
    """
    total = 0.0
    for i in range(mass.shape[0]):
        norm = 0.0
        mine = own_density[i]
        for j in range(first.shape[0] - 1):
            factor = table[part[i], first[j]]
            if j == home[i]:
                factor *= own[i]
            if sign < 0:
                factor = 1.0 / factor
            norm += factor * (mass[i, first[j + 1]] - mass[i, first[j]])
            if j == home[i]:
                mine *= factor
        total += np.log(mine / norm)
    return total


@njit(cache=True, nogil=True)
def change_density(density, mass, home, widths, table, part, first, own, sign):
    """Add or remove a predictor: overwrite each row's `density`, shape (n, S), and `mass`; see `score_change`."""
    n_segments = widths.shape[0]
    for i in range(density.shape[0]):
        norm = 0.0
        for j in range(first.shape[0] - 1):
            factor = table[part[i], first[j]]
            if j == home[i]:
                factor *= own[i]
            if sign < 0:
                factor = 1.0 / factor
            for s in range(first[j], first[j + 1]):
                density[i, s] *= factor
                norm += widths[s] * density[i, s]
        mass[i, 0] = 0.0
        for s in range(n_segments):
            density[i, s] /= norm
            mass[i, s + 1] = mass[i, s] + widths[s] * density[i, s]


@dataclass(frozen=True)
class Selection:
    """The result of the search over subsets.

    Parameters
    ----------
    best : ndarray of bool, shape (K,)
        The subset of least cost.
    cost, null_cost : float
        Its cost and that of the empty subset, in nats.
    weights : ndarray, shape (K,)
        Share of the compression of all visited subsets that goes to subsets with each predictor.
    visited : int
        Number of distinct subsets evaluated.
    """

    best: np.ndarray
    cost: float
    null_cost: float
    weights: np.ndarray
    visited: int


class SubsetSearch:
    """Fast forward–backward search over subsets of predictors."""

    def __init__(
        self, candidates: list[Candidate], segment: np.ndarray, widths: np.ndarray, k: int
    ) -> None:
        self.candidates, self.segment, self.widths, self.k = candidates, segment, widths, k
        self.n = len(segment)
        self.priors = np.array([c.prior for c in candidates])
        self.visited: dict[bytes, float] = {}
        # the log scores of the rows add up to at most N log N
        self.tolerance = least_gain(ceil(self.n**0.5), self.n * log(self.n + 1), floor=1e-9)

    def cost(self, mask: np.ndarray, score: float) -> float:
        """Return −log p(subset) − log p(its partitions) − log p(ranks | subset)."""
        prior = subset_prior(self.k, int(mask.sum())) + float(self.priors[mask].sum())
        return prior - score + self.n * log(self.n)

    def subsets(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the visited subsets as masks, some at a time, shape (some, K), with their costs."""
        for some in batched(self.visited.items(), 1000):
            packed = np.array([np.frombuffer(key, dtype=np.uint8) for key, _ in some])
            masks = np.unpackbits(packed, axis=1, count=len(self.candidates)).astype(bool)
            yield masks, np.array([cost for _, cost in some])

    def _restart(self) -> None:
        self.mask = np.zeros(len(self.candidates), dtype=bool)
        self.density = np.ones((self.n, len(self.widths)))
        self.mass = np.tile(np.concatenate(([0.0], np.cumsum(self.widths))), (self.n, 1))
        self.now = self.cost(self.mask, 0.0)
        self.visited[self._key()] = self.now

    def _key(self) -> bytes:
        """Return the current subset, packed: there may be many of many predictors."""
        return np.packbits(self.mask).tobytes()

    def _score(self, k: int, sign: int) -> float:
        c = self.candidates[k]
        own_density = self.density[np.arange(self.n), self.segment]
        step = 1 + BUDGET // (4 * len(c.first))
        total = 0.0
        for i in range(0, self.n, step):
            at = slice(i, i + step)
            total += score_change(
                self.mass[at], own_density[at], c.home[at], c.table, c.part[at], c.first, c.own[at], sign
            )  # fmt: skip
        return total

    def _change(self, k: int, sign: int) -> None:
        c = self.candidates[k]
        step = 1 + BUDGET // (4 * len(self.widths))
        for i in range(0, self.n, step):
            at = slice(i, i + step)
            change_density(
                self.density[at], self.mass[at], c.home[at], self.widths, c.table, c.part[at], c.first,
                c.own[at], sign,
            )  # fmt: skip

    def _try(self, k: int) -> bool:
        """Flip predictor k if that lowers the cost."""
        sign = -1 if self.mask[k] else 1
        self.mask[k] = not self.mask[k]
        key = self._key()
        if key not in self.visited:
            self.visited[key] = self.cost(self.mask, self._score(k, sign))
        # each subset has one cost, kept in `visited`, so that the cost falls and the search ends
        if self.visited[key] < self.now - self.tolerance:
            self.now = self.visited[key]
            self._change(k, sign)
            return True
        self.mask[k] = not self.mask[k]
        return False

    def run(self, order: np.ndarray) -> tuple[np.ndarray, float]:
        """Add, then drop predictors in the given order until the cost falls no more."""
        self._restart()
        changed = True
        while changed:
            changed = False
            for adding in (True, False):
                for k in order:
                    if self.mask[k] != adding and self._try(int(k)):
                        changed = True
        return self.mask.copy(), self.now


def select(
    candidates: list[Candidate],
    segment: np.ndarray,
    widths: np.ndarray,
    *,
    n_predictors: int,
    rng: np.random.Generator,
    progressbar: bool = False,
) -> Selection:
    """Return the best subset of informative predictors, and compression weights.

    Parameters
    ----------
    candidates : list of Candidate
        The informative predictors, best first.
    segment : ndarray of int, shape (n,)
        Segment of each training target.
    widths : ndarray, shape (S,)
        Rank mass of the segments.
    n_predictors : int
        K of the prior: all predictors, uninformative ones included.
    rng : numpy.random.Generator
        Shuffles the order of the later rounds; the first takes the predictors as given.
    progressbar : bool
        Whether to show progress.

    Returns
    -------
    Selection
    """
    search = SubsetSearch(candidates, segment, widths, n_predictors)
    k = len(candidates)
    best = np.zeros(k, dtype=bool)
    cost = null = search.cost(best, 0.0)
    if k == 0:
        return Selection(best, null, null, np.zeros(0), 1)
    rounds = ceil(log2(max(len(segment), 2))) + ceil(log2(k + 1))  # [B2007]
    with Progress(disable=not progressbar, transient=True) as progress:
        bar = progress.add_task("selective naive Bayes", total=rounds)
        for r in range(rounds):
            mask, now = search.run(np.arange(k) if r == 0 else rng.permutation(k))
            if now < cost:
                best, cost = mask, now
            progress.advance(bar)
    weights, total = np.zeros(k), 0.0
    for masks, costs in search.subsets():
        rate = np.maximum(1.0 - costs / null, 0.0)
        weights, total = weights + rate @ masks, total + rate.sum()
    if total > 0:
        weights = weights / total  # [B2007]
    return Selection(best, cost, null, weights, len(search.visited))
