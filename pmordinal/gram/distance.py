"""Kernels of the squared distance between features of rows, with the blocked arithmetic that they share."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from pmordinal.gram.base import Array, Columns, Kernel, Pullback, as_parameter
from pmordinal.gram.pairs import (
    MOST_ROWS,
    add_rows,
    augmented,
    blocks,
    get_pairs,
    move_pairs,
    put_pairs,
    take_pairs,
    triangle,
)
from pmordinal.linalg import fill_upper
from pmordinal.linalg.workspace import empty

FEW_ROWS, FEW_COLUMNS = 200, 12  # for fewer, plain loops are faster than BLAS

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
        K = empty((len(X), len(X)))
        pullback = self._write(K, values, X, scale, add=False)
        return fill_upper(K), pullback

    def add_to(self, K: Array, values: Sequence[Array], X: Array, scale: float) -> Pullback:
        """Add scale · K(X) to the lower triangle of `K`; return its pullback, that in `scale` last."""
        return self._write(K, values, X, scale, add=True)

    def _write(
        self, K: Array, values: Sequence[Array], X: Array, scale: float, add: bool
    ) -> Pullback:
        """Write or add scale · K(X) into the lower triangle of `K`."""
        phi, features_pullback, _ = self._features_at(values, X)
        own = values[self._n_features :]
        pull_square = self._square(K, phi, [value.item() for value in own], scale, add)

        def pullback(dK: Array) -> list[Array]:
            dphi, derivatives, by_scale = pull_square(dK)
            inside = features_pullback(dphi) + _shaped(derivatives, own)
            # Pullbacks are linear, so the scale multiplies a few derivatives instead of dK.
            return [*(np.asarray(scale * g) for g in inside), np.asarray(by_scale)]

        return pullback

    def _features_at(
        self, values: Sequence[Array], X: Array, centre: Array | None = None
    ) -> tuple[Array, Pullback, Array]:
        """Return φ, its pullback, and the centre that was subtracted from the rows: by default their mean."""
        X = self.columns_of(X)
        # ‖φ_i‖² + ‖φ_j‖² − 2 φ_i·φ_j cancels far from the origin.
        centre = np.add.reduce(X, axis=0) / max(len(X), 1) if centre is None else centre
        return *self.features(values[: self._n_features], X - centre), centre

    def _square(
        self, K: Array, phi: Array, own: Sequence[float], scale: float, add: bool
    ) -> Callable[[Array], tuple[Array, list[float], float]]:
        n, p = phi.shape
        if n <= FEW_ROWS and p <= FEW_COLUMNS:
            return self._small_square(K, phi, own, scale, add)
        parts = triangle(n, self.keeps_auxiliary)
        A, B = augmented(phi)
        for block, below, H, auxiliary in parts:
            np.matmul(A[block], B[below].T, out=H)
            self._clean(H, A[block], B[below])
            H.flat[:: H.shape[1] + 1] = 0.0
            self.profile(H, auxiliary, own)
            if add:
                add_rows(scale, H, K.T[block, below])
            else:
                np.multiply(scale, H, out=K.T[block, below])

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

        return pullback

    def _small_square(
        self, K: Array, phi: Array, own: Sequence[float], scale: float, add: bool
    ) -> Callable[[Array], tuple[Array, list[float], float]]:
        """Do the same for few rows and features by loops over pairs, which are faster then."""
        columns, k = phi.T.copy(), pdist(phi, "sqeuclidean")
        k *= -0.5
        auxiliary = np.empty(k.size) if self.keeps_auxiliary else None
        self.profile(k, auxiliary, own)
        put_pairs(scale, k, K, add)

        def pullback(dK: Array) -> tuple[Array, list[float], float]:
            S, dphi = np.empty(k.size), np.zeros(columns.shape)
            by_scale = dK.trace() + 2.0 * get_pairs(dK, k, S)
            total = [2.0 * g for g in self.own_derivatives(S, k, auxiliary, own)] if own else []
            self.slope(S, k, auxiliary, own)
            move_pairs(S, columns, dphi)
            return dphi.T, total, by_scale

        return pullback

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
