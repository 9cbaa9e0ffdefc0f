"""Kernels of one column with their mean over data taken out, and sums of products of them.

k̃(x, z) = k(x, z) − m(x) m(z) / M with m(x) the mean of k(x, ·) over the data and M the mean of m: what is left of a
function after its mean over the data is known to be zero [Durrande2013]. Each k depends on one length-scale, so that
derivatives are carried forward: `slope` is ls · dk/dls.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pmordinal.gram.pairs import blocks
from pmordinal.jit import njit

type Array = NDArray[np.float64]

BASES = ("expquad", "matern12", "matern32", "matern52")


def _decay(H: Array) -> None:
    np.exp(H, out=H)


def _matern32(t: Array) -> None:
    decay = np.exp(-t)
    t += 1.0
    t *= decay


def _matern52(t: Array) -> None:
    decay = np.exp(-t)
    square = t * t
    square /= 3.0
    t += 1.0
    t += square
    t *= decay


_PROFILES: dict[str, Callable[[Array], None]] = {
    "expquad": _decay,
    "matern12": _decay,
    "matern32": _matern32,
    "matern52": _matern52,
}


def write_kernels(base: str, u: Array, v: Array, out: Array) -> None:
    """Write k between all u and v, columns in units of their length-scales, shapes (d, n), (d, m), (d, n, m)."""
    for own, other, k in zip(u, v, out, strict=True):
        _write_distances(BASES.index(base), own, other, k)
        _PROFILES[base](k)


class Means:
    """Means of kernels over data, one for each column.

    Parameters
    ----------
    base : str
        One of `BASES`.
    rows : ndarray, shape (d, N)
        The data.
    weights : ndarray, shape (N,), optional
        How many rows each of them stands for.
    """

    def __init__(self, base: str, rows: Array, weights: Array | None = None) -> None:
        self.base, self.rows, self.weights = base, rows, weights
        # Few values of a column may stand for all rows.
        found = [np.unique(column, return_inverse=True) for column in rows]
        self._nodes = [nodes for nodes, _ in found]
        self._inverse = [inverse for _, inverse in found]
        total = rows.shape[1] if weights is None else weights.sum()
        self._weights = [np.bincount(inverse, weights) / total for inverse in self._inverse]
        self._last: tuple[bytes, tuple[Array, Array, Array, Array]] | None = None

    def at(self, x: Array, ls: Array) -> tuple[Array, Array]:
        """Return m and its slope at other rows, each of shape (d, n)."""
        if np.array_equal(x, self.rows):
            return self._at_rows(ls)[:2]
        m, dm = np.empty(x.shape), np.empty(x.shape)
        for a in range(len(x)):
            m[a], dm[a] = self._column(a, x[a], ls[a])
        return m, dm

    def total(self, ls: Array) -> tuple[Array, Array]:
        """Return M and its slope, each of shape (d,)."""
        return self._at_rows(ls)[2:]

    def _at_rows(self, ls: Array) -> tuple[Array, Array, Array, Array]:
        """Return m, M and their slopes; those of the last length-scales are kept."""
        key = ls.tobytes()
        if self._last is None or self._last[0] != key:
            m, dm = np.empty(self.rows.shape), np.empty(self.rows.shape)
            for a, nodes in enumerate(self._nodes):
                at_nodes = self._column(a, nodes, ls[a])
                m[a], dm[a] = (values[self._inverse[a]] for values in at_nodes)
            M, dM = (np.average(each, axis=1, weights=self.weights) for each in (m, dm))
            self._last = key, (m, dm, M, dM)
        return self._last[1]

    def _column(self, a: int, x: Array, ls: float) -> tuple[Array, Array]:
        nodes, weights = self._nodes[a] / ls, self._weights[a]
        m, dm = np.empty(x.shape), np.empty(x.shape)
        for block in blocks(len(x)):
            u = x[block] / ls
            k = np.empty((1, len(u), len(nodes)))
            write_kernels(self.base, u[None], nodes[None], k)
            m[block] = k[0] @ weights
            write_slopes(BASES.index(self.base), u, nodes, k[0])
            dm[block] = k[0] @ weights
        return m, dm


@njit(cache=True, nogil=True)
def _write_distances(base, u, v, out):
    """Write of which the profile is a function: −½ r², −r, or √3 r and √5 r."""
    factor = -1.0 if base == 1 else np.sqrt(3.0) if base == 2 else np.sqrt(5.0)
    for i in range(u.size):
        own, row = u[i], out[i]
        if base == 0:
            for j in range(v.size):
                row[j] = -0.5 * (own - v[j]) ** 2
        else:
            for j in range(v.size):
                row[j] = factor * abs(own - v[j])


@njit(cache=True, nogil=True)
def _slopes(base, own, other, k, out):
    """Write ls · dk/dls of one row, of k and the scaled columns."""
    if base == 0:
        for j in range(other.size):
            u = own - other[j]
            out[j] = u * u * k[j]
    elif base == 1:
        for j in range(other.size):
            out[j] = abs(own - other[j]) * k[j]
    elif base == 2:
        for j in range(other.size):
            t = np.sqrt(3.0) * abs(own - other[j])
            out[j] = t * t / (1.0 + t) * k[j]
    else:
        for j in range(other.size):
            t = np.sqrt(5.0) * abs(own - other[j])
            out[j] = t * t * (1.0 + t) / (3.0 + 3.0 * t + t * t) * k[j]


@njit(cache=True, nogil=True)
def write_slopes(base, u, v, k):
    """Overwrite k between all u and v with ls · dk/dls."""
    for i in range(u.size):
        _slopes(base, u[i], v, k[i], k[i])


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def add_terms(k, m_rows, m_columns, M, mains, first, second, pairs, scale, out):
    """Take the means out of k, in place, and add the sum of the terms.

    `k` has shape (d, n, m), `mains` and `pairs` hold the variances, `first` and `second` the arguments of each pair.
    """
    d, n, m = k.shape
    row, weight = np.empty(m), np.empty(m)
    for i in range(n):
        row[:] = 0.0
        for a in range(d):
            t = m_rows[a, i] / M[a]
            for j in range(m):
                k[a, i, j] -= t * m_columns[a, j]
        for a in range(d):
            weight[:] = mains[a]
            for q in range(first.size):
                if first[q] == a:
                    v, other = pairs[q], k[second[q], i]
                    for j in range(m):
                        weight[j] += v * other[j]
            own = k[a, i]
            for j in range(m):
                row[j] += weight[j] * own[j]
        for j in range(m):
            out[i, j] += scale * row[j]


@njit(cache=True, nogil=True)
def row_weights(dK, start, out):
    """Write the weights of the pairs of rows in a symmetric dK: those from `start` on, as many as `out` has rows."""
    for i in range(out.shape[0]):
        for j in range(i):
            out[i, j] = 0.0
        out[i, i] = dK[start + i, start + i]
        for j in range(i + 1, out.shape[1]):
            out[i, j] = 2.0 * dK[start + j, start + i]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def add_derivatives(base, W, u, v, k, m_rows, m_columns, M, terms, by, at_rows, at_columns, sums):
    """Add the derivatives of Σ W ∘ terms, those through the means apart.

    Parameters
    ----------
    base : int
    W : array, shape (n, m)
    u, v : array, shape (d, n), (d, m)
        Rows and columns in units of their length-scales.
    k : array, shape (d, n, m)
        Kernels, with their means taken out.
    m_rows, m_columns, M : array
    terms : tuple
        Variances of arguments, arguments of pairs, and variances of pairs.
    by : tuple
        Derivatives in the variances of arguments and pairs and, times ls, in the length-scales.
    at_rows, at_columns : array, shape (d, n), (d, m)
        For G the derivative in k, G m(columns) and Gᵀ m(rows), through which the means matter.
    sums : array, shape (d, m) or (d, 0)
        Sums over rows of the slopes of a symmetric k of which pairs i < j are met.
    """
    mains, first, second, pairs = terms
    by_mains, by_pairs, by_ls = by
    d, n, m = k.shape
    whole, slope, weight = np.empty(m), np.empty(m), np.empty(m)
    for i in range(n):
        w = W[i]
        for a in range(d):
            own, mean = k[a, i], m_columns[a]
            weight[:] = mains[a]
            for q in range(first.size):
                if first[q] == a or second[q] == a:
                    v_q, other = pairs[q], k[second[q] if first[q] == a else first[q], i]
                    for j in range(m):
                        weight[j] += v_q * other[j]
                    if first[q] == a:
                        total = 0.0
                        for j in range(m):
                            total += w[j] * own[j] * other[j]
                        by_pairs[q] += total
            t = m_rows[a, i] / M[a]
            total = 0.0
            for j in range(m):
                total += w[j] * own[j]
                whole[j] = own[j] + t * mean[j]
            by_mains[a] += total
            _slopes(base, u[a, i], v[a], whole, slope)
            total, through = 0.0, 0.0
            to = at_columns[a]
            for j in range(m):
                G = w[j] * weight[j]
                total += G * slope[j]
                through += G * mean[j]
                to[j] += G * m_rows[a, i]
            by_ls[a] += total
            at_rows[a, i] += through
            if sums.shape[1]:
                to, total = sums[a], 0.0
                for j in range(i + 1, m):
                    to[j] += slope[j]
                    total += slope[j]
                to[i] += total
