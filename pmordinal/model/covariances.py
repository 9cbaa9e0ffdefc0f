"""Covariances by name: ``cov_func="matern52"``.

Some names are of one covariance, with the length-scale and the noise as hyperparameters; others of a sum of terms, each
with a size of its own in units of the noise.
"""

from collections.abc import Callable
from typing import Any

import pymc as pm
from pytensor.tensor import TensorConstant

from pmordinal import checks
from pmordinal.data.design import Design
from pmordinal.links import Link
from pmordinal.model.recommended import recommended
from pmordinal.model.sums import Sum, anova, linear

COVARIANCES: dict[str, type] = {
    "expquad": pm.gp.cov.ExpQuad,
    "matern12": pm.gp.cov.Matern12,
    "matern32": pm.gp.cov.Matern32,
    "matern52": pm.gp.cov.Matern52,
}
SUMS: dict[str, Callable[[Design, Link], Sum]] = {
    "linear": linear,
    "anova": anova,
    "recommended": recommended,
}
DEFAULT, PAPERS = "recommended", "expquad"


def named(cov_func: Any, **parameters: Any) -> Any:
    """Return a name as the class of a covariance or, for a sum of terms, as it is; else what was given.

    Parameters
    ----------
    cov_func : str, covariance, class of them or None
        None is the recommended sum of terms or, with a word on the hyperparameters of one covariance, the papers'.
    **parameters
        What the user says of the hyperparameters of one covariance. A sum of terms has none of
        them.

    Examples
    --------
    >>> named("matern52").__name__, named(None), named(None, ard=True).__name__
    ('Matern52', 'recommended', 'ExpQuad')
    """
    given = [name for name, value in parameters.items() if value is not None and value is not False]
    if cov_func is None:
        cov_func = PAPERS if given else DEFAULT
    if not isinstance(cov_func, str):
        return cov_func
    checks.one_of("cov_func", cov_func, [*COVARIANCES, *SUMS])
    if cov_func in COVARIANCES:
        return COVARIANCES[cov_func]
    if given:
        raise ValueError(
            f"{given[0]} belongs to one covariance, and cov_func={cov_func!r} is a sum of terms with hyperparameters "
            f"of their own: leave it out, or choose from {', '.join(COVARIANCES)}"
        )
    return cov_func


def is_sum(cov_func: Any) -> bool:
    """Tell whether this is the name of a sum of terms."""
    return isinstance(cov_func, str)


def scaled(cov_func: pm.gp.cov.BaseCovariance, amplitude: Any, share: Any = None) -> Any:
    """Return the covariance times the squared amplitude, or a share of it; unchanged if that is one."""
    if share is None and isinstance(amplitude, TensorConstant) and float(amplitude.data) == 1.0:
        return cov_func
    if not hasattr(cov_func, "input_dim"):  # PyMC cannot multiply it
        raise ValueError(
            f"cov_func={type(cov_func).__name__} reads no column of X: add a covariance that does, such as "
            "pm.gp.cov.ExpQuad(X.shape[1], ls=1.0)"
        )
    return (amplitude**2 if share is None else amplitude**2 * share) * cov_func
