"""What carries the latent function: inducing rows its smooth terms together, columns of their own the others.

A linear function, or the effects of raters, has as many dimensions as it has columns or raters. So many rows at which
such a term is seen alone carry it exactly, whatever the number of rows. Smooth terms go through the inducing rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

from pmordinal.engines.inducing.basis import choose, pivoted, sample
from pmordinal.gram import Gram, Kernel
from pmordinal.gram.addends import Addend, addends, together
from pmordinal.gram.base import Pullback
from pmordinal.gram.thin import Thin

MOST_COLUMNS = 2000  # of all terms that are carried exactly
# Where rows say almost the same, as they can when length-scales have grown since they were chosen: what is added to the
# diagonal of their covariance, as a share of it.
JITTER = 1e-10
MOST_JITTER = 1e-4


@dataclass(frozen=True, eq=False)
class Carrier:
    """Some terms of the latent function at some rows.

    Attributes
    ----------
    kernel : Kernel
        Of these terms.
    values : sequence of ndarray
        Of its parameters.
    at : tuple of int
        Places of its parameters among those of the whole covariance.
    Z : ndarray, shape (m, d)
        The rows.
    L : ndarray, shape (m, m)
        Lower Cholesky factor of their covariance.
    jitter : float
        Share of its diagonal that was added to it.
    """

    kernel: Kernel
    values: Sequence[np.ndarray]
    at: tuple[int, ...]
    Z: np.ndarray
    L: np.ndarray
    jitter: float

    def features(self, X: np.ndarray) -> tuple[np.ndarray, Pullback]:
        """Return φ = L⁻¹ k at rows, shape (m, b), and the pullback of k."""
        k, pull = self.kernel.matrix(self.values, self.Z, X)
        return blas.dtrsm(1.0, self.L, np.asfortranarray(k), lower=1), pull

    def through_features(self, by_phi: np.ndarray, pull: Pullback) -> list[np.ndarray]:
        """Return derivatives by the parameters, given those by φ, which are overwritten; L is held fixed."""
        by_phi = np.asfortranarray(by_phi)
        return pull(blas.dtrsm(1.0, self.L, by_phi, lower=1, trans_a=1, overwrite_b=1))

    def through_factor(self, by_L: np.ndarray) -> list[np.ndarray]:
        """Return derivatives by the parameters through L, given Σ dφ φᵀ."""
        half = lapack.dtrtrs(self.L, by_L + by_L.T, lower=1, trans=1)[0]
        dK = lapack.dtrtrs(self.L, half.T, lower=1, trans=1)[0]
        dK = -0.25 * (dK + 0.5 * (dK.T - dK))
        dK.flat[:: len(dK) + 1] *= 1.0 + self.jitter
        return self.kernel.matrix(self.values, self.Z, self.Z)[1](dK)


def carriers_of(gram: Gram, rows: np.ndarray, carrier: np.ndarray) -> tuple[Carrier, ...]:
    """Return the carriers.

    Parameters
    ----------
    gram : Gram
    rows : ndarray of int, shape (m,)
        Of the carriers, those of one after those of the other.
    carrier : ndarray of int, shape (m,)
        What each of them carries: k > 0 the k-th addend alone, zero all addends that no other row carries.
    """
    found = addends(gram.kernel)
    alone = [int(k) for k in np.unique(carrier) if k > 0]
    carried = {k: found[k - 1] for k in alone}
    rest = [one for k, one in enumerate(found, 1) if k not in carried]
    if not alone:
        carried[0] = Addend(gram.kernel, tuple(range(len(gram.values))))
    elif rest:
        carried[0] = together(rest)
    return tuple(
        _factored(gram, carried[k], rows[carrier == k])
        for k in sorted(carried)
        if np.any(carrier == k)
    )


def term_carriers(gram: Gram, carrier: np.ndarray) -> list[int]:
    """Return which carrier has each term of the covariance, in the order of `Kernel.parts`."""
    alone, found = set(np.unique(carrier).tolist()), []
    for k, one in enumerate(addends(gram.kernel), 1):
        terms = one.kernel.parts(one.of(gram.values))
        found += [k if k in alone else 0] * len(terms)
    return found


def _factored(gram: Gram, part: Addend, rows: np.ndarray) -> Carrier:
    Z, values = gram.X[rows], part.of(gram.values)
    # as between different rows: white noise belongs to the residuals
    K = part.kernel.matrix(values, Z, Z)[0]
    jitter, largest = 0.0, float(K.diagonal().max())
    if largest == 0.0:  # a term that has vanished: all its features are zero
        return Carrier(part.kernel, values, part.at, Z, np.eye(len(K), order="F"), 0.0)
    while True:
        L = np.array(K, order="F")
        L.flat[:: len(L) + 1] *= 1.0 + jitter
        L, info = lapack.dpotrf(L, lower=1, clean=1, overwrite_a=1)
        is_sound = not info and (jitter or float(L.diagonal().min() ** 2) > JITTER * largest)
        if is_sound or jitter >= MOST_JITTER:
            break
        jitter = max(JITTER, 10.0 * jitter)
    if info:
        raise np.linalg.LinAlgError(
            "the covariance of the inducing rows is not positive definite, even with a jitter of "
            f"{jitter:.0e}: check the covariance"
        )
    return Carrier(part.kernel, values, part.at, Z, L, jitter)


def select(
    gram: Gram,
    m: int,
    rng: np.random.Generator,
    pool: np.ndarray | None = None,
    basis: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of all carriers, and what each carries; see `carriers_of`.

    Parameters
    ----------
    gram : Gram
    m : int
        Number of inducing rows.
    rng : Generator
    pool : ndarray of int, optional
        Rows that inducing rows are chosen from; see `choose`.
    basis : ndarray of int, optional
        The inducing rows, if they are not to be chosen.
    """
    rows, carrier, rest = [], [], []
    for k, one in enumerate(addends(gram.kernel), 1):
        found = spanning(one, gram) if one.is_thin else None
        if found is None:
            rest.append(one)
        else:
            rows.append(found)
            carrier.append(np.full(found.size, k))
    if sum(map(len, rows)) > MOST_COLUMNS:
        counts = ", ".join(str(len(found)) for found in rows)
        raise ValueError(
            f"the linear and group terms have {counts} columns, and engine 'inducing' carries at most {MOST_COLUMNS} "
            "in all: leave out the term with most levels, or join its rare levels"
        )
    if rest or basis is not None:
        if basis is None:
            part = together(rest)
            basis = choose(Gram(part.kernel, gram.X, part.of(gram.values)), m, rng, pool)
        rows.insert(0, basis if rest else basis[:0])
        carrier.insert(0, np.zeros(len(rows[0]), dtype=np.intp))
    return np.concatenate(rows), np.concatenate(carrier)


def spanning(part: Addend, gram: Gram) -> np.ndarray | None:
    """Return rows that carry a thin addend exactly; None if it has too many columns and no levels."""
    thin = part.thin(gram.values, gram.X)
    width = thin.phi.shape[1]
    if not len(thin.levels) and width > MOST_COLUMNS:
        return None
    rows, groups = _candidates(thin)
    # the levels of one factor have nothing in common, unless they sum to zero
    if groups > MOST_COLUMNS or (width == 1 and not thin.levels.off.any()):
        return rows
    own = part.of(gram.values)
    return rows[pivoted(part.kernel, own, gram.X[rows], rows.size)]


def _candidates(thin: Thin) -> tuple[np.ndarray, int]:
    """Return rows where columns are largest, for each combination of levels, and the number of these."""
    n, width = thin.phi.shape
    columns = np.abs(thin.phi).T
    if not len(thin.levels):
        found = [columns.argmax(axis=1)]
        if width > 1:  # several columns may be largest at the same row
            found.append(sample(n, 8 * width))
        return np.unique(np.concatenate(found)), 1
    codes = thin.levels.codes
    names: np.ndarray = codes[0] if len(codes) == 1 else codes
    group = np.unique(names, axis=names.ndim - 1, return_inverse=True)[1].ravel()
    found = []
    for column in columns:
        order = np.lexsort([-column, group])
        begins = np.flatnonzero(np.diff(group[order], prepend=-1))
        found.append(order[begins])
        if width > 1:
            rank = np.arange(n) - np.repeat(begins, np.diff([*begins, n]))
            found.append(order[rank < 4 * width])
    rows = np.unique(np.concatenate(found))
    seen = rows[(columns[:, rows] > 0.0).any(axis=0)]
    return (seen if seen.size else rows[:1]), int(group.max()) + 1
