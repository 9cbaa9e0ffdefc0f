"""Chooses the inducing rows: pivoted Cholesky factorisation, the row of largest remaining variance next."""

from collections.abc import Sequence

import numpy as np

from pmordinal.gram import Gram, Kernel

POOL = 10_000  # largest number of random rows to choose from
LARGEST = 50_000  # largest sample of a table that is spread over Dask
SHARE = 20  # rows to choose from for each inducing row, if there are so many
FEWEST = 2_000  # but at least so many
STOP = 1e-9  # no further row is needed where the remaining variance is below this share of the largest prior one


def sample(n: int, size: int) -> np.ndarray:
    """Return the numbers of at most `size` random rows out of `n`, in order, the same ones always.

    A smaller sample is part of a larger one.
    """
    if n <= size:
        return np.arange(n)
    order = np.random.default_rng(0).choice(n, min(n, LARGEST), replace=False)
    return np.sort(order[:size])


def choose(
    gram: Gram, m: int, rng: np.random.Generator, pool: np.ndarray | None = None
) -> np.ndarray:
    """Return up to `m` rows of a sample, in the order of choice; fewer if these explain all others.

    Rows are distinct, and so is what they say: of identical ones, one is chosen. White noise does not count, since
    it says nothing about other rows.

    Parameters
    ----------
    gram : Gram
    m : int
    rng : Generator
        Picks the rows to choose from.
    pool : ndarray of int, optional
        It picks among these, by default a sample of all.
    """
    pool = sample(gram.n, POOL) if pool is None else pool
    size = min(pool.size, max(FEWEST, SHARE * m))
    if size < pool.size:
        pool = pool[np.sort(rng.choice(pool.size, size, replace=False, shuffle=False))]
    return pool[pivoted(gram.kernel, gram.values, gram.X[pool], m)]


def pivoted(kernel: Kernel, values: Sequence[np.ndarray], X: np.ndarray, m: int) -> list[int]:
    """Return up to `m` of the rows, one after the other that of which the others say least."""
    size = len(X)
    left = np.array(kernel.copy_diagonal(values, X), dtype=float)
    least = STOP * left.max()
    found: list[int] = []
    F = np.empty((size, min(m, size)), order="F")  # columns of the factor
    for k in range(F.shape[1]):
        i = int(left.argmax())
        if left[i] <= least:
            break
        column = kernel.matrix(values, X, X[i : i + 1])[0][:, 0] - F[:, :k] @ F[i, :k]
        F[:, k] = column / np.sqrt(left[i])
        left -= F[:, k] ** 2
        left[i] = 0.0
        found.append(i)
    return found or [0]  # a covariance of zero
