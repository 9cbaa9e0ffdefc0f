"""Expectation propagation for small tables, in compiled code [CG2005, Appendix B].

The iteration of `engines.ep` for the link that is closed under Gaussian smoothing. Below a few
hundred rows its arithmetic takes less time than the calls of NumPy around it, and samplers ask for
thousands of evaluations. One sweep factorises B = I + S K S and gives every site its cavity; close
to the fixed point a Newton step, in which means are exact and variances linear in the change of the
sites, replaces the plain update.

Matrices are in Fortran order.
"""

import numpy as np
from numba import njit

from pmordinal import routines
from pmordinal.links.probit import arguments_of, fill_rows

NEAR = 1.0  # residual below which Newton steps pay
FLOOR = 1e-4  # residual below which a stalled iteration is at the rounding floor, not lost
LEAST = 1e-12  # smallest site precision, as a share of the largest
PRODUCTS = 40  # with the matrix of a Newton step
ROUNDS = 3  # Newton steps with one factorisation
CONVERGED, STALLED, LOST, NOT_POSITIVE = range(4)
SUMS = {"reassoc", "contract"}  # in any order: they become vector instructions

# what `state` holds of each site
P, S, ALPHA, H, A_II, C, LAM, P_NEW, GAP = range(9)


@njit(cache=True, nogil=True, error_model="numpy")
def _covariance(A, S, diagonal, squared):
    """Overwrite A, B⁻¹ by its lower triangle, with the posterior covariance; write A_ij², zero for i = j.

    See `linalg.SiteCovariance`.
    """
    n = S.size
    for j in range(n):
        A[j, j], squared[j, j] = diagonal[j], 0.0
        for i in range(j + 1, n):
            A[i, j] /= -S[i] * S[j]
            A[j, i] = A[i, j]
            squared[i, j] = squared[j, i] = A[i, j] * A[i, j]


@njit(cache=True, nogil=True, error_model="numpy")
def _close_gaps(A, squared, a, by_site, rtol):
    """Return the changes of p and of z that close the gaps to first order.

    In that order the sites of `by_site` are diag B⁻¹, the cavities' variances λ, the shrinkage D,
    the third and fourth derivative of log Ẑ, and the gaps of p and of α. Solved by generalised
    conjugate residuals, in units of the posterior variances.
    """
    n = a.size
    u, none = np.zeros(n), np.zeros(n)
    directions, images = np.empty((PRODUCTS, n)), np.empty((PRODUCTS, n))
    dz, r, image = np.empty(n), np.empty(n), np.empty(n)
    _respond(A, squared, by_site, none, by_site[6], dz, r)
    for i in range(n):
        r[i] = a[i] * (by_site[5, i] - r[i])
    target = rtol * np.sqrt(_dot(r, r))
    for k in range(PRODUCTS):
        if not np.sqrt(_dot(r, r)) > target:
            break
        direction = directions[k]
        for i in range(n):
            direction[i] = r[i]
        _respond(A, squared, by_site, r / a, none, dz, image)
        for i in range(n):
            image[i] = r[i] + a[i] * image[i]
        for j in range(k):
            _add(-_dot(image, images[j]), images[j], directions[j], image, direction)
        length = np.sqrt(_dot(image, image))
        if not length > 0.0:
            break
        for i in range(n):
            images[k, i] = image[i] / length
            direction[i] /= length
        step = _dot(r, images[k])
        for i in range(n):
            u[i] += step * direction[i]
            r[i] -= step * images[k, i]
    dp = u / a
    _respond(A, squared, by_site, dp, by_site[6], dz, image)
    return dp, dz


@njit(cache=True, nogil=True, error_model="numpy")
def _respond(A, squared, by_site, dp, slope_gap, dz, new):
    """Write the changes of z and of −p that changes of the precisions and of the slopes bring."""
    c, lam, D, L3, L4 = by_site[0], by_site[1], by_site[2], by_site[3], by_site[4]
    x, dh = np.empty(dp.size), np.empty(dp.size)
    routines.times(squared, dp, x)
    for i in range(dp.size):
        x[i] /= -c[i] * c[i]  # the change of λ
        dz[i] = slope_gap[i] + 0.5 * L3[i] * x[i] / D[i]
    routines.times(A, dz, dh)
    for i in range(dp.size):
        new[i] = (L3[i] * (dh[i] / D[i] - lam[i] * dz[i]) + 0.5 * L4[i] * x[i]) / (D[i] * D[i])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=SUMS)
def _dot(x, y):
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _add(size, x, y, to_x, to_y):
    for i in range(x.size):
        to_x[i] += size * x[i]
        to_y[i] += size * y[i]


@njit(cache=True, nogil=True)
def _copy(A, to):
    for j in range(A.shape[1]):
        for i in range(A.shape[0]):
            to[i, j] = A[i, j]


@njit(cache=True, nogil=True, error_model="numpy")
def _ask(rows, p_new):
    """Write the site precisions that match moments, none of them negligible."""
    largest = 0.0
    for i in range(p_new.size):
        p_new[i] = rows[2, i] / rows[14, i]
        largest = max(largest, p_new[i])
    for i in range(p_new.size):
        p_new[i] = max(p_new[i], LEAST * largest, 1e-280)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=SUMS)
def _solve(where, K, t, state, L, X):
    """Write the posterior of the sites and its marginals; return whether B has a factor.

    The natural means of the sites are α + t + p h, (α, h) being what `state` holds.
    """
    n = t.size
    p, root, alpha, h = state[P], state[S], state[ALPHA], state[H]
    a, c, lam = state[A_II], state[C], state[LAM]
    for i in range(n):
        root[i] = np.sqrt(p[i])
    if not routines.factor_B(where, K, root, L):
        return False
    _copy(L, X)
    routines.triangular_inverse(where, X)
    v, x = np.empty(n), np.zeros(n)
    routines.times(K, t, v)
    for j in range(n):  # B⁻¹ S K t = Xᵀ (X S K t)
        left = root[j] * v[j]
        for i in range(j, n):
            x[i] += left * X[i, j]
    for j in range(n):
        square = total = 0.0
        for i in range(j, n):
            square += X[i, j] * X[i, j]
            total += X[i, j] * x[i]
        c[j] = square  # diag B⁻¹
        alpha[j] += t[j] - root[j] * total
    routines.times(K, alpha, h)
    for i in range(n):
        shrunk, k = 1.0 - c[i], K[i, i]
        if shrunk < 1e-5 and p[i] * k < 1.0:  # 1 − p A = diag B⁻¹ has lost its digits
            for j in range(n):
                x[j] = 0.0
            for j in range(n):
                left = root[j] * K[j, i]
                for m in range(j, n):
                    x[m] += left * X[m, j]
            a[i] = k - _dot(x, x)
        else:
            a[i] = shrunk / p[i]
        a[i] = max(a[i], 1e-16 * k)
        lam[i] = a[i] / c[i]
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _gaps(rows, alpha, p, a, p_new, gap):
    """Write what the cavities ask for, and the gap in α; return the residual."""
    _ask(rows, p_new)
    residual = 0.0
    for i in range(p.size):
        gap[i] = (rows[1, i] - alpha[i]) / rows[14, i]
        change = max(abs((p_new[i] - p[i]) * a[i]), abs(gap[i]) * np.sqrt(a[i]))
        if not np.isfinite(change):
            change = np.inf
            p_new[i] = p_new[i] if np.isfinite(p_new[i]) else p[i]
            gap[i] = gap[i] if np.isfinite(gap[i]) else 0.0
        residual = max(residual, change)
    return residual


@njit(cache=True, nogil=True, error_model="numpy")
def _newton(A, squared, state, arguments, rows, residual, tol, t):
    """Move the sites by Newton steps on a model of the posterior; return whether they help.

    In the model h moves by A z exactly, and λ to first order in the change of p.
    """
    n = t.size
    old, a, g, x = state[P], state[A_II], np.empty(n), np.empty(n)
    p, z, p_new, gap = old.copy(), np.zeros(n), state[P_NEW].copy(), state[GAP].copy()
    alpha, spread, by_site = np.empty(n), np.empty(n), np.empty((7, n))
    lam, near_rows = state[LAM].copy(), rows.copy()
    enough, helped = max(0.1 * residual * residual, 0.1 * tol), False
    for _ in range(ROUNDS):
        for i in range(n):
            by_site[0, i], by_site[1, i], by_site[2, i] = state[C, i], lam[i], near_rows[14, i]
            by_site[3, i], by_site[4, i] = near_rows[3, i], near_rows[4, i]
            by_site[5, i], by_site[6, i] = p_new[i] - p[i], gap[i]
        dp, dz = _close_gaps(A, squared, a, by_site, min(0.1, residual))
        for i in range(n):
            p[i] = max(p[i] + dp[i], 0.1 * p[i])
            z[i] += dz[i]
            dp[i] = p[i] - old[i]
        routines.times(A, z, g)
        routines.times(squared, dp, x)
        for i in range(n):
            x[i] /= state[C, i] * state[C, i]
            lam[i] = state[LAM, i]
            lam[i] = lam[i] / (1.0 + x[i] / lam[i]) if x[i] > 0 else lam[i] - x[i]
            alpha[i] = state[ALPHA, i] + z[i] - old[i] * g[i]
            arguments[3, i] = state[H, i] + g[i] - lam[i] * alpha[i]
            arguments[5, i] = lam[i]
            spread[i] = lam[i] / (1.0 + p[i] * lam[i])
        fill_rows(arguments, near_rows)
        new = _gaps(near_rows, alpha, p, spread, p_new, gap)
        if not new < 0.7 * residual:
            break
        residual, helped = new, True
        for i in range(n):
            t[i] = z[i] + gap[i] + (p_new[i] - old[i]) * g[i]
            state[P_NEW, i] = p_new[i]
        if residual <= enough:
            break
    if helped:
        for i in range(n):
            old[i] = state[P_NEW, i]
    return helped


@njit(cache=True, nogil=True, error_model="numpy")
def fixed_point(where, K, bounds, noise, alpha, mean, var, tol, max_sweeps):
    """Return the fixed point that sweeps from given cavities lead to.

    Parameters
    ----------
    where : ndarray
        `routines.addresses()`.
    K : ndarray, shape (n, n)
    bounds : ndarray, shape (2, n)
        Lower and upper threshold of each datum.
    noise : float
    alpha, mean, var : ndarray, shape (n,)
        Where to start: E f = K α, and cavities.
    tol : float
        Largest change of a site, in units of its marginal.
    max_sweeps : int

    Returns
    -------
    reason, sweeps, residual : int, int, float
    state : ndarray, shape (9, n)
        p, √p, α, h, posterior variances A_ii, diag B⁻¹, λ, and what the cavities ask for.
    rows : ndarray, shape (16, n)
        The likelihood's terms at the cavities, see `Link.latent_terms`.
    L, X : ndarray, shape (n, n)
        Cholesky factor of B and its inverse.
    """
    n = alpha.size
    arguments, rows = arguments_of(bounds, noise), np.empty((16, n))
    state, t = np.empty((9, n)), np.empty(n)
    L, X = np.empty((n, n)).T, np.empty((n, n)).T
    A, squared = np.empty((n, n)).T, np.empty((n, n)).T
    routines.times(K, alpha, t)
    for i in range(n):
        arguments[3, i], arguments[5, i] = mean[i], var[i]
        state[ALPHA, i] = alpha[i]
    fill_rows(arguments, rows)
    p = state[P]
    _ask(rows, p)
    for i in range(n):
        t[i] = p[i] * (mean[i] - t[i]) + rows[1, i] / rows[14, i] - alpha[i]
    damping, near, best, previous, residual = 1.0, NEAR, np.inf, np.inf, np.inf
    stalled, by_newton, reason, sweep = 0, False, LOST, 0
    while sweep < max_sweeps:
        sweep += 1
        if not _solve(where, K, t, state, L, X):
            reason = NOT_POSITIVE
            break
        a, p_new, gap = state[A_II], state[P_NEW], state[GAP]
        for i in range(n):
            arguments[3, i] = state[H, i] - state[LAM, i] * state[ALPHA, i]
            arguments[5, i] = state[LAM, i]
        fill_rows(arguments, rows)
        residual = _gaps(rows, state[ALPHA], p, a, p_new, gap)
        stalled = 0 if residual < 0.5 * best else stalled + 1
        best = min(best, residual)
        if residual <= tol:
            reason = CONVERGED
            break
        if stalled >= 4 and best < FLOOR and residual < 2.0 * best:
            reason = STALLED
            break
        if by_newton and residual > 0.5 * previous:
            near *= 0.1
        by_newton = residual < near
        if by_newton:
            _copy(X, A)
            routines.gram_of_columns(where, A)
            _covariance(A, state[S], a, squared)
            by_newton = _newton(A, squared, state, arguments, rows, residual, tol, t)
        if not by_newton:
            worse = residual > 0.9 * previous
            damping = max(0.6 * damping, 0.1) if worse else min(1.15 * damping, 1.0)
            for i in range(n):
                p[i] += damping * (p_new[i] - p[i])
                t[i] = damping * gap[i]
        previous = residual
    return reason, sweep, residual, state, rows, L, X
