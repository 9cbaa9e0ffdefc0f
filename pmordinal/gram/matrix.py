"""A matrix of numbers that a covariance is combined with."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pytensor.tensor.variable import TensorVariable

from pmordinal.gram.base import Array, Kernel, Pullback


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
