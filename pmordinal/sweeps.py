"""One sweep of expectation propagation over a small table, in compiled code [CG2005, Appendix B].

A sweep factorises B = I + S K S and gives every site its cavity. Below a few hundred rows that takes less time than
the calls of NumPy around it. What is allocated is allocated outside, and what can go wrong is left to `engines.ep`:
so there is little to compile.

Matrices are in Fortran order.
"""

import numpy as np

from pmordinal import routines
from pmordinal.jit import njit

LEAST, TINY = 1e-12, 1e-280  # smallest site precision: as a share of the largest, and at all
LOST = 1e-5  # 1 − diag B⁻¹ below which it has too few digits
SUMS = {"reassoc", "contract"}  # in any order: they become vector instructions
SOLVED, NOT_POSITIVE, NO_DIGITS = range(3)


@njit(cache=True, nogil=True, error_model="numpy")
def begin(K, arguments, rows, alpha, h, p, t):
    """Write the sites that cavities ask for: precisions p, and natural means α + t + p h.

    Parameters
    ----------
    K : ndarray, shape (n, n)
    arguments, rows : ndarray, shapes (6, n) and (16, n)
        Of `fill_rows`, at the cavities.
    alpha, h, p, t : ndarray, shape (n,)
        Written: α as it is where the cavities are those of a fixed point, h = K α, p and t.
    """
    largest = TINY
    for i in range(p.size):
        alpha[i] = rows[1, i]
        p[i] = rows[2, i] / rows[14, i]
        if LEAST * p[i] > largest:
            largest = LEAST * p[i]
    routines.times(K, alpha, h)
    for i in range(p.size):
        if not p[i] > largest:
            p[i] = largest
        t[i] = p[i] * (arguments[3, i] - h[i]) + alpha[i] / rows[14, i] - alpha[i]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=SUMS)
def solve(where, numbers, signs, K, arguments, L, X, alpha, p, t, root, h, a, c, lam):
    """Write the posterior of the sites, and its cavities; return what has happened.

    Parameters
    ----------
    where, numbers, signs : ndarray
        `routines.addresses()` and `routines.room()`.
    K : ndarray, shape (n, n)
    arguments : ndarray, shape (6, n)
        Of `fill_rows`: the cavities are written.
    L, X : ndarray, shape (n, n)
        Written: the Cholesky factor of B and its inverse.
    alpha, p, t : ndarray, shape (n,)
        The sites, see `begin`; α is overwritten with that of the posterior.
    root, h, a, c, lam : ndarray, shape (n,)
        Written: √p, K α, posterior variances, diag B⁻¹, and the cavities' variances.
    """
    n = p.size
    for i in range(n):
        root[i] = np.sqrt(p[i])
    if not routines.factor_B(where, numbers, K, root, L):
        return NOT_POSITIVE
    for j in range(n):
        for i in range(n):
            X[i, j] = L[i, j]
    routines.triangular_inverse(where, numbers, signs, X)
    routines.times(K, t, h)
    for i in range(n):
        lam[i] = 0.0
    for j in range(n):  # B⁻¹ S K t = Xᵀ (X S K t)
        left = root[j] * h[j]
        for i in range(j, n):
            lam[i] += left * X[i, j]
    for j in range(n):
        square = total = 0.0
        for i in range(j, n):
            square += X[i, j] * X[i, j]
            total += X[i, j] * lam[i]
        c[j] = square
        alpha[j] += t[j] - root[j] * total
    routines.times(K, alpha, h)
    for i in range(n):
        if 1.0 - c[i] < LOST and p[i] * K[i, i] < 1.0:
            return NO_DIGITS
        a[i] = (1.0 - c[i]) / p[i]
        if not a[i] > 1e-16 * K[i, i]:
            a[i] = 1e-16 * K[i, i]
        lam[i] = a[i] / c[i]
        arguments[3, i], arguments[5, i] = h[i] - lam[i] * alpha[i], lam[i]
    return SOLVED
