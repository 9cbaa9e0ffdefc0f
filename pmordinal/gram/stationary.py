"""Kernels of the scaled distance: ExpQuad, Exponential, Matern12, Matern32, Matern52, RatQuad.

The features are φ = x / ls; with H = −½‖φ − φ'‖² and r = √−2H the profiles are those of
``pymc.gp.cov``, except that PyMC takes √(r² + 1e-12) for r so that its gradient is finite at zero
distance. Here r is exact, and the slope at zero distance, which multiplies (φ − φ')², is left out.
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
    is_scalar,
    sum_to,
)
from pmordinal.gram.distance import DistanceKernel
from pmordinal.linalg import inner


class ScaledDistanceKernel(DistanceKernel):
    """A profile of the distance between x / ls; one `ls` or one for each column."""

    def relevance(self, values: Sequence[Array], d: int) -> Array | None:
        """Return 1/ls², the papers' κ, on the active columns."""
        ls = values[0]
        if ls.ndim == 0:
            return None
        kappa = np.zeros(d)
        kappa[self.columns_of.active] = 1.0 / ls**2
        return kappa

    def features(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return x / ls."""
        (ls,) = values
        checks.one_or_each("ls", ls.size, X.shape[1])  # a single column would be broadcast
        phi = X / ls
        return phi, lambda dphi: [sum_to(-(dphi * phi) / ls, ls)]


class ExpQuadKernel(ScaledDistanceKernel):
    """k = exp(H)."""

    def profile(self, H: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite H with k."""
        np.exp(H, out=H)

    def slope(self, dK: Array, k: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite dK with dK ∘ k."""
        dK *= k


class ExponentialKernel(ScaledDistanceKernel):
    """k = exp(−rate r), of which Matern12 (rate 1) and Exponential (rate ½) are two; keeps r."""

    keeps_auxiliary = True
    is_rough = True
    rate = 0.5

    def profile(self, H: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite H with k."""
        r = auxiliary
        assert r is not None
        np.multiply(H, -2.0, out=r)
        np.sqrt(r, out=r)
        np.multiply(r, -self.rate, out=H)
        np.exp(H, out=H)

    def slope(self, dK: Array, k: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite dK with dK ∘ rate k / r, zero where r = 0."""
        r = auxiliary
        assert r is not None
        dK *= k
        dK *= self.rate
        apart = r > 0.0
        np.divide(dK, r, out=dK, where=apart)
        np.copyto(dK, 0.0, where=~apart)


class Matern12Kernel(ExponentialKernel):
    """k = exp(−r)."""

    rate = 1.0


class Matern32Kernel(ScaledDistanceKernel):
    """k = (1 + t) exp(−t), t = √3 r; dk/dH = 3 exp(−t), keeps exp(−t)."""

    keeps_auxiliary = True

    def profile(self, H: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite H with k."""
        decay = auxiliary
        assert decay is not None
        H *= -6.0
        np.sqrt(H, out=H)
        np.negative(H, out=decay)
        np.exp(decay, out=decay)
        H += 1.0
        H *= decay

    def slope(self, dK: Array, k: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite dK with dK ∘ 3 exp(−t)."""
        assert auxiliary is not None
        dK *= auxiliary
        dK *= 3.0


class Matern52Kernel(ScaledDistanceKernel):
    """k = (1 + t + t²/3) exp(−t), t = √5 r; dk/dH = 5/3 (1 + t) exp(−t), keeps (1 + t) exp(−t)."""

    keeps_auxiliary = True

    def profile(self, H: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite H with k."""
        kept = auxiliary
        assert kept is not None
        H *= -10.0
        np.sqrt(H, out=H)
        np.negative(H, out=kept)
        np.exp(kept, out=kept)
        quadratic = H * H
        quadratic *= kept
        quadratic /= 3.0
        H += 1.0
        kept *= H
        np.add(kept, quadratic, out=H)

    def slope(self, dK: Array, k: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite dK with dK ∘ 5/3 (1 + t) exp(−t)."""
        assert auxiliary is not None
        dK *= auxiliary
        dK *= 5.0 / 3.0


class RatQuadKernel(ScaledDistanceKernel):
    """k = (1 + u)^−alpha, u = −H / alpha; parameters ls, alpha; keeps u."""

    keeps_auxiliary = True

    def profile(self, H: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite H with k."""
        u, (alpha,) = auxiliary, own
        assert u is not None
        np.multiply(H, -1.0 / alpha, out=u)
        np.log1p(u, out=H)
        H *= -alpha
        np.exp(H, out=H)

    def slope(self, dK: Array, k: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite dK with dK ∘ k / (1 + u)."""
        assert auxiliary is not None
        dK *= k
        dK /= 1.0 + auxiliary

    def own_derivatives(
        self, dK: Array, k: Array, auxiliary: Array | None, own: Sequence[float]
    ) -> list[float]:
        """Return the derivative in alpha, Σ dK ∘ k (u / (1 + u) − log(1 + u))."""
        u = auxiliary
        assert u is not None
        weight = u / (1.0 + u)
        weight -= np.log1p(u)
        weight *= k
        return [inner(dK, weight)]


def _builder(kernel: type[ScaledDistanceKernel]) -> Builder:
    def build(cov_func: Any, lower: Lower) -> Kernel | None:
        ls = as_parameter(cov_func.ls)
        return kernel(cov_func.active_dims, [ls]) if ls.ndim <= 1 else None

    return build


def _build_rat_quad(cov_func: Any, lower: Lower) -> Kernel | None:
    ls, alpha = as_parameter(cov_func.ls), as_parameter(cov_func.alpha)
    if ls.ndim > 1 or not is_scalar(alpha):
        return None
    return RatQuadKernel(cov_func.active_dims, [ls], [alpha])


BUILDERS: dict[type, Builder] = {
    cov.ExpQuad: _builder(ExpQuadKernel),
    cov.Exponential: _builder(ExponentialKernel),
    cov.Matern12: _builder(Matern12Kernel),
    cov.Matern32: _builder(Matern32Kernel),
    cov.Matern52: _builder(Matern52Kernel),
    cov.RatQuad: _build_rat_quad,
}
