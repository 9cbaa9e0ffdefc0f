"""Which pairs of columns may have an interaction: a quick look before an ANOVA of many columns.

Labels become numbers (means of a normal variable in each class). What main effects, cubic in each column, leave of them
is compared with products of low polynomials of two columns. A pair whose products explain nothing of it is an unlikely
interaction.
"""

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from pmordinal.data.levels import show
from pmordinal.errors import warn

MOST_PAIRS = 66  # all those of twelve columns


def strongest_pairs(
    X: np.ndarray, y: np.ndarray, most: int, levels: Collection[int] = ()
) -> list[tuple[int, int]]:
    """Return the pairs of columns with the largest share of what main effects leave, in order of the columns.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Standardised columns.
    y : ndarray of int, shape (n,)
        Class codes.
    most : int
        Number of pairs.
    levels : collection of int
        Columns that hold codes of levels: instead of polynomials they have the most frequent levels.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(400, 4))
    >>> y = (X[:, 1] * X[:, 3] > 0).astype(int)
    >>> strongest_pairs(X, y, 1)
    [(1, 3)]
    """
    pairs = list(combinations(range(X.shape[1]), 2))
    if len(pairs) <= most:
        return pairs
    basis = np.stack([X, X**2 - 1.0, X**3 - 3.0 * X])  # orthogonal for normal columns
    for j in levels:
        basis[:, :, j] = _frequent(X[:, j], len(basis))
    main = np.column_stack([np.ones(len(X)), *basis])
    scores = _scores(y)
    rest = scores - main @ np.linalg.lstsq(main, scores, rcond=None)[0]
    strength = []
    for i, j in pairs:
        products = np.column_stack(
            [basis[a, :, i] * basis[b, :, j] for a in (0, 1) for b in (0, 1)]
        )
        products -= products.mean(axis=0)
        explained = products @ np.linalg.lstsq(products, rest, rcond=None)[0]
        strength.append(explained @ explained)
    best = np.argsort(strength)[::-1][:most]
    return [pairs[k] for k in sorted(best)]


def promising_pairs(
    X: np.ndarray, y: np.ndarray, names: Sequence[str], levels: Collection[int] = ()
) -> list[tuple[int, int]]:
    """Return the pairs of an ANOVA: all, or the strongest ones, with a word on those left out."""
    pairs = strongest_pairs(X, y, MOST_PAIRS, levels)
    every = list(combinations(range(len(names)), 2))
    if len(pairs) < len(every):
        left = [f"{names[i]}:{names[j]}" for i, j in every if (i, j) not in set(pairs)]
        warn(
            f"anova of {len(names)} columns has the {len(pairs)} most promising of {len(every)} pairs; left out are "
            f"{show(left)}. Name fewer columns in pmo.formula_model, or add a pair by gp(x, z)"
        )
    return pairs


def _frequent(codes: np.ndarray, count: int) -> np.ndarray:
    """Return where the most frequent levels are, shape (count, n), centred and zero if there are fewer."""
    found, counts = np.unique(codes, return_counts=True)
    shown = np.zeros((count, len(codes)))
    chosen = found[np.argsort(-counts, kind="stable")][: min(count, len(found) - 1)]
    shown[: len(chosen)] = codes == chosen[:, None]
    return shown - shown.mean(axis=1, keepdims=True)


def _scores(y: np.ndarray) -> np.ndarray:
    """Return the mean of a standard normal variable in each label's class, the classes cutting it by their shares."""
    share = np.bincount(y) / y.size
    z = ndtri(np.concatenate([[0.0], np.cumsum(share)[:-1], [1.0]]))
    edges = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = -np.diff(edges) / share
    return means[y]
