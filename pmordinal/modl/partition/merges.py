"""Merges adjacent values along one axis greedily, starting from single values.

The same code serves both axes [HB2007, eq. 1]. Given the partition of the other axis into K parts, the
cost of cutting this axis into P parts is

    Σ over parts of [ lf(n + extra) − Σ_k lf(n_k) ] + penalty[P]  (+ terms that do not change)

with lf = log factorial; extra = J − 1 for the predictor, 0 for the target. `penalty` carries the
prior of the number of parts and is concave, see `axis.py`.
"""

import numpy as np

from pmordinal.jit import njit
from pmordinal.modl.interrupt import BUDGET, check


@njit(cache=True, nogil=True)
def project(ptr, col, cnt, label, n_parts):
    """Return sparse rows (start, part, count) after relabelling the columns by `label`."""
    m = ptr.shape[0] - 1
    start = np.empty(m + 1, np.int64)
    part = np.empty(col.shape[0], np.int64)
    count = np.empty(col.shape[0], np.int64)
    acc = np.zeros(n_parts, np.int64)
    out = 0
    for v in range(m):
        start[v] = out
        if ptr[v + 1] - ptr[v] == 1:
            part[out] = label[col[ptr[v]]]
            count[out] = cnt[ptr[v]]
            out += 1
            continue
        first = out
        for p in range(ptr[v], ptr[v + 1]):
            k = label[col[p]]
            if acc[k] == 0:
                part[out] = k
                out += 1
            acc[k] += cnt[p]
        for q in range(first, out):
            count[q] = acc[part[q]]
            acc[part[q]] = 0
    start[m] = out
    return start, part[:out], count[:out]


@njit(cache=True, nogil=True)
def _pair_delta(table, a, b, cost_a, cost_b, n_a, n_b, extra, lf):
    """Return the change of cost when parts a and b merge."""
    merged = lf[n_a + n_b + extra]
    for k in range(table.shape[1]):
        merged -= lf[table[a, k] + table[b, k]]
    return merged - cost_a - cost_b


@njit(cache=True, nogil=True)
def _lift(tree, size, leaf, value):
    """Set a leaf of the tournament tree and update its path to the root."""
    node = leaf + size
    tree[node] = value
    node //= 2
    while node >= 1:
        left, right = tree[2 * node], tree[2 * node + 1]
        tree[node] = left if left <= right else right
        node //= 2


@njit(cache=True, nogil=True)
def _fill(start, part, count, extra, table, size, value, tree, lf):
    """Write counts, sizes and costs of the single values and the tree of merge costs; return the cost.

    Leaf v of the tree is the boundary between part v and its successor.
    """
    m = start.shape[0] - 1
    total = 0.0
    for v in range(m):
        for p in range(start[v], start[v + 1]):
            table[v, part[p]] += count[p]
            size[v] += count[p]
        value[v] = lf[size[v] + extra]
        for k in range(table.shape[1]):
            value[v] -= lf[table[v, k]]
        total += value[v]
    leaves = tree.shape[0] // 2
    for v in range(m - 1):
        tree[leaves + v] = _pair_delta(
            table, v, v + 1, value[v], value[v + 1], size[v], size[v + 1], extra, lf
        )
    for node in range(leaves - 1, 0, -1):
        tree[node] = min(tree[2 * node], tree[2 * node + 1])
    return total


@njit(cache=True, nogil=True)
def _merge(
    extra, penalty, table, size, value, after, before, tree, removed_at, path, first, last, best, lf
):  # fmt: skip
    """Merge from `first` parts down to `last`; return the cheapest number of parts so far.

    Parameters
    ----------
    table, size, value : ndarray
        Counts, sizes and costs of the parts, at the index of their first value.
    after, before : ndarray of int64
        Neighbours of the parts.
    tree : ndarray
        Tournament tree of the changes by merges.
    removed_at : ndarray of int64
        Parts before the merge that took the cut; 0: never.
    path : ndarray, shape (2,)
        Cost without penalty, and the least cost so far.
    """
    m = size.shape[0]
    leaves = tree.shape[0] // 2
    for parts in range(first, last, -1):
        node = 1
        while node < leaves:
            node = 2 * node if tree[2 * node] <= tree[2 * node + 1] else 2 * node + 1
        a = node - leaves
        b = after[a]
        path[0] += tree[node]
        value[a] += value[b] + tree[node]
        size[a] += size[b]
        for k in range(table.shape[1]):
            table[a, k] += table[b, k]
        removed_at[b] = parts
        after[a] = after[b]
        if after[b] < m:
            before[after[b]] = a
            _lift(tree, leaves, b, np.inf)
        c = after[a]
        if c < m:
            delta = _pair_delta(table, a, c, value[a], value[c], size[a], size[c], extra, lf)
            _lift(tree, leaves, a, delta)
        else:
            _lift(tree, leaves, a, np.inf)
        c = before[a]
        if c >= 0:
            delta = _pair_delta(table, c, a, value[c], value[a], size[c], size[a], extra, lf)
            _lift(tree, leaves, c, delta)
        if path[0] + penalty[parts - 1] < path[1]:
            path[1] = path[0] + penalty[parts - 1]
            best = parts - 1
    return best


def merge_greedily(
    start: np.ndarray,
    part: np.ndarray,
    count: np.ndarray,
    n_other: int,
    extra: int,
    penalty: np.ndarray,
    least: int,
    lf: np.ndarray,
) -> np.ndarray:
    """Merge greedily; return the cuts of the cheapest partition on the way.

    Parameters
    ----------
    start, part, count : ndarray of int64
        Sparse rows, one per ordered value, as `project` makes them.
    n_other : int
        Number of parts of the other axis.
    extra : int
        J − 1 for the predictor axis, 0 for the target axis.
    penalty : ndarray, shape (values + 1,)
        Prior cost of P parts.
    least : int
        Fewest parts allowed.
    lf : ndarray
        Table of log factorials.

    Returns
    -------
    ndarray of int64, shape (P + 1,)
        Boundaries as value indices, 0 and the number of values included.
    """
    m = len(start) - 1
    table = np.zeros((m, n_other), dtype=np.int64)
    size = np.zeros(m, dtype=np.int64)
    value = np.empty(m)
    tree = np.full(2 << max(m - 2, 0).bit_length(), np.inf)
    total = _fill(start, part, count, extra, table, size, value, tree, lf)
    after, before = np.arange(1, m + 1), np.arange(-1, m - 1)
    removed_at = np.zeros(m + 1, dtype=np.int64)
    path = np.array([total, total + penalty[m]])
    best = parts = m
    while parts > least:
        last = max(least, parts - max(1, BUDGET // (4 * n_other + 64)))
        best = _merge(
            extra, penalty, table, size, value, after, before, tree, removed_at, path, parts, last,
            best, lf,
        )  # fmt: skip
        parts = last
        check()
    inner = np.flatnonzero(removed_at[1:m] <= best) + 1
    return np.concatenate(([0], inner, [m]))
