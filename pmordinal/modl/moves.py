"""Post-optimisation of the cuts of one axis: splits, shifts, merges and merge-merge-splits.

The moves are those of Boullé's MODL discretisation, which [HB2007, section 2.1] uses on each axis. The
best move is taken until none gains more than the tolerance; only what touches a changed part is
scanned again, so a run costs a few passes over the rows at any resolution.
"""

import numpy as np

from pmordinal.jit import njit

TOLERANCE = 1e-7  # against cycling between partitions of equal cost


@njit(cache=True, nogil=True)
def _scan(start, part, count, first, last, left, right, extra, lf, lg):
    """Return (merged cost, best cost of two parts, best cut) for the values first, …, last − 1."""
    for k in range(right.shape[0]):
        left[k] = 0
        right[k] = 0
    n = 0
    for p in range(start[first], start[last]):
        right[part[p]] += count[p]
        n += count[p]
    inner_right = 0.0
    for k in range(right.shape[0]):
        inner_right += lf[right[k]]
    merged = lf[n + extra] - inner_right
    inner_left = 0.0
    n_left = 0
    best = np.inf
    cut = first
    for v in range(first, last - 1):
        for p in range(start[v], start[v + 1]):
            k = part[p]
            c = count[p]
            if c == 1:
                inner_right -= lg[right[k]]
                inner_left += lg[left[k] + 1]
            else:
                inner_right += lf[right[k] - c] - lf[right[k]]
                inner_left += lf[left[k] + c] - lf[left[k]]
            right[k] -= c
            left[k] += c
            n_left += c
        cost = lf[n_left + extra] + lf[n - n_left + extra] - inner_left - inner_right
        if cost < best:
            best = cost
            cut = v + 1
    return merged, best, cut


@njit(cache=True, nogil=True)
def improve_cuts(start, part, count, n_other, extra, penalty, least, cuts, lf, lg):
    """Return cuts from which no single move gains, reached by best-improvement descent.

    Parameters
    ----------
    start, part, count, n_other, extra, penalty, least
        As for `merges.merge_greedily`; `penalty` also bounds the number of parts.
    cuts : ndarray of int64, shape (P + 1,)
        Where to start.
    lf, lg : ndarray
        Tables of log factorials and logarithms.

    Returns
    -------
    ndarray of int64
        The improved boundaries.
    """
    room = penalty.shape[0] + 1
    bound = np.empty(room + 1, np.int64)
    parts = cuts.shape[0] - 1
    for i in range(parts + 1):
        bound[i] = cuts[i]
    left = np.zeros(n_other, np.int64)
    right = np.zeros(n_other, np.int64)
    # column w of each array belongs to windows of w + 1 adjacent parts, starting at the row's part
    merged = np.empty((room, 3))
    split = np.empty((room, 3))
    where = np.empty((room, 3), np.int64)
    stale_from, stale_to = 0, parts  # parts whose content changed
    while True:
        for i in range(max(stale_from - 2, 0), stale_to):
            for w in range(3):
                if i + w < stale_from or i + w >= parts:
                    continue
                found = _scan(
                    start, part, count, bound[i], bound[i + w + 1], left, right, extra, lf, lg
                )
                merged[i, w], split[i, w], where[i, w] = found[0], found[1], found[2]
        gain = -TOLERANCE
        move, at = -1, -1
        more = penalty[parts + 1] - penalty[parts] if parts + 1 < penalty.shape[0] else np.inf
        fewer = penalty[parts - 1] - penalty[parts] if parts > least else np.inf
        for i in range(parts):
            delta = split[i, 0] - merged[i, 0] + more
            if delta < gain:
                gain, move, at = delta, 0, i
            if i + 1 < parts:
                now = merged[i, 0] + merged[i + 1, 0]
                if split[i, 1] - now < gain:
                    gain, move, at = split[i, 1] - now, 1, i
                if merged[i, 1] - now + fewer < gain:
                    gain, move, at = merged[i, 1] - now + fewer, 2, i
            if i + 2 < parts:
                now = merged[i, 0] + merged[i + 1, 0] + merged[i + 2, 0]
                if split[i, 2] - now + fewer < gain:
                    gain, move, at = split[i, 2] - now + fewer, 3, i
        if move < 0:
            return bound[: parts + 1]
        if move == 0:
            for i in range(parts, at, -1):
                bound[i + 1] = bound[i]
            for i in range(parts - 1, at, -1):
                for w in range(3):
                    merged[i + 1, w] = merged[i, w]
                    split[i + 1, w] = split[i, w]
                    where[i + 1, w] = where[i, w]
            bound[at + 1] = where[at, 0]
            parts += 1
            stale_from, stale_to = at, at + 2
        elif move == 1:
            bound[at + 1] = where[at, 1]
            stale_from, stale_to = at, at + 2
        else:
            if move == 3:
                bound[at + 1] = where[at, 2]
            gone = at + 1 if move == 2 else at + 2
            for i in range(gone, parts):
                bound[i] = bound[i + 1]
            for i in range(gone, parts - 1):
                for w in range(3):
                    merged[i, w] = merged[i + 1, w]
                    split[i, w] = split[i + 1, w]
                    where[i, w] = where[i + 1, w]
            parts -= 1
            stale_from, stale_to = at, at + (1 if move == 2 else 2)
