"""Kernels without a distance: Linear, Constant, WhiteNoise."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from pymc.gp import cov
from pytensor.tensor.variable import TensorVariable

from pmordinal.gram.base import (
    Array,
    Builder,
    Columns,
    Kernel,
    Lower,
    Pullback,
    as_parameter,
    is_scalar,
    sum_to,
)


class LinearKernel(Kernel):
    """k = (x − c)·(z − c); one `c` or one for each column."""

    def __init__(self, active: Any, c: Any) -> None:
        self.columns_of = Columns(active)
        self.parameters = (as_parameter(c),)

    def form(self) -> dict[str, Any]:
        """Return the columns."""
        return {"kernel": "LinearKernel", "active": self.columns_of.active}

    @classmethod
    def from_form(cls, form: dict[str, Any], values: Iterator[Array]) -> Kernel:
        """Return the kernel of that form."""
        return cls(form["active"], next(values))

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback."""
        (c,) = values
        A = self.columns_of(X) - c
        if Z is None:
            # NumPy forms A Aᵀ from one triangle, so it is exactly symmetric.
            return (A @ A.T).T, lambda dK: [sum_to(-2.0 * (dK @ A), c)]
        B = self.columns_of(Z) - c
        return (B @ A.T).T, lambda dK: [sum_to(-(dK @ B), c) + sum_to(-(dK.T @ A), c)]

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return ‖x − c‖² and its pullback."""
        (c,) = values
        A = self.columns_of(X) - c
        return np.einsum("ij,ij->i", A, A), lambda dk: [sum_to(-2.0 * dk[:, None] * A, c)]


class OneNumberKernel(Kernel):
    """A kernel with one parameter and no columns."""

    def __init__(self, number: Any) -> None:
        self.parameters = (as_parameter(number),)

    @property
    def scale(self) -> tuple[TensorVariable, ...]:
        """The number."""
        return self.parameters

    def form(self) -> dict[str, Any]:
        """Return the class."""
        return {"kernel": type(self).__name__}

    @classmethod
    def from_form(cls, form: dict[str, Any], values: Iterator[Array]) -> Kernel:
        """Return the kernel of that form."""
        return cls(next(values))


class ConstantKernel(OneNumberKernel):
    """k = c."""

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return c everywhere."""
        (c,) = values
        shape = (len(X), len(X if Z is None else Z))
        return np.full(shape, c.item(), order="F"), lambda dK: [np.full(c.shape, dK.sum())]

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return c everywhere."""
        (c,) = values
        return np.full(len(X), c.item()), lambda dk: [np.full(c.shape, dk.sum())]


class WhiteNoiseKernel(OneNumberKernel):
    """k = sigma² for a row with itself, zero between different rows, equal in value or not."""

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return sigma² I, or zeros where `Z` are other rows."""
        (sigma,) = values
        if Z is not None:
            return np.zeros((len(X), len(Z)), order="F"), lambda dK: [np.zeros(sigma.shape)]
        K = np.zeros((len(X), len(X)), order="F")
        np.fill_diagonal(K, sigma.item() ** 2)
        return K, lambda dK: [np.asarray(2.0 * sigma * np.trace(dK))]

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return sigma² everywhere."""
        (sigma,) = values
        k = np.full(len(X), sigma.item() ** 2)
        return k, lambda dk: [np.asarray(2.0 * sigma * dk.sum())]


def _build_linear(cov_func: Any, lower: Lower) -> Kernel | None:
    c = as_parameter(cov_func.c)
    return LinearKernel(cov_func.active_dims, c) if c.ndim <= 1 else None


def _build_constant(cov_func: Any, lower: Lower) -> Kernel | None:
    c = as_parameter(cov_func.c)
    return ConstantKernel(c) if is_scalar(c) else None


def _build_white_noise(cov_func: Any, lower: Lower) -> Kernel | None:
    sigma = as_parameter(cov_func.sigma)
    return WhiteNoiseKernel(sigma) if is_scalar(sigma) else None


BUILDERS: dict[type, Builder] = {
    cov.Linear: _build_linear,
    cov.Constant: _build_constant,
    cov.WhiteNoise: _build_white_noise,
}
