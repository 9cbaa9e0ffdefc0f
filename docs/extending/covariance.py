"""NumPy form of ``pm.gp.cov.Polynomial``: k = ((x − c)·(z − c) + offset)^degree."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from pymc.gp import cov
from pytensor.tensor.variable import TensorConstant

from pmordinal.gram.base import (
    Array,
    Builder,
    Columns,
    Kernel,
    Lower,
    Pullback,
    as_parameter,
    sum_to,
)


class PolynomialKernel(Kernel):
    """Parameters c (one number or one for each column) and offset; the degree is fixed."""

    def __init__(self, active: Any, c: Any, offset: Any, degree: float) -> None:
        self.columns_of = Columns(active)
        self.parameters = (as_parameter(c), as_parameter(offset))
        self.degree = degree

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and the pullback dK → derivatives by c and offset."""
        c, offset = values
        A = self.columns_of(X) - c
        B = A if Z is None else self.columns_of(Z) - c
        base = (B @ A.T).T + offset  # in Fortran order, as LAPACK wants it

        def pullback(dK: Array) -> list[Array]:
            G = dK * (self.degree * base ** (self.degree - 1))  # by the base
            by_c = sum_to(-(G @ B), c) + sum_to(-(G.T @ A), c)
            return [by_c, np.full(offset.shape, G.sum())]

        return base**self.degree, pullback

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return k(x_i, x_i) and its pullback."""
        c, offset = values
        A = self.columns_of(X) - c
        base = np.einsum("ij,ij->i", A, A) + offset

        def pullback(dk: Array) -> list[Array]:
            G = dk * (self.degree * base ** (self.degree - 1))
            return [sum_to(-2.0 * G[:, None] * A, c), np.full(offset.shape, G.sum())]

        return base**self.degree, pullback

    def form(self) -> dict[str, Any]:
        """Return what `fit.save` writes: plain data, the parameters apart."""
        active = self.columns_of.active
        return {"kernel": type(self).__name__, "active": active, "degree": self.degree}

    @classmethod
    def from_form(cls, form: dict[str, Any], values: Iterator[Array]) -> Kernel:
        """Return the kernel of that form."""
        return cls(form["active"], next(values), next(values), form["degree"])


def _build(cov_func: Any, lower: Lower) -> Kernel | None:
    degree = as_parameter(cov_func.d)
    if not isinstance(degree, TensorConstant):
        return None  # a random degree goes through the PyTensor graph, as all did before
    return PolynomialKernel(cov_func.active_dims, cov_func.c, cov_func.offset, float(degree.data))


BUILDERS: dict[type, Builder] = {cov.Polynomial: _build}
