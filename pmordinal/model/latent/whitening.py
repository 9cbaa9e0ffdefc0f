"""A Gaussian process in coordinates that are nearly independent given ordinal labels.

Sampling f = K^½ z with white z is hard if the labels are informative: the posterior of z is then narrow, and how narrow
depends on the noise. A label is about as informative as a measurement of f in the centre m of its class, with some
precision w. If it were one, the posterior would be Gaussian: with c_i labels at row i, g = C^½ f and K̃ = C^½ K C^½,

    g = φ₁(K̃) v + φ₂(K̃) m̃,    φ₁(λ) = (λ / (1 + wλ))^½,    φ₂(λ) = wλ / (1 + wλ),    v ~ N(0, I).

These v are the coordinates. The prior of f is not changed: it gives v, for any m and w, the density of white noise
z = ψ₁(K̃) v + ψ₂(K̃) m̃, with ψ₁ = (1 + wλ)^−½ and ψ₂ = w λ^½ / (1 + wλ), times |ψ₁(K̃)|. The better m and w are
chosen, the closer is the posterior of v to white noise; the results do not depend on them. Functions of K̃ come from
its eigenvalues, so that K̃ may be singular and no jitter is needed. The derivative of φ(K̃) is, in the basis of the
eigenvectors, the product with the divided differences (φ(λ_i) − φ(λ_j)) / (λ_i − λ_j), without cancellation.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pmordinal.gram import Gram, Kernel

NULL = 1e-7  # roots of eigenvalues below this share of the largest are set to zero

type Derivatives = tuple[np.ndarray, np.ndarray, float, np.ndarray]


class Whitening:
    """The coordinates v for given rows and labels.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray, shape (n, d)
        Rows, duplicated ones included.
    y : ndarray of int, shape (n,)
        Class codes.
    n_classes : int

    Attributes
    ----------
    X : ndarray, shape (u, d)
        Distinct rows; all rows if identical rows may have different latent values (white noise).
    inverse : ndarray of int, shape (n,)
        Index of each row among the distinct ones.
    """

    def __init__(self, kernel: Kernel, X: np.ndarray, y: np.ndarray, n_classes: int) -> None:
        self.kernel = kernel
        if kernel.joins_copies:
            self.X, self.inverse = np.unique(X, axis=0, return_inverse=True)
        else:
            self.X, self.inverse = X, np.arange(len(X))
        counts = np.zeros((len(self.X), n_classes))
        np.add.at(counts, (self.inverse, y), 1.0)
        self._weight = np.sqrt(counts.sum(1))  # the diagonal of C^½
        self._tally = counts / self._weight[:, None]  # m̃ = this times the centres of the classes
        self._latest: tuple[Any, Gram | None] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the cached covariance out of pickles."""
        return {**self.__dict__, "_latest": (None, None)}

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.X)

    def _gram(self, values: Sequence[np.ndarray]) -> Gram:
        """Return the covariance at these parameters; the last one is cached."""
        key = tuple(np.asarray(value).tobytes() for value in values)
        latest, gram = self._latest  # read at once, so that threads do not mix two
        if gram is None or latest != key:
            gram = Gram(self.kernel, self.X, values)
            self._latest = key, gram
        return gram

    def spectrum(self, values: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the eigenvectors Q of K̃, shape (u, u), and the roots s of its eigenvalues."""
        K = self._gram(values).matrix
        eigenvalues, Q = np.linalg.eigh(K * self._weight * self._weight[:, None])
        s = np.sqrt(np.maximum(eigenvalues, 0.0))
        s[s < NULL * s[-1]] = 0.0
        return Q, s

    def spectrum_pullback(
        self, M: np.ndarray, Q: np.ndarray, values: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Return the derivatives by the kernel's parameters, given the derivative M by K̃ in the basis Q."""
        dK = Q @ (M + M.T) @ Q.T
        dK *= 0.5 * self._weight
        dK *= self._weight[:, None]
        return self._gram(values).pullback(dK)

    def latent(self, v, centres, w, Q, s) -> np.ndarray:
        """Return f at the rows, shape (n,).

        Parameters
        ----------
        v : ndarray, shape (u,)
        centres : ndarray, shape (r,)
            Centres of the classes, on the scale of f.
        w : float
            Precision of a label as a measurement of f.
        Q, s : ndarray
            As returned by `spectrum`.
        """
        v, m = Q.T @ v, Q.T @ (self._tally @ centres)
        p2 = 1.0 + w * s * s
        g = Q @ (s / np.sqrt(p2) * v + w * s * s / p2 * m)
        return (g / self._weight)[self.inverse]

    def latent_pullback(self, df, v, centres, w, Q, s) -> Derivatives:
        """Return the derivatives of `latent` by v, centres, w, and by K̃ in the basis Q."""
        v, m = Q.T @ v, Q.T @ (self._tally @ centres)
        p2 = 1.0 + w * s * s
        p = np.sqrt(p2)
        g = Q.T @ (np.bincount(self.inverse, df, s.size) / self._weight)
        dw = g @ (m * (s / p2) ** 2 - 0.5 * v * (s / p) ** 3)
        M = np.multiply.outer(g / p2, v / p2)
        total = np.add.outer(s / p, s / p)
        np.divide(M, total, out=M, where=total > 0.0)
        M[total == 0.0] = 0.0
        M += np.multiply.outer(g / p2, w * m / p2)
        return (
            Q @ (s / p * g),
            self._tally.T @ (Q @ (w * s * s / p2 * g)),
            float(dw),
            M,
        )

    def log_density(self, v, centres, w, Q, s) -> float:
        """Return the log density of the coordinates v; parameters as in `latent`."""
        p2 = 1.0 + w * s * s
        z = (Q.T @ v) / np.sqrt(p2) + w * s / p2 * (Q.T @ (self._tally @ centres))
        return float(-0.5 * (z @ z + z.size * np.log(2.0 * np.pi) + np.log(p2).sum()))

    def log_density_pullback(self, d, v, centres, w, Q, s) -> Derivatives:
        """Return the derivatives of `log_density` by v, centres, w, and by K̃ in the basis Q."""
        v, m = Q.T @ v, Q.T @ (self._tally @ centres)
        p2 = 1.0 + w * s * s
        p = np.sqrt(p2)
        z = -d * (v / p + w * s / p2 * m)
        dw = z @ (m * s / p2**2 - 0.5 * v * s * s / p**3) - 0.5 * d * (s * s / p2).sum()
        M = np.multiply.outer(z / p2, w * m / p2)
        M *= 1.0 - w * np.multiply.outer(s, s)
        total = np.add.outer(s, s)
        np.divide(M, total, out=M, where=total > 0.0)
        M[total == 0.0] = 0.0
        M -= np.multiply.outer(z / p, w * v / p) / np.add.outer(p, p)
        M.flat[:: s.size + 1] -= 0.5 * d * w / p2
        return Q @ (z / p), self._tally.T @ (Q @ (w * s / p2 * z)), float(dw), M

    def coordinates(self, z, centres, w, Q, s) -> np.ndarray:
        """Return v for white noise z, shape (u,); parameters as in `latent`."""
        p = np.sqrt(1.0 + w * s * s)
        return Q @ (p * (Q.T @ z) - w * s / p * (Q.T @ (self._tally @ centres)))
