"""Selective naive Bayes: the most probable subset of predictors, and an average over subsets.

Prior and fast forward–backward search of Boullé (2007) [B2007], carried over to ranks by [HB2007, section 3.3];
averaging by compression rates is [B2007].

The paper scores a subset by the likelihood of the instances that also made the tables, takes the grids as given,
and remarks that this lets the selection overfit [HB2007, section 5.3]. By default we use the joint posterior of
subset and grids: the cost includes the prior of each selected partition, and each instance is scored by tables without
itself (which integrates the cell probabilities out). ``joint=False`` is the paper's method.
"""

from dataclasses import dataclass
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
    interval : ndarray of int64, shape (S,)
        Its target interval on each segment.
    own : ndarray, shape (n,)
        Factor on the density in the instance's own cell that takes the instance out of the counts,
        (N_ij − 1 + a) / (N_ij + a); 1 to score with the instance counted.
    prior : float
        −log prior of its partition, added to the cost if it is selected.
    """

    table: np.ndarray
    part: np.ndarray
    interval: np.ndarray
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
        count = grid.counts[part, interval[segment]]
        own = (count - 1 + smoothing) / (count + smoothing) if joint else np.ones(len(part))
        n_values = None if grid.groups is None else sum(map(len, grid.groups))
        if n_values is not None and grid.missing_part is not None:
            n_values += 1
        prior = (
            size_prior(grid.n, n_values) + part_prior(grid.n, grid.I, n_values) if joint else 0.0
        )
        return cls(segments.density_table(grid, smoothing), part, interval, own, float(prior))


@njit(cache=True, nogil=True)
def change_density(density, segment, widths, table, part, interval, own, sign, keep):
    """Add or remove a predictor's densities; return Σ_n log density at each instance's own rank.

    Parameters
    ----------
    density : ndarray, shape (n, S)
        Density of each row on each segment; overwritten by the changed one if `keep`.
    segment : ndarray of int, shape (n,)
        Segment of each row's target.
    widths : ndarray, shape (S,)
        Rank mass of the segments.
    table, part, interval, own
        The fields of a `Candidate`.
    sign : int
        +1 to add the predictor, −1 to remove it.
    keep : bool
        Whether to store the result.
    """
    total = 0.0
    n_segments = widths.shape[0]
    changed = np.empty(n_segments)
    for i in range(density.shape[0]):
        norm = 0.0
        row = part[i]
        home = interval[segment[i]]
        for s in range(n_segments):
            factor = table[row, s]
            if interval[s] == home:
                factor *= own[i]
            changed[s] = density[i, s] * factor if sign > 0 else density[i, s] / factor
            norm += widths[s] * changed[s]
        total += np.log(changed[segment[i]] / norm)
        if keep:
            for s in range(n_segments):
                density[i, s] = changed[s] / norm
    return total


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
        self.visited: dict[bytes, float] = {}
        # the log scores of the rows add up to at most N log N
        self.tolerance = least_gain(ceil(self.n**0.5), self.n * log(self.n + 1), floor=1e-9)

    def cost(self, mask: np.ndarray, score: float) -> float:
        """Return −log p(subset) − log p(its partitions) − log p(ranks | subset)."""
        prior = subset_prior(self.k, int(mask.sum()))
        prior += sum(c.prior for c, chosen in zip(self.candidates, mask, strict=True) if chosen)
        return prior - score + self.n * log(self.n)

    def _restart(self) -> None:
        self.mask = np.zeros(len(self.candidates), dtype=bool)
        self.density = np.ones((self.n, len(self.widths)))
        self.now = self.cost(self.mask, 0.0)
        self.visited[self.mask.tobytes()] = self.now

    def _change(self, k: int, sign: int, keep: bool) -> float:
        c = self.candidates[k]
        step = 1 + BUDGET // (4 * len(self.widths))
        total = 0.0
        for i in range(0, self.n, step):
            at = slice(i, i + step)
            total += change_density(
                self.density[at], self.segment[at], self.widths, c.table, c.part[at], c.interval,
                c.own[at], sign, keep,
            )  # fmt: skip
        return total

    def _try(self, k: int) -> bool:
        """Flip predictor k if that lowers the cost."""
        sign = -1 if self.mask[k] else 1
        self.mask[k] = not self.mask[k]
        key = self.mask.tobytes()
        if key not in self.visited:
            self.visited[key] = self.cost(self.mask, self._change(k, sign, False))
        # each subset has one cost, kept in `visited`, so that the cost falls and the search ends
        if self.visited[key] < self.now - self.tolerance:
            self.now = self.visited[key]
            self._change(k, sign, True)
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
    masks = np.array([np.frombuffer(key, dtype=bool) for key in search.visited])
    rate = np.maximum(1.0 - np.array(list(search.visited.values())) / null, 0.0)
    weights = rate @ masks / rate.sum() if rate.sum() > 0 else np.zeros(k)  # [B2007]
    return Selection(best, cost, null, weights, len(masks))
