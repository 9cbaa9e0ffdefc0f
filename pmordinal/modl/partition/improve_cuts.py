"""Improves the cuts of one axis by local moves: splits, shifts, merges and merge-merge-splits.

The moves are those of Boullé's MODL discretisation, which [HB2007, section 2.1] uses on each axis. The
best move is taken until none gains more than the tolerance; only what touches a changed part is
scanned again, so a run costs a few passes over the rows at any resolution.

Moves are compared by costs that are functions of the counts alone, so an unchanged partition never seems to gain.
The running sums of a scan, which drift (by 4e-7 nats in a million rows), choose the place of a cut only.
"""

import numpy as np

from pmordinal.jit import njit
from pmordinal.modl.interrupt import BUDGET, check

# largest number of moves for each possible part; usually half a move suffices
MOST_MOVES = 100


@njit(cache=True, nogil=True)
def _part_cost(counts, extra, lf):
    """Return the cost of one part from its counts by the parts of the other axis."""
    n = 0
    inner = 0.0
    for k in range(counts.shape[0]):
        n += counts[k]
        inner += lf[counts[k]]
    return lf[n + extra] - inner


@njit(cache=True, nogil=True)
def best_cut(start, part, count, first, last, left, right, extra, lf, lg):
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
    if last - first < 2:
        return merged, np.inf, first
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
    # recompute at the best cut, since the running sums have rounding errors
    for p in range(start[cut], start[last - 1]):
        left[part[p]] -= count[p]
        right[part[p]] += count[p]
    return merged, _part_cost(left, extra, lf) + _part_cost(right, extra, lf), cut


@njit(cache=True, nogil=True)
def _take_moves(
    start, part, count, extra, penalty, least, bound, merged, split, where, left, right, state,
    tolerance, most, budget, lf, lg,
):  # fmt: skip
    """Take moves; return True if none gains or `most` are taken, False if the budget is spent.

    Parameters
    ----------
    bound : ndarray of int64
        Boundaries, followed by unused entries; changed in place.
    merged, split, where : ndarray, shape (room, 3)
        What `best_cut` returns; column w belongs to windows of w + 1 adjacent parts, starting at the row's part.
    left, right : ndarray of int64, shape (parts of the other axis,)
        Work space.
    state : ndarray of int64, shape (5,)
        Number of parts; first part whose content changed, and the one after the last; next part to scan; moves taken.
    """
    work = 0
    while True:
        parts, stale_from, stale_to = state[0], state[1], state[2]
        for i in range(state[3], stale_to):
            if work > budget:
                state[3] = i
                return False
            for w in range(3):
                if i + w < stale_from or i + w >= parts:
                    continue
                found = best_cut(
                    start, part, count, bound[i], bound[i + w + 1], left, right, extra, lf, lg
                )
                merged[i, w], split[i, w], where[i, w] = found[0], found[1], found[2]
                work += start[bound[i + w + 1]] - start[bound[i]] + left.shape[0]
        gain = -tolerance
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
        work += parts
        if move < 0 or state[4] == most:
            return True
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
        state[0], state[1], state[2], state[3] = parts, stale_from, stale_to, max(stale_from - 2, 0)
        state[4] += 1


def improve_cuts(
    start: np.ndarray,
    part: np.ndarray,
    count: np.ndarray,
    n_other: int,
    extra: int,
    penalty: np.ndarray,
    least: int,
    cuts: np.ndarray,
    tolerance: float,
    lf: np.ndarray,
    lg: np.ndarray,
) -> np.ndarray:
    """Return cuts that no single move improves; the best move is taken each time.

    Parameters
    ----------
    start, part, count, n_other, extra, penalty, least
        As for `merges.merge_greedily`; `penalty` also bounds the number of parts.
    cuts : ndarray of int64, shape (P + 1,)
        Where to start.
    tolerance : float
        A move must gain more.
    lf, lg : ndarray
        Tables of log factorials and logarithms.

    Returns
    -------
    ndarray of int64
        The improved boundaries.
    """
    room = len(penalty) + 1
    bound = np.empty(room + 1, dtype=np.int64)
    parts = len(cuts) - 1
    bound[: parts + 1] = cuts
    found = np.empty((room, 3)), np.empty((room, 3)), np.empty((room, 3), dtype=np.int64)
    left, right = np.zeros((2, n_other), dtype=np.int64)
    state = np.array([parts, 0, parts, 0, 0])
    while not _take_moves(
        start, part, count, extra, penalty, least, bound, *found, left, right, state,
        tolerance, MOST_MOVES * room, BUDGET, lf, lg,
    ):  # fmt: skip
        check()
    return bound[: state[0] + 1]
