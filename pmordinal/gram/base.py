"""The base class `Kernel` of covariances in NumPy.

A `Kernel` is the NumPy form of a ``pm.gp.cov`` object: values and hand-written pullbacks. A `Gram`
is a kernel at given rows and parameter values.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.tensor.variable import TensorConstant, TensorVariable

from pmordinal.linalg import fill_upper, inner
from pmordinal.linalg.workspace import empty

type Array = NDArray[np.float64]
type Pullback = Callable[[Array], list[Array]]
type Lower = Callable[[Any], "Kernel"]
type Builder = Callable[[Any, Lower], "Kernel | None"]
"""Turns a covariance into a kernel, or returns None: then it is computed from its PyTensor graph."""


KERNELS: dict[str, type["Kernel"]] = {}


def revive(form: dict[str, Any], values: Iterator[Array]) -> "Kernel":
    """Return the kernel that `form` describes; its parameter values are taken from the iterator `values`."""
    if form.get("kernel") not in KERNELS:
        raise ValueError(f"unknown kernel {form.get('kernel')!r}: the file is of a newer version")
    return KERNELS[form["kernel"]].from_form(form, values)


class Kernel(ABC):
    """Values and pullbacks of a covariance function in NumPy.

    Attributes
    ----------
    parameters : tuple of TensorVariable
        PyTensor expressions, variables and constants the covariance depends on. Every method takes
        their `values` in this order, and every pullback returns the derivatives in this order, each
        of the shape of its value. An expression that is used twice is listed twice.

    Notes
    -----
    Callers must not write into a returned array if its pullback still needs it: see `keeps_matrix`.
    """

    parameters: tuple[TensorVariable, ...]
    keeps_matrix: ClassVar[bool] = True  # the pullback needs the matrix that was returned
    joins_copies: bool = False  # identical rows have the same latent value
    reads_triangle: bool = False  # its pullbacks read only the lower triangle of dK

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Register the class by its name, for `revive`."""
        super().__init_subclass__(**kwargs)
        KERNELS[cls.__name__] = cls

    def __getstate__(self) -> dict[str, Any]:
        """Leave the model out of pickles: parameters are replaced by variables without a graph."""
        return {name: _alone(value) for name, value in self.__dict__.items()}

    @property
    def scale(self) -> tuple[TensorVariable, ...]:
        """Parameters that multiply the whole covariance; none if its size is fixed."""
        return ()

    def relevance(self, values: Sequence[Array], d: int) -> Array | None:
        """Return the relevance of each of `d` columns, such as 1/ls², shape (d,); None without ARD."""
        return None

    def form(self) -> dict[str, Any]:
        """Return the structure of the kernel, without parameter values, as plain data for `revive`."""
        raise TypeError(
            f"a {type(self).__name__} cannot be written to a file as data: save the draws with "
            "fit.to_datatree().to_netcdf(path), or use a covariance that pmordinal knows"
        )

    @classmethod
    def from_form(cls, form: dict[str, Any], values: Iterator[Array]) -> "Kernel":
        """Return the kernel of that form; its parameters are constants taken from `values`."""
        raise NotImplementedError

    @abstractmethod
    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z), shape (n, m), and the pullback dK → derivatives of the parameters.

        Without `Z` it is the covariance of the rows of `X` with themselves: exactly symmetric,
        noise included, and its pullback takes `dK` to be symmetric.
        """

    def scaled(self, scale: float, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return scale · K(X), which callers may overwrite, and its pullback, with `scale` as last parameter."""
        K, pull = self.matrix(values, X)

        def pullback(dK: Array) -> list[Array]:
            return [*(g * scale for g in pull(dK)), np.asarray(inner(dK, K))]

        return np.multiply(scale, K, out=empty(K.shape)), pullback

    def add_to(self, K: Array, values: Sequence[Array], X: Array, scale: float) -> Pullback:
        """Add scale · K(X) to `K`, in Fortran order; return its pullback, that in `scale` last.

        What is above the diagonal of `K` is of no account, before and after.
        """
        term, pullback = self.scaled(scale, values, X)
        K += term
        return pullback

    def parts(self, values: Sequence[Array]) -> list[tuple["Kernel", Sequence[Array]]]:
        """Return the terms of which the covariance is the sum, each with its values; itself if it is no sum."""
        return [(self, values)]

    @abstractmethod
    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return k(x_i, x_i), shape (n,), and its pullback."""

    def copy_diagonal(self, values: Sequence[Array], X: Array) -> Array:
        """Return the covariance of each row with another, identical row: `diagonal` minus white noise."""
        blocks = (X[i : i + 64] for i in range(0, len(X), 64))
        return np.concatenate([self.matrix(values, rows, rows)[0].diagonal() for rows in blocks])

    def columns(self, values: Sequence[Array], X: Array, index: NDArray[np.intp]) -> Array:
        """Return the columns `index` of the square matrix K(X), shape (n, len(index))."""
        K = self.matrix(values, X, X[index])[0]
        # White noise is in a row's variance, but not in its covariance with an identical row.
        K[index, np.arange(len(index))] = self.diagonal(values, X)[0][index]
        return K


class AddingKernel(Kernel):
    """A kernel that adds itself to the lower triangle of a matrix, without one of its own."""

    keeps_matrix = False
    reads_triangle = True

    @abstractmethod
    def add_to(self, K: Array, values: Sequence[Array], X: Array, scale: float) -> Pullback:
        """Add scale · K(X) to the lower triangle of `K`; return its pullback, that in `scale` last."""

    def scaled(self, scale: float, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return scale · K(X) and its pullback, that in `scale` last."""
        K = empty((len(X), len(X)))
        K.fill(0.0)
        pullback = self.add_to(K, values, X, scale)
        return fill_upper(K), pullback

    def square(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return K(X) and its pullback."""
        K, pull = self.scaled(1.0, values, X)
        return K, lambda dK: pull(dK)[:-1]


def _alone(value: Any) -> Any:
    """Replace a computed variable, also inside a tuple, by a free one of its type; keep other values."""
    if isinstance(value, tuple):
        return tuple(map(_alone, value))
    is_computed = isinstance(value, TensorVariable) and value.owner is not None
    return value.type(value.name) if is_computed else value


def as_parameter(value: Any) -> TensorVariable:
    """Return `value` as a float64 tensor; a float64 tensor is returned unchanged."""
    if isinstance(value, float):  # PyTensor tries float32, which overflows
        value = np.float64(value)
    variable = pt.as_tensor_variable(value)
    if variable.dtype == "float64":
        return variable
    if isinstance(variable, TensorConstant):  # PyTensor makes float32 of 2.0 and int8 of 2
        return pt.constant(variable.data.astype(np.float64))
    return pt.cast(variable, "float64")


def is_scalar(variable: TensorVariable) -> bool:
    """Tell whether `variable` holds a single number, with any number of axes."""
    return all(length == 1 for length in variable.type.shape)


def sum_to(derivative: Array, value: Array) -> Array:
    """Return the derivative by a value that was broadcast: the sum over the rows of `derivative`."""
    total = derivative.reshape(-1, derivative.shape[-1]).sum(axis=0)
    return (
        total.reshape(value.shape)
        if value.size == total.size
        else np.full(value.shape, total.sum())
    )


class Columns:
    """The active columns of a covariance; calling it with rows returns these columns."""

    def __init__(self, active: Any) -> None:
        active = np.asarray(active, dtype=np.intp)
        self.active = active.tolist()
        self._last = int(active.max())
        is_prefix = np.array_equal(active, np.arange(len(active)))
        self._chosen = slice(0, len(active)) if is_prefix else active

    def __call__(self, X: Array) -> Array:
        """Return the columns of X, shape (n, len(active))."""
        if self._last >= X.shape[1]:
            raise ValueError(
                f"the covariance uses column {self._last} (counted from 0), but the rows have "
                f"{X.shape[1]} columns: check `input_dim` and `active_dims`"
            )
        return X[:, self._chosen]
