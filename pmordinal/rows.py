"""Names of rows: one for each, as coordinates of xarray and files need them."""

import numpy as np
import pandas as pd


def one_name_each(index: pd.Index) -> np.ndarray:
    """Return the entries of an index, several levels as one text.

    Examples
    --------
    >>> one_name_each(pd.MultiIndex.from_tuples([(1, "a"), (1, "b")])).tolist()
    ['1, a', '1, b']
    """
    if isinstance(index, pd.MultiIndex):
        return np.array([", ".join(map(str, entry)) for entry in index], dtype=object)
    return index.to_numpy()
