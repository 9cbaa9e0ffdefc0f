"""Labels for unlabelled rows under fixed class counts: the label step of [SSGPOR, Algorithm 1].

Every row gets one class, class j gets `counts[j]` rows, and the sum of log probabilities is to be large:
a transportation problem [SSGPOR, eq. 8]. The paper starts from a ranked greedy assignment and switches
pairs of labels between consecutive classes; `optimal` solves the same problem exactly.
"""

from itertools import pairwise

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array


def class_counts(n: int, proportions: np.ndarray) -> np.ndarray:
    """Return how many of `n` rows each class gets, by the method of largest remainders.

    Every class gets ⌊n γ_j⌋ rows, and those that are left go one each to the classes with the largest
    remainders (of equal ones to the lowest class), so that the counts sum to `n`.

    Parameters
    ----------
    n : int
    proportions : ndarray, shape (r,)
        Class proportions γ, not negative, with sum one.

    Returns
    -------
    ndarray of int, shape (r,)

    Examples
    --------
    >>> class_counts(10, np.array([0.26, 0.5, 0.24])).tolist()
    [3, 5, 2]
    """
    share = n * np.asarray(proportions, dtype=float)
    near = np.rint(share)
    share = np.where(np.abs(share - near) < 1e-9 * max(n, 1), near, share)  # 100 · 0.29 is 28.99…
    counts = np.floor(share).astype(np.int64)
    remainder = share - counts
    extra = np.argsort(-remainder, kind="stable")[: n - counts.sum()]
    counts[extra] += 1
    return counts


def ranked(log_probs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the ranked greedy assignment that the label step starts from.

    From the lowest class to the highest, each takes those rows that are most probable in it among the
    rows that are left [SSGPOR, section 3, "Algorithm"].

    Parameters
    ----------
    log_probs : ndarray, shape (n, r)
        Log probability of each class for each row.
    counts : ndarray of int, shape (r,)
        Rows of each class, with sum n.

    Returns
    -------
    ndarray of int, shape (n,)
        Class codes.

    Examples
    --------
    >>> ranked(np.log([[0.7, 0.3], [0.6, 0.4], [0.9, 0.1]]), np.array([1, 2])).tolist()
    [1, 1, 0]
    """
    codes = np.full(len(log_probs), -1, dtype=np.int64)
    for j, count in enumerate(counts):
        left = np.flatnonzero(codes < 0)
        order = np.argsort(-log_probs[left, j], kind="stable")
        codes[left[order[:count]]] = j
    return codes


def switch(
    log_probs: np.ndarray, codes: np.ndarray, max_sweeps: int = 1000
) -> tuple[np.ndarray, int]:
    """Return the assignment after label switching between consecutive classes, and the number of switches.

    In two consecutive classes, the rows that lose least (or gain most) by changing their class are paired
    and switched while a pair gains. This is repeated over all consecutive classes until nothing is switched
    [SSGPOR, eq. 8]. Classes without a row are passed over, so that they do not part those on either side. Each pair
    of classes costs one sort. The class counts do not change.

    Parameters
    ----------
    log_probs : ndarray, shape (n, r)
    codes : ndarray of int, shape (n,)
        An assignment with the right counts.
    max_sweeps : int
        Sweeps over all pairs of classes; each raises the sum, so that they end by themselves.

    Returns
    -------
    codes : ndarray of int, shape (n,)
    switches : int
        Pairs that were switched.

    Examples
    --------
    >>> log_probs = np.log([[0.7, 0.3], [0.6, 0.4], [0.9, 0.1]])
    >>> codes, switches = switch(log_probs, np.array([0, 1, 1]))
    >>> codes.tolist(), switches
    ([1, 1, 0], 1)
    """
    codes = np.array(codes)
    total = 0
    for _ in range(max_sweeps):
        before = total
        for j, above in pairwise(np.unique(codes)):
            gain = log_probs[:, above] - log_probs[:, j]  # of moving a row to the next class
            low, high = np.flatnonzero(codes == j), np.flatnonzero(codes == above)
            up = low[np.argsort(-gain[low], kind="stable")]
            down = high[np.argsort(gain[high], kind="stable")]
            m = min(up.size, down.size)
            up, down = up[:m], down[:m]
            size = np.abs(log_probs[up, j]) + np.abs(log_probs[down, above])
            # a gain of rounding size could switch labels back and forth for ever
            better = gain[up] - gain[down] > 1e-12 * (1.0 + size)
            k = m if better.all() else int(np.argmin(better))
            codes[up[:k]], codes[down[:k]] = above, j
            total += k
        if total == before:
            break
    return codes, total


def optimal(log_probs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the assignment with the largest sum of log probabilities.

    The transportation problem [SSGPOR, eq. 8] as a linear programme: its matrix is totally unimodular, so
    that the vertex which the simplex method finds is a vector of zeros and ones.

    Parameters
    ----------
    log_probs : ndarray, shape (n, r)
    counts : ndarray of int, shape (r,)

    Returns
    -------
    ndarray of int, shape (n,)
        Class codes.

    Examples
    --------
    >>> optimal(np.log([[0.7, 0.3], [0.6, 0.4], [0.9, 0.1]]), np.array([1, 2])).tolist()
    [1, 1, 0]
    """
    n, r = log_probs.shape
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    row, column = np.divmod(np.arange(n * r), r)
    places = np.concatenate([row, n + column]), np.tile(np.arange(n * r), 2)
    constraints = coo_array((np.ones(2 * n * r), places), shape=(n + r, n * r)).tocsr()
    found = linprog(
        -log_probs.ravel(),
        A_eq=constraints,
        b_eq=np.concatenate([np.ones(n), counts]),
        method="highs-ds",
    )
    if not found.success:
        raise RuntimeError(f"the transportation problem was not solved: {found.message}")
    return found.x.reshape(n, r).argmax(1)


def total_log_prob(log_probs: np.ndarray, codes: np.ndarray) -> float:
    """Return the sum of the log probabilities of an assignment: the negative objective of eq. 8."""
    return float(log_probs[np.arange(codes.size), codes].sum())
