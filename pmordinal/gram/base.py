"""The base class `Kernel` of covariances in NumPy, and `DistanceKernel` for functions of a distance.

A `Kernel` is the NumPy form of a ``pm.gp.cov`` object: values and hand-written pullbacks. A `Gram`
is a kernel at given rows and parameter values. A `DistanceKernel` depends on its rows through the
squared distance between features of them; it has the blockwise arithmetic that all of these share.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.tensor.variable import TensorConstant, TensorVariable

from pmordinal.gram.pairs import (
    MOST_ROWS,
    augmented,
    blocks,
    half_distances,
    spread,
    take_pairs,
    triangle,
)
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
    is_white: ClassVar[bool] = False  # zero between different rows
    keeps_matrix: ClassVar[bool] = True  # the pullback needs the matrix that was returned
    joins_copies: bool = False  # identical rows have the same latent value
    reads_triangle: bool = False  # the pullback reads only the lower triangle of dK

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


_FEW_ROWS, _FEW_COLUMNS = 200, 12  # for fewer, plain loops are faster than BLAS

# A squared distance from a matrix product has lost four digits if it is below this share of ‖φ_i‖² + ‖φ_j‖².
_NEAR = 1e-4


class DistanceKernel(Kernel):
    """A kernel k(H), H = −½‖φ(x) − φ(z)‖², of features φ that depend on parameters.

    A subclass defines the features and the profile k(H) with its derivative, both computed in place.
    The parameters of the features come first, those of the profile after them.

    Attributes
    ----------
    keeps_auxiliary : bool
        Whether the profile stores a second matrix for its derivative.
    is_rough : bool
        Whether k behaves like √−H near zero, which magnifies rounding errors of H; distances between
        close rows are then computed from differences.
    """

    keeps_matrix = False
    joins_copies = reads_triangle = True
    keeps_auxiliary: bool = False
    is_rough: bool = False

    def __init__(self, active: Any, features: Sequence[Any], profile: Sequence[Any] = ()) -> None:
        self.columns_of = Columns(active)
        self.parameters = tuple(as_parameter(p) for p in (*features, *profile))
        self._n_features = len(features)

    def form(self) -> dict[str, Any]:
        """Return the class, the columns and the number of parameters of features and profile."""
        counts = [self._n_features, len(self.parameters) - self._n_features]
        active = self.columns_of.active
        return {"kernel": type(self).__name__, "active": active, "parameters": counts}

    @classmethod
    def from_form(cls, form: dict[str, Any], values: Iterator[Array]) -> Kernel:
        """Return the kernel of that form."""
        return cls(form["active"], *([next(values) for _ in range(k)] for k in form["parameters"]))

    @abstractmethod
    def features(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return φ(X), shape (n, p), for columns already chosen and centred, and its pullback."""

    @abstractmethod
    def profile(self, H: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite H ≤ 0, a contiguous array, with k(H); fill `auxiliary` if the slope needs it."""

    @abstractmethod
    def slope(self, dK: Array, k: Array, auxiliary: Array | None, own: Sequence[float]) -> None:
        """Overwrite dK with dK ∘ dk/dH; the result at H = 0 is not used, but must be finite."""

    def own_derivatives(
        self, dK: Array, k: Array, auxiliary: Array | None, own: Sequence[float]
    ) -> list[float]:
        """Return the derivatives by the parameters of the profile; they are zero at H = 0, where k = 1."""
        return []

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return ones."""
        return np.ones(len(X)), lambda dk: [np.zeros(value.shape) for value in values]

    def copy_diagonal(self, values: Sequence[Array], X: Array) -> Array:
        """Return ones: there is no white noise."""
        return np.ones(len(X))

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback."""
        if Z is None:
            K, pull = self.scaled(1.0, values, X)
            return K, lambda dK: pull(dK)[:-1]
        phi, features_pullback, centre = self._features_at(values, X)
        psi, star_pullback, _ = self._features_at(values, Z, centre)
        own = values[self._n_features :]
        K, pull_cross = self._cross(phi, psi, [value.item() for value in own])

        def cross_pullback(dK: Array) -> list[Array]:
            dphi, dpsi, derivatives = pull_cross(dK)
            both = zip(features_pullback(dphi), star_pullback(dpsi), strict=True)
            return [a + b for a, b in both] + _shaped(derivatives, own)

        return K, cross_pullback

    def scaled(self, scale: float, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return scale · K(X) and its pullback, with `scale` as last parameter."""
        phi, features_pullback, _ = self._features_at(values, X)
        own = values[self._n_features :]
        K, pull_square = self._square(phi, [value.item() for value in own], scale)

        def pullback(dK: Array) -> list[Array]:
            dphi, derivatives, by_scale = pull_square(dK)
            inside = features_pullback(dphi) + _shaped(derivatives, own)
            # Pullbacks are linear, so the scale multiplies a few derivatives instead of dK.
            return [*(np.asarray(scale * g) for g in inside), np.asarray(by_scale)]

        return K, pullback

    def _features_at(
        self, values: Sequence[Array], X: Array, centre: Array | None = None
    ) -> tuple[Array, Pullback, Array]:
        """Return φ, its pullback, and the centre that was subtracted from the rows: by default their mean."""
        X = self.columns_of(X)
        # ‖φ_i‖² + ‖φ_j‖² − 2 φ_i·φ_j cancels far from the origin.
        centre = np.add.reduce(X, axis=0) / max(len(X), 1) if centre is None else centre
        return *self.features(values[: self._n_features], X - centre), centre

    def _square(
        self, phi: Array, own: Sequence[float], scale: float
    ) -> tuple[Array, Callable[[Array], tuple[Array, list[float], float]]]:
        n, p = phi.shape
        if n <= _FEW_ROWS and p <= _FEW_COLUMNS:
            return self._small_square(phi, own, scale)
        K = empty((n, n))
        parts = triangle(n, self.keeps_auxiliary)
        A, B = augmented(phi)
        for block, below, H, auxiliary in parts:
            np.matmul(A[block], B[below].T, out=H)
            self._clean(H, A[block], B[below])
            H.flat[:: H.shape[1] + 1] = 0.0
            self.profile(H, auxiliary, own)
            np.multiply(scale, H, out=K.T[block, below])
        fill_upper(K)

        def pullback(dK: Array) -> tuple[Array, list[float], float]:
            phi_one = B[:, : p + 1]
            S_phi = np.zeros((n, p + 1))  # S [φ, 1] for S = dK ∘ dk/dH
            work = np.empty(MOST_ROWS * n)
            total = [0.0] * len(own)
            by_scale = float(np.trace(dK))
            for block, below, k, auxiliary in parts:
                S = work[: k.size].reshape(k.shape)
                by_scale += 2.0 * take_pairs(dK, block.start, k, S)
                inputs = k, auxiliary, own
                if own:
                    part = self.own_derivatives(S, *inputs)
                    total = [t + 2.0 * g for t, g in zip(total, part, strict=True)]
                self.slope(S, *inputs)
                S_phi[block] += S @ phi_one[below]
                S_phi[below] += S.T @ phi_one[block]
            return 2.0 * (S_phi[:, :p] - S_phi[:, p:] * phi), total, by_scale

        return K, pullback

    def _small_square(
        self, phi: Array, own: Sequence[float], scale: float
    ) -> tuple[Array, Callable[[Array], tuple[Array, list[float], float]]]:
        """Do the same for few rows and features by loops over pairs, which are faster then."""
        n = len(phi)
        columns, k = phi.T.copy(), np.empty((n, n))
        auxiliary = np.empty((n, n)) if self.keeps_auxiliary else None
        half_distances(columns, k)
        self.profile(k, auxiliary, own)

        def pullback(dK: Array) -> tuple[Array, list[float], float]:
            S, dphi = np.empty((n, n)), np.zeros(columns.shape)
            by_scale = dK.trace() + 2.0 * take_pairs(dK, 0, k, S)
            total = [2.0 * g for g in self.own_derivatives(S, k, auxiliary, own)] if own else []
            self.slope(S, k, auxiliary, own)
            spread(S, columns, dphi)
            return dphi.T, total, by_scale

        return (scale * k).T, pullback  # not k, as callers may overwrite it

    def _cross(
        self, phi: Array, psi: Array, own: Sequence[float]
    ) -> tuple[Array, Callable[[Array], tuple[Array, Array, list[float]]]]:
        (n, p), m = phi.shape, len(psi)
        K = np.empty((m, n))  # returned transposed, in Fortran order
        auxiliary = np.empty((m, n)) if self.keeps_auxiliary else None
        A, B = augmented(psi)[0], augmented(phi)[1]
        for block in blocks(m):
            H = K[block]
            np.matmul(A[block], B.T, out=H)
            self._clean(H, A[block], B)
            self.profile(H, None if auxiliary is None else auxiliary[block], own)

        def pullback(dK: Array) -> tuple[Array, Array, list[float]]:
            phi_one = B[:, : p + 1]
            psi_one = np.column_stack([psi, np.ones(m)])
            S_psi, S_phi = np.zeros((n, p + 1)), np.zeros((m, p + 1))
            total = [0.0] * len(own)
            for block in blocks(m):
                S = np.array(dK.T[block])
                inputs = K[block], None if auxiliary is None else auxiliary[block], own
                if own:
                    part = self.own_derivatives(S, *inputs)
                    total = [t + g for t, g in zip(total, part, strict=True)]
                self.slope(S, *inputs)
                S_phi[block] = S @ phi_one
                S_psi += S.T @ psi_one[block]
            dphi = S_psi[:, :p] - S_psi[:, p:] * phi
            dpsi = S_phi[:, :p] - S_phi[:, p:] * psi
            return dphi, dpsi, total

        return K.T, pullback

    def _clean(self, H: Array, A: Array, B: Array) -> None:
        """Correct rounding errors of H = A Bᵀ in place."""
        np.minimum(H, 0.0, out=H)
        if self.is_rough:
            p = A.shape[1] - 2
            i, j = np.nonzero(H > np.add.outer(_NEAR * A[:, p], _NEAR * B[:, p + 1]))
            difference = A[i, :p] - B[j, :p]
            H[i, j] = -0.5 * np.einsum("ij,ij->i", difference, difference)


def _shaped(derivatives: list[float], values: Sequence[Array]) -> list[Array]:
    return [np.full(value.shape, g) for value, g in zip(values, derivatives, strict=True)]
