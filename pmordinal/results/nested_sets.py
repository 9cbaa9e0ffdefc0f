"""Nested contiguous sets of classes, and the one of them that covers as often as was asked for.

A score orders the classes of a row, the best first, such that those up to any score are neighbours. The classes up to
a cut are the set. The cut is a quantile of the scores of true labels: split conformal prediction [Vovk2005], for
ordered classes [Lu2022].
"""

from collections.abc import Callable
from math import ceil

import numpy as np

SLACK = 1e-9  # (n + 1) · coverage may be a whole number but for rounding


def window_scores(probs: np.ndarray) -> np.ndarray:
    """Return the mass of the window of classes just before each class comes in, shape (m, r).

    The window begins as the most probable class, with the score zero, and grows by the likelier neighbour. The classes
    up to a cut c are the smallest window of this kind with a mass above c.

    Examples
    --------
    >>> window_scores(np.array([[0.25, 0.5, 0.125, 0.125]]))
    array([[0.5  , 0.   , 0.75 , 0.875]])
    """
    m, r = probs.shape
    rows = np.arange(m)
    padded = np.full((m, r + 2), -1.0)  # beyond the ends nothing comes in
    padded[:, 1:-1] = probs
    low = high = probs.argmax(1) + 1
    scores = np.zeros((m, r))
    mass = probs.max(1)
    for _ in range(r - 1):
        below, above = padded[rows, low - 1], padded[rows, high + 1]
        down = below >= above
        low, high = low - down, high + ~down
        new = np.where(down, low, high)
        scores[rows, new - 1] = mass
        mass = mass + padded[rows, new]
    return scores


def rps_scores(probs: np.ndarray) -> np.ndarray:
    """Return by how much the ranked probability score of each class exceeds that of the median, shape (m, r).

    From class k to k + 1 the score Σ_j (P(y ≤ j) − 1{k ≤ j})² changes by 2 P(y ≤ k) − 1, which increases with k: the
    score falls until the median and rises from there.

    Examples
    --------
    >>> rps_scores(np.array([[0.25, 0.5, 0.125, 0.125]]))
    array([[0.5 , 0.  , 0.5 , 1.25]])
    """
    steps = 2.0 * probs.cumsum(1)[:, :-1] - 1.0
    height = np.pad(steps.cumsum(1), ((0, 0), (1, 0)))
    return height - height.min(1, keepdims=True)


SCORES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "window": window_scores,
    "rps": rps_scores,
}


def cut(scores: np.ndarray, coverage: float) -> float:
    """Return the ⌈(n + 1) · coverage⌉-th smallest score; infinite if there are too few.

    If the n scores and that of a new row are exchangeable, the new one is at most the cut with a probability of at
    least `coverage`.

    Examples
    --------
    >>> cut(np.arange(1.0, 10.0), 0.9), cut(np.arange(1.0, 9.0), 0.9)
    (9.0, inf)
    """
    k = ceil((scores.size + 1) * coverage - SLACK)
    return float(np.sort(scores)[k - 1]) if k <= scores.size else np.inf


def fewest(coverage: float) -> int:
    """Return the smallest number of scores whose cut is finite.

    Examples
    --------
    >>> fewest(0.9), fewest(0.95)
    (9, 19)
    """
    return ceil(coverage / (1.0 - coverage) - SLACK)


def between(included: np.ndarray) -> np.ndarray:
    """Return sets with their gaps filled.

    Examples
    --------
    >>> between(np.array([[True, False, True, False]]))
    array([[ True,  True,  True, False]])
    """
    from_below = np.logical_or.accumulate(included, axis=1)
    from_above = np.logical_or.accumulate(included[:, ::-1], axis=1)[:, ::-1]
    return from_below & from_above
