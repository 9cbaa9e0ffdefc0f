"""The search for the cheapest grid: many starts on coarse ranks, then refinement at full resolution.

[HB2007, Algorithm 1] with these differences: the best model starts as the null model; starts draw J
log-uniformly in [2, √N] and include a two-sided merge; disturbed copies of the best follow; both axes keep at
least two parts while searching, because a grid with one part on either axis never beats the null model; the
best starts are polished by exact dynamic programs; large samples are searched on quantile bins and
refined on all values.
"""

from dataclasses import dataclass

import numpy as np

from pmordinal.modl.partition.axis import (
    group_values,
    interval_penalty,
    labels_of,
    log_bell_table,
    predictor_problem,
    target_penalty,
    target_problem,
)
from pmordinal.modl.partition.cells import Cells
from pmordinal.modl.partition.criterion import null_cost, size_prior
from pmordinal.modl.partition.least_gain import least_gain
from pmordinal.modl.partition.log_tables import log_tables
from pmordinal.modl.partition.merge_both_axes import merge_both_axes

COARSE = 256  # quantile bins on each axis of the first search; more for large samples
EXACT = 1000  # largest number of values for exact dynamic programming
POLISHED = 3  # number of results that are improved exactly
REFINED = 200_000  # in larger samples only the best of them is refined at full resolution
ROUNDS = 1000  # largest number of alternations between the axes; usually a few suffice
PATIENCE = 8.0  # a disturbed partition is dropped if it is worse by more nats after one round


@dataclass
class Partition:
    """Parts of the predictor's values, cuts of the target's values, and the cost."""

    x_label: np.ndarray
    y_cuts: np.ndarray
    cost: float
    counts: np.ndarray

    def is_null(self) -> bool:
        """Tell whether this is the one-cell model."""
        return self.counts.size == 1

    def tolerance(self) -> float:
        """Return the smallest difference to another cost that is more than rounding error."""
        i, j = self.counts.shape
        return least_gain(2 * (i + 1) * (j + 1), self.cost)


def null_partition(cells: Cells) -> Partition:
    """Return the one-cell model of `cells`, missing predictors included in its only part."""
    return Partition(
        np.zeros(cells.x.n_values, dtype=np.int64),
        np.array([0, cells.y.n_values]),
        null_cost(cells.n, cells.n_categories),
        np.array([[cells.n]]),
    )


class Search:
    """Alternating optimisation of both axes of one pair at one resolution."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.lf, _ = log_tables(2 * cells.n + 2)
        self.log_bell = log_bell_table(cells)

    def evaluate(self, x_label: np.ndarray, y_cuts: np.ndarray) -> Partition:
        """Return the partition with its cell counts and cost by [HB2007, eqs. 1 and 3]."""
        cells, lf = self.cells, self.lf
        problem = target_problem(cells, x_label)
        counts = problem.counts(labels_of(y_cuts)).T
        i, j = counts.shape
        rows = counts.sum(axis=1)
        if self.log_bell is None:
            prior = lf[cells.n + i - 1] - lf[i - 1] - lf[cells.n]
        else:
            prior = self.log_bell[i]
        cost = (
            size_prior(cells.n, cells.n_categories)
            + prior
            + (lf[rows + j - 1] - lf[j - 1]).sum()
            - lf[counts].sum()
            + lf[counts.sum(axis=0)].sum()
        )
        return Partition(x_label, y_cuts, float(cost), counts)

    def solve_x(self, y_cuts: np.ndarray, how: str, now: np.ndarray | None = None) -> np.ndarray:
        """Return parts of the predictor given the target's cuts."""
        problem = predictor_problem(self.cells, y_cuts)
        if self.log_bell is not None:
            return group_values(self.cells, problem, self.log_bell, now)
        top = problem.n_values
        if how == "improve" and now is not None:
            top = min(top, 2 * int(now.max()) + 34)
        penalty = interval_penalty(self.cells, problem.n_other, top)
        if how == "exact":
            return labels_of(problem.exact(penalty))
        if how == "improve" and now is not None:
            cuts = np.concatenate(([0], np.flatnonzero(np.diff(now)) + 1, [problem.n_values]))
            return labels_of(problem.improve(cuts, penalty))
        return labels_of(problem.greedy(penalty))

    def solve_y(self, x_label: np.ndarray, how: str, now: np.ndarray | None = None) -> np.ndarray:
        """Return cuts of the target given the predictor's parts."""
        problem = target_problem(self.cells, x_label)
        sizes = np.bincount(x_label, weights=self.cells.x.sizes).astype(np.int64)
        if self.cells.n_missing:
            sizes = np.concatenate((sizes, [self.cells.n_missing]))
        top = problem.n_values
        if how == "improve" and now is not None:
            top = min(top, 2 * len(now) + 32)
        penalty = target_penalty(sizes, top, self.lf)
        if how == "exact":
            return problem.exact(penalty)
        if how == "improve" and now is not None:
            return problem.improve(now, penalty)
        return problem.greedy(penalty)

    def descend(self, now: Partition, how_x: str, how_y: str) -> Partition:
        """Improve the axes in turn until neither gets better."""
        x_label = self.solve_x(now.y_cuts, how_x, now.x_label)
        for _ in range(ROUNDS):
            y_cuts = self.solve_y(x_label, how_y, now.y_cuts)
            new = self.evaluate(x_label, y_cuts)
            if new.cost > now.cost - new.tolerance():
                return now if now.cost <= new.cost else new
            if np.array_equal(y_cuts, now.y_cuts):
                return new
            now = new
            x_label = self.solve_x(y_cuts, how_x, now.x_label)
            if np.array_equal(x_label, now.x_label):
                return now
        return now

    def polish(self, now: Partition) -> Partition:
        """Improve the axes in turn, by exact dynamic programs if an axis is small enough, else by local moves."""
        how = ["exact" if r.n_values <= EXACT else "improve" for r in (self.cells.x, self.cells.y)]
        return self.descend(now, *how)

    def from_target(self, y_cuts: np.ndarray, give_up: float = np.inf) -> Partition:
        """Improve greedily from target cuts; stop after one round if the cost is above `give_up`."""
        x_label = self.solve_x(y_cuts, "greedy")
        now = self.evaluate(x_label, self.solve_y(x_label, "greedy"))
        return now if now.cost > give_up else self.descend(now, "greedy", "greedy")


def _starts(search: Search, n_starts: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return target cuts to start from: the two-sided merge, then random ones."""
    cells = search.cells
    m = cells.y.n_values
    starts = []
    if cells.n_categories is None:
        side = int(np.clip(np.sqrt(cells.n), 2, 64))
        small, _, y_edges = cells.coarsen(side)
        if small.x.n_values >= 2 and small.y.n_values >= 2:
            starts.append(y_edges[_two_sided_cuts(small, search.lf)])
    else:
        starts.append(search.solve_y(np.arange(cells.x.n_values), "greedy"))
    most = max(2.0, np.sqrt(cells.n))
    while len(starts) < n_starts:
        j = int(np.clip(np.rint(2.0 * (most / 2.0) ** rng.random()), 2, m))
        cuts = np.sort(rng.choice(m - 1, size=j - 1, replace=False)) + 1
        starts.append(np.concatenate(([0], cuts, [m])))
    return starts


def _disturb(cuts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return target cuts near `cuts`: some dropped, some new ones at random places."""
    m = int(cuts[-1])
    inner = cuts[1:-1]
    kept = inner[rng.random(len(inner)) < rng.uniform(0.5, 1.0)]
    new = rng.integers(1, m, size=1 + rng.poisson(rng.uniform(0.0, 0.6) * len(inner)))
    return np.unique(np.concatenate(([0], kept, new, [m])))


def _two_sided_cuts(small: Cells, lf: np.ndarray) -> np.ndarray:
    """Return the target cuts of the two-sided merge; rows with a missing predictor are left out."""
    a, b = small.x.n_values, small.y.n_values
    side = max(a, b)
    table = np.zeros((2, side, side), dtype=np.int64)
    row = np.repeat(np.arange(a), np.diff(small.x.ptr))
    np.add.at(table[0], (row, small.x.col), small.x.cnt)
    table[1] = table[0].T
    lines = np.array([[a, b], [0, 0]])
    cuts = np.zeros((2, 2, side + 1), dtype=np.int64)
    merge_both_axes(table, lines, cuts, lf)
    return cuts[1, 1, : lines[1, 1] + 1]


def find_proper_partition(
    cells: Cells, n_starts: int, rng: np.random.Generator
) -> Partition | None:
    """Return the cheapest partition found with at least two parts on both axes, even if the null model is cheaper.

    Parameters
    ----------
    cells : Cells
        The pair in ranks.
    n_starts : int
        Number of starts, at least 1.
    rng : numpy.random.Generator
        Source of the random starts.

    Returns
    -------
    Partition or None
        At full resolution; None if an axis has only one value.
    """
    if cells.y.n_values < 2 or cells.x.n_values + (cells.n_missing > 0) < 2:
        return None
    size = COARSE if cells.n < 2048 else 2 * COARSE
    coarse, x_edges, y_edges = cells.coarsen(size)
    search = Search(coarse)
    found = [search.from_target(y) for y in _starts(search, n_starts, rng)]
    for _ in range(n_starts):
        best = min(found, key=lambda p: p.cost)
        found.append(search.from_target(_disturb(best.y_cuts, rng), best.cost + PATIENCE))
    found.sort(key=lambda p: p.cost)
    kept: list[Partition] = []
    for p in found:
        if len(kept) < POLISHED and all(abs(p.cost - q.cost) > p.tolerance() for q in kept):
            kept.append(p)
    polished = [search.polish(p) for p in kept]
    if coarse is cells:
        return min(polished, key=lambda p: p.cost)
    fine = Search(cells)
    refined = []
    polished.sort(key=lambda p: p.cost)
    for p in polished[: POLISHED if cells.n <= REFINED else 1]:
        now = fine.evaluate(np.repeat(p.x_label, np.diff(x_edges)), y_edges[p.y_cuts])
        refined.append(fine.descend(now, "improve", "improve"))
    return fine.polish(min(refined, key=lambda p: p.cost))


def find_partition(cells: Cells, n_starts: int, rng: np.random.Generator) -> Partition:
    """Return the cheapest partition found; the null model if nothing is cheaper.

    Parameters
    ----------
    cells, n_starts, rng
        As for `find_proper_partition`.

    Returns
    -------
    Partition
        At full resolution.
    """
    null = null_partition(cells)
    best = find_proper_partition(cells, n_starts, rng)
    return null if best is None or best.cost > null.cost - best.tolerance() else best
