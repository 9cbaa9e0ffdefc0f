"""The periodic kernel, as a squared exponential of points on circles.

With a = π x / period, sin²(a − a') = ¼ ‖(cos 2a, sin 2a) − (cos 2a', sin 2a')‖², so that the
features (cos 2a, sin 2a) / (2 ls) of each column turn ``pm.gp.cov.Periodic`` into a kernel of a
distance [MacKay1998], and one matrix product gives all distances.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pymc.gp import cov

from pmordinal import checks
from pmordinal.gram.base import (
    Array,
    Builder,
    Kernel,
    Lower,
    Pullback,
    as_parameter,
    sum_to,
)
from pmordinal.gram.distance import DistanceKernel


class PeriodicKernel(DistanceKernel):
    """k = exp(H) on circles; parameters ls, period, each one number or one for each column."""

    def features(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return (cos 2a, sin 2a) / (2 ls)."""
        ls, period = values
        d = X.shape[1]
        for name, value in (("ls", ls), ("period", period)):
            checks.one_or_each(name, value.size, d)  # a single column would be broadcast
        angle = (2.0 * np.pi) * X / period
        C, S = np.cos(angle) / (2.0 * ls), np.sin(angle) / (2.0 * ls)

        def pullback(dphi: Array) -> list[Array]:
            dC, dS = dphi[:, :d], dphi[:, d:]
            dls = -(dC * C + dS * S) / ls
            dangle = dS * C - dC * S
            return [sum_to(dls, ls), sum_to(-dangle * angle / period, period)]

        return np.hstack([C, S]), pullback

    def profile(self, H: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite H with k."""
        np.exp(H, out=H)

    def slope(self, dK: Array, k: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite dK with dK ∘ k."""
        dK *= k


def _build(cov_func: Any, lower: Lower) -> Kernel | None:
    ls, period = as_parameter(cov_func.ls), as_parameter(cov_func.period)
    if max(ls.ndim, period.ndim) > 1:
        return None
    return PeriodicKernel(cov_func.active_dims, [ls, period])


BUILDERS: dict[type, Builder] = {cov.Periodic: _build}
