"""Chooses the basis rows, one after the other [Srijith2012, section 4]."""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import blas

from pmordinal.engines.sparse.filtering import LEAST_VARIANCE
from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood

BLOCK = 25_000  # largest number of entries of a block of rows × basis


class Greedy:
    """The growing basis, and the posterior of all rows given its labels [Srijith2012, Algorithm 1].

    Parameters
    ----------
    gram : Gram
    y : ndarray of int, shape (n,)
    likelihood : OrdinalLikelihood
    s : int
    """

    def __init__(self, gram: Gram, y: np.ndarray, likelihood: OrdinalLikelihood, s: int):
        self.gram, self.y, self.likelihood, self.s = gram, y, likelihood, s
        self.basis = np.empty(0, dtype=np.intp)
        self.outside = np.arange(y.size)
        self.mean, self.var = np.zeros(y.size), gram.diagonal.copy()
        self.V = np.empty((y.size, s), order="F")  # columns c_t √ν_t: A = K − V Vᵀ

    def grow(
        self, working_set: int, rng: np.random.Generator, compared: int | None = None
    ) -> Iterator[tuple[int, float]]:
        """Add rows until the basis is full; yield its size and the NLP (mean −log p outside) after each.

        If more than `compared` rows are outside the basis, each step takes the NLP over so many random ones.
        """
        everywhere = np.arange(self.y.size)
        while self.basis.size < self.s:
            k = min(working_set, self.outside.size)
            J = rng.choice(self.outside, k, replace=False, shuffle=False)  # step 2
            at, scored = everywhere, self.outside
            if compared is not None and scored.size > compared + k:
                some = rng.choice(self.outside, compared, replace=False, shuffle=False)
                at = scored = np.union1d(some, J)
            A = self._columns(J, at)
            terms = self.likelihood.of_rows(J).tilted(self.y[J], self.mean[J], self.var[J])
            gamma, nu = terms.d1, terms.curvature  # [Srijith2012, eq. 5]
            nlp = self._scores(J, at, scored, A, gamma, nu)  # step 3
            best = int(nlp.argmin())  # step 4
            column = A[:, best] if at is everywhere else self._columns(J[[best]], everywhere)[:, 0]
            self._include(J[best], column, gamma[best], nu[best])  # step 5
            yield self.basis.size, float(nlp[best])

    def _columns(self, J: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Return columns of the posterior covariance at the sorted rows `at`, a cost of O(s k) for each row."""
        V, gram = self.V[:, : self.basis.size], self.gram
        of_J = V[J]
        if at.size < self.y.size:
            gram, V = Gram(gram.kernel, gram.X[at], gram.values), V[at]
        A = np.asfortranarray(gram.columns(np.searchsorted(at, J)))
        if not A.flags.writeable:
            A = A.copy(order="F")
        return blas.dgemm(-1.0, V, of_J, beta=1.0, c=A, trans_b=1, overwrite_c=1) if V.size else A

    def _scores(self, J, at, scored, A, gamma, nu) -> np.ndarray:
        """Return, for every candidate, the NLP of the rows `scored` without it if it is added [eq. 3]."""
        total = np.zeros(J.size)
        for rows in blocks_of(scored, 4 * J.size):
            a = A[np.searchsorted(at, rows)]
            total += self._log_prob(rows[:, None], a, gamma, nu).sum(0)
        own = A[np.searchsorted(at, J), np.arange(J.size)]
        total -= self._log_prob(J, own, gamma, nu)
        return -total / (scored.size - 1)

    def _log_prob(self, rows, a, gamma, nu) -> np.ndarray:
        mean = self.mean[rows] + a * gamma
        floor = LEAST_VARIANCE * self.gram.diagonal[rows]
        var = np.maximum(self.var[rows] - a * a * nu, floor)
        return self.likelihood.of_rows(rows.ravel()).log_tilted(self.y[rows], mean, var)

    def _include(self, j: int, c: np.ndarray, gamma: float, nu: float) -> None:
        self.V[:, self.basis.size] = v = c * np.sqrt(nu)
        self.mean += gamma * c
        self.var -= v * v
        np.maximum(self.var, LEAST_VARIANCE * self.gram.diagonal, out=self.var)
        self.basis = np.append(self.basis, j)
        self.outside = self.outside[self.outside != j]


def blocks_of(rows: np.ndarray, width: int) -> Iterator[np.ndarray]:
    """Yield `rows` in blocks of at most BLOCK entries, if each row has `width` entries."""
    size = max(1, BLOCK // width)
    for i in range(0, rows.size, size):
        yield rows[i : i + size]
