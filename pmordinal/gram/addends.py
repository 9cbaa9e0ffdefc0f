"""The addends of a covariance, and which of them have few columns: linear functions, levels, products of these."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from pmordinal.gram.base import Array, Kernel
from pmordinal.gram.combine import ProductKernel, SumKernel
from pmordinal.gram.linear import ConstantKernel
from pmordinal.gram.thin import Thin, ThinKernel, no_levels


@dataclass(frozen=True, eq=False)
class Addend:
    """A kernel that is added to others.

    Attributes
    ----------
    kernel : Kernel
    at : tuple of int
        Places of its parameters among those of the sum.
    """

    kernel: Kernel
    at: tuple[int, ...]

    def of(self, values: Sequence[Array]) -> list[Array]:
        """Return the values of its parameters, given those of the sum."""
        return [values[i] for i in self.at]

    @property
    def is_thin(self) -> bool:
        """Whether it is Σ φ(x) φ(z) over columns φ, or over the columns of equal levels."""
        inside = self.kernel.kernels if isinstance(self.kernel, ProductKernel) else (self.kernel,)
        return all(isinstance(kernel, ThinKernel | ConstantKernel) for kernel in inside)

    def thin(self, values: Sequence[Array], X: Array) -> Thin:
        """Return its columns at rows, but for a factor in front; `values` are those of the sum."""
        own = self.of(values)
        if not isinstance(self.kernel, ProductKernel):
            return _thin(self.kernel, own, X)
        pairs = zip(self.kernel.kernels, self.kernel.split_values(own)[0], strict=True)
        return reduce(Thin.times, [_thin(kernel, part, X) for kernel, part in pairs])


def _thin(kernel: Kernel, values: Sequence[Array], X: Array) -> Thin:
    if isinstance(kernel, ThinKernel):
        return kernel.thin(values, X)
    ones = np.ones((len(X), 1))  # a constant
    return Thin(ones, np.ones(1), no_levels(len(X)), lambda dphi, dweights: [])


def addends(kernel: Kernel) -> list[Addend]:
    """Return the kernels of which a covariance is the sum, in the order of `Kernel.parts`.

    An ANOVA is one of them.

    Examples
    --------
    >>> import pymc as pm
    >>> from pmordinal.gram import lower
    >>> found = addends(lower(2.0 * (pm.gp.cov.ExpQuad(1, ls=0.5) + pm.gp.cov.Linear(1, c=0.0))))
    >>> [(one.at, one.is_thin) for one in found]
    [((0, 2), False), ((1, 2), True)]
    """
    if isinstance(kernel, SumKernel):
        found, start = [], 0
        for one in kernel.kernels:
            found += [Addend(a.kernel, tuple(start + i for i in a.at)) for a in addends(one)]
            start += len(one.parameters)
        numbers = enumerate(kernel.numbers, start)
        return found + [Addend(ConstantKernel(number), (i,)) for i, number in numbers]
    if isinstance(kernel, ProductKernel) and len(kernel.kernels) == 1:
        inside, count = addends(kernel.kernels[0]), len(kernel.parameters)
        if len(inside) > 1:
            last = tuple(range(count - len(kernel.numbers), count))
            return [Addend(ProductKernel([a.kernel], kernel.numbers), a.at + last) for a in inside]
    return [Addend(kernel, tuple(range(len(kernel.parameters))))]


def together(parts: Sequence[Addend]) -> Addend:
    """Return the sum of addends."""
    if len(parts) == 1:
        return parts[0]
    return Addend(SumKernel([one.kernel for one in parts], []), sum((one.at for one in parts), ()))
