"""Kernels raised to a power."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymc.gp import cov
from pytensor.tensor.variable import TensorConstant, TensorVariable

from pmordinal.gram.base import (
    Array,
    Builder,
    Kernel,
    Lower,
    Pullback,
    as_parameter,
    is_scalar,
    revive,
)
from pmordinal.linalg import inner


class PowerKernel(Kernel):
    """k = base^power; a constant power belongs to the form of the kernel and is no parameter.

    The derivative in a variable power is NaN where the base is negative.
    """

    def __init__(self, base: Kernel, power: TensorVariable) -> None:
        self.base = base
        self.fixed = float(power.data) if isinstance(power, TensorConstant) else None
        variable = () if self.fixed is not None else (power,)
        self.parameters = (*base.parameters, *variable)

    @property
    def scale(self) -> tuple[TensorVariable, ...]:
        """The scale of the base."""
        return self.base.scale

    def form(self) -> dict[str, Any]:
        """Return the base and the constant power, if it is one."""
        return {"kernel": "PowerKernel", "base": self.base.form(), "power": self.fixed}

    @classmethod
    def from_form(cls, form: dict[str, Any], values: Iterator[Array]) -> Kernel:
        """Return the kernel of that form; a variable power becomes a constant one."""
        base = revive(form["base"], values)
        power = next(values) if form["power"] is None else form["power"]
        return cls(base, as_parameter(power))

    def _raise(
        self, values: Sequence[Array], base: Array, pull: Pullback
    ) -> tuple[Array, Pullback]:
        p = values[-1].item() if self.fixed is None else self.fixed
        if p == 2.0:
            K = base * base
        else:
            K = base**p

        def pullback(dK: Array) -> list[Array]:
            slope = p * base if p == 2.0 else p * base ** (p - 1.0)
            slope *= dK
            derivatives = pull(slope)
            if self.fixed is None:
                log = np.full_like(base, np.nan)
                np.log(base, out=log, where=base > 0.0)
                np.copyto(log, 0.0, where=base == 0.0)
                log *= K
                derivatives.append(np.full(values[-1].shape, inner(dK, log)))
            return derivatives

        return K, pullback

    def _of_base(self, values: Sequence[Array]) -> Sequence[Array]:
        return values[: len(self.base.parameters)]

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback."""
        return self._raise(values, *self.base.matrix(self._of_base(values), X, Z))

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return k(x, x) and its pullback."""
        return self._raise(values, *self.base.diagonal(self._of_base(values), X))

    def columns(self, values: Sequence[Array], X: Array, index: NDArray[np.intp]) -> Array:
        """Return columns of the square matrix."""
        return self._raise(
            values, self.base.columns(self._of_base(values), X, index), lambda dK: []
        )[0]


def _build_power(cov_func: Any, lower: Lower) -> Kernel | None:
    power = as_parameter(cov_func.power)
    return PowerKernel(lower(cov_func.kernel), power) if is_scalar(power) else None


BUILDERS: dict[type, Builder] = {cov.Exponentiated: _build_power}
