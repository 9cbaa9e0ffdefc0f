"""The mode of the latent function for small tables, in compiled code [CG2005, section 3.1].

The iteration of `engines.laplace` for the probit link: Newton steps with step halving, and with a
kept factor near the mode. Below a few hundred rows that takes less time than the calls of NumPy around it.
Matrices are in Fortran order.
"""

import numpy as np
from numba import njit

from pmordinal import routines
from pmordinal.links.probit import arguments_of, fill_rows

STEEP = 1e8  # curvature, in prior precisions, above which the start is no place to linearise
FLOOR = 1e-4  # decrement below which a stalled iteration is at the rounding floor, not lost
CLOSE, FAST = 1.0, 0.3  # decrement, and its rate of decrease, at which a factor is kept
CONVERGED, STALLED, LOST, NOT_POSITIVE, TOO_STEEP = range(5)


@njit(cache=True, nogil=True)
def _objective(arguments, f, alpha, rows):
    """Write the likelihood's terms at f; return the log posterior density there [CG2005, eq. 9]."""
    for i in range(f.size):
        arguments[3, i] = f[i]
    fill_rows(arguments, rows)
    total = 0.0
    for i in range(f.size):
        total += rows[0, i] - 0.5 * alpha[i] * f[i]
    return total


@njit(cache=True, nogil=True)
def _factorise(where, K, rows, S, L):
    """Write √W and the Cholesky factor of I + S K S; return whether there is one."""
    for i in range(S.size):
        S[i] = np.sqrt(max(rows[2, i], 1e-280))  # leave-one-out divides by it
    return routines.factor_B(where, K, S, L)


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(L, x):
    """Overwrite x with (L Lᵀ)⁻¹ x."""
    n = x.size
    for j in range(n):
        x[j] /= L[j, j]
        for i in range(j + 1, n):
            x[i] -= x[j] * L[i, j]
    for j in range(n - 1, -1, -1):
        total = x[j]
        for i in range(j + 1, n):
            total -= L[i, j] * x[i]
        x[j] = total / L[j, j]


@njit(cache=True, nogil=True, error_model="numpy")
def find_mode(where, K, bounds, noise, start, tol, max_iterations):
    """Return the mode of the posterior of f = K α, from a given α or from zero if that is better.

    Parameters
    ----------
    where : ndarray
        `routines.addresses()`.
    K : ndarray, shape (n, n)
    bounds : ndarray, shape (2, n)
        Lower and upper threshold of each datum.
    noise : float
    start : ndarray, shape (n,)
    tol : float
        Newton decrement at which the mode is accepted.
    max_iterations : int

    Returns
    -------
    reason, iterations, factorizations, decrement, objective : int, int, int, float, float
    state : ndarray, shape (4, n)
        α, f, √W, and room.
    rows : ndarray, shape (16, n)
        The likelihood's terms at the mode, see `Link.latent_terms`.
    L : ndarray, shape (n, n)
        Cholesky factor of B there.
    """
    n = start.size
    arguments, rows, other = arguments_of(bounds, noise), np.empty((16, n)), np.empty((16, n))
    state, trial = np.zeros((4, n)), np.zeros((2, n))
    L = np.empty((n, n)).T
    alpha, f, S, x = state[0], state[1], state[2], state[3]
    for i in range(n):
        trial[0, i] = start[i]
    objective = _objective(arguments, f, alpha, rows)
    routines.times(K, trial[0], trial[1])
    value = _objective(arguments, trial[1], trial[0], other)
    if value > objective:
        objective = value
        for i in range(n):
            alpha[i], f[i] = trial[0, i], trial[1, i]
        rows, other = other, rows
    da, df = np.empty(n), np.empty(n)
    decrement, reason, iterations, factorizations, fresh = np.inf, LOST, 0, 0, True
    for i in range(n):
        if rows[2, i] * K[i, i] > STEEP:
            return TOO_STEEP, 0, 0, decrement, objective, state, rows, L
    while reason == LOST and iterations < max_iterations:
        iterations += 1
        if fresh:
            factorizations += 1
            if not _factorise(where, K, rows, S, L):
                reason = NOT_POSITIVE
                break
        for i in range(n):
            df[i] = rows[1, i] - alpha[i]
        routines.times(K, df, x)
        for i in range(n):
            x[i] *= S[i]
        _solve(L, x)
        for i in range(n):
            da[i] = df[i] - S[i] * x[i]  # (I + W K)⁻¹ r
        routines.times(K, da, df)
        square = 0.0
        for i in range(n):
            square += da[i] * df[i] + (S[i] * df[i]) ** 2
        previous, decrement = decrement, np.sqrt(max(square, 0.0))
        size = 1.0
        while True:
            for i in range(n):
                trial[0, i], trial[1, i] = alpha[i] + size * da[i], f[i] + size * df[i]
            value = _objective(arguments, trial[1], trial[0], other)
            if value >= objective - 1e-12 * (1.0 + abs(objective)) or size < 1e-10:
                break
            size *= 0.5
        for i in range(n):
            alpha[i], f[i] = trial[0, i], trial[1, i]
        rows, other = other, rows
        objective = value
        rate = decrement if fresh else decrement / previous  # a step with a fresh factor squares it
        if decrement * min(rate, 1.0) <= 0.01 * tol:  # log |B| feels the mode to first order
            reason = CONVERGED
        elif decrement > 0.5 * previous and decrement < FLOOR:
            reason = STALLED
        fresh = not (decrement < CLOSE and rate < FAST)
    if reason != NOT_POSITIVE and not _factorise(where, K, rows, S, L):
        reason = NOT_POSITIVE
    return reason, iterations, factorizations + 1, decrement, objective, state, rows, L
