"""Checks that a covariance fits the columns of a table.

``pm.gp.cov`` accepts rows with more columns than it reads, and broadcasts its parameters. So it does not
notice a wrong number of columns or length-scales.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from pymc.gp import cov
from pytensor.graph import Variable

from pmordinal import checks
from pmordinal.errors import warn

_BY_COLUMN = ("ls", "period", "c")  # parameters that may have one entry for each column
_INSIDE = (cov.WarpedInput, cov.ScaledCov)  # they transform the columns first


def check_columns(cov_func: cov.BaseCovariance, names: Sequence[str]) -> None:
    """Raise if a covariance does not fit the columns of a table; warn about columns it does not read.

    Parameters
    ----------
    cov_func : pymc.gp.cov.BaseCovariance
    names : sequence of str
        Names of the columns of the matrix, including one-hot columns.

    Examples
    --------
    >>> check_columns(cov.ExpQuad(1, ls=1.0), ["age", "dose"])
    Traceback (most recent call last):
        ...
    ValueError: the covariance is for 1 column(s) and does not read 'dose': set input_dim=2, or drop ...
    """
    parts = list(parts_of(cov_func))
    for part in parts:
        _check_active(part, names)
    for part in _all_parts(cov_func):
        _check_lengths(part)
    if any(not isinstance(part, cov.Covariance | cov.Constant | cov.WhiteNoise) for part in parts):
        return  # a user's class: its columns are not known
    of_columns = [part for part in parts if isinstance(part, cov.Covariance)]
    read = {int(j) for part in of_columns for j in _reads(part)}
    unread = [name for j, name in enumerate(names) if j not in read]
    if not unread:
        return
    listed, d = ", ".join(map(repr, unread)), len(names)
    largest = max((part.input_dim for part in of_columns), default=d)
    if largest < d:
        raise ValueError(
            f"the covariance is for {largest} column(s) and does not read {listed}: set input_dim={d}, or drop what "
            "it should not read"
        )
    warn(f"no part of the covariance reads {listed}: check active_dims, or drop the column(s)")


def parts_of(cov_func: Any) -> Iterator[Any]:
    """Yield the parts of sums, products and powers: the covariances that they are made of."""
    if isinstance(cov_func, cov.Combination):
        for factor in cov_func._factor_list:
            if isinstance(factor, cov.BaseCovariance):
                yield from parts_of(factor)
    elif isinstance(cov_func, cov.Exponentiated):
        yield from parts_of(cov_func.kernel)
    else:
        yield cov_func


def _all_parts(cov_func: Any) -> Iterator[Any]:
    """Yield the parts, including those inside covariances that transform the columns."""
    for part in parts_of(cov_func):
        yield part
        if isinstance(part, _INSIDE):
            yield from _all_parts(part.cov_func)
        elif isinstance(part, cov.Kron):
            for factor in part._factor_list:
                yield from _all_parts(factor)


def _reads(part: Any) -> Any:
    """Return the columns that a part may read; a user's subclass may ignore `active_dims`."""
    if type(part).__module__.partition(".")[0] in ("pymc", "pmordinal"):
        return part.active_dims
    return range(max(part.input_dim, int(np.max(part.active_dims)) + 1))


def _check_active(part: Any, names: Sequence[str]) -> None:
    if not isinstance(part, cov.Covariance):
        return
    d, kind = len(names), type(part).__name__
    there = f"the table has {d}: {', '.join(map(repr, names))}"
    if part.input_dim > d:
        raise ValueError(
            f"{kind} is for {part.input_dim} columns (input_dim), but {there}; set input_dim={d}"
        )
    active = np.asarray(part.active_dims).tolist()
    if min(active) < 0 or max(active) >= d:
        raise ValueError(
            f"{kind} reads the columns {active} (active_dims, counted from 0), but {there}"
        )
    if len(set(active)) < len(active):
        raise ValueError(f"{kind} reads a column twice, active_dims={active}: name each once")


def _check_lengths(part: Any) -> None:
    if type(part) is cov.WrappedPeriodic:  # has the parameters of the covariance it wraps
        part = part.cov_func
    if not isinstance(part, cov.Stationary | cov.Linear):
        return
    for name in _BY_COLUMN:
        value = getattr(part, name, 1.0)
        shape = value.type.shape if isinstance(value, Variable) else np.shape(value)
        if len(shape) == 1 and shape[0] is not None:
            checks.one_or_each(f"{name} of {type(part).__name__}", shape[0], len(part.active_dims))
