"""Groups of categorical values given the target intervals: agglomeration, then single-value moves.

Minimises the part of [HB2007, eq. 3] that depends on the groups:
Σ_i [ lf(N_i + J − 1) − Σ_j lf(N_ij) ] + penalty[I], with penalty[I] = log B(V, I) − I lf(J − 1).
"""

import numpy as np

from pmordinal.jit import njit

from .moves import TOLERANCE


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
    """Return the group of each row of `table` at the cheapest step of pairwise merging.

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
    # plain loops instead of array functions: they halve the time of the first compilation
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
def move_values(table, first, extra, penalty, least, lf):
    """Return labels from which no move of one value and no merge of two groups gains.

    Parameters
    ----------
    table, extra, penalty, least, lf
        As for `agglomerate`; ``len(penalty) − 1`` bounds the number of groups.
    first : ndarray of int64, shape (V,)
        Where to start: labels 0, …, I − 1.

    Returns
    -------
    ndarray of int64, shape (V,)
        Labels 0, …, I − 1, in order of first appearance.
    """
    v, j = table.shape
    room = penalty.shape[0]
    group = np.zeros((room, j), np.int64)
    members = np.zeros(room, np.int64)
    cost = np.empty(room)
    label = np.empty(v, np.int64)
    for i in range(v):
        label[i] = first[i]
        _add_row(group, label[i], table, i, 1)
        members[label[i]] += 1
    for g in range(room):
        cost[g] = _joint_cost(group, g, group, g, 0, extra, lf)
    groups = 0
    for g in range(room):
        groups += 1 if members[g] > 0 else 0
    moved = True
    while moved:
        moved = False
        for i in range(v):
            a = label[i]
            alone = members[a] == 1
            if alone and groups == least:
                continue
            rest = _joint_cost(group, a, table, i, -1, extra, lf) if not alone else 0.0
            best = -TOLERANCE
            to = -1
            opened = False
            for b in range(room):
                if b == a:
                    continue
                if members[b] == 0:
                    # moving a lone value to a new group changes nothing; one empty slot is enough
                    if opened or alone or groups + 1 >= room:
                        continue
                    opened = True
                    joined = _joint_cost(table, i, table, i, 0, extra, lf)
                    delta = rest + joined - cost[a] + penalty[groups + 1] - penalty[groups]
                else:
                    joined = _joint_cost(group, b, table, i, 1, extra, lf)
                    delta = rest + joined - cost[a] - cost[b]
                    if alone:
                        delta += penalty[groups - 1] - penalty[groups]
                if delta < best:
                    best, to = delta, b
            if to >= 0:
                groups += (1 if members[to] == 0 else 0) - (1 if alone else 0)
                _add_row(group, a, table, i, -1)
                _add_row(group, to, table, i, 1)
                members[a] -= 1
                members[to] += 1
                label[i] = to
                cost[a] = _joint_cost(group, a, group, a, 0, extra, lf)
                cost[to] = _joint_cost(group, to, group, to, 0, extra, lf)
                moved = True
        for a in range(room):
            for b in range(a + 1, room):
                if members[a] == 0 or members[b] == 0 or groups <= least:
                    continue
                delta = _joint_cost(group, a, group, b, 1, extra, lf) - cost[a] - cost[b]
                if delta + penalty[groups - 1] - penalty[groups] < -TOLERANCE:
                    _add_row(group, a, group, b, 1)
                    _add_row(group, b, group, b, -1)
                    members[a] += members[b]
                    members[b] = 0
                    cost[a] = _joint_cost(group, a, group, a, 0, extra, lf)
                    for i in range(v):
                        if label[i] == b:
                            label[i] = a
                    groups -= 1
                    moved = True
    seen = np.empty(room, np.int64)
    for g in range(room):
        seen[g] = -1
    next_ = 0
    for i in range(v):
        if seen[label[i]] < 0:
            seen[label[i]] = next_
            next_ += 1
        label[i] = seen[label[i]]
    return label
