"""Lowered covariances: values are those of PyMC, pullbacks those of finite differences."""

import functools
import json
import tracemalloc

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from pmordinal.gram import Anova, Gram, Levels, LinearARD, Precomputed, lower, revive
from pmordinal.gram.combine import SumKernel
from pmordinal.gram.graph import GraphKernel
from pmordinal.gram.matrix import MatrixKernel
from pmordinal.gram.stationary import ExpQuadKernel

c = pm.gp.cov
MODE = Mode(linker="py", optimizer="merge")  # of functions that run once
N, M, D = 9, 5, 3
TABLE = np.cov(np.random.default_rng(5).normal(size=(N + M, 20)))
MATRIX = TABLE[:N, :N]


def v(*value):
    """Make a float64 constant: of a Python 3.0 PyMC computes 1 / ls in single precision."""
    return pt.constant(np.asarray(value[0] if len(value) == 1 else value, dtype=np.float64))


class DoubledExpQuad(c.ExpQuad):
    def full_from_distance(self, dist, squared=False):
        return 2.0 * super().full_from_distance(dist, squared)

    def diag(self, X):
        return 2.0 * super().diag(X)


class OnlyFull(c.Covariance):
    def __init__(self, input_dim, scale):
        super().__init__(input_dim)
        self.scale = scale

    def full(self, X, Xs=None):
        X, Xs = self._slice(X, Xs)
        return self.scale * pt.dot(X, (X if Xs is None else Xs).T)


def warp(x, a):
    return x + a * pt.tanh(x)


def scaling(x, a):
    return pt.exp(a * x[:, 0])


ARD = v(0.7, 1.3, 2.1)
NORMAL = np.random.default_rng(2).normal(size=(N, D))
NORMAL[4] = NORMAL[1]
ONE = {"active_dims": [2]}
TWO = {"active_dims": [0, 1]}
GROUP = Levels(D, **ONE)
DATA = np.random.default_rng(11).normal(size=(12, D))
SOME = {"rows": DATA, "pairs": [(0, 2), (1, 0)]}
FACTOR = Levels(D, **ONE, seen=[0, 1, 2], sum_to_zero=True)
COVARIANCES = {
    "expquad": c.ExpQuad(D, ls=v(1.3)),
    "expquad-ard": c.ExpQuad(D, ls=ARD),
    "expquad-ls_inv": c.ExpQuad(D, ls_inv=ARD),
    "expquad-active": c.ExpQuad(D, ls=v(0.8, 1.7), active_dims=[2, 0]),
    "expquad-one-of-one": c.ExpQuad(D, ls=v([1.1]), **ONE),
    "exponential": c.Exponential(D, ls=ARD),
    "matern12": c.Matern12(D, ls=ARD),
    "matern12-isotropic": c.Matern12(D, ls=v(1.3)),
    "matern32": c.Matern32(D, ls=ARD),
    "matern52": c.Matern52(D, ls=ARD),
    "ratquad": c.RatQuad(D, alpha=v(0.8), ls=ARD),
    "periodic": c.Periodic(D, period=v(1.9), ls=v(0.9)),
    "periodic-ard": c.Periodic(D, period=v(1.9, 3.1, 0.8), ls=ARD),
    "periodic-active": c.Periodic(D, period=v(1.9), ls=v(0.9, 1.4), active_dims=[0, 2]),
    "linear": c.Linear(D, c=v(0.3)),
    "linear-ard": c.Linear(D, c=v(0.3, -0.2, 1.0)),
    "linear-active": c.Linear(D, c=v(0.3), **ONE),
    "linear-weights": LinearARD(D, ARD),
    "linear-weights-active": 2.0 * LinearARD(D, v(0.4, 1.2), active_dims=[2, 0]),
    "constant": c.Constant(v(1.7)),
    "whitenoise": c.WhiteNoise(v(0.6)),
    "sum": c.ExpQuad(D, ls=ARD) + c.Matern32(D, ls=v(0.9)) + c.WhiteNoise(v(0.4)),
    "sum-number": c.ExpQuad(D, ls=ARD) + 2.5,
    "sum-tensor": v(0.6) + c.ExpQuad(D, ls=ARD),
    "product": c.ExpQuad(D, ls=ARD) * c.Periodic(D, period=v(2.0), ls=v(1.1)) * c.Linear(D, v(0.1)),
    "scaled": v(1.4) ** 2 * c.ExpQuad(D, ls=ARD),
    "scaled-twice": v(1.4) * (v([0.7]) * c.Matern52(D, ls=ARD) * c.ExpQuad(D, ls=v(2.2))),
    "scaled-by-zero": v(0.0) * (v(0.7) * c.Matern52(D, ls=ARD)),
    "matrix-factor": c.ExpQuad(D, ls=ARD) * MATRIX + MATRIX,
    "squared": c.ExpQuad(D, ls=ARD) ** 2,
    "power": (c.Linear(D, v(0.1)) + 30.0) ** v(1.5),
    "negative-squared": c.Linear(D, v(0.1)) ** 2,
    "nested": v(0.5) * (c.ExpQuad(D, ls=ARD) + v(0.2) * c.Linear(D, v(0.1), **ONE)) ** 2
    + c.WhiteNoise(v(0.3)) * c.Matern12(D, ls=v(1.0))
    + 0.7,
    "linear-times-linear": v(0.4) * c.Linear(D, v(0.1, 0.2), **TWO) * LinearARD(D, ARD),
    "wide-product": v(0.4) * LinearARD(D, ARD) ** 2 * c.Linear(D, v(0.3)) * c.Linear(D, v(0.5)),
    "scaled-sum": v(1.4) * (c.ExpQuad(D, ls=ARD) + v(0.6) * c.Linear(D, v(0.3)) + 0.7),
    "scaled-white": v(1.4) * (c.WhiteNoise(v(0.6)) + v(0.2) * c.Linear(D, v(0.1))),
    "levels": GROUP,
    "levels-scaled": v(1.7) * GROUP,
    "levels-sum-to-zero": v(0.8) * FACTOR,
    "levels-crossed": v(0.8) * FACTOR * GROUP * v(1.2),
    "levels-slope": v(0.6) * c.Linear(D, v(0.3, -0.2), **TWO) * GROUP,
    "levels-slope-sum-to-zero": v(0.6) * FACTOR * LinearARD(D, v(0.3, 0.2), **TWO),
    "levels-by": v(0.7) * c.Matern32(D, ls=v(0.8, 1.7), **TWO) * GROUP,
    "levels-by-sum-to-zero": v(0.7) * FACTOR * c.ExpQuad(D, ls=v(0.8, 1.7), **TWO),
    "levels-by-product": FACTOR * c.ExpQuad(D, ls=v(1.7), **TWO) * c.Linear(D, v(0.3), **TWO),
    "levels-white": v(0.7) * GROUP * c.WhiteNoise(v(0.4)),
    "levels-sum": v(0.3) * c.Linear(D, v(0.1, 0.0), **TWO)
    + v(1.2) * c.ExpQuad(D, ls=v(0.8, 1.7), **TWO)
    + v(0.6) * GROUP
    + v(0.2) * c.Linear(D, v(0.1), active_dims=[0]) * FACTOR
    + c.WhiteNoise(v(0.2))
    + 0.4,
    "anova": Anova(D, v(0.5, 0.2, 0.9, 1.3, 0.4, 0.7), ARD, DATA),
    "anova-of-the-data": Anova(D, v(0.5, 0.2, 0.9, 1.3, 0.4, 0.7), ARD, NORMAL),
    "anova-some-pairs": v(1.2) * Anova(D, v(0.5, 0.2, 0.9, 1.3, 0.4), ARD, **SOME, base="matern12"),
    "anova-matern32": Anova(
        D, v(0.5, 0.9, 1.3), v(0.8, 1.7), DATA, base="matern32", active_dims=[2, 0]
    ),
    "anova-matern52": Anova(D, v(0.5, 0.2, 0.9), ARD, NORMAL, base="matern52", order=1)
    + v(0.4) * c.Linear(D, v(0.1)),
    "anova-one": Anova(D, v([0.5]), v([0.9]), NORMAL, **ONE),
    "cosine": c.Cosine(D, ls=v(4.1)),
    "polynomial": c.Polynomial(D, c=v(0.2), d=2, offset=v(1.1)),
    "gibbs": c.Gibbs(D, lambda x, a: a + 0.1 * pt.square(x), args=(v(0.9),), **ONE),
    "warped": c.WarpedInput(D, c.ExpQuad(D, ls=ARD), warp, args=(v(0.4),)),
    "scaledcov": c.ScaledCov(D, c.ExpQuad(D, ls=ARD), scaling, args=(v(0.3),)),
    "wrappedperiodic": c.WrappedPeriodic(c.Matern52(D, ls=v(0.9)), period=v(2.0)),
    "circular": c.Circular(D, period=v(3.0), tau=v(4.5), **ONE),
    "kron": c.Kron([c.ExpQuad(1, ls=v(0.8)), c.Matern32(2, ls=v(1.2))]),
    "subclass": DoubledExpQuad(D, ls=ARD),
    "only-full": OnlyFull(D, v(1.4)),
    "partly-unknown": v(0.8) * c.Cosine(D, ls=v(4.1)) + c.ExpQuad(D, ls=ARD),
    "ls-matrix": c.ExpQuad(D, ls=v([[0.7, 1.3, 2.1]])),
    "constant-vector": c.ExpQuad(D, ls=ARD) + c.Constant(v([1.2])),
}
# Rows are indices into a table here.
INDEXED = {
    "precomputed": Precomputed(TABLE),
    "precomputed-combined": v(0.5) * Precomputed(TABLE) * c.ExpQuad(1, ls=v(4.0)) + 1.0,
    "coregion": c.Coregion(1, W=np.arange(28.0).reshape(14, 2) / 10, kappa=np.ones(14)),
}
# PyMC takes √(r² + 1e-12) for the distance r, here it is r: PyMC's side is wrong by as much as a
# change of 1e-6 in r makes where r = 0 (its own diagonal), and of 1e-12 / 2r elsewhere, 5e-12 at
# r = 0.1.
ROOTS = {
    "levels-by",
    "exponential",
    "matern12",
    "matern12-isotropic",
    "matern32",
    "matern52",
    "nested",
}


def rows(name):
    if name in INDEXED:
        index = np.random.default_rng(1).permutation(N + M).astype(float)[:, None]
        return index[:N], index[N:]
    rng = np.random.default_rng(2)
    X = rng.normal(size=(N, D))
    Z = rng.normal(size=(M, D))
    if name.startswith("levels"):  # of which 3 and 9 are not among those that sum to zero
        X[:, 2], Z[:, 2] = rng.integers(0, 4, N), [0, 3, 1, 9, 2]
    X[4], Z[0] = X[1], X[2]  # equal rows
    return X, Z


def of(name):
    return {**COVARIANCES, **INDEXED}[name]


@functools.cache
def lowered(name):
    """Return the kernel of a name; many tests look at it, and those of graphs are slow to make."""
    return lower(of(name))


def values_of(kernel):
    constants = [p if p.owner is None else p.eval(mode=MODE) for p in kernel.parameters]
    return [np.asarray(getattr(value, "data", value), dtype=float) for value in constants]


def by_pymc(cov_func, X, Z=None, diag=False):
    """K(X), and K(X, Z) and the diagonal where asked for, in one compilation."""
    x, z = (pt.tensor(dtype="float64", shape=(None, X.shape[1])) for _ in range(2))
    outputs = [cov_func(x)]
    outputs += [cov_func(x, z)] if Z is not None else []
    outputs += [cov_func(x, diag=True)] if diag else []
    function = pytensor.function([x, z], outputs, mode=MODE, on_unused_input="ignore")
    return function(X, X if Z is None else Z)


def assert_as_pymc(name, ours, theirs, equal_rows):
    if name not in ROOTS:
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
        return
    np.testing.assert_allclose(ours[~equal_rows], theirs[~equal_rows], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(ours[equal_rows], theirs[equal_rows], rtol=2e-6)


def same(X, Z):
    return (X[:, None, :] == Z[None, :, :]).all(axis=-1)


@pytest.mark.parametrize("name", [*COVARIANCES, *INDEXED])
def test_value_is_that_of_pymc(name):
    X, Z = rows(name)
    kernel = lowered(name)
    gram = Gram(kernel, X, values_of(kernel))
    assert gram.n == N
    assert gram.matrix.flags.f_contiguous
    np.testing.assert_array_equal(gram.matrix, gram.matrix.T)
    has_cross, has_diagonal = name != "matrix-factor", name != "only-full"
    theirs = by_pymc(of(name), X, Z if has_cross else None, has_diagonal)
    assert_as_pymc(name, gram.matrix, theirs[0], same(X, X))
    if has_cross:
        assert_as_pymc(name, gram.cross(Z), theirs[1], same(X, Z))
    if has_diagonal:
        np.testing.assert_allclose(gram.diagonal, theirs[-1], rtol=1e-12, atol=1e-12)
    if name not in {"cosine", "partly-unknown", "wrappedperiodic"}:
        # PyMC's graph of these has √1e-12 on the diagonal of K, and not in diag.
        np.testing.assert_allclose(np.diag(gram.matrix), gram.diagonal, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [*COVARIANCES, *INDEXED])
def test_columns_are_those_of_the_matrix(name):
    X, _ = rows(name)
    kernel = lowered(name)
    index = [4, 0, 7, 7]
    columns = Gram(kernel, X, values_of(kernel)).columns(index)
    gram = Gram(kernel, X, values_of(kernel))
    # 1e-10: the graphs of PyMC have √1e-12 on the diagonal of K (its second-order effect is 2e-11).
    np.testing.assert_allclose(columns, gram.matrix[:, index], rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(gram.columns(index), gram.matrix[:, index])


@pytest.mark.parametrize("name", [*COVARIANCES, *INDEXED])
def test_a_kernel_that_joins_copies_gives_them_one_value(name):
    X, _ = rows(name)
    kernel = lowered(name)
    if kernel.joins_copies:
        K = Gram(kernel, np.vstack([X, X]), values_of(kernel)).matrix
        np.testing.assert_allclose(K, np.tile(K[:N, :N], (2, 2)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("cov", "joins"),
    [
        (c.ExpQuad(1, ls=1.0), True),
        (2.0 * c.Linear(1, c=0.0) + c.Constant(1.0), True),
        (c.ExpQuad(1, ls=1.0) + c.WhiteNoise(0.1), False),
        (OnlyFull(1, 2.0), False),
    ],
)
def test_white_noise_and_what_is_not_known_tell_copies_apart(cov, joins):
    assert lower(cov).joins_copies == joins


def sums(name):
    X, Z = rows(name)
    kernel = lowered(name)
    return kernel, values_of(kernel), X, Z


@pytest.mark.parametrize("name", [n for n in [*COVARIANCES, *INDEXED] if n != "matrix-factor"])
def test_parts_sum_to_the_whole(name):
    kernel, values, X, Z = sums(name)
    parts = [Gram(part, X, of_part) for part, of_part in kernel.parts(values)]
    assert len(parts) > 1 or not isinstance(kernel, SumKernel)
    whole = Gram(kernel, X, values)
    for look in (
        lambda gram: gram.matrix,
        lambda gram: gram.cross(Z),
        lambda gram: gram.diagonal,
        lambda gram: gram.cross_diagonal(Z),
        lambda gram: gram.copy_diagonal(),
        lambda gram: gram.columns([1, 5]),
    ):
        total = sum(look(part) for part in parts)
        np.testing.assert_allclose(total, look(whole), rtol=1e-12, atol=1e-12)


def test_parts_of_a_scaled_sum_have_its_scale():
    kernel, values, X, _ = sums("scaled-sum")
    found = [Gram(part, X, of_part).diagonal.mean() for part, of_part in kernel.parts(values)]
    assert len(found) == 3
    np.testing.assert_allclose([found[0], found[2]], [1.4, 1.4 * 0.7])


@pytest.mark.parametrize("name", [*COVARIANCES, *INDEXED])
def test_adding_to_a_matrix_is_adding_the_matrix(name):
    """In the lower triangle, times a number; the pullback has the derivative in it last."""
    kernel, values, X, _ = sums(name)
    start = np.random.default_rng(6).normal(size=(N, N))
    K = np.asfortranarray(start)
    pullback = kernel.add_to(K, values, X, 1.7)
    square, pull = kernel.matrix(values, X)
    lower_half = np.tri(N, dtype=bool)
    np.testing.assert_allclose(
        (K - start)[lower_half], 1.7 * square[lower_half], rtol=1e-12, atol=1e-12
    )
    dK = np.random.default_rng(7).normal(size=(N, N))
    dK += dK.T
    expected = [*(1.7 * g for g in pull(dK)), np.sum(dK * square)]
    for ours, theirs in zip(pullback(dK), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", [*COVARIANCES, *INDEXED])
def test_a_form_is_the_kernel(name):
    kernel, values, X, Z = sums(name)
    try:
        form = json.loads(json.dumps(kernel.form()))
    except TypeError:
        assert not is_known(kernel)
        return
    again = revive(form, iter(values))
    np.testing.assert_array_equal(
        Gram(again, X, values_of(again)).cross(Z), Gram(kernel, X, values).cross(Z)
    )


def is_known(kernel):
    inside = getattr(kernel, "kernels", ())
    return not isinstance(kernel, GraphKernel | MatrixKernel) and all(map(is_known, inside))


def central_differences(function, values, step=1e-5):
    derivatives = []
    for i, value in enumerate(values):
        derivative = np.empty(value.shape)
        for at in np.ndindex(value.shape):
            ends = []
            for sign in (1.0, -1.0):
                moved = [x.copy() for x in values]
                moved[i][at] += sign * step
                ends.append(function(moved))
            derivative[at] = (ends[0] - ends[1]) / (2.0 * step)
        derivatives.append(derivative)
    return derivatives


def assert_pullback(evaluate, values, shape, symmetric=False):
    dK = np.random.default_rng(3).normal(size=shape)
    if symmetric:
        dK = dK + dK.T
    expected = central_differences(lambda at: np.sum(dK * evaluate(at)[0]), values)
    pullback = evaluate(values)[1]
    for cotangent in (dK, np.asfortranarray(dK)):
        found = pullback(cotangent)
        assert [g.shape for g in found] == [value.shape for value in values]
        for ours, numerical in zip(found, expected, strict=True):
            # Step 1e-5: 1e-10 from third derivatives, 1e-11 · Σ|dK ∘ K| from rounding.
            np.testing.assert_allclose(ours, numerical, rtol=1e-6, atol=1e-7)


FREE = {
    "gibbs": lambda a: c.Gibbs(D, lambda x, b: b + 0.1 * pt.square(x), args=(a,), **ONE),
    "warped": lambda a: c.WarpedInput(D, c.ExpQuad(D, ls=1.0 + a), warp, args=(a,)),
    "scaledcov": lambda a: c.ScaledCov(D, c.ExpQuad(D, ls=ARD), scaling, args=(a,)),
    "polynomial": lambda a: c.Polynomial(D, c=a, d=2, offset=a),
    "cosine": lambda a: c.Cosine(D, ls=5 * a),
    "wrappedperiodic": lambda a: c.WrappedPeriodic(c.ExpQuad(D, ls=a), period=2 * a),
    "circular": lambda a: c.Circular(D, period=a * 4.0, tau=5 * a, **ONE),
    "kron": lambda a: c.Kron([c.ExpQuad(1, ls=a), c.ExpQuad(2, ls=v(1.2))]),
    "subclass": lambda a: DoubledExpQuad(D, ls=a),
    "only-full": lambda a: OnlyFull(D, a),
    "coregion": lambda a: c.Coregion(1, W=a * np.ones((14, 1)), kappa=a * np.arange(14.0)),
    "power": lambda a: (c.Linear(D, v(0.1)) + v(30.0)) ** a,
    "partly-unknown": lambda a: a * c.Cosine(D, ls=5 * a) + c.ExpQuad(D, ls=a),
}


@pytest.mark.parametrize(
    "name", [n for n in [*COVARIANCES, "precomputed-combined"] if n not in {*FREE, "matrix-factor"}]
)
def test_pullback_is_the_derivative(name):
    X, Z = rows(name)
    kernel = lowered(name)
    assert_pullbacks(kernel, values_of(kernel), X, Z)


@pytest.mark.parametrize("name", FREE)
def test_pullback_of_a_graph_is_the_derivative(name):
    assert_pullbacks(*free(name), *rows(name))


@functools.cache
def free(name):
    """Return a kernel with a parameter, and values."""
    a = pt.dscalar("a")
    kernel = lower(FREE[name](a))
    function = pytensor.function([a], list(kernel.parameters), mode=MODE)
    values = [np.asarray(value, dtype=float) for value in function(0.9)]
    assert values
    return kernel, values


def assert_pullbacks(kernel, values, X, Z):
    assert_pullback(lambda at: kernel.matrix(at, X), values, (N, N), symmetric=True)
    assert_pullback(lambda at: kernel.matrix(at, X, Z), values, (N, M))
    assert_pullback(lambda at: kernel.diagonal(at, X), values, (N,))


def test_pullback_of_a_matrix_factor():
    X, _ = rows("matrix-factor")
    kernel = lower(c.ExpQuad(D, ls=ARD) * MATRIX)
    values = values_of(kernel)
    rng = np.random.default_rng(0)
    dK, move = rng.normal(size=(2, N, N))
    dK, move = dK + dK.T, move + move.T
    K, pullback = kernel.matrix(values, X)
    moved = kernel.matrix([values[0], values[1] + move], X)[0]
    np.testing.assert_allclose(np.sum(pullback(dK)[1] * move), np.sum(dK * (moved - K)), rtol=1e-10)


@pytest.mark.parametrize("name", ["expquad-ard", "matern12", "matern32", "matern52", "ratquad"])
def test_blocks_of_rows(name):
    """More rows than one block holds: value and derivatives as by loops."""
    n, m = 300, 150
    rng = np.random.default_rng(8)
    X, Z = rng.normal(size=(n, D)), rng.normal(size=(m, D))
    X[200], Z[140] = X[3], X[250]
    kernel = lowered(name)
    values = values_of(kernel)
    K, pullback = kernel.matrix(values, X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diag(K), 1.0)
    np.testing.assert_allclose(K, brute(name, X, X), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(
        kernel.matrix(values, X, Z)[0], brute(name, X, Z), rtol=1e-13, atol=1e-13
    )
    dK = rng.normal(size=(n, n))
    dK += dK.T
    expected = central_differences(lambda at: np.sum(dK * kernel.matrix(at, X)[0]), values)
    for ours, numerical in zip(pullback(dK), expected, strict=True):
        np.testing.assert_allclose(ours, numerical, rtol=1e-6, atol=1e-5)
    dK = rng.normal(size=(n, m))
    expected = central_differences(lambda at: np.sum(dK * kernel.matrix(at, X, Z)[0]), values)
    for ours, numerical in zip(kernel.matrix(values, X, Z)[1](dK), expected, strict=True):
        np.testing.assert_allclose(ours, numerical, rtol=1e-6, atol=1e-5)


def brute(name, X, Z):
    """From differences, not from products, of rows."""
    r = np.sqrt((((X[:, None] - Z[None]) / ARD.data) ** 2).sum(axis=-1))
    return {
        "expquad-ard": lambda: np.exp(-0.5 * r**2),
        "exponential": lambda: np.exp(-0.5 * r),
        "matern12": lambda: np.exp(-r),
        "matern32": lambda: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
        "matern52": lambda: (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r),
        "ratquad": lambda: (1 + r**2 / 1.6) ** -0.8,
    }[name]()


@pytest.mark.parametrize(
    "name", ["expquad-ard", "exponential", "matern12", "matern32", "matern52", "ratquad"]
)
def test_far_from_the_origin(name):
    """Where ‖x‖² is 1e8 the products PyMC subtracts have lost eight digits; ours are centred."""
    X, Z = rows(name)
    X, Z = X + 1e4, Z + 1e4
    gram = Gram(lowered(name), X, values_of(lowered(name)))
    np.testing.assert_allclose(gram.matrix, brute(name, X, X), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(gram.cross(Z), brute(name, X, Z), rtol=1e-13, atol=1e-13)
    assert np.abs(by_pymc(of(name), X)[0] - brute(name, X, X)).max() > 1e-9


def test_periodic_far_from_the_origin():
    X, _ = rows("periodic-ard")
    X = X + 1e4
    kernel = lower(of("periodic-ard"))
    ls, period = values_of(kernel)
    s = np.sin(np.pi * (X[:, None] - X[None]) / period) / ls
    K = kernel.matrix([ls, period], X)[0]
    np.testing.assert_allclose(K, np.exp(-0.5 * (s**2).sum(axis=-1)), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ["exponential", "matern12", "matern32", "matern52", "ratquad"])
def test_equal_rows(name):
    """Covariance one and a finite derivative, zero, at zero distance."""
    X = np.full((6, D), 0.3) + np.array([1.0, 1e3, 0.1])
    kernel = lowered(name)
    values = values_of(kernel)
    K, pullback = kernel.matrix(values, X)
    np.testing.assert_array_equal(K, 1.0)
    for derivative in pullback(np.ones((6, 6))):
        np.testing.assert_allclose(derivative, 0.0, atol=1e-12)
    K, pullback = kernel.matrix(values, X, X[:2])
    np.testing.assert_allclose(K, 1.0, rtol=1e-15)
    for derivative in pullback(np.ones((6, 2))):
        np.testing.assert_allclose(derivative, 0.0, atol=1e-12)


def test_no_rows():
    kernel = lower(c.Matern12(D, ls=ARD))
    K, pullback = kernel.matrix(values_of(kernel), np.empty((0, D)))
    assert K.shape == (0, 0)
    np.testing.assert_array_equal(pullback(K)[0], np.zeros(D))


def test_parameters_are_the_expressions():
    with pm.Model():
        ls = pm.Gamma("ls", 2, 1, shape=2)
        eta = pm.HalfNormal("eta")
        period = pm.HalfNormal("period")
        doubled, squared = 2 * ls, eta**2
        cov_func = squared * c.ExpQuad(2, ls=doubled) + c.Periodic(2, period=period, ls=3)
    kernel = lower(cov_func)
    found = kernel.parameters
    assert found[0] is doubled and found[1] is squared and found[3] is period
    assert found[2].dtype == "float64" and found[2].data == 3.0
    single = lower(c.ExpQuad(1, ls=2.0)).parameters[0]  # float32 in PyTensor
    assert single.dtype == "float64" and single.data == 2.0
    assert lower(c.RatQuad(2, alpha=eta, ls_inv=ls)).parameters[1] is eta


def test_frontier_of_a_graph():
    """Random variables, symbolic ones too, shared variables, inputs; not what is behind them."""
    with pm.Model():
        mu = pm.Normal("mu")
        a = pm.LogNormal("a", mu)
        b = pm.Mixture("b", [0.5, 0.5], [pm.Normal.dist(0, 1), pm.Normal.dist(3, 1)])
    shared = pytensor.shared(np.array(1.5), name="shared")
    free = pt.dscalar("free")
    kernel = lower(c.Cosine(1, ls=pt.exp(a) * shared + free * 2.0 + b**2))
    assert isinstance(kernel, GraphKernel)
    assert set(kernel.parameters) == {a, shared, free, b}
    X = np.array([[0.0], [0.4]])
    named = {a: 0.3, shared: 1.5, free: 0.2, b: -0.4}
    values = [np.array(named[p]) for p in kernel.parameters]
    ls = np.exp(0.3) * 1.5 + 0.4 + 0.16
    np.testing.assert_allclose(kernel.matrix(values, X)[0][0, 1], np.cos(2 * np.pi * 0.4 / ls))
    assert_pullback(lambda at: kernel.matrix(at, X), values, (2, 2), symmetric=True)


def test_discrete_parameters_of_a_graph_have_no_derivative():
    power, scale = pt.iscalar("power"), pt.dscalar("scale")
    kernel = lower(c.Polynomial(1, c=0.0, d=power, offset=scale))
    values = [np.array(2 if p is power else 0.5) for p in kernel.parameters]
    K, pullback = kernel.matrix(values, np.array([[1.0], [2.0]]))
    np.testing.assert_allclose(K, [[2.25, 6.25], [6.25, 20.25]])
    found = dict(zip(kernel.parameters, pullback(np.eye(2)), strict=True))
    assert found[power] == 0.0
    np.testing.assert_allclose(found[scale], 2 * 1.5 + 2 * 4.5)


def test_only_the_unknown_part_goes_through_its_graph():
    kernel = lower(of("partly-unknown"))
    product, known = kernel.kernels
    assert type(known) is ExpQuadKernel
    assert isinstance(product.kernels[0], GraphKernel)


def test_which_covariances_use_a_graph():
    names = [*COVARIANCES]
    first_graph = names.index("cosine")
    graphs = [name for name in names if isinstance(lowered(name), GraphKernel)]
    known = {"partly-unknown", "constant-vector"}
    assert graphs == [name for name in names[first_graph:] if name not in known]


def test_white_noise_is_on_the_diagonal_only():
    X = np.zeros((3, 1))
    gram = Gram(
        lower(c.ExpQuad(1, ls=v(1.0)) + c.WhiteNoise(v(0.5))), X, [np.array(1.0), np.array(0.5)]
    )
    np.testing.assert_array_equal(gram.columns([2]), [[1.0], [1.0], [1.25]])
    np.testing.assert_array_equal(gram.matrix, 1.0 + 0.25 * np.eye(3))
    np.testing.assert_array_equal(gram.cross(X), np.ones((3, 3)))
    np.testing.assert_array_equal(gram.cross_diagonal(X[:2]), [1.25, 1.25])


@pytest.mark.parametrize("name", ["expquad-ard", "matern12", "matern52", "ratquad", "scaled"])
def test_memory_held(name):
    """A kernel and its pullback hold two n × n matrices at most; the pullback needs no third."""
    n = 600
    X = np.random.default_rng(0).normal(size=(n, D))
    kernel, dK = lowered(name), np.ones((n, n))
    values = values_of(kernel)
    square = 8 * n * n
    tracemalloc.start()
    try:
        kept = kernel.matrix(values, X)
        held = tracemalloc.get_traced_memory()[0]
        kept[1](dK)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert held < 2.3 * square  # the rows and their features are small beside them
    assert peak < 3.0 * square  # blocks of 128 rows out of 600


@pytest.mark.parametrize("name", [*(n for n in [*COVARIANCES, *INDEXED] if n not in FREE), *FREE])
def test_pullback_reads_the_lower_triangle(name):
    kernel, values = free(name) if name in FREE else (lowered(name), values_of(lowered(name)))
    gram = Gram(kernel, rows(name)[0], values)
    whole = kernel.matrix(gram.values, gram.X)[1]
    dK = np.random.default_rng(5).normal(size=(N, N))
    dK += dK.T
    for order in "CF":
        rubbish = np.array(np.where(np.tri(N, dtype=bool), dK, np.nan), order=order)
        given = rubbish.copy()
        for ours, full in zip(gram.pullback(rubbish), whole(dK), strict=True):
            np.testing.assert_allclose(ours, full, rtol=1e-13, atol=1e-13)
        np.testing.assert_array_equal(rubbish, given)


@pytest.mark.parametrize("name", ["expquad-ard", "matern12", "ratquad"])
def test_rubbish_above_the_diagonal_of_several_blocks(name):
    """Huge numbers there make no overflow either: warnings are errors here."""
    n = 300
    X = np.random.default_rng(0).normal(size=(n, D))
    kernel = lower(v(1.4) * of(name) + c.WhiteNoise(v(0.3)))
    gram = Gram(kernel, X, values_of(kernel))
    dK = np.random.default_rng(5).normal(size=(n, n))
    dK += dK.T
    # The whole matrix at once: dK read in full by central differences.
    expected = central_differences(lambda at: np.sum(dK * Gram(kernel, X, at).matrix), gram.values)
    rubbish = np.asfortranarray(np.where(np.tri(n, dtype=bool), dK, -np.finfo(float).max))
    for ours, numerical in zip(gram.pullback(rubbish), expected, strict=True):
        np.testing.assert_allclose(ours, numerical, rtol=1e-6, atol=1e-5)


def test_scaled_matrix_is_free_to_be_written_into():
    """Neither kernels of a distance nor what multiplies them by a number need it for the pullback."""
    X = rows("expquad")[0]
    dK = np.ones((N, N))
    for name in ("expquad-ard", "matern32", "ratquad", "scaled", "linear-weights-active"):
        kernel = lowered(name)
        assert not kernel.keeps_matrix
        K, pullback = kernel.matrix(values_of(kernel), X)
        before = pullback(dK)
        K[...] = np.nan
        for first, second in zip(before, pullback(dK), strict=True):
            np.testing.assert_array_equal(first, second)


def test_gram_computes_when_asked_and_keeps():
    kernel = lower(of("expquad"))
    gram = Gram(kernel, rows("expquad")[0], values_of(kernel))
    assert gram.matrix is gram.matrix
    assert gram.diagonal is gram.diagonal
    with pytest.raises(ValueError, match="read-only"):
        gram.matrix[0, 0] = 2.0
    dK = np.eye(N) + 0.5
    np.testing.assert_array_equal(
        gram.pullback(dK)[0], kernel.matrix(gram.values, gram.X)[1](dK)[0]
    )


def test_precomputed_in_pymc():
    """It is a covariance of PyMC: a marginal likelihood takes it."""
    with pm.Model() as model:
        gp = pm.gp.Marginal(cov_func=Precomputed(TABLE))
        gp.marginal_likelihood("y", X=np.arange(3.0)[:, None], y=np.ones(3), sigma=1.0)
    logp = model.compile_logp(mode=MODE)({})
    K = TABLE[:3, :3] + np.eye(3)
    expected = -0.5 * (
        np.ones(3) @ np.linalg.solve(K, np.ones(3)) + np.linalg.slogdet(2 * np.pi * K)[1]
    )
    np.testing.assert_allclose(logp, expected, rtol=1e-6)  # PyMC adds jitter of 1e-6


def test_precomputed_beside_other_columns():
    cov_func = Precomputed(TABLE, input_dim=2, active_dims=[1]) * c.ExpQuad(
        2, ls=1.5, active_dims=[0]
    )
    X = np.array([[0.1, 3.0], [0.4, 11.0]])
    K = Gram(lower(cov_func), X, [np.array(1.5)]).matrix
    np.testing.assert_allclose(K[0, 1], TABLE[3, 11] * np.exp(-0.5 * (0.3 / 1.5) ** 2))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), r"square matrix, got shape \(2, 3\)"),
        (np.ones(3), r"square matrix, got shape \(3,\)"),
        ([[1.0, np.nan], [np.nan, 1.0]], "got 2 that are NaN or infinite"),
        ([[1.0, 0.5], [0.4, 1.0]], r"symmetric matrix, got one with K - K.T up to 0.1"),
    ],
)
def test_precomputed_checks_its_matrix(matrix, message):
    with pytest.raises(ValueError, match=message):
        Precomputed(matrix)


@pytest.mark.parametrize("index", [-1.0, 0.5, 14.0, np.nan])
def test_precomputed_checks_its_rows(index):
    gram = Gram(lower(Precomputed(TABLE)), [[0.0]], [])
    with pytest.raises(ValueError, match=r"whole numbers from 0 to 13.*; got"):
        gram.cross([[index]])
    if not np.isnan(index):
        with pytest.raises(ValueError, match="whole numbers from 0 to 13"):
            by_pymc(Precomputed(TABLE), np.array([[index]]))


def test_errors_say_what_to_do():
    expquad = c.ExpQuad(2, ls=1.0)
    with pytest.raises(TypeError, match=r"pm\.gp\.cov, got str"):
        lower("expquad")
    with pytest.raises(ValueError, match="a number or a square matrix"):
        lower(expquad * np.ones(3))
    with pytest.raises(ValueError, match="exactly one column of indices, got 2"):
        Precomputed(TABLE, input_dim=2)
    with pytest.raises(ValueError, match="has 1 parameters, got 0 values"):
        Gram(lower(expquad), np.zeros((2, 2)), [])
    with pytest.raises(ValueError, match=r"got shape \(2,\)"):
        Gram(lower(expquad), [0.0, 1.0], [1.0])
    with pytest.raises(ValueError, match=r"uses column 1 .* have 1 columns"):
        _ = Gram(lower(expquad), [[0.0], [1.0]], [1.0]).matrix
    with pytest.raises(ValueError, match=r"dK must have shape \(2, 2\)"):
        Gram(lower(expquad), np.zeros((2, 2)), [1.0]).pullback(np.zeros(2))
    product = lower(expquad * np.eye(3))
    values = values_of(product)
    with pytest.raises(ValueError, match=r"matrix of shape \(3, 3\)"):
        product.matrix(values, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="at the training rows only"):
        product.matrix(values, np.zeros((3, 2)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="matrix that is not symmetric"):
        product.matrix([values[0], np.triu(np.ones((3, 3)))], np.zeros((3, 2)))

    class Asymmetric(c.Covariance):
        def full(self, X, Xs=None):
            return X - (X if Xs is None else Xs).T

        def diag(self, X):
            return X[:, 0]

    with pytest.raises(ValueError, match="covariance is not symmetric"):
        lower(Asymmetric(1)).matrix([], np.array([[0.0], [1.0]]))


@pytest.mark.parametrize("name", COVARIANCES)
def test_blocks_of_many_rows_and_pairs_of_few_give_the_same(name, monkeypatch):
    """Small matrices come from differences between rows, larger ones from matrix products."""
    X, _ = rows(name)
    kernel = lowered(name)
    values = values_of(kernel)
    dK = np.random.default_rng(4).normal(size=(len(X), len(X)))
    results = []
    for few in (200, 0):
        monkeypatch.setattr("pmordinal.gram.distance.FEW_ROWS", few)
        gram = Gram(kernel, X, values)
        results.append((gram.matrix, gram.pullback(dK + dK.T)))
    (small, by_pairs), (large, by_blocks) = results
    np.testing.assert_allclose(small, large, rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(by_pairs, by_blocks, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
