"""Optimal cuts or groups of one axis of a grid, with the other axis held fixed.

The search alternates between the axes. With lf the log factorial, given J target intervals the predictor's parts cost

    Σ_i [lf(N_i + J − 1) − Σ_j lf(N_ij)]  plus the prior  log C(N + I − 1, I − 1) − I lf(J − 1),

and given the predictor's parts the target's intervals cost

    Σ_j [lf(N_.j) − Σ_i lf(N_ij)]  plus the prior  Σ_i lf(N_i + J − 1) − I lf(J − 1).

These are [HB2007, eqs. 1 and 3] without constant terms. Both priors are concave in the number of parts.
"""

from dataclasses import dataclass

import numpy as np

from pmordinal.jit import njit
from pmordinal.modl.interrupt import BUDGET, check
from pmordinal.modl.partition.cells import Cells, Rows
from pmordinal.modl.partition.criterion import log_partition_numbers
from pmordinal.modl.partition.grouping import agglomerate, move_values
from pmordinal.modl.partition.improve_cuts import improve_cuts
from pmordinal.modl.partition.least_gain import least_gain
from pmordinal.modl.partition.log_tables import log_tables
from pmordinal.modl.partition.merges import merge_greedily, project
from pmordinal.modl.partition.optimal_cuts import interval_costs, solve_exactly

# largest number of groups to start from; more values are first merged in order of their mean target
MAX_GROUPS = 256


def labels_of(cuts: np.ndarray) -> np.ndarray:
    """Return the index of the part that each value belongs to, given the boundaries `cuts`."""
    return np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))


@njit(cache=True, nogil=True)
def tabulate(start, part, count, label, n_rows, n_columns):
    """Return dense counts of sparse rows after relabelling the rows by `label`."""
    table = np.zeros((n_rows, n_columns), np.int64)
    for v in range(label.shape[0]):
        for p in range(start[v], start[v + 1]):
            table[label[v], part[p]] += count[p]
    return table


@dataclass(frozen=True)
class AxisProblem:
    """The problem of cutting one axis: counts of its values by the parts of the other axis."""

    start: np.ndarray
    part: np.ndarray
    count: np.ndarray
    n_other: int
    extra: int
    least: int
    top: int

    @classmethod
    def make(
        cls, rows: Rows, label: np.ndarray, n_other: int, extra: int, least: int, n: int
    ) -> "AxisProblem":
        """Sum the counts in `rows` over the parts `label` of the other axis."""
        check()
        start, part, count = project(rows.ptr, rows.col, rows.cnt, label, n_other)
        return cls(start, part, count, n_other, extra, least, 2 * n + 2)

    @property
    def n_values(self) -> int:
        """Number of values of this axis."""
        return len(self.start) - 1

    def greedy(self, penalty: np.ndarray) -> np.ndarray:
        """Return the best cuts of greedy merging, improved by local moves."""
        lf, lg = log_tables(self.top)
        args = (self.start, self.part, self.count, self.n_other, self.extra, penalty, self.least)
        return improve_cuts(*args, merge_greedily(*args, lf), self.tolerance(), lf, lg)

    def improve(self, cuts: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        """Return `cuts` improved by local moves."""
        lf, lg = log_tables(self.top)
        return improve_cuts(
            self.start, self.part, self.count, self.n_other, self.extra, penalty, self.least,
            cuts, self.tolerance(), lf, lg,
        )  # fmt: skip

    def exact(self, penalty: np.ndarray) -> np.ndarray:
        """Return the optimal cuts."""
        lf, lg = log_tables(self.top)
        costs = interval_costs(self.start, self.part, self.count, self.n_other, self.extra, lf, lg)
        tolerance = least_gain(self.n_other + self.n_values, self._magnitude(), floor=1e-9)
        return solve_exactly(costs, penalty, self.least, tolerance)[0]

    def _magnitude(self) -> float:
        """Return log N!, a bound on the sum of the terms of a partition."""
        lf, _ = log_tables(self.top)
        return float(lf[self.top // 2])

    def tolerance(self) -> float:
        """Return the smallest gain of a local move that is more than rounding error."""
        return least_gain(5 * (self.n_other + 2), self._magnitude())  # at most five parts change

    def counts(self, label: np.ndarray) -> np.ndarray:
        """Return the cell counts, shape (parts of this axis, parts of the other)."""
        return tabulate(
            self.start, self.part, self.count, label, int(label.max()) + 1, self.n_other
        )

    def means(self) -> np.ndarray:
        """Return, for each value, the mean index of its parts on the other axis."""
        sums = np.add.reduceat(self.part * self.count, self.start[:-1])
        return sums / np.add.reduceat(self.count, self.start[:-1])

    def rows_in(self, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sparse rows in another order of the values."""
        length = np.diff(self.start)[order]
        start = np.concatenate(([0], np.cumsum(length)))
        at = np.arange(start[-1]) + np.repeat(self.start[order] - start[:-1], length)
        return start, self.part[at], self.count[at]


def predictor_problem(cells: Cells, y_cuts: np.ndarray) -> AxisProblem:
    """Return the problem of finding the predictor's parts, given the target's cuts."""
    n_targets = len(y_cuts) - 1
    least = 1 if cells.n_missing else 2
    return AxisProblem.make(cells.x, labels_of(y_cuts), n_targets, n_targets - 1, least, cells.n)


def target_problem(cells: Cells, x_label: np.ndarray) -> AxisProblem:
    """Return the problem of finding the target's cuts, given the parts of predictor values (without missing)."""
    n_parts = int(x_label.max()) + 1
    if cells.n_missing:
        x_label = np.concatenate((x_label, [n_parts]))
        n_parts += 1
    return AxisProblem.make(cells.y, x_label, n_parts, 0, 2, cells.n)


def interval_penalty(cells: Cells, n_targets: int, top: int) -> np.ndarray:
    """Return the prior of 0, …, `top` predictor intervals (the part of missing values not counted)."""
    lf, _ = log_tables(2 * cells.n + 2)
    parts = np.arange(top + 1) + (cells.n_missing > 0)
    below = np.maximum(parts - 1, 0)
    penalty = lf[cells.n + below] - lf[below] - lf[cells.n]  # log C(N + I − 1, I − 1)
    penalty = penalty - parts * lf[n_targets - 1]
    if not cells.n_missing:
        penalty[0] = np.inf
    return penalty


def group_penalty(cells: Cells, n_targets: int, top: int, log_bell: np.ndarray) -> np.ndarray:
    """Return the prior of 0, …, `top` groups (the part of missing values not counted)."""
    lf, _ = log_tables(2 * cells.n + 2)
    parts = np.arange(top + 1) + (cells.n_missing > 0)
    return log_bell[parts] - parts * lf[n_targets - 1]


@njit(cache=True, nogil=True)
def _target_penalty(sizes, first, last, penalty, lf):
    """Write the prior of first, …, last − 1 target intervals."""
    for j in range(first, last):
        value = -sizes.shape[0] * lf[j - 1]
        for n in sizes:
            value += lf[n + j - 1]
        penalty[j] = value


def target_penalty(sizes: np.ndarray, top: int, lf: np.ndarray) -> np.ndarray:
    """Return the prior of 0, …, `top` target intervals given the sizes of the predictor's parts."""
    penalty = np.empty(top + 1)
    penalty[0] = np.inf
    step = 1 + BUDGET // len(sizes)
    for j in range(1, top + 1, step):
        _target_penalty(sizes, j, min(j + step, top + 1), penalty, lf)
        check()
    return penalty


def group_values(
    cells: Cells, problem: AxisProblem, log_bell: np.ndarray, label: np.ndarray | None
) -> np.ndarray:
    """Return groups of the predictor's values: the better of agglomeration and of improving `label`."""
    lf, _ = log_tables(problem.top)
    v = problem.n_values
    top = min(v, MAX_GROUPS)
    penalty = group_penalty(cells, problem.n_other, top, log_bell)
    first = np.arange(v)
    if v > top:
        # too many values to compare all pairs: first merge neighbours in order of mean target interval
        order = np.argsort(problem.means(), kind="stable")
        cap = np.concatenate((penalty, np.full(v - top, np.inf)))
        cuts = merge_greedily(
            *problem.rows_in(order), problem.n_other, problem.extra, cap, problem.least, lf
        )
        first[order] = labels_of(cuts)
    small = problem.counts(first)
    grouped = agglomerate(small, problem.extra, penalty[: len(small) + 1], problem.least, lf)
    grouped = np.unique(grouped, return_inverse=True)[1]
    tries = [grouped[first]] if label is None else [grouped[first], label]
    found = [
        move_values(
            problem.start, problem.part, problem.count, problem.counts(t), t, problem.extra,
            penalty, problem.least, problem.tolerance(), lf,
        )
        for t in tries
    ]  # fmt: skip
    return min(found, key=lambda t: _group_total(problem, t, penalty, lf))


def _group_total(
    problem: AxisProblem, label: np.ndarray, penalty: np.ndarray, lf: np.ndarray
) -> float:
    counts = problem.counts(label)
    sizes = counts.sum(axis=1)
    return float(lf[sizes + problem.extra].sum() - lf[counts].sum() + penalty[len(counts)])


def log_bell_table(cells: Cells) -> np.ndarray | None:
    """Return log B(V, I), see `log_partition_numbers`, for all I in the search; None if numeric."""
    if cells.n_categories is None:
        return None
    return log_partition_numbers(cells.n_categories, min(cells.n_categories, MAX_GROUPS + 1))
