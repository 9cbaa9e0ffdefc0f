"""The negative log rank predictive density of any predictor of values."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pmordinal.modl.encode import midpoints


def nlrpd_of_cdf(
    log_interval_probability: Callable[[np.ndarray, np.ndarray], np.ndarray], y_train: Any, y: Any
) -> np.ndarray:
    """Return the negative log rank predictive density of any value predictor, one per row.

    Parameters
    ----------
    log_interval_probability : callable
        Takes lower and upper limits, each of shape (n,) and possibly infinite, and returns
        log P(lower ≤ y < upper | x) for each row.
    y_train : array-like, shape (N,)
        Training targets, whose ranks define the score.
    y : array-like, shape (n,)
        True values.

    Returns
    -------
    ndarray, shape (n,)
        −log P(rank of y in its elementary interval | x) − log N [HB2007, eqs. 8 and 9]; equal training
        values share their probability equally. The outermost intervals are unbounded.

    Examples
    --------
    The uniform predictor scores 0 [HB2007, theorem 7]:

    >>> uniform = lambda a, b: np.log(np.clip(b, 0, 4) - np.clip(a, 0, 4)) - np.log(4)
    >>> nlrpd_of_cdf(uniform, [0.5, 1.5, 2.5, 3.5], [0.7, 3.0]).tolist()
    [0.0, 0.0]
    """
    values, counts = np.unique(np.asarray(y_train, dtype=float), return_counts=True)
    limits = np.concatenate(([-np.inf], midpoints(values), [np.inf]))
    cell = np.searchsorted(limits[1:-1], np.asarray(y, dtype=float), side="right")
    log_p = log_interval_probability(limits[cell], limits[cell + 1]) - np.log(counts[cell])
    return -log_p - np.log(counts.sum()) + 0.0
