"""The labelled rows of a fit, as the user's table has them."""

from typing import Any

import numpy as np
import pandas as pd

from pmordinal.results.fit import OrdinalFit


def repeated(fit: OrdinalFit) -> np.ndarray:
    """Return the positions of the labelled rows, each as often as its weight says."""
    rows, weights = np.arange(fit.posterior.y.size), fit.by_row.weights
    return rows if weights is None else np.repeat(rows, weights.astype(int))


def training_table(fit: OrdinalFit) -> pd.DataFrame:
    """Return the labelled rows of a fit as a table in the user's units, with categorical columns."""
    X = fit.features.untransform(fit.posterior.gram.X)
    out: dict[str, Any] = {}
    start = 0
    for column in fit.features.given:
        block = X[:, start : start + len(column.names)]
        start += len(column.names)
        if column.levels is None:
            out[column.name] = block[:, 0]
        else:
            levels = pd.Index(column.levels)
            codes = block[:, 0].astype(int) if column.is_coded else block.argmax(1)
            out[column.name] = pd.Categorical.from_codes(codes, categories=levels)
    return pd.DataFrame(out, index=fit.index)
