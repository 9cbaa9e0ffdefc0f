"""How predictions change along attributes, averaged over the training rows."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from pmordinal import checks
from pmordinal.fitted import OrdinalFit

MOST_ROWS = 200  # training rows to average over: enough for a picture, cheap for a large fit


def effects(
    fit: OrdinalFit, feature: str | Sequence[str], n_grid: int = 60, rows: int = MOST_ROWS
) -> xr.Dataset:
    """Return average predictions along one attribute, or over the combinations of several.

    Each training row (or an even selection of them) is given every value in turn, its other
    attributes as they are, and the predictions are averaged.

    Parameters
    ----------
    fit : OrdinalFit
    feature : str or sequence of str
        A column of the training table, or several categorical ones to combine.
    n_grid : int
        Points along a numeric attribute, between its smallest and largest value.
    rows : int
        Training rows to average over, at most.

    Returns
    -------
    Dataset
        ``probs`` (value, class), ``latent`` (value) and ``sd`` (value), the root mean posterior
        variance.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> wine = pmo.datasets.wine()
    >>> fit = pmo.fit(pmo.gp_model(wine[["temperature"]], wine["rating"]), progressbar=False)
    >>> effects(fit, "temperature")["value"].values.tolist()
    ['cold', 'warm']
    """
    names = [feature] if isinstance(feature, str) else list(feature)
    known = [column.name for column in fit.features.columns]
    for name in names:
        checks.one_of("feature", name, known)
    X = fit.features.untransform(fit.posterior.gram.X)
    X = X[np.linspace(0, len(X) - 1, min(rows, len(X))).round().astype(int)]
    grids = [_values(fit, name, X, n_grid) for name in names]
    if len(grids) > 1 and any(labels is None for _, _, labels in grids):
        raise ValueError("feature: only categorical attributes can be combined")
    combinations = np.stack(
        np.meshgrid(*(np.arange(len(v)) for _, v, _ in grids), indexing="ij"), -1
    ).reshape(-1, len(grids))
    blocks = []
    for combination in combinations:
        block = X.copy()
        for (where, values, _), i in zip(grids, combination, strict=True):
            block[:, where] = values[i]
        blocks.append(block)
    Z = (np.concatenate(blocks) - fit.features.center) / fit.features.scale
    mean, var = fit.posterior.latent(Z)
    probs = fit.posterior.likelihood.probabilities(mean, var)
    shape = (len(blocks), len(X))
    if grids[0][2] is None:
        value = grids[0][1][:, 0]
    else:
        value = np.array(
            [
                ", ".join(labels[i] for (_, _, labels), i in zip(grids, c, strict=True))
                for c in combinations
            ]
        )
    return xr.Dataset(
        {
            "probs": (("value", "class"), probs.reshape(*shape, -1).mean(1)),
            "latent": ("value", mean.reshape(shape).mean(1)),
            "sd": ("value", np.sqrt(var.reshape(shape).mean(1))),
        },
        coords={"value": value, "class": fit.labels.class_names},
        attrs={"feature": ", ".join(names)},
    )


def _values(fit: OrdinalFit, name: str, X: np.ndarray, n_grid: int):
    """Matrix columns of an attribute, the values they take in turn, and their labels, if any."""
    start = 0
    for column in fit.features.columns:
        where = slice(start, start + len(column.names))
        if column.name == name:
            if column.levels is not None:
                return where, np.eye(len(column.levels)), column.levels
            return where, np.linspace(X[:, start].min(), X[:, start].max(), n_grid)[:, None], None
        start = where.stop
    raise AssertionError(name)
