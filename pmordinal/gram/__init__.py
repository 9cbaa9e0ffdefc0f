"""Covariance functions of ``pm.gp.cov`` in NumPy, with hand-written derivatives.

`lower` turns a covariance function into a `Kernel`; a `Gram` is a kernel at given rows and parameter values.
Derivatives are pullbacks, as in reverse-mode differentiation: given the derivative dK of a number by the
covariance matrix K, a pullback returns its derivatives by the parameters. A covariance that has no code
here, such as a user's subclass, is computed from its PyTensor graph.
"""

from pymc.gp import cov

from pmordinal.gram import (
    anova,
    combine,
    levels,
    linear,
    pearson,
    periodic,
    power,
    precomputed,
    stationary,
)
from pmordinal.gram.anova import Anova
from pmordinal.gram.base import Builder, Kernel, revive
from pmordinal.gram.bound import Gram
from pmordinal.gram.graph import GraphKernel
from pmordinal.gram.inputs import check_columns, parts_of
from pmordinal.gram.levels import Levels
from pmordinal.gram.linear import LinearARD
from pmordinal.gram.pearson import PearsonRatings
from pmordinal.gram.precomputed import Precomputed

__all__ = [
    "Anova",
    "Gram",
    "Kernel",
    "Levels",
    "LinearARD",
    "PearsonRatings",
    "Precomputed",
    "check_columns",
    "lower",
    "parts_of",
    "revive",
]

_BUILDERS: dict[type, Builder] = {
    **stationary.BUILDERS,
    **periodic.BUILDERS,
    **linear.BUILDERS,
    **levels.BUILDERS,
    **anova.BUILDERS,
    **combine.BUILDERS,
    **power.BUILDERS,
    **precomputed.BUILDERS,
    **pearson.BUILDERS,
}


def lower(cov_func: cov.BaseCovariance) -> Kernel:
    """Return the NumPy form of a covariance function.

    Parameters
    ----------
    cov_func : pymc.gp.cov.BaseCovariance
        Sums, products, scalings and powers are split into their parts. Parts that have no NumPy form,
        and subclasses of those that have one, are compiled from their PyTensor graph.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> import pymc as pm
    >>> kernel = lower(3.0 * pm.gp.cov.Matern52(2, ls=[0.5, 2.0]))
    >>> [parameter.data.tolist() for parameter in kernel.parameters]
    [[0.5, 2.0], 3.0]
    """
    if not isinstance(cov_func, cov.BaseCovariance):
        raise TypeError(
            f"expected a covariance function of pm.gp.cov, got {type(cov_func).__name__}: "
            "for instance pm.gp.cov.ExpQuad(input_dim, ls=1.0)"
        )
    # By exact type, since a subclass may override anything.
    builder = _BUILDERS.get(type(cov_func))
    kernel = builder(cov_func, lower) if builder is not None else None
    return GraphKernel(cov_func) if kernel is None else kernel
