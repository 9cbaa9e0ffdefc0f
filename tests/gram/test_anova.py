"""ANOVA covariances: by brute force, with terms that have mean zero over the data."""

import numpy as np
import pymc as pm
import pytest

import pmordinal as pmo
from pmordinal.gram import Anova, Gram, lower
from pmordinal.gram.centred import BASES

RNG = np.random.default_rng(0)


def k_of(base, x, z, ls):
    u = np.abs(x[:, None] - z) / ls
    t3, t5 = np.sqrt(3) * u, np.sqrt(5) * u
    return {
        "expquad": np.exp(-0.5 * u**2),
        "matern12": np.exp(-u),
        "matern32": (1 + t3) * np.exp(-t3),
        "matern52": (1 + t5 + t5**2 / 3) * np.exp(-t5),
    }[base]


def brute(base, variances, ls, rows, terms, X, Z):
    parts = []
    for j, scale in enumerate(ls):
        m_x, m_z = (k_of(base, A[:, j], rows[:, j], scale).mean(axis=1) for A in (X, Z))
        M = k_of(base, rows[:, j], rows[:, j], scale).mean()
        parts.append(k_of(base, X[:, j], Z[:, j], scale) - np.outer(m_x, m_z) / M)
    products = [np.prod([parts[a] for a in term], axis=0) for term in terms]
    return sum(v * k for v, k in zip(variances, products, strict=True))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("is_data", [True, False])
def test_blocks_of_rows_are_what_brute_force_makes_of_them(base, is_data):
    n, d = 150, 3  # more rows than one block holds
    X, Z = RNG.normal(size=(n, d)), RNG.normal(size=(140, d))
    X[:, 2] = np.round(X[:, 2])  # few values
    rows = X if is_data else RNG.normal(size=(50, d))
    variances, ls = RNG.uniform(0.2, 2.0, 6), np.array([0.7, 1.3, 2.0])
    cov_func = Anova(d, variances, ls, rows, base=base)
    gram = Gram(lower(cov_func), X, [variances, ls])
    by_hand = [brute(base, variances, ls, rows, cov_func.terms, X, other) for other in (X, Z)]
    np.testing.assert_allclose(gram.matrix, by_hand[0], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(gram.cross(Z), by_hand[1], rtol=1e-11, atol=1e-12)
    dK = RNG.normal(size=(n, n))
    dK += dK.T
    found = gram.pullback(np.tril(dK))
    for which, value in enumerate((variances, ls)):
        for i in range(value.size):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [variances.copy(), ls.copy()]
                moved[which][i] += step
                ends.append(np.sum(dK * brute(base, *moved, rows, cov_func.terms, X, X)))
            # The rounding of a sum of 22,500 numbers near one over a step of 2e-5.
            expected = (ends[0] - ends[1]) / 2e-5
            np.testing.assert_allclose(found[which][i], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("base", BASES)
def test_terms_have_mean_zero_over_the_data(base):
    rows, X = RNG.normal(size=(30, 2)), RNG.normal(size=(7, 2))
    values = [np.array([0.8, 1.2]), np.array([0.5, 1.5])]
    kernel = lower(Anova(2, *values, rows, order=1, base=base))
    for part, of_part in kernel.parts(values):
        K = Gram(part, X, of_part).cross(rows)
        np.testing.assert_allclose(K.sum(axis=1), 0.0, atol=1e-13)


def test_pairs_have_mean_zero_over_a_grid():
    """Where all combinations of values are there, a pair has no part of a function of one argument."""
    rows = np.stack(np.meshgrid([-1.0, 0.2, 1.0], [0.0, 0.4, 2.0, 3.0]), axis=-1).reshape(-1, 2)
    values = [np.array([0.8, 1.2, 0.9]), np.array([0.5, 1.5])]
    kernel = lower(Anova(2, *values, rows))
    pair, of_pair = kernel.parts(values)[2]
    K = Gram(pair, [[0.3, 0.9]], of_pair).cross(rows)[0].reshape(4, 3)
    np.testing.assert_allclose(K.sum(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(K.sum(axis=1), 0.0, atol=1e-14)


def test_parts_come_in_the_order_of_the_variances():
    rows = RNG.normal(size=(15, 3))
    cov_func = Anova(3, np.ones(5), np.ones(3), rows, pairs=[(2, 0), (0, 1)])
    assert cov_func.terms == ((0,), (1,), (2,), (0, 2), (0, 1))
    values = [np.arange(1.0, 6.0), np.array([0.5, 0.7, 0.9])]
    kernel = lower(cov_func)
    parts = [Gram(*(part, rows, of_part)).matrix for part, of_part in kernel.parts(values)]
    for i, part in enumerate(parts):
        alone = np.where(np.arange(5) == i, values[0], 0.0)
        whole = Gram(kernel, rows, [alone, values[1]]).matrix
        np.testing.assert_allclose(part, whole, rtol=1e-12, atol=1e-13)


def test_a_constant_column_has_no_effect():
    rows = np.column_stack([RNG.normal(size=20), np.full(20, 3.0)])
    values = [np.array([1.0, 2.0, 3.0]), np.ones(2)]
    parts = lower(Anova(2, *values, rows)).parts(values)
    grams = [Gram(part, rows, of_part) for part, of_part in parts]
    np.testing.assert_allclose(grams[1].matrix, 0.0, atol=1e-15)
    np.testing.assert_allclose(grams[2].matrix, 0.0, atol=1e-15)
    assert all(np.isfinite(g).all() for g in grams[2].pullback(np.ones((20, 20))))


def test_no_rows():
    kernel = lower(Anova(2, np.ones(3), np.ones(2), np.zeros((4, 2))))
    K, pullback = kernel.matrix([np.ones(3), np.ones(2)], np.empty((0, 2)))
    assert K.shape == (0, 0)
    np.testing.assert_array_equal(pullback(K)[0], np.zeros(3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base": "cosine"}, "unknown base 'cosine': choose one of expquad, matern12"),
        ({"order": 3}, "order must be 2, or 1 without pairs, got order=3"),
        ({"order": 1, "pairs": [(0, 1)]}, "order must be 2, or 1 without pairs"),
        ({"pairs": [(0, 0)]}, "two different arguments out of 0 to 1"),
        ({"pairs": [(0, 2)]}, "two different arguments out of 0 to 1"),
        ({"pairs": [(0, 1), (1, 0)]}, "each pair once"),
        ({"variances": [1.0, 1.0]}, r"variances must have one number for each of 3 term\(s\)"),
        ({"variances": [1.0, -1.0, 1.0]}, "variances must not be negative, got -1"),
        ({"ls": 1.0}, r"ls must have one number for each of 2 argument\(s\), got shape \(\)"),
        ({"ls": [1.0, 0.0]}, "ls must be positive, got 0"),
        ({"rows": np.ones(3)}, r"rows must be a matrix of data, got shape \(3,\)"),
        ({"rows": np.ones((3, 1))}, "uses column 1"),
    ],
)
def test_errors_say_what_to_do(change, message):
    given = {"variances": np.ones(3), "ls": np.ones(2), "rows": np.ones((3, 2))}
    with pytest.raises(ValueError, match=message):
        Anova(2, **(given | change))


def survey(n, seed):
    """Return a sum of a sine, a cosine and a product, of three out of four attributes."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, size=(n, 4))
    f = 1.2 * np.sin(2.0 * X[:, 0]) + np.cos(2.5 * X[:, 2]) + 1.3 * X[:, 0] * X[:, 1]
    return X, np.digitize(f + rng.normal(0.0, 0.6, n), [-1.8, -0.6, 0.6, 1.8])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_product_is_singled_out(seed):
    """Priors under which terms may vanish: the right pair is left, and predictions are better than with ARD."""
    n, d = 200, 4
    X, y = survey(n + 2000, seed)
    fits = {}
    for name in ("ard", "anova"):
        with pm.Model() as model:
            ls = pm.LogNormal("ls", 0.7, 0.7, shape=d)
            if name == "ard":
                cov_func = pm.LogNormal("variance", 0, 1.5) * pm.gp.cov.ExpQuad(d, ls=ls)
            else:
                mean, sd = np.repeat([0.0, -1.5], [4, 6]), np.repeat([1.5, 2.0], [4, 6])
                cov_func = Anova(d, pm.LogNormal("variances", mean, sd, shape=10), ls, X[:n])
            pmo.gp_model(X[:n], y[:n], cov_func=cov_func, noise=1.0)
        fits[name] = pmo.fit(model)
    nlp = {
        name: -np.log(np.asarray(fit.predict(X[n:]))[np.arange(2000), y[n:]]).mean()
        for name, fit in fits.items()
    }
    assert nlp["anova"] < nlp["ard"] - 0.02  # it was 0.04 to 0.06 for seeds 0, 1, 2
    assert fits["anova"].log_evidence > fits["ard"].log_evidence + 15  # 26 to 28
    pairs = fits["anova"].point["variances"][4:]
    assert pairs[0] > 10 * pairs[1:].max()


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_levels_are_arguments_too(base, weighted):
    """Their covariance is [same level] minus its mean over the data, of repeated rows if these have weights."""
    n = 30
    X = RNG.normal(size=(n, 3))
    X[:, 1] = RNG.integers(0, 4, n)
    Z = RNG.normal(size=(7, 3))
    Z[:, 1] = [0, 1, 2, 3, 4, 900, 1]  # 4 and 900 are new
    weights = RNG.integers(1, 4, n) if weighted else None
    every = X if weights is None else X[np.repeat(np.arange(n), weights)]
    variances, ls = RNG.uniform(0.2, 2.0, 6), np.array([0.7, 1.0, 2.0])
    cov_func = Anova(3, variances, ls, X, base=base, levels=[1], weights=weights)

    def by_hand(variances, ls, A, B):
        parts = []
        for j in range(3):

            def k(x, z, j=j):
                same = (x[:, None] == z).astype(float)
                return same if j == 1 else k_of(base, x, z, ls[j])

            m_a, m_b = (k(C[:, j], every[:, j]).mean(axis=1) for C in (A, B))
            M = k(every[:, j], every[:, j]).mean()
            parts.append(k(A[:, j], B[:, j]) - np.outer(m_a, m_b) / M)
        products = [np.prod([parts[a] for a in term], axis=0) for term in cov_func.terms]
        return sum(v * k for v, k in zip(variances, products, strict=True))

    gram = Gram(lower(cov_func), X, [variances, ls])
    np.testing.assert_allclose(gram.matrix, by_hand(variances, ls, X, X), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(gram.cross(Z), by_hand(variances, ls, X, Z), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(
        gram.kernel.diagonal(gram.values, Z)[0],
        np.diagonal(by_hand(variances, ls, Z, Z)),
        rtol=1e-11,
    )
    np.testing.assert_allclose(cov_func(X, Z).eval(), by_hand(variances, ls, X, Z), atol=1e-10)
    dK = RNG.normal(size=(n, n))
    dK += dK.T
    by_variances, by_ls = gram.pullback(np.tril(dK))
    for found, which in ((by_variances, 0), (by_ls, 1)):
        for i in range(found.size):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [variances.copy(), ls.copy()]
                moved[which][i] += step
                ends.append(np.sum(dK * by_hand(*moved, X, X)))
            np.testing.assert_allclose(found[i], (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-6)
    for i, (kernel, values) in enumerate(gram.kernel.parts(gram.values)):
        own = np.where(np.arange(6) == i, variances, 0.0)
        np.testing.assert_allclose(
            kernel.matrix(values, X, Z)[0], by_hand(own, ls, X, Z), rtol=1e-11, atol=1e-12
        )
