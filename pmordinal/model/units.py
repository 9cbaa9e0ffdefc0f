"""Warns if the prior of a user's own covariance does not suit the units of the table.

Default covariances read standardised columns. A user's own covariance reads the columns as they are, and
a length-scale prior made for numbers near one does not suit an income of 20,000.
"""

from collections.abc import Sequence

import numpy as np
import pymc as pm
from pymc.gp import cov

from pmordinal.errors import warn
from pmordinal.gram import lower, parts_of
from pmordinal.gram.graph import ONCE

USUAL = 30.0  # no check if all columns have sizes between 1/30 and 30
FAR = 100.0  # warn if f has a larger sd, or a column a larger sd in length-scales
NEAR = 1e-3  # warn if a column has a smaller sd, in length-scales
DRAWS = 25


def warn_of_units(cov_func, rows: np.ndarray, names: Sequence[str], by_size: bool = True) -> None:
    """Warn if the prior of a covariance does not suit the size of the columns.

    Parameters
    ----------
    cov_func : pm.gp.cov covariance
        With its parameters, which may be variables of the current model.
    rows : ndarray, shape (n, d)
        Rows as the covariance reads them.
    names : sequence of str
        Names of the columns.
    by_size : bool
        Whether to check that the latent function has a size near one, which the default prior of
        the thresholds assumes.
    """
    sd, size = rows.std(axis=0), np.sqrt(np.mean(rows**2, axis=0))
    sd[np.isin(rows, (0.0, 1.0)).all(axis=0)] = 0.0  # one-hot columns are not checked
    if not np.any((size > USUAL) | ((sd > 0) & (sd < 1.0 / USUAL))):
        return
    scales = [part for part in parts_of(cov_func) if _has_lengthscale(part)]
    kernel = lower(cov_func)
    variables = [*kernel.parameters, *(part.ls for part in scales)]
    try:
        draws = pm.draw(variables, DRAWS, random_seed=0, mode=ONCE) if variables else []
    except NotImplementedError:  # a flat prior suits any units
        return
    said = "the covariance is your own and reads the columns in their units"
    remedy = "pass standardize=True, or give it a prior in these units"
    for part, ls in zip(scales, draws[len(kernel.parameters) :], strict=True):
        typical = np.broadcast_to(np.median(ls, axis=0), len(part.active_dims))
        for j, scale in zip(part.active_dims, typical, strict=True):
            if sd[j] > FAR * scale or 0 < sd[j] < NEAR * scale:
                what = (
                    "so that no row says anything of another"
                    if sd[j] > scale
                    else "so that it is flat there"
                )
                warn(
                    f"{said}: {names[j]!r} has a standard deviation of {sd[j]:.3g}, but a length-scale "
                    f"near {scale:.3g}, {what}; {remedy}",
                )
                return
    if by_size:
        values = zip(*draws[: len(kernel.parameters)], strict=True) if kernel.parameters else [()]
        variances = [kernel.diagonal([np.asarray(v) for v in value], rows)[0] for value in values]
        latent = np.sqrt(np.median(variances))
        if latent > FAR:
            warn(
                f"{said}, which makes the latent function's standard deviation {latent:.3g}, where the thresholds "
                f"expect a number near one: all rows will be in one class or two; {remedy}",
            )


def _has_lengthscale(part) -> bool:
    """Tell whether a part has length-scales in the units of its columns."""
    return isinstance(part, cov.Stationary) and not isinstance(part, cov.Periodic | cov.Cosine)
