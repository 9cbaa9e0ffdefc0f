"""What all rows share, and a few rows with their features.

With the Cholesky factor L of the covariance of the inducing rows, φ = L⁻¹ k_u(x) and whitened weights w ~ N(0, I), a
row's latent value is f = φᵀw plus an independent residual of variance λ = k(x, x) − |φ|². Terms with columns of their
own, see `Carrier`, have independent weights: L is block diagonal.

Arrays of features are of shape (m, b), in Fortran order: a column for each row of the data.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas, block_diag

from pmordinal import linalg
from pmordinal.engines.inducing.blocks import Block
from pmordinal.engines.inducing.carriers import Carrier
from pmordinal.engines.inducing.cavities import EXACT, Cavities, Tilt, find_cavities
from pmordinal.gram import Kernel
from pmordinal.likelihood import OrdinalLikelihood, Rows
from pmordinal.links import Link

ENTRIES = 2**19  # entries of the features of a piece: they stay in the processor's cache
MOST_KEPT = 2**25  # entries of features that are kept between passes, 256 MiB
LEAST_RESIDUAL = 1e-12  # smallest λ, as a share of the prior variance


class Features(NamedTuple):
    """Of some rows: φ, |φ|², λ, and whether λ is more than rounding errors."""

    phi: np.ndarray
    prior: np.ndarray
    lam: np.ndarray
    has_residual: np.ndarray


class Kept:
    """What passes over rows in memory share: cavities to start from and, where these take little memory, features.

    Parameters
    ----------
    blocks : sequence of Block
    cavities : ndarray, shape (2, n), optional
        Means and variances to start from.
    """

    def __init__(self, blocks: Sequence[Block], cavities: np.ndarray | None = None) -> None:
        self.blocks = blocks
        ends = np.cumsum([len(block) for block in blocks])
        if cavities is None:
            cavities = np.full((2, ends[-1]), np.nan)
        parts = np.split(cavities.copy(), ends[:-1], axis=1)
        self._cavities = {id(block): part for block, part in zip(blocks, parts, strict=True)}
        self._features: dict[tuple[int, int], Features] | None = {}

    def forget_features(self) -> "Kept":
        """Keep cavities alone, from now on."""
        self._features = None
        return self

    @property
    def cavities(self) -> np.ndarray | None:
        """Means and variances of all rows, shape (2, n); None if they are not known."""
        found = np.concatenate([self._cavities[id(block)] for block in self.blocks], axis=1)
        return found if np.isfinite(found).all() else None

    def piece(self, shared: "Shared", block: Block, part: Block, start: int) -> "Piece":
        """Return the piece of a block that begins with its row `start`."""
        cavities = self._cavities[id(block)][:, start : start + len(part)]
        if self._features is None:
            return Piece(shared, part, None, cavities)
        piece = Piece(shared, part, self._features.get((id(block), start)), cavities)
        self._features[id(block), start] = piece.features
        return piece


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
    kept : Kept, optional
        What earlier passes have found.
    """

    kernel: Kernel
    values: Sequence[np.ndarray]
    carriers: tuple[Carrier, ...]
    thresholds: np.ndarray
    noise: float | np.ndarray
    link: Link
    kept: Kept | None = field(default=None, kw_only=True, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __getstate__(self) -> dict[str, Any]:
        """Leave what is kept out of pickles: other processes keep nothing."""
        return self.as_dict() | {"kept": None}

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
        start = 0
        for part in block.pieces(max(256, ENTRIES // self.m)):
            if self.kept is None:
                yield Piece(self, part)
            else:
                yield self.kept.piece(self, block, part, start)
            start += len(part)


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

    @cached_property
    def inverse(self) -> np.ndarray:
        """C⁻¹, with which products are faster than with C."""
        assert self.C is not None
        return linalg.triangular_inverse(self.C)


class Piece:
    """A few rows with their features.

    Parameters
    ----------
    shared : Shared
    block : Block
    features : Features, optional
        If they are known already; then there are no derivatives.
    kept : ndarray, shape (2, b), optional
        Cavities of an earlier pass; those of the next are written there.
    """

    def __init__(
        self,
        shared: Shared,
        block: Block,
        features: Features | None = None,
        kept: np.ndarray | None = None,
    ):
        self.block, self.shared, self._kept = block, shared, kept
        self.likelihood = shared.likelihood(block.rows)
        self.features = self._computed() if features is None else features
        self.phi, self.prior, self.lam, self.has_residual = self.features

    def _computed(self) -> Features:
        """Return the features; keep their pullbacks."""
        X, shared = self.block.X, self.shared
        parts, self.pulls = zip(*(c.features(X) for c in shared.carriers), strict=True)
        diagonal, self.pull_diagonal = shared.kernel.diagonal(shared.values, X)
        phi = parts[0] if len(parts) == 1 else _stacked(parts)
        prior = squares(phi)
        residual, least = diagonal - prior, LEAST_RESIDUAL * diagonal
        has_residual = residual > least
        return Features(phi, prior, np.where(has_residual, residual, least), has_residual)

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

    def half(self, state: State) -> np.ndarray:
        """Return C⁻¹ φ, whose squares add up to the variances of η."""
        return blas.dtrmm(1.0, state.inverse, self.phi, lower=1)

    def cavities(self, state: State, v: np.ndarray) -> Cavities:
        """Return the cavities of the rows, whose variances of η are `v`."""
        m = state.w @ self.phi
        found = find_cavities(
            self.tilt_of, m, v, self.prior, self.lam, state.exact, self.known_cavities
        )
        if self._kept is not None:
            self._kept[:] = found.mu, found.c
        return found

    @property
    def known_cavities(self) -> np.ndarray | None:
        """Means and variances of the cavities of an earlier pass, shape (2, b)."""
        known = self._kept is not None and np.isfinite(self._kept).all()
        return self._kept if known else None

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
