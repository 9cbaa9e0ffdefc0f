"""Rank predictions averaged over the posterior of grids: smooth where a single grid is blocky."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pmordinal.modl.encode import as_series, midpoints, to_floats

if TYPE_CHECKING:
    import xarray as xr


class _Draws:
    """Iterates over the grids of a tree, with the part of new predictor values in each."""

    def __init__(self, tree: "xr.DataTree", x: Any) -> None:
        data = tree["partitions"]
        self.x_part = data["x_part"].to_numpy().reshape(-1, data.sizes["x_value"])
        self.y_part = data["y_part"].to_numpy().reshape(-1, data.sizes["y_value"])
        self.x_code, self.y_code = data["x_code"].to_numpy(), data["y_code"].to_numpy()
        self.y_values = data["y_value"].to_numpy()
        self.cum = np.cumsum(np.bincount(self.y_code)) / len(self.y_code)
        values = data["x_value"].to_numpy()
        self.missing = int(data.attrs["n_missing"] > 0)
        series = as_series(x, "x")
        if data.attrs["categorical"]:
            position = {str(v): k for k, v in enumerate(values)}
            # −1: missing; −2: an unseen label
            self.at = np.array([
                -1 if v is None or v != v else position.get(str(v), -2) for v in series
            ])  # fmt: skip
        else:
            floats = to_floats(series, "x")
            nearest = np.searchsorted(midpoints(values), floats, side="right")
            self.at = np.where(np.isnan(floats), -1, nearest)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield for each draw: cell probabilities, upper target cuts in ranks, part of each row, y parts.

        The last row of the probabilities is that of the null model, for rows without a part.
        """
        for x_part, y_part in zip(self.x_part, self.y_part, strict=True):
            n_x, n_y = int(x_part.max()) + 1 + self.missing, int(y_part.max()) + 1
            label = np.append(x_part.astype(np.int64), n_x - 1)
            i, j = label[self.x_code], y_part[self.y_code].astype(np.int64)
            counts = np.bincount(i * n_y + j, minlength=n_x * n_y).reshape(n_x, n_y)
            p = (counts + 1.0) / (counts.sum(axis=1, keepdims=True) + n_y)
            p = np.vstack((p, counts.sum(axis=0) / counts.sum()))
            part = np.where(self.at >= 0, label[np.maximum(self.at, 0)], n_x)
            if self.missing:
                part = np.where(self.at == -1, n_x - 1, part)
            yield p, np.append(self.cum[:-1][np.diff(y_part) > 0], 1.0), part, y_part


def averaged_rank_cdf(tree: "xr.DataTree", x: Any, ranks: Any = None) -> np.ndarray:
    """Return the rank cdf averaged over the posterior of grids.

    Parameters
    ----------
    tree : xarray.DataTree
        From `sample_grids`.
    x : array-like, shape (n,)
        Predictor values.
    ranks : array-like, shape (k,), optional
        Normalised ranks; 0, 0.01, …, 1 by default.

    Returns
    -------
    ndarray, shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(60.0)
    >>> from pmordinal.modl import sample_grids
    >>> tree = sample_grids(x, x // 30, draws=50, chains=2, progressbar=False)
    >>> averaged_rank_cdf(tree, [3.0, 55.0], [0.5]).round(1).ravel().tolist()
    [1.0, 0.0]
    """
    at = np.linspace(0.0, 1.0, 101) if ranks is None else np.asarray(ranks, dtype=float)
    average = _Draws(tree, x)
    total, n_draws = np.zeros((len(average.at), len(at))), 0
    for p, edges, part, _ in average:
        knots = np.append(0.0, edges)
        cdf = np.array([np.interp(at, knots, np.append(0.0, np.cumsum(row))) for row in p])
        total += cdf[part]
        n_draws += 1
    return total / n_draws


def averaged_log_score(tree: "xr.DataTree", x: Any, y: Any) -> np.ndarray:
    """Return the log rank density of new instances, averaged over the posterior of grids.

    Parameters
    ----------
    tree : xarray.DataTree
        From `sample_grids`.
    x, y : array-like, shape (n,)
        New instances.

    Returns
    -------
    ndarray, shape (n,)
        Minus its mean is the NLRPD of the averaged predictor.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(60.0)
    >>> from pmordinal.modl import sample_grids
    >>> tree = sample_grids(x, x // 30, draws=50, chains=2, progressbar=False)
    >>> bool(averaged_log_score(tree, [3.0], [0.0])[0] > 0.6)
    True
    """
    average = _Draws(tree, x)
    values = to_floats(as_series(y, "y"), "y")
    if len(values) != len(average.at):
        raise ValueError(f"x has {len(average.at)} rows and y has {len(values)}")
    cell = np.searchsorted(midpoints(average.y_values), values, side="right")
    total, n_draws = np.zeros(len(values)), 0
    for p, edges, part, y_part in average:
        density = p / np.diff(np.append(0.0, edges))
        total += density[part, y_part[cell]]
        n_draws += 1
    return np.log(total / n_draws)
