"""Kernels made of kernels: sums, products, scalings and powers.

Numbers and ``pm.gp.cov.Constant`` terms stay numbers: no matrix is built for them, and a factor in
front of one kernel is left to that kernel.
"""

from collections.abc import Iterator, Sequence
from functools import partial, reduce
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
from pmordinal.gram.distance import DistanceKernel
from pmordinal.linalg import inner
from pmordinal.linalg.workspace import empty

type Evaluated = tuple[Array, Pullback]


class Combination(Kernel):
    """Kernels and numbers under one operation; the parameters of the kernels come first."""

    def __init__(self, kernels: Sequence[Kernel], numbers: Sequence[TensorVariable]) -> None:
        self.kernels = tuple(kernels)
        self.numbers = tuple(numbers)
        self.parameters = (*(p for kernel in kernels for p in kernel.parameters), *numbers)
        self.joins_copies = all(kernel.joins_copies for kernel in kernels)

    def form(self) -> dict[str, Any]:
        """Return the class, the kernels and how many numbers there are."""
        kernels = [kernel.form() for kernel in self.kernels]
        return {"kernel": type(self).__name__, "kernels": kernels, "numbers": len(self.numbers)}

    @classmethod
    def from_form(cls, form: dict[str, Any], values: Iterator[Array]) -> Kernel:
        """Return the kernel of that form."""
        kernels = [revive(part, values) for part in form["kernels"]]
        return cls(kernels, [as_parameter(next(values)) for _ in range(form["numbers"])])

    def _split(self, values: Sequence[Array]) -> tuple[list[Sequence[Array]], Sequence[Array]]:
        """Return the values of each kernel, and those of the numbers."""
        parts, start = [], 0
        for kernel in self.kernels:
            stop = start + len(kernel.parameters)
            parts.append(values[start:stop])
            start = stop
        return parts, values[start:]

    def relevance(self, values: Sequence[Array], d: int) -> Array | None:
        """Return the relevance of the one kernel that has it; None if several do."""
        parts, _ = self._split(values)
        found = [k.relevance(part, d) for k, part in zip(self.kernels, parts, strict=True)]
        known = [r for r in found if r is not None]
        return known[0] if len(known) == 1 else None

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback."""
        parts, numbers = self._split(values)
        pairs = zip(self.kernels, parts, strict=True)
        return self._combine([kernel.matrix(part, X, Z) for kernel, part in pairs], numbers)

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return k(x, x) and its pullback."""
        parts, numbers = self._split(values)
        pairs = zip(self.kernels, parts, strict=True)
        return self._combine([kernel.diagonal(part, X) for kernel, part in pairs], numbers)

    def columns(self, values: Sequence[Array], X: Array, index: NDArray[np.intp]) -> Array:
        """Return columns of the square matrix."""
        parts, numbers = self._split(values)
        pairs = zip(self.kernels, parts, strict=True)
        columns: list[Evaluated] = [
            (kernel.columns(part, X, index), _nothing) for kernel, part in pairs
        ]
        return self._combine(columns, numbers)[0]

    def copy_diagonal(self, values: Sequence[Array], X: Array) -> Array:
        """Return k(x, copy of x)."""
        parts, numbers = self._split(values)
        pairs = zip(self.kernels, parts, strict=True)
        copies: list[Evaluated] = [(k.copy_diagonal(part, X), _nothing) for k, part in pairs]
        return self._combine(copies, numbers)[0]

    def _combine(self, evaluated: list[Evaluated], numbers: Sequence[Array]) -> Evaluated:
        raise NotImplementedError


class SumKernel(Combination):
    """k = Σ kernels + Σ numbers."""

    def __init__(self, kernels: Sequence[Kernel], numbers: Sequence[TensorVariable]) -> None:
        super().__init__(kernels, numbers)
        self.reads_triangle = not numbers and all(kernel.reads_triangle for kernel in kernels)

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback; white noise is added to the diagonal, not as a matrix."""
        white = [kernel.is_white for kernel in self.kernels]
        if Z is not None or not any(white) or all(white):
            return super().matrix(values, X, Z)
        parts, numbers = self._split(values)
        pulls: list[Pullback] = []
        K: Array | None = None
        diagonal = np.zeros(len(X))
        for kernel, part in zip(self.kernels, parts, strict=True):
            if kernel.is_white:
                k, pull = kernel.diagonal(part, X)
                diagonal += k
                pulls.append(partial(_of_diagonal, pull))
            else:
                term, pull = kernel.matrix(part, X)
                if K is None:
                    K = np.positive(term, out=empty(term.shape)) if kernel.keeps_matrix else term
                else:
                    K += term
                pulls.append(pull)
        assert K is not None
        for number in numbers:
            K += number.item()
        K[np.diag_indices(len(X))] += diagonal
        return K, self._pullback(pulls, numbers)

    @property
    def scale(self) -> tuple[TensorVariable, ...]:
        """The scales of all terms, if each has one."""
        terms = [kernel.scale for kernel in self.kernels]
        return (*(p for term in terms for p in term), *self.numbers) if all(terms) else ()

    def _combine(self, evaluated: list[Evaluated], numbers: Sequence[Array]) -> Evaluated:
        K = evaluated[0][0] + sum(number.item() for number in numbers)
        for term, _ in evaluated[1:]:
            K += term
        return K, self._pullback([pullback for _, pullback in evaluated], numbers)

    def _pullback(self, pullbacks: list[Pullback], numbers: Sequence[Array]) -> Pullback:
        def pullback(dK: Array) -> list[Array]:
            derivatives = [g for pull in pullbacks for g in pull(dK)]
            if numbers:
                total = dK.sum()
                derivatives += [np.full(number.shape, total) for number in numbers]
            return derivatives

        return pullback


class ProductKernel(Combination):
    """k = Π kernels · Π numbers."""

    keeps_matrix = False

    def __init__(self, kernels: Sequence[Kernel], numbers: Sequence[TensorVariable]) -> None:
        super().__init__(kernels, numbers)
        self.reads_triangle = len(kernels) == 1 and isinstance(kernels[0], DistanceKernel)

    @property
    def scale(self) -> tuple[TensorVariable, ...]:
        """The numbers, and the scales of the factors."""
        return (*self.numbers, *(p for kernel in self.kernels for p in kernel.scale))

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback; one kernel takes the numbers in front of it into its own."""
        if Z is not None or len(self.kernels) > 1:
            return super().matrix(values, X, Z)
        (part,), numbers = self._split(values)
        scale = float(np.prod([number.item() for number in numbers]))
        K, pull = self.kernels[0].scaled(scale, part, X)

        def pullback(dK: Array) -> list[Array]:
            *derivatives, by_scale = pull(dK)
            return derivatives + _by_numbers(by_scale.item(), numbers)

        return K, pullback

    def _combine(self, evaluated: list[Evaluated], numbers: Sequence[Array]) -> Evaluated:
        factors = [K for K, _ in evaluated]
        pullbacks = [pullback for _, pullback in evaluated]
        scale = float(np.prod([number.item() for number in numbers]))
        K = factors[0] * (factors[1] if len(factors) > 1 else scale)
        for factor in factors[2:]:
            K *= factor
        if numbers and len(factors) > 1:
            K *= scale

        def pullback(dK: Array) -> list[Array]:
            derivatives = []
            for i, pull in enumerate(pullbacks):
                others = factors[:i] + factors[i + 1 :]
                # Pullbacks are linear: the number in front multiplies a few derivatives, not dK.
                derivatives += [g * scale for g in pull(reduce(np.multiply, others, dK))]
            if numbers:
                by_scale = inner(reduce(np.multiply, factors[1:], dK), factors[0])
                derivatives += _by_numbers(by_scale, numbers)
            return [np.asarray(g) for g in derivatives]

        return K, pullback


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

    def _raise(self, values: Sequence[Array], base: Array, pull: Pullback) -> Evaluated:
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
        return self._raise(values, self.base.columns(self._of_base(values), X, index), _nothing)[0]


class MatrixKernel(Kernel):
    """A square matrix the user adds to a covariance or multiplies it by: for the rows X only."""

    def __init__(self, A: TensorVariable) -> None:
        self.parameters = (A,)

    def _checked(self, values: Sequence[Array], X: Array) -> Array:
        (A,) = values
        if A.shape != (len(X), len(X)):
            raise ValueError(
                f"a covariance of {len(X)} rows was combined with a matrix of shape {A.shape}: "
                f"it must be {(len(X), len(X))}; for other rows use pmordinal.gram.Precomputed"
            )
        if not np.array_equal(A, A.T):
            raise ValueError(
                "a covariance was combined with a matrix that is not symmetric: "
                "symmetrise it, (A + A.T) / 2"
            )
        return A

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return the matrix."""
        if Z is not None:
            raise ValueError(
                "a covariance combined with a matrix is known at the training rows only: "
                "use pmordinal.gram.Precomputed, with a matrix for training and test rows"
            )
        return self._checked(values, X).copy(order="F"), lambda dK: [dK.copy()]

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return the diagonal of the matrix."""
        return self._checked(values, X).diagonal().copy(), lambda dk: [np.diag(dk)]

    def columns(self, values: Sequence[Array], X: Array, index: NDArray[np.intp]) -> Array:
        """Return columns of the matrix."""
        return self._checked(values, X)[:, index]


def _of_diagonal(pull: Pullback, dK: Array) -> list[Array]:
    return pull(np.diagonal(dK))


def _nothing(dK: Array) -> list[Array]:
    return []


def _by_numbers(by_scale: float, numbers: Sequence[Array]) -> list[Array]:
    """Return the derivatives in numbers, given that in their product: without a division by any."""
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


def _build_power(cov_func: Any, lower: Lower) -> Kernel | None:
    power = as_parameter(cov_func.power)
    return PowerKernel(lower(cov_func.kernel), power) if is_scalar(power) else None


BUILDERS: dict[type, Builder] = {
    cov.Add: _builder(SumKernel),
    cov.Prod: _builder(ProductKernel),
    cov.Exponentiated: _build_power,
}
