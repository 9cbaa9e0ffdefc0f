"""Compiled steps of a Markov chain over grids M with stationary distribution ∝ exp(−c(M)), c the cost.

Metropolis–Hastings moves: birth or death of a cut (split or merge) and shift of a cut, on one axis, or a birth or
death on both axes at once, which joins the null model to the grids (a grid with one part on one axis costs about
log N more than the null model); for categorical predictors, one value changes its group. The cost of each
proposal is computed from its counts anew, O(cells) for each step, to keep the code simple.

A cut vector holds 0, the inner cuts, and the number of values, followed by unused entries.
"""

import numpy as np

from pmordinal.jit import njit

MAX_PARTS = 64  # largest number of parts on each axis


@njit(cache=True, nogil=True)
def grid_cost(ptr, col, cnt, x_label, n_x, y_label, n_y, x_prior, lf):
    """Return the cost c(M) without its constant first terms [HB2007, eqs. 1 and 3].

    Parameters
    ----------
    ptr, col, cnt : ndarray of int64
        Sparse rows by target value, columns are predictor values.
    x_label, y_label : ndarray of int64
        Part of each predictor value and of each target value.
    n_x, n_y : int
        I and J.
    x_prior : ndarray
        −log prior of I parts, indexed by I.
    lf : ndarray
        Table of log factorials.
    """
    table = np.zeros((n_y, n_x), np.int64)
    for v in range(ptr.shape[0] - 1):
        j = y_label[v]
        for p in range(ptr[v], ptr[v + 1]):
            table[j, x_label[col[p]]] += cnt[p]
    total = x_prior[n_x] - n_x * lf[n_y - 1]
    for j in range(n_y):
        size = 0
        for i in range(n_x):
            size += table[j, i]
            total -= lf[table[j, i]]
        total += lf[size]
    for i in range(n_x):
        size = 0
        for j in range(n_y):
            size += table[j, i]
        total += lf[size + n_y - 1]
    return total


@njit(cache=True, nogil=True)
def write_labels(cuts, parts, label):
    """Write the part of each value, given a cut vector."""
    for i in range(parts):
        for v in range(cuts[i], cuts[i + 1]):
            label[v] = i


@njit(cache=True, nogil=True)
def propose_cuts(cuts, parts, kind, u, v, out):
    """Write a proposal to `out`; return its number of parts (0 if impossible) and the log proposal ratio.

    Parameters
    ----------
    cuts : ndarray of int64
        The current cut vector.
    parts : int
        Its number of parts.
    kind : int
        0 birth, 1 death, 2 shift anywhere between the neighbours, 3 short shift.
    u, v : float
        Uniform random numbers.
    out : ndarray of int64
        Array that the proposal is written to.
    """
    m = cuts[parts]
    inner = parts - 1
    for i in range(parts + 1):
        out[i] = cuts[i]
    if kind == 0:
        free = m - 1 - inner
        if free == 0 or parts == MAX_PARTS:
            return 0, 0.0
        at = 1 + int(u * free)  # index among places without a cut
        i = 1
        while i <= inner and cuts[i] <= at:
            at += 1
            i += 1
        for r in range(parts, i - 1, -1):
            out[r + 1] = cuts[r]
        out[i] = at
        return parts + 1, np.log(free) - np.log(inner + 1)
    if inner == 0:
        return 0, 0.0
    k = 1 + int(u * inner)
    if kind == 1:
        for r in range(k, parts):
            out[r] = cuts[r + 1]
        return parts - 1, np.log(inner) - np.log(m - inner)
    low, high = cuts[k - 1], cuts[k + 1]
    if kind == 2:
        out[k] = low + 1 + int(v * (high - low - 1))
    else:
        reach = max(1, m // 50)
        step = int(v * 2 * reach)
        out[k] = cuts[k] + (step - reach if step < reach else step - reach + 1)
    if out[k] <= low or out[k] >= high or out[k] == cuts[k]:
        return 0, 0.0
    return parts, 0.0


@njit(cache=True, nogil=True)
def propose_group(label, groups, u, v, out):
    """Move one value to a random group, possibly a new one; return the number of groups.

    The reverse move has the same probability: both choose among the groups that remain without the
    value, and an empty one. Labels stay 0, …, I − 1.
    """
    n_values = label.shape[0]
    at = int(u * n_values)
    old = label[at]
    alone = True
    for i in range(n_values):
        out[i] = label[i]
        if i != at and label[i] == old:
            alone = False
    if alone:  # its old group is empty now: renumber
        groups -= 1
        for i in range(n_values):
            if out[i] > old:
                out[i] -= 1
    out[at] = int(v * (groups + 1))
    return groups + 1 if out[at] == groups else groups


@njit(cache=True, nogil=True)
def run_chain(
    ptr, col, cnt, x_cuts, x_label, y_cuts, y_label, state, cost, missing, categorical, x_prior,
    uniforms, tally, lf,
):  # fmt: skip
    """Run one step for each row of `uniforms`, changing the state in place; return the cost.

    Parameters
    ----------
    ptr, col, cnt, x_prior, lf
        As for `grid_cost`.
    x_cuts, y_cuts : ndarray of int64
        Cut vectors; `x_cuts` is not used for a categorical predictor.
    x_label, y_label : ndarray of int64
        Part of each value; the last entry of `x_label` is for missing predictors, even if there are none.
    state : ndarray of int64, shape (2,)
        Numbers of parts of x (missing not counted) and of y.
    cost : float
        Cost of the current state, by `grid_cost`.
    missing : int
        1 if missing predictors have a part of their own, after the others.
    categorical : bool
        Whether the predictor's values are grouped, not cut.
    uniforms : ndarray, shape (steps, 6)
        Random numbers in [0, 1).
    tally : ndarray of int64, shape (2, 5)
        Accepted and proposed moves by kind (birth, death, shift, short shift, joint); added to.
    """
    new_x = np.empty(x_cuts.shape[0], np.int64)
    new_y = np.empty(y_cuts.shape[0], np.int64)
    to_x = np.empty(x_label.shape[0], np.int64)
    to_y = np.empty(y_label.shape[0], np.int64)
    m = x_label.shape[0] - 1
    for step in range(uniforms.shape[0]):
        u0, u1, u2, u3, u4, log_u = (
            uniforms[step, 0], uniforms[step, 1], uniforms[step, 2], uniforms[step, 3],
            uniforms[step, 4], np.log(uniforms[step, 5]),
        )  # fmt: skip
        kind = int(4 * u0)
        target = int(5 * (4 * u0 - kind))  # 0, 1: x; 2, 3: y; 4: both
        joint = target == 4 and kind < 2
        on_x = joint or target < 2
        on_y = joint or target >= 2
        parts_x, parts_y = state[0], state[1]
        ratio = 0.0
        if on_x:
            if categorical:
                parts_x = propose_group(x_label[:m], parts_x, u1, u2, to_x)
                if parts_x > MAX_PARTS:
                    parts_x = 0
            else:
                parts_x, ratio = propose_cuts(x_cuts, parts_x, kind, u1, u2, new_x)
                write_labels(new_x, parts_x, to_x)
            to_x[m] = parts_x
        if on_y:
            parts_y, more = propose_cuts(y_cuts, parts_y, kind, u3, u4, new_y)
            ratio += more
            write_labels(new_y, parts_y, to_y)
        row = 4 if joint else kind
        tally[1, row] += 1
        if parts_x == 0 or parts_y == 0:
            continue
        new = grid_cost(
            ptr, col, cnt, to_x if on_x else x_label, parts_x + missing,
            to_y if on_y else y_label, parts_y, x_prior, lf,
        )  # fmt: skip
        if cost - new + ratio <= log_u:
            continue
        tally[0, row] += 1
        cost = new
        state[0], state[1] = parts_x, parts_y
        if on_x:
            for i in range(m + 1):
                x_label[i] = to_x[i]
            if not categorical:
                for i in range(parts_x + 1):
                    x_cuts[i] = new_x[i]
        if on_y:
            for i in range(y_label.shape[0]):
                y_label[i] = to_y[i]
            for i in range(parts_y + 1):
                y_cuts[i] = new_y[i]
    return cost
