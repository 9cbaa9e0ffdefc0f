"""`PearsonRatings`: the covariance between rated items, from a table of ratings with missing entries.

The Pearson correlation between the ratings of two items [CG2005, eq. 20]. Missing ratings are the item's mean, or come
from an approximation of the table by one of low rank, which is fitted to the ratings that are there by expectation
maximisation [SJ2003].
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import eigh

from pmordinal import checks
from pmordinal.errors import ConvergenceWarning, warn
from pmordinal.gram.base import Array, Builder
from pmordinal.gram.precomputed import BUILDERS as PRECOMPUTED
from pmordinal.gram.precomputed import Precomputed

MISSING = ("low-rank", "mean")
SCALES = ("sum", "mean", "unit")
MAX_ROUNDS = 1000
TOLERANCE = 1e-4  # of one round's change, beside the spread of the ratings


class PearsonRatings(Precomputed):
    """Covariance between items that the same users have rated; a row of X is the number of an item.

    The ratings of an item are brought to mean zero and standard deviation one over the users, and the covariance of
    two items is the sum over users of the products. The defaults are those of [CG2005, section 6.3]. Give `ratings`
    transposed for a covariance between users.

    Parameters
    ----------
    ratings : DataFrame or array_like, shape (n_items, n_users)
        NaN where a user has not rated an item. Users without a rating are left out. The ratings to be predicted must
        not be in it.
    missing : {"low-rank", "mean"}
        How missing ratings are filled: by an approximation of the table of rank `rank`, or by the item's mean.
    rank : int, default 2
    centre_users : bool, default False
        Subtract each user's mean rating first, which is not in the paper: some users are milder than others.
    scale : {"sum", "mean", "unit"}
        Sum over users, as in the paper, mean over users, or variances of one. With ``"sum"`` the variance of a filled
        item is the number of users: give `gp_model` an amplitude of that inverse size, or fit without priors.
    input_dim, active_dims
        See `Precomputed`.

    Attributes
    ----------
    filled : ndarray, shape (n_items, n_users)
        The ratings that the covariance was computed from; with ``missing="mean"`` the means are in place.

    Examples
    --------
    >>> import numpy as np
    >>> nan = np.nan
    >>> ratings = [[5, 4, 1, nan, 2], [4, nan, 1, 1, 2], [1, 2, nan, 5, 4]]
    >>> cov_func = PearsonRatings(ratings, missing="mean", scale="unit")
    >>> cov_func.table.round(2).tolist()
    [[1.0, 0.77, -0.6], [0.77, 1.0, -0.77], [-0.6, -0.77, 1.0]]
    """

    def __init__(
        self,
        ratings: Any,
        missing: str = "low-rank",
        *,
        rank: int = 2,
        centre_users: bool = False,
        scale: str = "sum",
        input_dim: int = 1,
        active_dims: Sequence[int] | None = None,
    ) -> None:
        checks.one_of("missing", missing, MISSING)
        checks.one_of("scale", scale, SCALES)
        table = _checked(ratings)
        if centre_users:
            table = table - np.nanmean(table, axis=0)
        means = np.nanmean(table, axis=1, keepdims=True)
        filled = np.where(np.isnan(table), means, table)
        if missing == "low-rank":
            rank = checks.integer("rank", rank, minimum=1)
            if rank >= min(table.shape) and np.isnan(table).any():
                sizes = f"{table.shape[0]} items and {table.shape[1]} users"
                raise ValueError(
                    "rank must be below the numbers of items and users, or every fill fits the ratings; "
                    f"got {rank} for {sizes}: lower rank=, or use missing='mean'"
                )
            filled, table = (filled_by_rank(table, rank),) * 2
            means = filled.mean(1, keepdims=True)
        spread = np.nanstd(table, axis=1, keepdims=True)
        # rounding leaves a spread of about ε where all ratings are alike
        alike = np.flatnonzero(spread[:, 0] <= 1e-12 * np.maximum(np.abs(means[:, 0]), 1.0))
        if alike.size:
            raise ValueError(
                f"ratings: those of item {alike[0]} are all alike, so that they correlate with nothing: leave it out"
            )
        Z = (filled - means) / spread
        K = Z @ Z.T  # [CG2005, eq. 20]
        if scale == "mean":
            K /= Z.shape[1]
        elif scale == "unit":
            size = np.sqrt(K.diagonal())
            K /= size[:, None] * size
        super().__init__(K, input_dim, active_dims)
        self.filled: Array = filled
        self.filled.flags.writeable = False


def filled_by_rank(
    ratings: Array, rank: int = 2, tolerance: float = TOLERANCE, max_rounds: int = MAX_ROUNDS
) -> Array:
    """Return the table with its holes filled by the approximation of low rank that fits the entries best [SJ2003].

    Each round fills the holes with the approximation so far and approximates the filled table, which never fits the
    entries worse. It starts at the means of the rows, and ends when no entry of a hole changes by more than
    `tolerance` standard deviations of the entries.

    Parameters
    ----------
    ratings : ndarray, shape (n, m)
        NaN where there is a hole; every row has an entry.
    rank : int
    tolerance : float
    max_rounds : int
        Rounds before giving up, with a warning.

    Returns
    -------
    ndarray, shape (n, m)

    Examples
    --------
    >>> table = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> table[2, 2] = np.nan
    >>> filled_by_rank(table, 1, 1e-9).round(4)[2, 2]
    np.float64(12.0)
    """
    hole = np.isnan(ratings)
    full = np.where(hole, np.nanmean(ratings, axis=1, keepdims=True), ratings)
    if rank >= min(full.shape) or not hole.any():
        return full
    allowed = tolerance * np.nanstd(ratings)
    for _ in range(max_rounds):
        guess = _approximation(full, rank)
        change = np.abs(guess[hole] - full[hole]).max()
        full[hole] = guess[hole]
        if change <= allowed:
            return full
    warn(
        f"the missing ratings still changed by {change:.2g} after {max_rounds} rounds of the low-rank fill: lower "
        "rank=, leave out items and users with few ratings, or use missing='mean'",
        ConvergenceWarning,
    )
    return full


def _approximation(A: Array, rank: int) -> Array:
    """Return the nearest matrix of that rank, by the leading eigenvectors of the smaller of AAᵀ and AᵀA."""
    is_wide = A.shape[0] <= A.shape[1]
    C = A @ A.T if is_wide else A.T @ A
    last = len(C) - 1
    U = eigh(C, subset_by_index=[last - rank + 1, last])[1]
    return U @ (U.T @ A) if is_wide else (A @ U) @ U.T


def _checked(ratings: Any) -> Array:
    """Return the table as floats, without users who rated nothing."""
    try:
        table = np.array(ratings, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"ratings must be a table of numbers, NaN where there is none, got {checks.got(ratings)}"
        ) from error
    if table.ndim != 2 or min(table.shape) < 2:
        raise ValueError(
            f"ratings must be a table of two items or more by two users or more, got shape {table.shape}"
        )
    if np.isinf(table).any():
        raise ValueError("ratings must be finite, or NaN where there is none")
    unrated = np.flatnonzero(np.isnan(table).all(1))
    if unrated.size:
        raise ValueError(f"ratings: nobody has rated item {unrated[0]}: leave it out")
    return table[:, ~np.isnan(table).all(0)]


BUILDERS: dict[type, Builder] = {PearsonRatings: PRECOMPUTED[Precomputed]}
