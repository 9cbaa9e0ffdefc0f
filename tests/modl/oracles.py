"""Exhaustive searches that share no code with the optimiser: the oracles of the MODL tests."""

import itertools

import numpy as np
from scipy.special import gammaln


def lf(k):
    return gammaln(np.asarray(k, dtype=float) + 1.0)


def all_cuts(m):
    """Every partition of m ordered values, as boundaries with both ends."""
    for size in range(m):
        for inner in itertools.combinations(range(1, m), size):
            yield (0, *inner, m)


def every_grid_cost(x, y):
    """Costs of all grids of a numeric pair by [HB2007, eq. 1], shape (x partitions, y partitions).

    Ties are atomic. The sum over predictor intervals is one matrix product of the incidence of
    intervals in partitions with the cost of each interval under each target partition.
    """
    x, y = np.asarray(x), np.asarray(y)
    n = len(x)
    xv, xc = np.unique(x, return_inverse=True)
    yv, yc = np.unique(y, return_inverse=True)
    table = np.zeros((len(xv), len(yv)), dtype=int)
    np.add.at(table, (xc, yc), 1)
    cum = np.zeros((len(xv) + 1, len(yv) + 1), dtype=int)
    cum[1:, 1:] = table.cumsum(0).cumsum(1)
    intervals = list(itertools.combinations(range(len(xv) + 1), 2))
    index = {ab: k for k, ab in enumerate(intervals)}
    lo, hi = np.array(intervals).T
    x_parts, y_parts = list(all_cuts(len(xv))), list(all_cuts(len(yv)))
    incidence = np.zeros((len(x_parts), len(intervals)))
    for r, cuts in enumerate(x_parts):
        for ab in itertools.pairwise(cuts):
            incidence[r, index[ab]] = 1.0
    i = incidence.sum(axis=1)
    prior = lf(n + i - 1) - lf(i - 1) - lf(n)
    cost = np.empty((len(intervals), len(y_parts)))
    rest = np.empty(len(y_parts))
    for c, cuts in enumerate(y_parts):
        j = len(cuts) - 1
        nij = np.diff(cum[:, list(cuts)], axis=1)
        cell = nij[hi] - nij[lo]
        ni = cell.sum(axis=1)
        cost[:, c] = lf(ni + j - 1) - lf(j - 1) - lf(ni) + lf(ni) - lf(cell).sum(axis=1)
        rest[c] = lf(np.diff(cum[-1, list(cuts)])).sum()
    total = incidence @ cost + rest + prior[:, None] + 2 * np.log(n)
    return total, x_parts, y_parts


def set_partitions(v):
    """Every grouping of v values, as restricted growth strings."""

    def grow(prefix, top):
        if len(prefix) == v:
            yield np.array(prefix)
            return
        for k in range(top + 1):
            yield from grow([*prefix, k], max(top, k + 1))

    return list(grow([], 0))


def bell_sum(v, i):
    """B(V, I) by counting."""
    return sum(1 for p in set_partitions(v) if p.max() < i)


def best_grouping(x, y):
    """Least cost of [HB2007, eq. 3] over all groupings and all target cuts."""
    xv, xc = np.unique(x, return_inverse=True)
    yv, yc = np.unique(y, return_inverse=True)
    n, v = len(xc), len(xv)
    table = np.zeros((v, len(yv)), dtype=int)
    np.add.at(table, (xc, yc), 1)
    best = np.inf
    bell = {i: bell_sum(v, i) for i in range(1, v + 1)}
    for part in set_partitions(v):
        i = part.max() + 1
        grouped = np.zeros((i, len(yv)), dtype=int)
        np.add.at(grouped, part, table)
        cum = np.concatenate((np.zeros((i, 1), dtype=int), grouped.cumsum(1)), axis=1)
        for cuts in all_cuts(len(yv)):
            nij = np.diff(cum[:, list(cuts)], axis=1)
            j = nij.shape[1]
            ni, nj = nij.sum(1), nij.sum(0)
            cost = (
                np.log(v) + np.log(n) + np.log(bell[i])
                + (lf(ni + j - 1) - lf(j - 1) - lf(ni)).sum()
                + lf(ni).sum() - lf(nij).sum() + lf(nj).sum()
            )  # fmt: skip
            best = min(best, cost)
    return best


def best_cuts_cost(table, extra, penalty, least):
    """Least cost of cutting the rows of `table`, by the plain O(M² P) dynamic program over P parts."""
    m = len(table)
    cum = np.concatenate((np.zeros((1, table.shape[1]), dtype=int), table.cumsum(0)))
    cost = np.full((m + 1, m + 1), np.inf)
    for b in range(1, m + 1):
        cell = cum[b] - cum[:b]
        cost[:b, b] = lf(cell.sum(1) + extra) - lf(cell).sum(1)
    best = np.full(m + 1, np.inf)
    best[0] = 0.0
    found = np.inf
    for parts in range(1, m + 1):
        best = (best[:, None] + cost).min(axis=0)
        if parts >= least:
            found = min(found, best[m] + penalty[parts])
    return found


def heteroscedastic(n, rng):
    """Draw the synthetic set of [HB2007, section 5.1]."""
    x = rng.uniform(0, np.pi, n)
    variance = 0.01 + 0.25 * (1 - np.sin(2.5 * x)) ** 2
    return x, rng.normal(np.sin(2.5 * x) * np.sin(1.5 * x), np.sqrt(variance))


def blocks(n, noise, rng):
    """Two diagonal blocks (the paper's "XOR") with a share of uniform noise."""
    x = rng.random(n)
    y = 0.5 * rng.random(n) + 0.5 * (x > 0.5)
    k = rng.random(n) < noise
    x[k], y[k] = rng.random(k.sum()), rng.random(k.sum())
    return x, y
