"""What all rows share, and a few rows with their features.

With the Cholesky factor L of the covariance of the inducing rows, φ = L⁻¹ k_u(x) and whitened weights w ~ N(0, I), a
row's latent value is f = φᵀw plus an independent residual of variance λ = k(x, x) − |φ|². Terms with columns of their
own, see `Carrier`, have independent weights: L is block diagonal.

Arrays of features are of shape (m, b), in Fortran order: a column for each row of the data.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import blas, block_diag

from pmordinal.engines.inducing.blocks import Block
from pmordinal.engines.inducing.carriers import Carrier
from pmordinal.engines.inducing.cavities import EXACT, Cavities, Tilt, find_cavities
from pmordinal.gram import Kernel
from pmordinal.likelihood import OrdinalLikelihood, Rows
from pmordinal.links import Link

ENTRIES = 2**19  # entries of the features of a piece: they stay in the processor's cache
LEAST_RESIDUAL = 1e-12  # smallest λ, as a share of the prior variance


@dataclass(frozen=True, eq=False)
class Shared:
    """What all rows share at given hyperparameters.

    Attributes
    ----------
    kernel : Kernel
    values : sequence of ndarray
        Of its parameters.
    carriers : tuple of Carrier
        Inducing rows, and columns of linear and group terms.
    thresholds, noise, link
        Of the likelihood.
    """

    kernel: Kernel
    values: Sequence[np.ndarray]
    carriers: tuple[Carrier, ...]
    thresholds: np.ndarray
    noise: float | np.ndarray
    link: Link

    @property
    def m(self) -> int:
        """Number of weights."""
        return sum(len(carrier.Z) for carrier in self.carriers)

    @property
    def slices(self) -> list[slice]:
        """The weights of each carrier."""
        ends = np.cumsum([0, *(len(carrier.Z) for carrier in self.carriers)])
        return [slice(*pair) for pair in pairwise(ends.tolist())]

    @property
    def L(self) -> np.ndarray:
        """Lower Cholesky factor of the covariance of what the weights stand for, shape (m, m)."""
        factors = [carrier.L for carrier in self.carriers]
        return factors[0] if len(factors) == 1 else np.asfortranarray(block_diag(*factors))

    def to_parameters(self, of_carriers: Iterable[list[np.ndarray]]) -> list[np.ndarray]:
        """Return derivatives by the kernel's parameters, given those of each carrier's."""
        total = [np.zeros(np.shape(value)) for value in self.values]
        for carrier, derivatives in zip(self.carriers, of_carriers, strict=True):
            for i, derivative in zip(carrier.at, derivatives, strict=True):
                total[i] = total[i] + derivative
        return total

    def likelihood(self, rows: Rows) -> OrdinalLikelihood:
        """Return the likelihood of some rows."""
        return OrdinalLikelihood(self.thresholds, self.noise, self.link, rows)

    def pieces(self, block: Block) -> Iterator["Piece"]:
        """Yield a block in pieces that stay in the processor's cache, with their features."""
        for part in block.pieces(max(256, ENTRIES // self.m)):
            yield Piece(self, part)


@dataclass(frozen=True, eq=False)
class State(Shared):
    """What all rows share, with a Gaussian posterior of the weights.

    Attributes
    ----------
    w : ndarray, shape (m,)
        Mean of the weights.
    C : ndarray, shape (m, m), optional
        Lower Cholesky factor of Λ; a Newton pass does without.
    exact : float
        Relative error of the cavities.
    """

    w: np.ndarray
    C: np.ndarray | None = None
    exact: float = EXACT


class Piece:
    """A few rows with their features.

    Parameters
    ----------
    shared : Shared
    block : Block
    """

    def __init__(self, shared: Shared, block: Block):
        self.block, self.shared = block, shared
        self.likelihood = shared.likelihood(block.rows)
        kernel, values = shared.kernel, shared.values
        parts, self.pulls = zip(*(c.features(block.X) for c in shared.carriers), strict=True)
        diagonal, self.pull_diagonal = kernel.diagonal(values, block.X)
        self.phi = parts[0] if len(parts) == 1 else _stacked(parts)
        self.prior = squares(self.phi)
        residual = diagonal - self.prior
        least = LEAST_RESIDUAL * diagonal
        self.has_residual = residual > least
        self.lam = np.where(self.has_residual, residual, least)

    @property
    def copies(self) -> np.ndarray | float:
        """How many equal sites each row has."""
        copies = self.likelihood.copies
        return 1.0 if copies is None else copies

    @property
    def weights(self) -> np.ndarray | float:
        """How many rows each row stands for."""
        weights = self.likelihood.weights
        return 1.0 if weights is None else weights

    @property
    def excess(self) -> np.ndarray:
        """λ in units of the noise variance: how much of a row the inducing rows do not see."""
        return self.lam / np.square(self.likelihood.noise_at())

    def tilt_of(self, index: np.ndarray | None) -> Tilt:
        """Return the averaged likelihood of some of the rows; of all for None."""
        if index is None:
            return self.likelihood.site_tilting(self.block.y)
        return self.likelihood.of_rows(index).site_tilting(self.block.y[index])

    def half(self, C: np.ndarray) -> np.ndarray:
        """Return C⁻¹ φ, whose squares add up to the variances of η."""
        return blas.dtrsm(1.0, C, self.phi, lower=1)

    def cavities(self, state: State, v: np.ndarray) -> Cavities:
        """Return the cavities of the rows, whose variances of η are `v`."""
        m = state.w @ self.phi
        return find_cavities(self.tilt_of, m, v, self.prior, self.lam, state.exact)

    def weighted_square(self, weights: np.ndarray) -> np.ndarray:
        """Return the lower triangle of Σ weight φ φᵀ, shape (m, m); weights may be negative."""
        total = np.zeros((len(self.phi),) * 2, order="F")
        for sign in (1.0, -1.0):
            chosen = sign * weights > 0.0
            if not chosen.any():
                continue
            phi = self.phi if chosen.all() else self.phi[:, chosen]
            root = np.sqrt(sign * weights[chosen])
            total = blas.dsyrk(sign, phi * root, beta=1.0, c=total, lower=1, overwrite_c=1)
        return total


def _stacked(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return arrays one below the other, in Fortran order."""
    return np.concatenate([part.T for part in parts], axis=1).T


def squares(A: np.ndarray) -> np.ndarray:
    """Return the sum of squares of each column."""
    return np.einsum("ij,ij->i", A.T, A.T)
