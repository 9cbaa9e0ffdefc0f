"""The MODL cost of a partition (−log posterior), term by term, for numeric and categorical predictors.

Hue and Boullé (2007), equations 1 to 3. A model is described by its cell counts N_ij (part i of
the predictor, interval j of the target); every function takes counts and returns nats.

Deviation from the text: the null model of (3) costs log V + log N + log N!, which is (3) at
I = J = 1; the paper's 2 log N + log N! belongs to (1).
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln


def log_binomial(n: ArrayLike, k: ArrayLike) -> np.ndarray:
    """Return log C(n, k) for integers 0 ≤ k ≤ n.

    Examples
    --------
    >>> round(float(np.exp(log_binomial(5, 2))), 10)
    10.0
    """
    n, k = np.asarray(n, dtype=float), np.asarray(k, dtype=float)
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def log_partition_numbers(n_values: int, max_groups: int | None = None) -> np.ndarray:
    """Return log B(V, I), the log number of partitions of V values into at most I groups.

    B(V, I) = Σ_{i ≤ I} S(V, i) with Stirling numbers of the second kind by the recurrence
    S(v, i) = i S(v−1, i) + S(v−1, i−1), all in log space.

    Parameters
    ----------
    n_values : int
        V, at least 1.
    max_groups : int, optional
        Largest I wanted; V by default.

    Returns
    -------
    ndarray, shape (max_groups + 1,)
        Entry I is log B(V, I); entry 0 is −inf.

    Examples
    --------
    >>> np.round(np.exp(log_partition_numbers(4)), 10).tolist()
    [0.0, 1.0, 8.0, 14.0, 15.0]
    """
    top = n_values if max_groups is None else min(max_groups, n_values)
    stirling = np.full(top + 1, -np.inf)
    stirling[0] = 0.0
    with np.errstate(divide="ignore"):
        log_i = np.log(np.arange(top + 1, dtype=float))
    for _ in range(n_values):
        shifted = np.concatenate(([-np.inf], stirling[:-1]))
        stirling = np.logaddexp(log_i + stirling, shifted)
    return np.logaddexp.accumulate(stirling)


def size_prior(n: int, n_values: int | None = None) -> float:
    """Return −log p(I, J): 2 log N, or log V + log N for V categorical values."""
    if n_values is None:
        return float(2.0 * np.log(n))  # [HB2007, eq. 1, first term]
    return float(np.log(n_values) + np.log(n))  # [HB2007, eq. 3, first two terms]


def part_prior(n: int, n_parts: int, n_values: int | None = None) -> float:
    """Return −log p(parts of x | I): log C(N + I − 1, I − 1), or log B(V, I) for V values."""
    if n_values is None:
        return float(log_binomial(n + n_parts - 1, n_parts - 1))  # [HB2007, eq. 1]
    return float(log_partition_numbers(n_values, n_parts)[n_parts])  # [HB2007, eq. 3]


def distribution_prior(counts: ArrayLike) -> float:
    """Return −log p(N_ij | N_i): Σ_i log C(N_i + J − 1, J − 1)."""
    counts = np.asarray(counts)
    n_targets = counts.shape[1]
    return float(log_binomial(counts.sum(axis=1) + n_targets - 1, n_targets - 1).sum())


def multinomial_likelihood(counts: ArrayLike) -> float:
    """Return Σ_i log N_i! / (N_i1! … N_iJ!), the cost of the intervals within each part."""
    counts = np.asarray(counts)
    return float(gammaln(counts.sum(axis=1) + 1.0).sum() - gammaln(counts + 1.0).sum())


def rank_likelihood(counts: ArrayLike) -> float:
    """Return Σ_j log N_.j!, the cost of the ranks within each target interval."""
    return float(gammaln(np.asarray(counts).sum(axis=0) + 1.0).sum())


def cost(counts: ArrayLike, n_values: int | None = None) -> float:
    """Return c(M) in nats, by (1) for a numeric predictor and (3) for a categorical one.

    Parameters
    ----------
    counts : array-like of int, shape (I, J)
        Cell counts N_ij.
    n_values : int, optional
        V, the number of distinct values of a categorical predictor; numeric where absent.

    Returns
    -------
    float

    Examples
    --------
    One cell, and one cell per pair of ranks, at N = 150 (section 2.1 of the paper):

    >>> round(cost([[150]]), 2), round(cost(np.eye(150, dtype=int)), 2)
    (615.04, 965.79)
    """
    counts = np.asarray(counts)
    n = int(counts.sum())
    # [HB2007, eqs. 1 and 3]
    return (
        size_prior(n, n_values)
        + part_prior(n, counts.shape[0], n_values)
        + distribution_prior(counts)
        + multinomial_likelihood(counts)
        + rank_likelihood(counts)
    )


def null_cost(n: int, n_values: int | None = None) -> float:
    """Return the cost of the one-cell model: 2 log N + log N!, or log V + log N + log N!.

    Examples
    --------
    >>> round(null_cost(150), 2)
    615.04
    """
    return float(size_prior(n, n_values) + gammaln(n + 1.0))


def level(model_cost: float, null_model_cost: float) -> float:
    """Return the compression gain g(M) = 1 − c(M) / c(M_0).

    Examples
    --------
    >>> level(75.0, 100.0)
    0.25
    """
    return 1.0 - model_cost / null_model_cost  # [HB2007, eq. 2]
