"""Tables of logarithms of factorials and of integers, extended on demand and shared."""

import numpy as np
from scipy.special import gammaln

_tables: tuple[np.ndarray, np.ndarray] = (np.zeros(0), np.zeros(0))


def log_tables(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return tables of log k! and log k for k = 0, …, at least n.

    Parameters
    ----------
    n : int
        Largest index that will be read.

    Returns
    -------
    log_factorial, log_integer : ndarray, shape (at least n + 1,)
        ``log_integer[0]`` is 0 by convention; no kernel reads it as a logarithm.

    Examples
    --------
    >>> log_factorial, log_integer = log_tables(10)
    >>> float(log_factorial[3]) == float(np.log(6.0)), float(log_integer[1])
    (True, 0.0)
    """
    global _tables
    tables = _tables
    if len(tables[0]) <= n:
        k = np.arange(max(n + 1, 4096), dtype=float)
        # gammaln, not a running sum of logs: its error stays at one ulp of the result
        tables = (gammaln(k + 1.0), np.log(np.maximum(k, 1.0)))
        _tables = tables
    return tables
