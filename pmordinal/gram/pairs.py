"""Squared distances between rows, and their derivatives by the rows.

For many rows they are computed by matrix products in blocks, for few by loops over pairs.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pmordinal.jit import njit
from pmordinal.linalg.workspace import empty

type Array = NDArray[np.float64]

MOST_ROWS = 128  # of a block; the fastest at n = 100 and n = 1000


def augmented(phi: Array) -> tuple[Array, Array]:
    """Return A = [φ, −½‖φ‖², 1] and B = [φ, 1, −½‖φ‖²]: A Bᵀ gives H = −½‖φ_i − φ_j‖² by one matrix product."""
    n, p = phi.shape
    A = np.empty((n, p + 2))
    A[:, :p] = phi
    A[:, p] = np.einsum("ij,ij->i", phi, phi)
    A[:, p] *= -0.5
    A[:, p + 1] = 1.0
    B = A.copy()
    B[:, p] = 1.0
    B[:, p + 1] = A[:, p]
    return A, B


def blocks(n: int) -> Iterator[slice]:
    """Yield the blocks of `n` rows."""
    for start in range(0, n, MOST_ROWS):
        yield slice(start, min(start + MOST_ROWS, n))


def triangle(n: int, with_auxiliary: bool) -> list[tuple[slice, slice, Array, Array | None]]:
    """Split the lower triangle into blocks of columns: block, rows from its first on, arrays to write k to."""
    shapes = [(block.stop - block.start, n - block.start) for block in blocks(n)]
    room = empty((sum(a * b for a, b in shapes), 1 + with_auxiliary))
    parts, start = [], 0
    for block, shape in zip(blocks(n), shapes, strict=True):
        stop = start + shape[0] * shape[1]
        k, *more = (room[start:stop, i].reshape(shape) for i in range(1 + with_auxiliary))
        parts.append((block, slice(block.start, n), k, more[0] if more else None))
        start = stop
    return parts


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def take_pairs(dK, first, k, S):
    """Copy columns of dK, below the diagonal, to the rows of S; return Σ S ∘ k."""
    total = 0.0
    for i in range(S.shape[0]):
        for j in range(i + 1):  # skips the diagonal and takes each pair once
            S[i, j] = 0.0
        below, weights, to = dK[first + i + 1 :, first + i], k[i, i + 1 :], S[i, i + 1 :]
        for j in range(to.size):
            to[j] = below[j]
            total += below[j] * weights[j]
    return total


@njit(cache=True, nogil=True)
def put_pairs(scale, k, K, is_added):
    """Write scale · k, or add it, to the lower triangle of K; k is a vector of pairs, and one on the diagonal."""
    start = 0
    for i in range(K.shape[0]):
        below = K[i + 1 :, i]
        K[i, i] = K[i, i] + scale if is_added else scale
        for j in range(below.size):
            value = scale * k[start + j]
            below[j] = below[j] + value if is_added else value
        start += below.size


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def get_pairs(dK, k, S):
    """Write the lower triangle of dK to S, one pair after the other; return Σ S ∘ k."""
    start, total = 0, 0.0
    for i in range(dK.shape[0]):
        below, weights, to = dK[i + 1 :, i], k[start:], S[start:]
        for j in range(below.size):
            to[j] = below[j]
            total += below[j] * weights[j]
        start += below.size
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def move_pairs(S, columns, out):
    """Add 2 S_ij (φ_j − φ_i) to row i of the derivative and subtract it from row j, for all pairs i < j."""
    for k in range(columns.shape[0]):
        column, to, start = columns[k], out[k], 0
        for i in range(column.size):
            own, total, later = column[i], 0.0, S[start:]
            others, others_to = column[i + 1 :], to[i + 1 :]
            for j in range(others.size):
                pull = 2.0 * later[j] * (others[j] - own)
                others_to[j] -= pull
                total += pull
            to[i] += total
            start += others.size


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def sum_lower(A):
    """Return the sum of a symmetric matrix of which the lower triangle is read."""
    total = 0.0
    for j in range(A.shape[0]):
        below = 0.0
        for i in range(j + 1, A.shape[0]):
            below += A[i, j]
        total += A[j, j] + 2.0 * below
    return total


@njit(cache=True, nogil=True)
def add_rows(scale, k, out):
    """Add scale · k to a matrix of its shape."""
    for i in range(k.shape[0]):
        for j in range(k.shape[1]):
            out[i, j] += scale * k[i, j]
