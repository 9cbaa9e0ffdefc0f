"""The smallest difference of two costs that is more than rounding error.

Every search here takes a step only if the cost falls by more than this. Then the true cost falls as well, no
partition is visited twice, and the search ends, whatever the size of the sample.
"""

import numpy as np

ABSOLUTE = 1e-7  # nats; computed costs of equally good partitions usually differ by less
EPSILON = float(np.finfo(float).eps)


def least_gain(terms: int, magnitude: float, floor: float = ABSOLUTE) -> float:
    """Return the smallest difference between two sums that is more than rounding error.

    Parameters
    ----------
    terms : int
        Number of terms of both sums together.
    magnitude : float
        Bound on the sum of absolute terms of either sum, up to a factor of two.
    floor : float, default 1e-7
        The result where rounding is smaller.

    Returns
    -------
    float
        A sum of m terms in floating point is wrong by at most m ε/2 times the sum of their absolute values.

    Examples
    --------
    >>> least_gain(100, 1e4), round(least_gain(1000, 1e8), 9)
    (1e-07, 4.4409e-05)
    """
    return max(floor, 2.0 * EPSILON * terms * magnitude)
