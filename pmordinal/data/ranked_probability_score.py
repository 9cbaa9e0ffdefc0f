"""The ranked probability score of predicted class probabilities."""

from typing import Any

import numpy as np


def ranked_probability_score(
    probabilities: Any, codes: Any, *, normalize: bool = True
) -> np.ndarray:
    """Return the ranked probability score of each row: 0 is best.

    Parameters
    ----------
    probabilities : array-like, shape (n, r)
        Class probabilities, classes in order.
    codes : array-like of int, shape (n,)
        True classes 0, …, r − 1.
    normalize : bool, default True
        Divide by r − 1, so that the score lies in [0, 1] for any number of classes. The column
        ``rps`` of `pmordinal.scores` does not: it lies in [0, r − 1].

    Returns
    -------
    ndarray, shape (n,)
        Σ_k (P(Y ≤ k) − 1{y ≤ k})² over k = 0, …, r − 2, or 1/(r − 1) of it. [HB2007] divides by the
        number of parts of the predictor minus one, reverses the indicator and subtracts from 1.

    Examples
    --------
    >>> ranked_probability_score([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [0, 0]).tolist()
    [0.0, 1.0]
    >>> ranked_probability_score([[0.0, 0.0, 1.0]], [0], normalize=False).tolist()
    [2.0]
    """
    probabilities = np.asarray(probabilities, dtype=float)
    r = probabilities.shape[1]
    if normalize and r < 2:
        raise ValueError("the ranked probability score needs two classes or more")
    below = np.asarray(codes)[:, None] <= np.arange(r - 1)
    total = ((np.cumsum(probabilities, axis=1)[:, :-1] - below) ** 2).sum(axis=1)
    return total / (r - 1) if normalize else total
