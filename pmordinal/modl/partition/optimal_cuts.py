"""Exact optimal cuts of one axis given the other, by penalised dynamic programming.

Let f(P) be the least cost of P parts without the prior and penalty[P] its prior, which is concave in P.
On a segment between neighbouring vertices of the lower convex hull of f, hull + penalty is concave, so the
minimum of f + penalty is at a vertex; vertices are minima of f(P) + λ P, each one dynamic program of
O(M²) steps. Slopes already tried bound what lies between two vertices, so few programs run.
"""

import numpy as np

from pmordinal.jit import njit
from pmordinal.modl.interrupt import BUDGET, check


@njit(cache=True, nogil=True)
def _fill_costs(start, part, count, seen, extra, costs, first, budget, lf, lg):
    """Fill rows of `costs` from `first` on until the budget is spent; return the next row."""
    m = start.shape[0] - 1
    work = 0
    for b in range(first, m + 1):
        if work > budget:
            return b
        work += start[b] + seen.shape[0]
        for k in range(seen.shape[0]):
            seen[k] = 0
        n = 0
        inner = 0.0
        for a in range(b - 1, -1, -1):
            for p in range(start[a], start[a + 1]):
                k = part[p]
                c = count[p]
                if c == 1:
                    inner += lg[seen[k] + 1]
                else:
                    inner += lf[seen[k] + c] - lf[seen[k]]
                seen[k] += c
                n += c
            costs[b, a] = lf[n + extra] - inner
    return m + 1


def interval_costs(
    start: np.ndarray, part: np.ndarray, count: np.ndarray, n_other: int, extra: int,
    lf: np.ndarray, lg: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Return costs C with C[b, a] the cost of one part that holds the values a, …, b − 1."""
    m = len(start) - 1
    costs = np.empty((m + 1, m + 1))
    seen = np.zeros(n_other, dtype=np.int64)
    b = 1
    while b <= m:
        b = _fill_costs(start, part, count, seen, extra, costs, b, BUDGET, lf, lg)
        check()
    return costs


@njit(cache=True, nogil=True)
def _program(costs, slope, least, best, origin):
    """Return (P, f(P)) of the partition that minimises f(P) + slope P over P ≥ least (1 or 2)."""
    m = costs.shape[0] - 1
    best[0] = 0.0
    for b in range(1, m + 1):
        low = np.inf
        at = 0
        for a in range(least - 1 if b == m else 0, b):
            value = best[a] + costs[b, a]
            if value < low:
                low = value
                at = a
        best[b] = low + slope
        origin[b] = at
    parts = 0
    total = 0.0
    b = m
    while b > 0:
        total += costs[b, origin[b]]
        b = origin[b]
        parts += 1
    return parts, total


@njit(cache=True, nogil=True)
def _keep(origin, cuts):
    """Copy the boundaries of the last dynamic program to `cuts`."""
    b = origin.shape[0] - 1
    n = 0
    while b > 0:
        n += 1
        b = origin[b]
    b = origin.shape[0] - 1
    for i in range(n, 0, -1):
        cuts[i] = b
        b = origin[b]
    cuts[0] = 0
    return n


@njit(cache=True, nogil=True)
def solve_exactly(costs, penalty, least, tolerance):
    """Return the optimal cuts of this axis and their cost with `penalty`.

    Every turn of the loop leaves a segment of the hull or adds a vertex, of which there are as many as values at
    most; a tolerance below rounding would only run programs that find nothing.

    Parameters
    ----------
    costs : ndarray, shape (values + 1, values + 1)
        From `interval_costs`.
    penalty, least
        As for `merges.merge_greedily`; `least` is 1 or 2, `penalty` has shape (values + 1,).
    tolerance : float
        Smallest gain that is worth a further dynamic program.

    Returns
    -------
    cuts : ndarray of int64, shape (P + 1,)
        Boundaries as value indices.
    cost : float
        f(P) + penalty[P].
    """
    m = costs.shape[0] - 1
    best = np.empty(m + 1)
    origin = np.zeros(m + 1, np.int64)
    cuts = np.empty(m + 1, np.int64)
    # the fewest parts: one, or the best single cut
    origin[m] = 0
    if least == 2:
        low = np.inf
        for a in range(1, m):
            origin[a] = 0
            if costs[a, 0] + costs[m, a] < low:
                low = costs[a, 0] + costs[m, a]
                origin[m] = a
        value = low
    else:
        value = costs[m, 0]
    used = _keep(origin, cuts)
    result = value + penalty[least]
    # hull vertices as a list sorted by P: (P, f, slope known optimal: smallest, largest)
    vertex = np.empty((m + 2, 4))
    vertex[0, 0], vertex[0, 1], vertex[0, 2], vertex[0, 3] = least, value, np.inf, np.inf
    n_vertex = 1
    slope = penalty[m] - penalty[m - 1] if m > 1 else 0.0
    parts, value = _program(costs, slope, least, best, origin)
    if parts > least:
        vertex[1, 0], vertex[1, 1], vertex[1, 2], vertex[1, 3] = parts, value, slope, slope
        n_vertex = 2
        if value + penalty[parts] < result:
            result = value + penalty[parts]
            used = _keep(origin, cuts)
    i = 0
    while i + 1 < n_vertex:
        p1, f1, down = vertex[i, 0], vertex[i, 1], vertex[i, 2]
        p2, f2, up = vertex[i + 1, 0], vertex[i + 1, 1], vertex[i + 1, 3]
        open_ = False
        for p in range(int(p1) + 1, int(p2)):
            bound = f2 + up * (p2 - p)
            if down < np.inf:
                bound = max(bound, f1 - down * (p - p1))
            if bound + penalty[p] < result - tolerance:
                open_ = True
                break
        if not open_:
            i += 1
            continue
        slope = (f1 - f2) / (p2 - p1)
        parts, value = _program(costs, slope, least, best, origin)
        if parts <= p1 or parts >= p2 or value + slope * parts >= f1 + slope * p1 - tolerance:
            vertex[i, 2] = slope  # the chord is an edge of the hull: nothing lies below it
            vertex[i + 1, 3] = slope
            i += 1
            continue
        if value + penalty[parts] < result:
            result = value + penalty[parts]
            used = _keep(origin, cuts)
        for j in range(n_vertex, i + 1, -1):
            for k in range(4):
                vertex[j, k] = vertex[j - 1, k]
        vertex[i + 1, 0], vertex[i + 1, 1] = parts, value
        vertex[i + 1, 2], vertex[i + 1, 3] = slope, slope
        n_vertex += 1
    return cuts[: used + 1], result
