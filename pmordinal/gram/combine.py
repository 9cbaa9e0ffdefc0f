"""Combinations of kernels: sums, products and scalings.

Numbers and ``pm.gp.cov.Constant`` terms stay numbers: no matrix is built for them. A factor in
front of a single kernel is applied by that kernel's `scaled`.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymc.gp import cov
from pytensor.tensor.variable import TensorVariable

from pmordinal.gram.base import (
    AddingKernel,
    Array,
    Builder,
    Kernel,
    Lower,
    Pullback,
    as_parameter,
    is_scalar,
    revive,
)
from pmordinal.gram.levels import LevelsKernel
from pmordinal.gram.linear import ConstantKernel
from pmordinal.gram.matrix import MatrixKernel
from pmordinal.gram.pairs import sum_lower
from pmordinal.gram.thin import LevelPairs, Thin, is_thin
from pmordinal.linalg import fill_upper, inner
from pmordinal.linalg.workspace import empty

type Evaluated = tuple[Array, Pullback]


class Combination(Kernel):
    """A sum or product of kernels and numbers; the parameters of the kernels come first."""

    def __init__(self, kernels: Sequence[Kernel], numbers: Sequence[TensorVariable]) -> None:
        self.kernels = tuple(kernels)
        self.numbers = tuple(numbers)
        self.parameters = (*(p for kernel in kernels for p in kernel.parameters), *numbers)
        self.joins_copies = all(kernel.joins_copies for kernel in kernels)

    def form(self) -> dict[str, Any]:
        """Return the class, the forms of the kernels, and the count of numbers."""
        kernels = [kernel.form() for kernel in self.kernels]
        return {"kernel": type(self).__name__, "kernels": kernels, "numbers": len(self.numbers)}

    @classmethod
    def from_form(cls, form: dict[str, Any], values: Iterator[Array]) -> Kernel:
        """Return the kernel of that form."""
        kernels = [revive(part, values) for part in form["kernels"]]
        return cls(kernels, [as_parameter(next(values)) for _ in range(form["numbers"])])

    def split_values(
        self, values: Sequence[Array]
    ) -> tuple[list[Sequence[Array]], Sequence[Array]]:
        """Return the values of each kernel, and those of the numbers."""
        parts, start = [], 0
        for kernel in self.kernels:
            stop = start + len(kernel.parameters)
            parts.append(values[start:stop])
            start = stop
        return parts, values[start:]

    def relevance(self, values: Sequence[Array], d: int) -> Array | None:
        """Return the relevance of the only kernel that has one; None if none or several do."""
        parts, _ = self.split_values(values)
        found = [k.relevance(part, d) for k, part in zip(self.kernels, parts, strict=True)]
        known = [r for r in found if r is not None]
        return known[0] if len(known) == 1 else None

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback."""
        parts, numbers = self.split_values(values)
        pairs = zip(self.kernels, parts, strict=True)
        return self._combine([kernel.matrix(part, X, Z) for kernel, part in pairs], numbers)

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return k(x, x) and its pullback."""
        parts, numbers = self.split_values(values)
        pairs = zip(self.kernels, parts, strict=True)
        return self._combine([kernel.diagonal(part, X) for kernel, part in pairs], numbers)

    def columns(self, values: Sequence[Array], X: Array, index: NDArray[np.intp]) -> Array:
        """Return columns of the square matrix."""
        parts, numbers = self.split_values(values)
        pairs = zip(self.kernels, parts, strict=True)
        columns: list[Evaluated] = [
            (kernel.columns(part, X, index), _nothing) for kernel, part in pairs
        ]
        return self._combine(columns, numbers)[0]

    def copy_diagonal(self, values: Sequence[Array], X: Array) -> Array:
        """Return the covariance of each row with another, identical row."""
        parts, numbers = self.split_values(values)
        pairs = zip(self.kernels, parts, strict=True)
        copies: list[Evaluated] = [(k.copy_diagonal(part, X), _nothing) for k, part in pairs]
        return self._combine(copies, numbers)[0]

    def _combine(self, evaluated: list[Evaluated], numbers: Sequence[Array]) -> Evaluated:
        raise NotImplementedError


class SumKernel(Combination, AddingKernel):
    """k = Σ kernels + Σ numbers; the terms add themselves to one matrix, one after the other."""

    def __init__(self, kernels: Sequence[Kernel], numbers: Sequence[TensorVariable]) -> None:
        super().__init__(kernels, numbers)
        self.reads_triangle = all(kernel.reads_triangle for kernel in kernels)

    @property
    def scale(self) -> tuple[TensorVariable, ...]:
        """The scales of all terms, if each has one."""
        terms = [kernel.scale for kernel in self.kernels]
        return (*(p for term in terms for p in term), *self.numbers) if all(terms) else ()

    def parts(self, values: Sequence[Array]) -> list[tuple[Kernel, Sequence[Array]]]:
        """Return the terms, and each number as a constant."""
        parts, numbers = self.split_values(values)
        constants = [ConstantKernel(number) for number in self.numbers]
        of_numbers = [[value] for value in numbers]
        terms = zip((*self.kernels, *constants), (*parts, *of_numbers), strict=True)
        return [part for kernel, of_kernel in terms for part in kernel.parts(of_kernel)]

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback."""
        return self.square(values, X) if Z is None else super().matrix(values, X, Z)

    def add_to(self, K: Array, values: Sequence[Array], X: Array, scale: float) -> Pullback:
        """Add the terms to the lower triangle of `K`; return the pullback, that in `scale` last."""
        parts, numbers = self.split_values(values)
        pulls = [
            kernel.add_to(K, part, X, scale)
            for kernel, part in zip(self.kernels, parts, strict=True)
        ]
        constant = float(sum(number.item() for number in numbers))
        if numbers:
            K += scale * constant

        def pullback(dK: Array) -> list[Array]:
            derivatives, by_scale = [], 0.0
            for pull in pulls:
                *inside, by_term = pull(dK)
                derivatives += inside
                by_scale += by_term.item()
            if numbers:
                total = sum_lower(dK)
                derivatives += [np.full(number.shape, scale * total) for number in numbers]
                by_scale += constant * total
            return [*derivatives, np.asarray(by_scale)]

        return pullback

    def _combine(self, evaluated: list[Evaluated], numbers: Sequence[Array]) -> Evaluated:
        K = evaluated[0][0] + sum(number.item() for number in numbers)
        for term, _ in evaluated[1:]:
            K += term

        def pullback(dK: Array) -> list[Array]:
            derivatives = [g for _, pull in evaluated for g in pull(dK)]
            if numbers:
                total = dK.sum()
                derivatives += [np.full(number.shape, total) for number in numbers]
            return derivatives

        return K, pullback


class ProductKernel(Combination):
    """k = Π kernels · Π numbers.

    Numbers, levels and thin kernels are taken into one another: no matrix is built for them.
    """

    keeps_matrix = False

    def __init__(self, kernels: Sequence[Kernel], numbers: Sequence[TensorVariable]) -> None:
        super().__init__(kernels, numbers)
        levels = [kernel for kernel in kernels if isinstance(kernel, LevelsKernel)]
        others = [kernel for kernel in kernels if not isinstance(kernel, LevelsKernel)]
        self._is_thin = len(kernels) > 1 and is_thin(kernels)
        # What the numbers and the levels multiply, if it is one kernel.
        self._inside: Kernel | None = None
        self._levels: tuple[LevelsKernel, ...] = ()
        if len(kernels) == 1:
            self._inside = kernels[0]
        elif levels and not self._is_thin:
            self._inside = others[0] if len(others) == 1 else ProductKernel(others, [])
            self._levels = tuple(levels)
        by_triangle = self._inside is not None and self._inside.reads_triangle
        self.reads_triangle = self._is_thin or bool(self._levels) or by_triangle

    @property
    def scale(self) -> tuple[TensorVariable, ...]:
        """The numbers, and the scales of the factors."""
        return (*self.numbers, *(p for kernel in self.kernels for p in kernel.scale))

    def parts(self, values: Sequence[Array]) -> list[tuple[Kernel, Sequence[Array]]]:
        """Return the terms of a sum with the numbers in front of each; several factors are one term."""
        if len(self.kernels) > 1:
            return [(self, values)]
        (part,), numbers = self.split_values(values)
        inside = self.kernels[0].parts(part)
        if len(inside) == 1:
            return [(self, values)]
        return [
            (ProductKernel([term], self.numbers), [*of_term, *numbers]) for term, of_term in inside
        ]

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback."""
        if Z is not None or not (self._is_thin or self._inside):
            return super().matrix(values, X, Z)
        K, pull = self.scaled(1.0, values, X)
        return K, lambda dK: pull(dK)[:-1]

    def scaled(self, scale: float, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return scale · K(X) and its pullback, that in `scale` last."""
        if self._inside and not self._levels:
            of_inside, numbers = self._split_numbers(values)
            K, pull = self._inside.scaled(scale * _product_of(numbers), of_inside, X)
            return K, _chained(pull, numbers, scale)
        if not (self._is_thin or self._inside):
            return super().scaled(scale, values, X)
        K = empty((len(X), len(X)))
        K.fill(0.0)
        pullback = self.add_to(K, values, X, scale)
        return fill_upper(K), pullback

    def add_to(self, K: Array, values: Sequence[Array], X: Array, scale: float) -> Pullback:
        """Add scale · K(X) to the lower triangle of `K`; return its pullback, that in `scale` last."""
        of_inside, numbers = self._split_numbers(values)
        scale_inside = scale * _product_of(numbers)
        if self._is_thin:
            pairs = zip(self.kernels, self.split_values(values)[0], strict=True)
            factors = [kernel.thin(part, X) for kernel, part in pairs]  # type: ignore[attr-defined]
            pull = reduce(Thin.times, factors).add_to(K, scale_inside)
        elif self._levels:
            pull = self._add_within_levels(K, of_inside, X, scale_inside)
        elif self._inside:
            pull = self._inside.add_to(K, of_inside, X, scale_inside)
        else:
            return super().add_to(K, values, X, scale)
        return _chained(pull, numbers, scale)

    def _add_within_levels(
        self, K: Array, values: Sequence[Array], X: Array, scale: float
    ) -> Pullback:
        """Add scale · what is inside times the numbers of pairs of levels."""
        inside = self._inside
        assert inside is not None
        levels = reduce(LevelPairs.beside, [kernel.pairs(X) for kernel in self._levels])
        term, pull = inside.scaled(scale, values, X)
        levels.multiply(term, out=term)
        K += term

        def pullback(dK: Array) -> list[Array]:
            dterm = empty(dK.shape)
            levels.multiply(dK, out=dterm)
            return pull(dterm if inside.reads_triangle else fill_upper(dterm))

        return pullback

    def _split_numbers(self, values: Sequence[Array]) -> tuple[Sequence[Array], Sequence[Array]]:
        """Return the values of the kernels, of which levels have none, and those of the numbers."""
        count = len(values) - len(self.numbers)
        return values[:count], values[count:]

    def _combine(self, evaluated: list[Evaluated], numbers: Sequence[Array]) -> Evaluated:
        factors = [K for K, _ in evaluated]
        pullbacks = [pullback for _, pullback in evaluated]
        scale = _product_of(numbers)
        K = factors[0] * (factors[1] if len(factors) > 1 else scale)
        for factor in factors[2:]:
            K *= factor
        if numbers and len(factors) > 1:
            K *= scale

        def pullback(dK: Array) -> list[Array]:
            derivatives = []
            for i, pull in enumerate(pullbacks):
                others = factors[:i] + factors[i + 1 :]
                # Pullbacks are linear, so the number in front multiplies a few derivatives instead of dK.
                derivatives += [g * scale for g in pull(reduce(np.multiply, others, dK))]
            if numbers:
                by_scale = inner(reduce(np.multiply, factors[1:], dK), factors[0])
                derivatives += _by_numbers(by_scale, numbers)
            return [np.asarray(g) for g in derivatives]

        return K, pullback


def _nothing(dK: Array) -> list[Array]:
    return []


def _product_of(numbers: Sequence[Array]) -> float:
    return float(np.prod([number.item() for number in numbers]))


def _chained(pull: Pullback, numbers: Sequence[Array], scale: float) -> Pullback:
    """Return the pullback of scale · Π numbers · k, given that of number · k."""

    def pullback(dK: Array) -> list[Array]:
        *derivatives, by_product = pull(dK)
        by_numbers = _by_numbers(scale * by_product.item(), numbers)
        return [*derivatives, *by_numbers, np.asarray(by_product * _product_of(numbers))]

    return pullback


def _by_numbers(by_scale: float, numbers: Sequence[Array]) -> list[Array]:
    """Return the derivatives by each number, given that by their product; no division, as one may be zero."""
    others = [
        np.prod([x.item() for x in (*numbers[:i], *numbers[i + 1 :])]) for i in range(len(numbers))
    ]
    return [np.full(x.shape, by_scale * rest) for x, rest in zip(numbers, others, strict=True)]


def _builder(combination: type[Combination]) -> Builder:
    def build(cov_func: Any, lower: Lower) -> Kernel | None:
        kernels: list[Kernel] = []
        numbers: list[TensorVariable] = []
        for factor in cov_func._factor_list:
            constant = type(factor) is cov.Constant
            if isinstance(factor, cov.BaseCovariance) and not constant:
                kernels.append(lower(factor))
                continue
            tensor = as_parameter(factor.c if constant else factor)
            if is_scalar(tensor):
                numbers.append(tensor)
            elif constant:
                kernels.append(lower(factor))
            elif tensor.ndim == 2:
                kernels.append(MatrixKernel(tensor))
            else:
                raise ValueError(
                    "a covariance can be combined with a number or a square matrix, got a tensor "
                    f"of {tensor.ndim} axes with static shape {tensor.type.shape}"
                )
        return combination(kernels, numbers) if kernels else None

    return build


BUILDERS: dict[type, Builder] = {
    cov.Add: _builder(SumKernel),
    cov.Prod: _builder(ProductKernel),
}
