"""Kernels of few columns: k(x, z) = Σ_c w_c φ_c(x) φ_c(z), times a number for each pair of levels.

Such a term goes into the matrix of a sum in place, and its derivatives come from one product with dK: it never is a
matrix of its own. Products of thin kernels are thin.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from pmordinal.gram.base import AddingKernel, Array, Kernel, Pullback
from pmordinal.jit import njit
from pmordinal.linalg import symm

type Weights = Callable[[Array, Array], list[Array]]

WIDEST = 32  # columns up to which a product of thin kernels is thin


@dataclass(frozen=True)
class LevelPairs:
    """Levels of some factors at rows: the number of a pair is one where a factor's levels are equal.

    Parameters
    ----------
    codes : ndarray, shape (factors, n)
    seen : ndarray, shape (factors, n)
        One for a level that takes part in the sum to zero, zero for others.
    off : ndarray, shape (factors,)
        Number of two different levels that take part.
    """

    codes: NDArray[np.int64]
    seen: Array
    off: Array

    def __len__(self) -> int:
        """Return how many factors there are."""
        return len(self.off)

    @cached_property
    def groups(self) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """The rows by groups of equal levels, in their order, and where groups begin; None if others count too."""
        if self.off.any():
            return None
        group = np.unique(self.codes, axis=1, return_inverse=True)[1].ravel()
        begins = np.concatenate([[0], np.cumsum(np.bincount(group))])
        return np.argsort(group, kind="stable"), begins.astype(np.intp)

    def beside(self, other: "LevelPairs") -> "LevelPairs":
        """Return the levels of the factors of both."""
        codes, seen, off = map(np.concatenate, zip(self._all(), other._all(), strict=True))
        return LevelPairs(codes, seen, off)

    def _all(self) -> tuple[Any, Any, Any]:
        return self.codes, self.seen, self.off

    def add_product(self, K: Array, left: Array, right: Array) -> None:
        """Add left rightᵀ times the numbers of the pairs to the lower triangle of K."""
        if self.groups is None:
            _add(K, left, right, *self._all())
        else:
            _add_in_groups(K, left, right, *self.groups)

    def product(self, dK: Array, phi: Array) -> Array:
        """Return dK times the numbers of the pairs times φ, of the lower triangle of dK."""
        out = np.zeros(phi.shape)
        if self.groups is None:
            _product(dK, phi, *self._all(), out)
        else:
            _product_in_groups(dK, phi, *self.groups, out)
        return out

    def multiply(self, K: Array, out: Array) -> None:
        """Write the lower triangle of K times the numbers of the pairs; `out` may be K."""
        _multiply(K, *self._all(), out)


def no_levels(n: int) -> LevelPairs:
    """Return the levels of no factor."""
    return LevelPairs(np.empty((0, n), np.int64), np.empty((0, n)), np.empty(0))


@dataclass(frozen=True)
class Thin:
    """A thin kernel at rows.

    Parameters
    ----------
    phi : ndarray, shape (n, p)
    weights : ndarray, shape (p,)
        Not negative.
    levels : LevelPairs
    pullback : callable
        From the derivatives in `phi` and in `weights` to those in the parameters.
    """

    phi: Array
    weights: Array
    levels: LevelPairs
    pullback: Weights = field(repr=False)

    def times(self, other: "Thin") -> "Thin":
        """Return the product of two: the columns are the products of all pairs of columns."""
        (n, p), q = self.phi.shape, other.phi.shape[1]
        phi = (self.phi[:, :, None] * other.phi[:, None, :]).reshape(n, p * q)

        def pullback(dphi: Array, dweights: Array) -> list[Array]:
            dphi, dweights = dphi.reshape(n, p, q), dweights.reshape(p, q)
            mine = np.einsum("ipq,iq->ip", dphi, other.phi), dweights @ other.weights
            theirs = np.einsum("ipq,ip->iq", dphi, self.phi), self.weights @ dweights
            return self.pullback(*mine) + other.pullback(*theirs)

        weights = np.outer(self.weights, other.weights).ravel()
        return Thin(phi, weights, self.levels.beside(other.levels), pullback)

    def add_to(self, K: Array, scale: float) -> Pullback:
        """Add scale · k to the lower triangle of K, in Fortran order; return the pullback, that in `scale` last."""
        if len(self.levels):
            self.levels.add_product(K, scale * self.weights * self.phi, self.phi)
        elif len(K):
            half = np.asfortranarray(self.phi * np.sqrt(self.weights))
            blas.dsyrk(scale, half, beta=1.0, c=K, lower=1, overwrite_c=1)

        def pullback(dK: Array) -> list[Array]:
            if len(self.levels):
                product = self.levels.product(dK, self.phi)
            else:
                product = symm(dK, self.phi)
            by_weights = np.einsum("ij,ij->j", product, self.phi)
            product *= 2.0 * scale * self.weights
            derivatives = self.pullback(product, scale * by_weights)
            return [*derivatives, np.asarray(by_weights @ self.weights)]

        return pullback


class ThinKernel(AddingKernel):
    """A kernel that is thin; `width` is the number of its columns."""

    joins_copies = True
    width: int

    @abstractmethod
    def thin(self, values: Sequence[Array], X: Array) -> Thin:
        """Return its columns at the rows."""

    def add_to(self, K: Array, values: Sequence[Array], X: Array, scale: float) -> Pullback:
        """Add scale · K(X) to the lower triangle of K; return the pullback, that in `scale` last."""
        return self.thin(values, X).add_to(K, scale)


def is_thin(kernels: Sequence[Kernel]) -> bool:
    """Tell whether the product of kernels is thin."""
    widths = [kernel.width for kernel in kernels if isinstance(kernel, ThinKernel)]
    return len(widths) == len(kernels) and prod(widths) <= WIDEST


@njit(cache=True, nogil=True)
def _numbers(codes, seen, off, j, out):
    """Write the numbers of the pairs of row j and those from it on; without branches, which are hard to foretell."""
    out[:] = 1.0
    for q in range(off.size):
        own, apart = codes[q, j], off[q] * seen[q, j]
        theirs, theirs_seen = codes[q, j:], seen[q, j:]
        for i in range(out.size):
            out[i] *= 1.0 if theirs[i] == own else apart * theirs_seen[i]


@njit(cache=True, nogil=True)
def _add(K, left, right, codes, seen, off):
    n = K.shape[0]
    room = np.empty(n)
    for j in range(n):
        numbers = room[: n - j]
        _numbers(codes, seen, off, j, numbers)
        for c in range(left.shape[1]):
            own = right[j, c]
            for i in range(n - j):
                K[j + i, j] += numbers[i] * left[j + i, c] * own


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _product(dK, phi, codes, seen, off, out):
    n = dK.shape[0]
    room = np.empty(n)
    for j in range(n):
        numbers = room[: n - j]
        _numbers(codes, seen, off, j, numbers)
        for i in range(n - j):
            numbers[i] *= dK[j + i, j]
        for c in range(phi.shape[1]):
            own, total = phi[j, c], 0.0
            for i in range(1, n - j):
                out[j + i, c] += numbers[i] * own
                total += numbers[i] * phi[j + i, c]
            out[j, c] += total + numbers[0] * own


@njit(cache=True, nogil=True)
def _multiply(K, codes, seen, off, out):
    n = K.shape[0]
    room = np.empty(n)
    for j in range(n):
        numbers = room[: n - j]
        _numbers(codes, seen, off, j, numbers)
        for i in range(n - j):
            out[j + i, j] = K[j + i, j] * numbers[i]


@njit(cache=True, nogil=True)
def _add_in_groups(K, left, right, order, begins):
    for g in range(begins.size - 1):
        for a in range(begins[g], begins[g + 1]):
            j = order[a]
            for b in range(a, begins[g + 1]):
                i = order[b]  # not before j: groups keep the order of the rows
                for c in range(left.shape[1]):
                    K[i, j] += left[i, c] * right[j, c]


@njit(cache=True, nogil=True)
def _product_in_groups(dK, phi, order, begins, out):
    for g in range(begins.size - 1):
        for a in range(begins[g], begins[g + 1]):
            j = order[a]
            for c in range(phi.shape[1]):
                out[j, c] += dK[j, j] * phi[j, c]
            for b in range(a + 1, begins[g + 1]):
                i = order[b]
                for c in range(phi.shape[1]):
                    out[i, c] += dK[i, j] * phi[j, c]
                    out[j, c] += dK[i, j] * phi[i, c]
