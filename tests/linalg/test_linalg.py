"""Dense linear algebra of the engines against NumPy, and memory that is used again."""

import numpy as np
import pytest

from pmordinal import linalg


def spd(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T / n + np.eye(n)


@pytest.mark.parametrize("n", [1, 5, 65, 300, 801])
def test_inverse_ignores_what_is_above_the_diagonal_of_the_factor(n):
    A = spd(n)
    L = np.asfortranarray(np.linalg.cholesky(A) + np.triu(np.full((n, n), np.nan), 1))
    np.testing.assert_allclose(linalg.inverse(L) @ A, np.eye(n), atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 97, 130, 257, 300])
def test_triangular_inverse_by_pairs_of_blocks(n, dtype):
    L = np.linalg.cholesky(spd(n))
    rubbish = np.asfortranarray(L + np.triu(np.full((n, n), np.nan), 1), dtype=dtype)
    ours = linalg.triangular_inverse(rubbish)
    assert ours.dtype == dtype
    np.testing.assert_allclose(ours, np.linalg.inv(L), atol=20 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.triu(ours, 1), 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_column_squares_reads_the_lower_triangle(dtype):
    X = np.tril(np.random.default_rng(4).normal(size=(37, 37)))
    rubbish = np.asfortranarray(X + np.triu(np.full((37, 37), np.nan), 1), dtype=dtype)
    squares = linalg.column_squares(rubbish)
    np.testing.assert_allclose(squares, (X**2).sum(0), rtol=50 * np.finfo(dtype).eps)


@pytest.mark.parametrize("shape", [(70,), (70, 3)])
def test_solves_with_the_factor(shape):
    A, x = spd(70), np.random.default_rng(2).normal(size=shape)
    L = np.asfortranarray(np.linalg.cholesky(A))
    kept = x.copy()
    np.testing.assert_allclose(linalg.solve(L, x), np.linalg.solve(A, x), rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("n", [0, 1, 31, 33, 100])
def test_fill_upper(n, order, dtype):
    A = np.array(np.random.default_rng(3).normal(size=(n, n)), dtype=dtype, order=order)
    expected = np.tril(A) + np.tril(A, -1).T
    assert linalg.fill_upper(A) is A
    np.testing.assert_array_equal(A, expected)


@pytest.mark.parametrize("signs", ["both", "positive", "negative", "zero"])
def test_weighted_square_with_a_rank_two_term(signs):
    rng, n = np.random.default_rng(1), 40
    A = np.asfortranarray(spd(n))
    size = np.abs(rng.normal(size=n))
    w = size * {"both": rng.choice([-1, 0, 1], n), "positive": 1, "negative": -1, "zero": 0}[signs]
    u, v = rng.normal(size=(2, n))
    ours = linalg.fill_upper(linalg.add_outer(linalg.weighted_square(A, w), -0.5, u, v))
    outer = np.outer(u, v)
    np.testing.assert_allclose(ours, A @ np.diag(w) @ A - 0.5 * (outer + outer.T), atol=1e-12)


@pytest.mark.parametrize(
    "largest, single", [(1e-250, False), (1e-3, True), (1e3, True), (1e6, False)]
)
def test_single_precision_is_for_site_precisions_it_can_hold(largest, single):
    """Dividing by the roots of next to no precision leaves the range of single numbers."""
    W = largest * np.array([1.0, 1e-12])
    assert linalg.is_well_conditioned(np.eye(2), W) is single


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_symmetric_product_reads_the_lower_triangle(order, columns):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(6, 6)), rng.normal(size=(6, columns))
    A += A.T
    rubbish = np.array(np.where(np.tri(6, dtype=bool), A, np.nan), order=order)
    np.testing.assert_allclose(linalg.symm(rubbish, B), A @ B, rtol=1e-13, atol=1e-13)
