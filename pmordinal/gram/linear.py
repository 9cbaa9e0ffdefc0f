"""Kernels that are no function of a distance: Linear, LinearARD, Constant, WhiteNoise."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.gp import cov
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable

from pmordinal import checks
from pmordinal.gram.base import (
    AddingKernel,
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
from pmordinal.gram.pairs import sum_lower
from pmordinal.gram.thin import Thin, ThinKernel, no_levels


class ColumnsKernel(ThinKernel):
    """A kernel with active columns and one parameter."""

    def __init__(self, active: Any, parameter: Any) -> None:
        self.columns_of = Columns(active)
        self.width = len(self.columns_of.active)
        self.parameters = (as_parameter(parameter),)

    def form(self) -> dict[str, Any]:
        """Return the class and the columns."""
        return {"kernel": type(self).__name__, "active": self.columns_of.active}

    @classmethod
    def from_form(cls, form: dict[str, Any], values: Iterator[Array]) -> Kernel:
        """Return the kernel of that form."""
        return cls(form["active"], next(values))


class LinearKernel(ColumnsKernel):
    """k = (x − c)·(z − c); one `c` or one for each column."""

    def _centred(self, X: Array, c: Array) -> Array:
        X = self.columns_of(X)
        checks.one_or_each("c", c.size, X.shape[1])  # else a single column is broadcast
        return X - c

    def thin(self, values: Sequence[Array], X: Array) -> Thin:
        """Return x − c."""
        (c,) = values
        A = self._centred(X, c)
        ones = np.ones(A.shape[1])
        return Thin(A, ones, no_levels(len(X)), lambda dphi, _: [sum_to(-dphi, c)])

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback."""
        if Z is None:
            return self.square(values, X)
        (c,) = values
        A, B = self._centred(X, c), self._centred(Z, c)
        return (B @ A.T).T, lambda dK: [sum_to(-(dK @ B), c) + sum_to(-(dK.T @ A), c)]

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return ‖x − c‖² and its pullback."""
        (c,) = values
        A = self._centred(X, c)
        return np.einsum("ij,ij->i", A, A), lambda dk: [sum_to(-2.0 * dk[:, None] * A, c)]


class LinearARD(cov.Covariance):
    """Linear covariance with a weight for each column, k = Σ κ_j x_j z_j [CG2005, section 6.4].

    Parameters
    ----------
    input_dim : int
        Number of columns of X.
    weights : tensor_like, shape (number of active columns,)
        Relevances κ_j > 0.
    active_dims : sequence of int, optional
        The columns to use.

    Examples
    --------
    >>> from pmordinal.gram import Gram, LinearARD, lower
    >>> gram = Gram(lower(LinearARD(2, [1.0, 0.5])), [[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.5]])
    >>> gram.matrix.round(9).tolist()
    [[3.0, 7.0], [7.0, 17.0]]
    """

    def __init__(self, input_dim: int, weights: Any, active_dims: Any = None) -> None:
        super().__init__(input_dim, active_dims)
        if not isinstance(weights, Variable):
            weights = checks.finite_array("weights", weights)
            if np.any(weights < 0.0):
                raise ValueError(f"weights must not be negative, got {weights.min():g}")
        self.weights = as_parameter(weights)
        d, shape = len(self.active_dims), self.weights.type.shape
        if shape not in ((d,), (None,)) and not (d == 1 and shape == ()):
            raise ValueError(
                f"weights must have one number for each of {d} column(s), got shape {shape}"
            )

    def full(self, X: Any, Xs: Any = None) -> TensorVariable:
        """Return the covariances between rows as a PyTensor expression, shape (n, m)."""
        X, Xs = self._slice(X, Xs)
        return pt.dot(X * self.weights, pt.transpose(X if Xs is None else Xs))

    def diag(self, X: Any) -> TensorVariable:
        """Return the variances of the rows as a PyTensor expression, shape (n,)."""
        X, _ = self._slice(X, None)
        return pt.sum(pt.square(X) * self.weights, axis=1)


class LinearARDKernel(ColumnsKernel):
    """k = Σ κ_j x_j z_j."""

    @property
    def scale(self) -> tuple[TensorVariable, ...]:
        """The weights."""
        return self.parameters

    def relevance(self, values: Sequence[Array], d: int) -> Array | None:
        """Return the weights on the active columns."""
        kappa = np.zeros(d)
        kappa[self.columns_of.active] = values[0]
        return kappa

    def thin(self, values: Sequence[Array], X: Array) -> Thin:
        """Return the columns with their weights."""
        (kappa,) = values
        A = self.columns_of(X)
        return Thin(A, kappa, no_levels(len(X)), lambda _, dweights: [dweights])

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback."""
        if Z is None:
            return self.square(values, X)
        (kappa,) = values
        A, B = self.columns_of(X), self.columns_of(Z)
        return ((B * kappa) @ A.T).T, lambda dK: [((dK @ B) * A).sum(0)]

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return Σ κ_j x_j² and its pullback."""
        squares = self.columns_of(X) ** 2
        return squares @ values[0], lambda dk: [dk @ squares]


class OneNumberKernel(Kernel):
    """A kernel with one parameter that reads no columns."""

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


class ConstantKernel(OneNumberKernel, AddingKernel):
    """k = c."""

    joins_copies = True

    def add_to(self, K: Array, values: Sequence[Array], X: Array, scale: float) -> Pullback:
        """Add scale · c everywhere."""
        (c,) = values
        K += scale * c.item()

        def pullback(dK: Array) -> list[Array]:
            total = sum_lower(dK)
            return [np.full(c.shape, scale * total), np.asarray(c.item() * total)]

        return pullback

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return c everywhere."""
        if Z is None:
            return self.square(values, X)
        (c,) = values
        K = np.full((len(X), len(Z)), c.item(), order="F")
        return K, lambda dK: [np.full(c.shape, dK.sum())]

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return c everywhere."""
        (c,) = values
        return np.full(len(X), c.item()), lambda dk: [np.full(c.shape, dk.sum())]


class WhiteNoiseKernel(OneNumberKernel, AddingKernel):
    """k = sigma² for a row with itself, zero between different rows, even if they are identical."""

    def add_to(self, K: Array, values: Sequence[Array], X: Array, scale: float) -> Pullback:
        """Add scale · sigma² to the diagonal."""
        (sigma,) = values
        K.reshape(-1, order="A")[:: len(X) + 1] += scale * sigma.item() ** 2

        def pullback(dK: Array) -> list[Array]:
            trace = np.trace(dK)
            return [np.asarray(2.0 * scale * sigma * trace), np.asarray(sigma.item() ** 2 * trace)]

        return pullback

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return sigma² I, or zeros where `Z` are other rows."""
        if Z is None:
            return self.square(values, X)
        (sigma,) = values
        return np.zeros((len(X), len(Z)), order="F"), lambda dK: [np.zeros(sigma.shape)]

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return sigma² everywhere."""
        (sigma,) = values
        k = np.full(len(X), sigma.item() ** 2)
        return k, lambda dk: [np.asarray(2.0 * sigma * dk.sum())]

    def copy_diagonal(self, values: Sequence[Array], X: Array) -> Array:
        """Return zeros."""
        return np.zeros(len(X))


def _build_linear(cov_func: Any, lower: Lower) -> Kernel | None:
    c = as_parameter(cov_func.c)
    return LinearKernel(cov_func.active_dims, c) if c.ndim <= 1 else None


def _build_linear_ard(cov_func: Any, lower: Lower) -> Kernel | None:
    weights = cov_func.weights
    return LinearARDKernel(cov_func.active_dims, weights) if weights.ndim == 1 else None


def _build_constant(cov_func: Any, lower: Lower) -> Kernel | None:
    c = as_parameter(cov_func.c)
    return ConstantKernel(c) if is_scalar(c) else None


def _build_white_noise(cov_func: Any, lower: Lower) -> Kernel | None:
    sigma = as_parameter(cov_func.sigma)
    return WhiteNoiseKernel(sigma) if is_scalar(sigma) else None


BUILDERS: dict[type, Builder] = {
    cov.Linear: _build_linear,
    LinearARD: _build_linear_ard,
    cov.Constant: _build_constant,
    cov.WhiteNoise: _build_white_noise,
}
