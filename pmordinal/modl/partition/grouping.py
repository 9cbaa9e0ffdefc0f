"""Groups the values of a categorical predictor, given the target intervals: merges, then single moves.

Minimises the part of [HB2007, eq. 3] that depends on the groups:
Σ_i [ lf(N_i + J − 1) − Σ_j lf(N_ij) ] + penalty[I], with penalty[I] = log B(V, I) − I lf(J − 1).
"""

import numpy as np

from pmordinal.jit import njit
from pmordinal.modl.interrupt import BUDGET, check

MOST_PASSES = 1000  # largest number of passes over all values; usually a few suffice


@njit(cache=True, nogil=True)
def _joint_cost(left, a, right, b, sign, extra, lf):
    """Return the cost of one group that holds row a of `left` plus `sign` times row b of `right`."""
    n = 0
    inner = 0.0
    for k in range(left.shape[1]):
        c = left[a, k] + sign * right[b, k]
        n += c
        inner += lf[c]
    return lf[n + extra] - inner


@njit(cache=True, nogil=True)
def _add_row(left, a, right, b, sign):
    """Add `sign` times row b of `right` to row a of `left`."""
    for k in range(left.shape[1]):
        left[a, k] += sign * right[b, k]


@njit(cache=True, nogil=True)
def agglomerate(table, extra, penalty, least, lf):
    """Merge pairs of rows of `table` greedily; return the group of each row at the cheapest step.

    Parameters
    ----------
    table : ndarray of int64, shape (V, J)
        Counts of each value in each target interval.
    extra : int
        J − 1.
    penalty : ndarray, shape (V + 1,)
        Prior cost of I groups.
    least : int
        Fewest groups allowed.
    lf : ndarray
        Table of log factorials.

    Returns
    -------
    ndarray of int64, shape (V,)
        Group labels 0, …, I − 1.
    """
    v = table.shape[0]
    # plain loops, since array functions double the time of compilation
    work = np.empty((v, table.shape[1]), np.int64)
    label = np.empty(v, np.int64)
    best = np.empty(v, np.int64)
    alive = np.empty(v, np.bool_)
    cost = np.empty(v)
    for a in range(v):
        label[a] = a
        best[a] = a
        alive[a] = True
        for k in range(table.shape[1]):
            work[a, k] = table[a, k]
        cost[a] = _joint_cost(work, a, work, a, 0, extra, lf)
    delta = np.empty((v, v))
    partner = np.zeros(v, np.int64)
    fresh = np.zeros(v, np.bool_)
    for a in range(v):
        for b in range(a + 1, v):
            delta[a, b] = _joint_cost(work, a, work, b, 1, extra, lf) - cost[a] - cost[b]
    total = 0.0
    for a in range(v):
        total += cost[a]
    best_cost = total + penalty[v]
    for groups in range(v, least, -1):
        low = np.inf
        at = -1
        for a in range(v):
            if not alive[a]:
                continue
            if not fresh[a]:
                partner[a] = a
                found = np.inf
                for b in range(a + 1, v):
                    if alive[b] and delta[a, b] < found:
                        found = delta[a, b]
                        partner[a] = b
                fresh[a] = True
            if partner[a] > a and delta[a, partner[a]] < low:
                low = delta[a, partner[a]]
                at = a
        a, b = at, partner[at]
        total += low
        _add_row(work, a, work, b, 1)
        cost[a] += cost[b] + low
        alive[b] = False
        for i in range(v):
            if label[i] == b:
                label[i] = a
            if partner[i] == a or partner[i] == b:
                fresh[i] = False
        fresh[a] = False
        for c in range(v):
            if alive[c] and c != a:
                value = _joint_cost(work, a, work, c, 1, extra, lf) - cost[a] - cost[c]
                if c < a:
                    delta[c, a] = value
                    if fresh[c] and (partner[c] == c or value < delta[c, partner[c]]):
                        partner[c] = a
                else:
                    delta[a, c] = value
        if total + penalty[groups - 1] < best_cost:
            best_cost = total + penalty[groups - 1]
            for i in range(v):
                best[i] = label[i]
    return best


@njit(cache=True, nogil=True)
def _row_change(group, size, g, part, count, first, last, n, sign, extra, lf):
    """Return the change of the cost of group g if a value enters (sign 1) or leaves it (−1).

    Only the intervals in which the value occurs are read: with many values these are few.
    """
    change = lf[size[g] + sign * n + extra] - lf[size[g] + extra]
    for p in range(first, last):
        c = group[g, part[p]]
        change += lf[c] - lf[c + sign * count[p]]
    return change


@njit(cache=True, nogil=True)
def _move_some(
    start, part, count, group, size, members, label, state, extra, penalty, least, tolerance, first,
    budget, lf,
):  # fmt: skip
    """Move values from the index `first` on until the budget is spent; return the next index.

    Parameters
    ----------
    group : ndarray of int64, shape (room, J)
        Counts of the groups.
    size, members : ndarray of int64, shape (room,)
        Numbers of instances and of values of the groups.
    label : ndarray of int64, shape (V,)
        Group of each value; changed in place.
    state : ndarray of int64, shape (2,)
        Number of groups, and of moves; changed in place.
    """
    room = members.shape[0]
    groups = state[0]
    top = 1  # number of slots to consider: all groups and an empty one
    for g in range(room):
        if members[g] > 0:
            top = min(g + 2, room)
    work = 0
    for i in range(first, label.shape[0]):
        if work > budget:
            return i
        low, high = start[i], start[i + 1]
        work += top + groups * (high - low)
        a = label[i]
        alone = members[a] == 1
        if alone and groups == least:
            continue
        n = 0
        single = 0.0  # cost of the value as a group of its own
        for p in range(low, high):
            n += count[p]
            single -= lf[count[p]]
        single += lf[n + extra]
        leave = -single
        if not alone:
            leave = _row_change(group, size, a, part, count, low, high, n, -1, extra, lf)
        best = -tolerance
        to = -1
        opened = False
        for b in range(top):
            if b == a:
                continue
            if members[b] == 0:
                # a value alone in its group need not move to a new one; one empty slot is enough
                if opened or alone or groups + 1 >= room:
                    continue
                opened = True
                delta = leave + single + penalty[groups + 1] - penalty[groups]
            else:
                delta = leave + _row_change(group, size, b, part, count, low, high, n, 1, extra, lf)
                if alone:
                    delta += penalty[groups - 1] - penalty[groups]
            if delta < best:
                best, to = delta, b
        if to < 0:
            continue
        groups += (1 if members[to] == 0 else 0) - (1 if alone else 0)
        for p in range(low, high):
            group[a, part[p]] -= count[p]
            group[to, part[p]] += count[p]
        size[a] -= n
        size[to] += n
        members[a] -= 1
        members[to] += 1
        top = max(top, min(to + 2, room))
        label[i] = to
        state[0] = groups
        state[1] += 1
    return label.shape[0]


@njit(cache=True, nogil=True)
def _merge_groups(group, size, members, label, state, extra, penalty, least, tolerance, lf):
    """Merge pairs of groups if that lowers the cost; arguments as for `_move_some`."""
    room = members.shape[0]
    cost = np.empty(room)
    for g in range(room):
        cost[g] = _joint_cost(group, g, group, g, 0, extra, lf)
    groups = state[0]
    for a in range(room):
        for b in range(a + 1, room):
            if members[a] == 0 or members[b] == 0 or groups <= least:
                continue
            delta = _joint_cost(group, a, group, b, 1, extra, lf) - cost[a] - cost[b]
            if delta + penalty[groups - 1] - penalty[groups] < -tolerance:
                _add_row(group, a, group, b, 1)
                _add_row(group, b, group, b, -1)
                size[a] += size[b]
                size[b] = 0
                members[a] += members[b]
                members[b] = 0
                cost[a] = _joint_cost(group, a, group, a, 0, extra, lf)
                for i in range(label.shape[0]):
                    if label[i] == b:
                        label[i] = a
                groups -= 1
                state[1] += 1
    state[0] = groups


def move_values(
    start: np.ndarray,
    part: np.ndarray,
    count: np.ndarray,
    group: np.ndarray,
    first: np.ndarray,
    extra: int,
    penalty: np.ndarray,
    least: int,
    tolerance: float,
    lf: np.ndarray,
) -> np.ndarray:
    """Improve labels until no move of one value and no merge of two groups lowers the cost.

    Parameters
    ----------
    start, part, count : ndarray of int64
        Sparse rows, one per value, as `merges.project` makes them.
    group : ndarray of int64, shape (I, J)
        Counts of the groups `first`.
    first : ndarray of int64, shape (V,)
        Where to start: labels 0, …, I − 1.
    extra, penalty, least, lf
        As for `agglomerate`; ``len(penalty) − 1`` bounds the number of groups.
    tolerance : float
        A move must gain more.

    Returns
    -------
    ndarray of int64, shape (V,)
        Labels 0, …, I − 1, in order of first appearance.
    """
    room = len(penalty)
    work = np.zeros((room, group.shape[1]), dtype=np.int64)
    work[: len(group)] = group
    size = work.sum(axis=1)
    members = np.bincount(first, minlength=room)
    label = first.astype(np.int64)
    state = np.array([np.count_nonzero(members), 0])
    for _ in range(MOST_PASSES):
        before, i = state[1], 0
        while i < len(label):
            i = _move_some(
                start, part, count, work, size, members, label, state, extra, penalty, least,
                tolerance, i, BUDGET, lf,
            )  # fmt: skip
            check()
        _merge_groups(work, size, members, label, state, extra, penalty, least, tolerance, lf)
        if state[1] == before:
            break
    _, at, inverse = np.unique(label, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(at))[inverse]
