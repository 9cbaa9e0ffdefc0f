"""Kernels of few columns: k(x, z) = Σ_c w_c φ_c(x) φ_c(z), times a number for each pair of levels.

Such a term goes into the matrix of a sum in place, and its derivatives come from one product with dK: it never is a
matrix of its own. Products of thin kernels are thin.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
    seen : ndarray of bool, shape (factors, n)
        Whether the level takes part in the sum to zero.
    off : ndarray, shape (factors,)
        Number of two different levels that do.
    """

    codes: NDArray[np.int64]
    seen: NDArray[np.bool_]
    off: Array

    def __len__(self) -> int:
        """Return how many factors there are."""
        return len(self.off)

    def beside(self, other: "LevelPairs") -> "LevelPairs":
        """Return the levels of the factors of both."""
        codes, seen, off = map(np.concatenate, zip(self._all(), other._all(), strict=True))
        return LevelPairs(codes, seen, off)

    def _all(self) -> tuple[Any, Any, Any]:
        return self.codes, self.seen, self.off

    def multiply(self, K: Array, out: Array) -> None:
        """Write the lower triangle of K times the numbers of the pairs; `out` may be K."""
        _multiply(K, *self._all(), out)


def no_levels(n: int) -> LevelPairs:
    """Return the levels of no factor."""
    return LevelPairs(np.empty((0, n), np.int64), np.empty((0, n), np.bool_), np.empty(0))


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
            _add(K, scale * self.weights * self.phi, self.phi, *self.levels._all())
        elif len(K):
            half = np.asfortranarray(self.phi * np.sqrt(self.weights))
            blas.dsyrk(scale, half, beta=1.0, c=K, lower=1, overwrite_c=1)

        def pullback(dK: Array) -> list[Array]:
            if len(self.levels):
                product = np.zeros(self.phi.shape)
                _product(dK, self.phi, *self.levels._all(), product)
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
def _number(codes, seen, off, i, j):
    """Return the number of a pair of rows."""
    number = 1.0
    for q in range(off.size):
        if codes[q, i] != codes[q, j]:
            number *= off[q] if seen[q, i] and seen[q, j] else 0.0
    return number


@njit(cache=True, nogil=True)
def _add(K, left, right, codes, seen, off):
    for j in range(K.shape[0]):
        for i in range(j, K.shape[0]):
            number = _number(codes, seen, off, i, j)
            if number != 0.0:
                for c in range(left.shape[1]):
                    K[i, j] += number * left[i, c] * right[j, c]


@njit(cache=True, nogil=True)
def _product(dK, phi, codes, seen, off, out):
    """Add (dK ∘ numbers) φ, of the lower triangle of dK."""
    for j in range(dK.shape[0]):
        for i in range(j, dK.shape[0]):
            number = _number(codes, seen, off, i, j)
            if number != 0.0:
                number *= dK[i, j]
                for c in range(phi.shape[1]):
                    out[i, c] += number * phi[j, c]
                    if i != j:
                        out[j, c] += number * phi[i, c]


@njit(cache=True, nogil=True)
def _multiply(K, codes, seen, off, out):
    for j in range(K.shape[0]):
        for i in range(j, K.shape[0]):
            out[i, j] = K[i, j] * _number(codes, seen, off, i, j)
