"""Whether the prior of a covariance of the user's own suits the units of the table.

Covariances that the factories make are of standardised columns. One that comes complete with its
parameters is of the columns as they are, where a prior made for numbers near one says nothing sensible
of an income of 20,000.
"""

from collections.abc import Sequence

import numpy as np
import pymc as pm
from pymc.gp import cov
from pytensor.compile.mode import Mode

from pmordinal.errors import warn
from pmordinal.gram import lower, parts_of

USUAL = 30.0  # columns of this size, or of one above it, do not make the covariance worth a look
FAR = 100.0  # standard deviation of the latent function, or length-scales within that of a column
NEAR = 1e-3  # length-scales within the standard deviation of a column, below which it is flat
DRAWS = 25

_MODE = Mode(linker="py", optimizer="fast_compile")  # for so few draws nothing else pays


def warn_of_units(cov_func, rows: np.ndarray, names: Sequence[str], by_size: bool = True) -> None:
    """Warn if the prior of a covariance does not suit the size of the columns.

    Parameters
    ----------
    cov_func : pm.gp.cov covariance
        Complete with its parameters, which may be variables of the model on the stack.
    rows : ndarray, shape (n, d)
        As the covariance sees them.
    names : sequence of str
        Of the columns.
    by_size : bool
        Whether the latent function should be of a size near one, as the default prior of the
        thresholds takes it to be.
    """
    sd, size = rows.std(axis=0), np.sqrt(np.mean(rows**2, axis=0))
    sd[np.isin(rows, (0.0, 1.0)).all(axis=0)] = 0.0  # a rare level is no small unit
    if not np.any((size > USUAL) | ((sd > 0) & (sd < 1.0 / USUAL))):
        return
    scales = [part for part in parts_of(cov_func) if _has_lengthscale(part)]
    kernel = lower(cov_func)
    variables = [*kernel.parameters, *(part.ls for part in scales)]
    try:
        draws = pm.draw(variables, DRAWS, random_seed=0, mode=_MODE) if variables else []
    except NotImplementedError:  # a flat prior, which suits everything
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
