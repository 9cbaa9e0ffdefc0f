"""ANOVA covariance: a function of each argument and of each pair of them, all with mean zero over the data.

Terms that are orthogonal over the data don't compete: what one argument explains is not in the pairs that it is in
[Durrande2013]. A variance that goes to zero takes its term out of the model.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import ArrayLike
from pymc.gp import cov
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
)
from pmordinal.gram.centred import (
    BASES,
    Means,
    add_derivatives,
    add_terms,
    row_weights,
    write_kernels,
)
from pmordinal.gram.pairs import blocks
from pmordinal.linalg.workspace import empty

APART = 1e8  # between neighbouring codes of levels, where a length-scale is about one


class Anova(cov.Covariance):
    """Sum of a function of each argument and of each pair, k = Σ v_j k̃_j + Σ v_jk k̃_j k̃_k.

    k̃_j is a covariance of argument j alone with its mean over `rows` taken out, so that each term has mean zero over
    the data.

    Parameters
    ----------
    input_dim : int
        Number of columns of X.
    variances : tensor_like, shape (number of terms,)
        Of the arguments, in the order of `active_dims`, and then of the pairs.
    ls : tensor_like, shape (number of arguments,)
        Length-scale of each argument.
    rows : array_like, shape (N, input_dim)
        The data, in the units in which the covariance reads X: standardised if the model standardises it.
    order : {2, 1}
        With 1 there are no pairs.
    pairs : sequence of (int, int), optional
        Arguments of each pair, counted from 0 among `active_dims`; by default all pairs j < k.
    base : {"expquad", "matern12", "matern32", "matern52"}
        Covariance of one argument.
    active_dims : sequence of int, optional
        The columns that are arguments.
    levels : sequence of int, optional
        Arguments, counted as in `pairs`, that hold codes of levels: their covariance is [same level], and their
        length-scale has no effect.
    weights : array_like, shape (N,), optional
        How many rows each of `rows` stands for, where means are taken.

    Examples
    --------
    >>> import numpy as np
    >>> from pmordinal.gram import Anova, Gram, lower
    >>> rows = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    >>> cov_func = Anova(2, [1.0, 2.0, 0.5], [1.0, 1.0], rows)
    >>> cov_func.terms
    ((0,), (1,), (0, 1))
    >>> main = Anova(2, [1.0], [1.0], rows, active_dims=[0])
    >>> gram = Gram(lower(main), rows, [[1.0], [1.0]])
    >>> np.abs(gram.matrix.sum(axis=0)).max() < 1e-14
    np.True_
    """

    def __init__(
        self,
        input_dim: int,
        variances: Any,
        ls: Any,
        rows: ArrayLike,
        order: int = 2,
        pairs: Sequence[tuple[int, int]] | None = None,
        base: str = "expquad",
        active_dims: Sequence[int] | None = None,
        levels: Sequence[int] = (),
        weights: ArrayLike | None = None,
    ) -> None:
        super().__init__(input_dim, active_dims)
        d = len(self.active_dims)
        self.levels = tuple(levels)
        self.weights = None if weights is None else np.array(weights, dtype=np.float64)
        if base not in BASES:
            raise ValueError(f"unknown base {base!r}: choose one of {', '.join(BASES)}")
        if order not in (1, 2) or (order == 1 and pairs):
            raise ValueError(
                f"order must be 2, or 1 without pairs, got order={order}, pairs={pairs}"
            )
        if pairs is None:
            pairs = list(combinations(range(d), 2)) if order == 2 else []
        chosen = [(min(pair), max(pair)) for pair in pairs if len(set(pair)) == len(pair) == 2]
        if len(chosen) < len(pairs) or any(not 0 <= j < k < d for j, k in chosen):
            raise ValueError(
                f"pairs must be of two different arguments out of 0 to {d - 1}, got {pairs}"
            )
        if len(set(chosen)) < len(chosen):
            raise ValueError(f"pairs must name each pair once, got {pairs}")
        self.terms: tuple[tuple[int, ...], ...] = (*((j,) for j in range(d)), *chosen)
        self.base = base
        self.variances = _vector("variances", variances, len(self.terms), "term")
        self.ls = _vector("ls", ls, d, "argument")
        lowest = [getattr(p, "data", np.ones(1)).min() for p in (self.variances, self.ls)]
        if lowest[0] < 0.0:
            raise ValueError(f"variances must not be negative, got {lowest[0]:g}")
        if lowest[1] <= 0.0:
            raise ValueError(f"ls must be positive, got {lowest[1]:g}")
        data = checks.finite_array("rows", rows)
        if data.ndim != 2 or not len(data):
            raise ValueError(f"rows must be a matrix of data, got shape {data.shape}")
        self.rows: Array = Columns(self.active_dims)(data).T.copy()

    def _centred(self, j: int, x: Any, z: Any) -> TensorVariable:
        """Return k̃_j between columns of numbers, which broadcast."""
        data = pt.constant(self.rows[j])
        N = self.rows.shape[1]
        w = pt.constant(
            np.ones(N) / N if self.weights is None else self.weights / self.weights.sum()
        )
        mean_x, mean_z = (pt.sum(w * self._k(j, u[..., None], data), axis=-1) for u in (x, z))
        total = pt.sum(w[:, None] * w * self._k(j, data[:, None], data[None, :]))
        return self._k(j, x, z) - mean_x * mean_z / total

    def _k(self, j: int, x: Any, z: Any) -> TensorVariable:
        if j in self.levels:
            return pt.cast(pt.eq(x, z), "float64")
        u = pt.abs((x - z) / self.ls[j])
        if self.base == "expquad":
            return pt.exp(-0.5 * u**2)
        if self.base == "matern12":
            return pt.exp(-u)
        t = np.sqrt({"matern32": 3.0, "matern52": 5.0}[self.base]) * u
        return (1.0 + t + (t**2 / 3.0 if self.base == "matern52" else 0.0)) * pt.exp(-t)

    def _sum(self, x: Any, z: Any) -> TensorVariable:
        parts = [self._centred(j, x[j], z[j]) for j in range(len(self.active_dims))]
        products = [parts[t[0]] * parts[t[1]] if len(t) == 2 else parts[t[0]] for t in self.terms]
        return sum(self.variances[i] * k for i, k in enumerate(products))

    def full(self, X: Any, Xs: Any = None) -> TensorVariable:
        """Return the covariances between rows as a PyTensor expression, shape (n, m)."""
        X, Xs = self._slice(X, Xs)
        Xs = X if Xs is None else Xs
        arguments = range(len(self.active_dims))
        return self._sum([X[:, [j]] for j in arguments], [Xs[:, j][None, :] for j in arguments])

    def diag(self, X: Any) -> TensorVariable:
        """Return the variances of the rows as a PyTensor expression, shape (n,)."""
        X, _ = self._slice(X, None)
        columns = [X[:, j] for j in range(len(self.active_dims))]
        return self._sum(columns, columns)


def _vector(name: str, value: Any, size: int, of: str) -> TensorVariable:
    vector = as_parameter(value)
    if vector.type.shape not in ((size,), (None,)):
        raise ValueError(
            f"{name} must have one number for each of {size} {of}(s), got shape {vector.type.shape}"
        )
    return vector


class AnovaKernel(AddingKernel):
    """The same in NumPy; parameters variances, ls.

    Terms are tuples of one or two arguments, in any number and order.
    """

    joins_copies = True

    def __init__(
        self,
        active: Any,
        base: str,
        terms: Sequence[Sequence[int]],
        rows: Array,
        variances: Any,
        ls: Any,
        levels: Sequence[int] = (),
        weights: Array | None = None,
    ) -> None:
        self.columns_of = Columns(active)
        self.base, self.rows, self.levels = base, rows, list(levels)
        self.terms = tuple(tuple(term) for term in terms)
        self.means = Means(base, self._apart(rows.copy()), weights)
        self.parameters = (as_parameter(variances), as_parameter(ls))
        self._mains = [i for i, term in enumerate(self.terms) if len(term) == 1]
        self._pairs = [i for i, term in enumerate(self.terms) if len(term) == 2]
        self._arguments = [self.terms[i][0] for i in self._mains]
        pairs = np.array([self.terms[i] for i in self._pairs], dtype=np.intp).reshape(-1, 2)
        self._first, self._second = pairs.T.copy()

    @property
    def scale(self) -> tuple[TensorVariable, ...]:
        """The variances."""
        return self.parameters[:1]

    def form(self) -> dict[str, Any]:
        """Return the columns, the terms and the data."""
        terms = [list(term) for term in self.terms]
        active, weights = self.columns_of.active, self.means.weights
        form = {"kernel": "AnovaKernel", "active": active, "base": self.base}
        form |= {"terms": terms, "rows": self.rows.tolist()}
        if self.levels:
            form["levels"] = self.levels
        if weights is not None:
            form["weights"] = weights.tolist()
        return form

    @classmethod
    def from_form(cls, form: dict[str, Any], values: Iterator[Array]) -> Kernel:
        """Return the kernel of that form."""
        at = form["active"], form["base"], form["terms"], np.array(form["rows"])
        weights = np.array(form["weights"]) if "weights" in form else None
        return cls(*at, next(values), next(values), form.get("levels", ()), weights)

    def parts(self, values: Sequence[Array]) -> list[tuple[Kernel, Sequence[Array]]]:
        """Return a kernel for each term, in the order of the variances."""
        variances, ls = values
        parts: list[tuple[Kernel, Sequence[Array]]] = []
        for i, term in enumerate(self.terms):
            own = list(term)
            active = [self.columns_of.active[a] for a in own]
            own_values = [variances[[i]], ls[own]]
            levels = [k for k, a in enumerate(own) if a in self.levels]
            at = active, self.base, [range(len(own))], self.rows[own]
            further = {"levels": levels, "weights": self.means.weights}
            kernel = AnovaKernel(*at, *own_values, **further)  # type: ignore[arg-type]
            parts.append((kernel, own_values))
        return parts

    def _columns(self, X: Array) -> Array:
        return self._apart(self.columns_of(X).T.copy())

    def _apart(self, x: Array) -> Array:
        """Move levels so far apart, in place, that covariances of different ones underflow to zero."""
        x[self.levels] *= APART
        return x

    def _split(self, variances: Array) -> tuple[Array, Any, Any, Array]:
        """Return the variance of each argument, the arguments of the pairs, and their variances."""
        mains = np.zeros(len(self.means.rows))
        mains[self._arguments] = variances[self._mains]
        return mains, self._first, self._second, variances[self._pairs]

    def _joined(self, values: Sequence[Array], by: tuple[Array, Array, Array]) -> list[Array]:
        """Return the derivatives in the parameters, of those in the variances of arguments and pairs and in log ls."""
        variances, ls = values
        by_variances = np.empty(variances.shape)
        by_variances[self._mains] = by[0][self._arguments]
        by_variances[self._pairs] = by[1]
        return [by_variances, by[2] / ls]

    def _sums(self) -> tuple[Array, Array, Array]:
        d = len(self.means.rows)
        return np.zeros(d), np.zeros(len(self._pairs)), np.zeros(d)

    def add_to(self, K: Array, values: Sequence[Array], X: Array, scale: float) -> Pullback:
        """Add scale · K(X) to the lower triangle of `K`; return its pullback, that in `scale` last."""
        variances, ls = values
        x = self._columns(X)
        d, n = x.shape
        u, code, terms = x / ls[:, None], BASES.index(self.base), self._split(variances)
        is_data = n > 0 and self.means.weights is None and np.array_equal(x, self.means.rows)
        room = empty((d * sum((b.stop - b.start) * (n - b.start) for b in blocks(n)), 1))[:, 0]
        parts: list[tuple[slice, slice, Array]] = []
        used, m = 0, np.zeros((d, n))
        for block in blocks(n):
            rows, below = block.stop - block.start, slice(block.start, n)
            shape = d, rows, n - block.start
            k = room[used : used + np.prod(shape)].reshape(shape)
            used += k.size
            write_kernels(self.base, u[:, block], u[:, below], k)
            parts.append((block, below, k))
            if is_data:  # the means are those of the rows of the matrix itself
                m[:, below] += k.sum(axis=1)
                m[:, block] += k[:, :, rows:].sum(axis=2)
        if is_data:
            m /= n
            M = m.mean(axis=1)
        else:
            (m, dm), (M, dM) = self.means.at(x, ls), self.means.total(ls)
        for block, below, k in parts:
            add_terms(k, m[:, block], m[:, below], M, *terms, scale, K.T[block, below])

        def pullback(dK: Array) -> list[Array]:
            by, through = self._sums(), np.zeros((d, n))
            sums = np.zeros((d, n if is_data else 0))
            for block, below, k in parts:
                W = np.empty(k.shape[1:])
                row_weights(dK, block.start, W)
                at = W, u[:, block], u[:, below], k, m[:, block], m[:, below], M, terms, by
                add_derivatives(code, *at, through[:, block], through[:, below], sums[:, below])
            slope, total = (sums / n, sums.mean(axis=1) / n) if is_data else (dm, dM)
            by_M = 0.5 * np.einsum("ij,ij->i", m, through)
            by[2][:] += by_M * total / M**2 - np.einsum("ij,ij->i", slope, through) / M
            by_variances, by_ls = self._joined(values, by)
            return [scale * by_variances, scale * by_ls, np.asarray(by_variances @ variances)]

        return pullback

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback, which computes the kernels again: nothing large is kept."""
        if Z is None:
            return self.square(values, X)
        variances, ls = values
        x, z = self._columns(X), self._columns(Z)
        u, v, code, terms = (
            x / ls[:, None],
            z / ls[:, None],
            BASES.index(self.base),
            self._split(variances),
        )
        (m_x, dm_x), (m_z, dm_z) = self.means.at(x, ls), self.means.at(z, ls)
        M, dM = self.means.total(ls)

        def evaluate(block: slice, out: Array) -> Array:
            k = np.empty((len(x), block.stop - block.start, len(X)))
            write_kernels(self.base, v[:, block], u, k)
            add_terms(k, m_z[:, block], m_x, M, *terms, 1.0, out)
            return k

        K = np.zeros((len(Z), len(X)))
        for block in blocks(len(Z)):
            evaluate(block, K[block])

        def pullback(dK: Array) -> list[Array]:
            by, none = self._sums(), np.zeros((len(x), 0))
            through_x, through_z = np.zeros(x.shape), np.zeros(z.shape)
            for block in blocks(len(Z)):
                W = np.array(dK.T[block])
                k = evaluate(block, np.empty(W.shape))
                at = W, v[:, block], u, k, m_z[:, block], m_x, M, terms, by
                add_derivatives(code, *at, through_z[:, block], through_x, none)
            by[2][:] += np.einsum("ij,ij->i", m_z, through_z) * dM / M**2
            for slope, through in ((dm_x, through_x), (dm_z, through_z)):
                by[2][:] -= np.einsum("ij,ij->i", slope, through) / M
            return self._joined(values, by)

        return K.T, pullback

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return k(x, x) and its pullback."""
        variances, ls = values
        (m, dm), (M, dM) = (
            self.means.at(self._columns(X), ls),
            (total[:, None] for total in self.means.total(ls)),
        )
        k, slope = 1.0 - m**2 / M, (m * dM / M - 2.0 * dm) * m / M
        mains, first, second, pairs = self._split(variances)
        products = k[first] * k[second]

        def pullback(dk: Array) -> list[Array]:
            weight = np.repeat(mains[:, None], len(X), axis=1)
            np.add.at(weight, first, pairs[:, None] * k[second])
            np.add.at(weight, second, pairs[:, None] * k[first])
            return self._joined(values, (k @ dk, products @ dk, (weight * slope) @ dk))

        return mains @ k + pairs @ products, pullback

    def copy_diagonal(self, values: Sequence[Array], X: Array) -> Array:
        """Return the diagonal: there is no white noise."""
        return self.diagonal(values, X)[0]


def _build(cov_func: Any, lower: Lower) -> Kernel | None:
    at = cov_func.active_dims, cov_func.base, cov_func.terms, cov_func.rows
    further = cov_func.levels, cov_func.weights
    return AnovaKernel(*at, cov_func.variances, cov_func.ls, *further)


BUILDERS: dict[type, Builder] = {Anova: _build}
