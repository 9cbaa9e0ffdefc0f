"""One axis of a grid, the other held fixed: the sub-problem that the alternating search solves.

Given J target intervals, the predictor's parts cost Σ_i [lf(N_i + J − 1) − Σ_j lf(N_ij)] plus the prior
log C(N + I − 1, I − 1) − I lf(J − 1); given the predictor's parts, the target's intervals cost
Σ_j [lf(N_.j) − Σ_i lf(N_ij)] plus Σ_i lf(N_i + J − 1) − I lf(J − 1): [HB2007, eqs. 1 and 3] with the
terms that cancel left out. Both priors are concave in the number of parts.
"""

from dataclasses import dataclass

import numpy as np

from pmordinal.jit import njit

from .cells import Cells, Rows
from .criterion import log_partition_numbers
from .exact import solve_exactly
from .grouping import agglomerate, move_values
from .merges import merge_greedily, project
from .moves import improve_cuts
from .tables import log_tables

MAX_GROUPS = 256  # of a categorical predictor; more values are first merged in order of mean target


def labels_of(cuts: np.ndarray) -> np.ndarray:
    """Return the part of each value for boundaries `cuts`."""
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
    """Sparse rows with relabelled columns, and what the kernels need to know of the other axis."""

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
        """Project `rows` onto the parts `label` of the other axis."""
        start, part, count = project(rows.ptr, rows.col, rows.cnt, label, n_other)
        return cls(start, part, count, n_other, extra, least, 2 * n + 2)

    @property
    def n_values(self) -> int:
        """Number of values of this axis."""
        return len(self.start) - 1

    def greedy(self, penalty: np.ndarray) -> np.ndarray:
        """Return the cuts of the greedy merge path, improved by moves."""
        lf, lg = log_tables(self.top)
        args = (self.start, self.part, self.count, self.n_other, self.extra, penalty, self.least)
        return improve_cuts(*args, merge_greedily(*args, lf), lf, lg)

    def improve(self, cuts: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        """Return `cuts` improved by moves."""
        lf, lg = log_tables(self.top)
        return improve_cuts(
            self.start, self.part, self.count, self.n_other, self.extra, penalty, self.least,
            cuts, lf, lg,
        )  # fmt: skip

    def exact(self, penalty: np.ndarray) -> np.ndarray:
        """Return the optimal cuts."""
        lf, lg = log_tables(self.top)
        return solve_exactly(
            self.start, self.part, self.count, self.n_other, self.extra, penalty, self.least, lf, lg
        )[0]

    def counts(self, label: np.ndarray) -> np.ndarray:
        """Return the cell counts, shape (parts of this axis, parts of the other)."""
        return tabulate(
            self.start, self.part, self.count, label, int(label.max()) + 1, self.n_other
        )


def predictor_problem(cells: Cells, y_cuts: np.ndarray) -> AxisProblem:
    """Return the problem of the predictor's parts given the target's cuts."""
    n_targets = len(y_cuts) - 1
    least = 1 if cells.n_missing else 2
    return AxisProblem.make(cells.x, labels_of(y_cuts), n_targets, n_targets - 1, least, cells.n)


def target_problem(cells: Cells, x_label: np.ndarray) -> AxisProblem:
    """Return the problem of the target's cuts given the predictor's parts (missing excluded)."""
    n_parts = int(x_label.max()) + 1
    if cells.n_missing:
        x_label = np.concatenate((x_label, [n_parts]))
        n_parts += 1
    return AxisProblem.make(cells.y, x_label, n_parts, 0, 2, cells.n)


def interval_penalty(cells: Cells, n_targets: int, top: int) -> np.ndarray:
    """Return the prior of 0, …, `top` predictor intervals (a missing part not counted)."""
    lf, _ = log_tables(2 * cells.n + 2)
    parts = np.arange(top + 1) + (cells.n_missing > 0)
    below = np.maximum(parts - 1, 0)
    penalty = lf[cells.n + below] - lf[below] - lf[cells.n]  # log C(N + I − 1, I − 1)
    penalty = penalty - parts * lf[n_targets - 1]
    if not cells.n_missing:
        penalty[0] = np.inf
    return penalty


def group_penalty(cells: Cells, n_targets: int, top: int, log_bell: np.ndarray) -> np.ndarray:
    """Return the prior of 0, …, `top` groups (a missing part not counted)."""
    lf, _ = log_tables(2 * cells.n + 2)
    parts = np.arange(top + 1) + (cells.n_missing > 0)
    return log_bell[parts] - parts * lf[n_targets - 1]


@njit(cache=True, nogil=True)
def target_penalty(sizes, top, lf):
    """Return the prior of 0, …, `top` target intervals given the sizes of the predictor's parts."""
    penalty = np.empty(top + 1)
    penalty[0] = np.inf
    for j in range(1, top + 1):
        value = -sizes.shape[0] * lf[j - 1]
        for n in sizes:
            value += lf[n + j - 1]
        penalty[j] = value
    return penalty


def group_values(
    cells: Cells, problem: AxisProblem, log_bell: np.ndarray, label: np.ndarray | None
) -> np.ndarray:
    """Return groups of the predictor's values, by agglomeration and from `label`, the better."""
    lf, _ = log_tables(problem.top)
    v = problem.n_values
    table = problem.counts(np.arange(v))
    top = min(v, MAX_GROUPS)
    penalty = group_penalty(cells, problem.n_other, top, log_bell)
    first, small = np.arange(v), table
    if v > top:
        # too many values for all pairs: merge neighbours in order of mean target interval first
        mean = (table @ np.arange(problem.n_other)) / table.sum(axis=1)
        order = np.argsort(mean, kind="stable")
        sparse = np.nonzero(table[order])
        start = np.concatenate(([0], np.cumsum(np.bincount(sparse[0], minlength=v))))
        cap = np.concatenate((penalty, np.full(v - top, np.inf)))
        cuts = merge_greedily(
            start, sparse[1], table[order][sparse], problem.n_other, problem.extra, cap,
            problem.least, lf,
        )  # fmt: skip
        first[order] = labels_of(cuts)
        small = np.zeros((len(cuts) - 1, problem.n_other), dtype=np.int64)
        np.add.at(small, first, table)
    grouped = agglomerate(small, problem.extra, penalty[: len(small) + 1], problem.least, lf)
    grouped = np.unique(grouped, return_inverse=True)[1]
    tries = [grouped[first]] if label is None else [grouped[first], label]
    found = [move_values(table, t, problem.extra, penalty, problem.least, lf) for t in tries]
    return min(found, key=lambda t: _group_total(problem, t, penalty, lf))


def _group_total(
    problem: AxisProblem, label: np.ndarray, penalty: np.ndarray, lf: np.ndarray
) -> float:
    counts = problem.counts(label)
    sizes = counts.sum(axis=1)
    return float(lf[sizes + problem.extra].sum() - lf[counts].sum() + penalty[len(counts)])


def log_bell_table(cells: Cells) -> np.ndarray | None:
    """Return log B(V, I) for all I that the search may use; None for a numeric predictor."""
    if cells.n_categories is None:
        return None
    return log_partition_numbers(cells.n_categories, min(cells.n_categories, MAX_GROUPS + 1))
