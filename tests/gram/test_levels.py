"""Levels of factors: groups, sums to zero, and levels that were not seen."""

import numpy as np
import pymc as pm
import pytest

from pmordinal.gram import Gram, Levels, lower


def matrix(cov_func, codes, others=None):
    gram = Gram(lower(cov_func), np.asarray(codes, float)[:, None], [])
    return gram.matrix if others is None else gram.cross(np.asarray(others, float)[:, None])


def test_groups_are_blocks():
    codes = np.array([3, -1, 3, 12, -1])
    np.testing.assert_array_equal(matrix(Levels(1), codes), codes[:, None] == codes)
    np.testing.assert_array_equal(matrix(Levels(1), codes, [3, 4]), codes[:, None] == [3, 4])


def test_seen_levels_sum_to_zero():
    seen = [2, 5, 7, 11]
    factor = Levels(1, seen=seen, sum_to_zero=True)
    K = matrix(factor, seen)
    np.testing.assert_allclose(K, (np.eye(4) - 1 / 4) * 4 / 3, rtol=1e-14)
    np.testing.assert_allclose(K.sum(axis=0), 0.0, atol=1e-15)
    # A subset of the seen levels has the same covariances.
    np.testing.assert_array_equal(matrix(factor, [5, 11, 5]), K[np.ix_([1, 3, 1], [1, 3, 1])])


def test_levels_that_were_not_seen_have_the_variance_of_the_others():
    factor = Levels(1, seen=[0, 1, 2], sum_to_zero=True)
    new = [8, 9, 8]
    np.testing.assert_array_equal(matrix(factor, new), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    np.testing.assert_array_equal(matrix(factor, [0, 1], new), np.zeros((2, 3)))


def test_levels_of_a_number_are_all_seen():
    by_number = Levels(1, n_levels=3, sum_to_zero=True)
    by_codes = Levels(1, seen=(0, 1, 2), sum_to_zero=True)
    np.testing.assert_array_equal(matrix(by_number, [0, 2, 1, 0]), matrix(by_codes, [0, 2, 1, 0]))


def test_renamed_levels_are_the_same():
    codes = np.random.default_rng(0).integers(0, 4, 30)
    names = np.array([40, -3, 7, 0])
    first = Levels(1, seen=range(4), sum_to_zero=True)
    second = Levels(1, seen=names, sum_to_zero=True)
    np.testing.assert_array_equal(matrix(first, codes), matrix(second, names[codes]))


@pytest.mark.parametrize("bad", [0.5, np.nan, np.inf])
def test_codes_are_whole_numbers(bad):
    with pytest.raises(ValueError, match=r"column 0 must hold whole numbers, one .*; got"):
        matrix(Levels(1), [0.0, bad])
    with pytest.raises(ValueError, match="seen must hold whole numbers"):
        Levels(1, seen=[0.0, bad], sum_to_zero=True)


@pytest.mark.parametrize("bad", [-1.0, 3.0, 0.5])
def test_codes_are_below_the_number_of_levels(bad):
    with pytest.raises(ValueError, match=r"column 0 must hold whole numbers from 0 to 2, .*; got"):
        matrix(Levels(1, n_levels=3), [0.0, bad])
    with pytest.raises(ValueError, match="the column must hold whole numbers from 0 to 2"):
        Levels(1, n_levels=3)(np.array([[bad]])).eval()


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match=r"one column of codes, got 2: pass active_dims"):
        Levels(2)
    with pytest.raises(ValueError, match=r"pass seen="):
        Levels(1, sum_to_zero=True)
    with pytest.raises(ValueError, match="two levels at least, got 1"):
        Levels(1, seen=[4, 4], sum_to_zero=True)


def test_many_rows_of_terms_are_what_brute_force_makes_of_them():
    """Slopes, groups and a smooth by group: no n × n matrix of their own but the right numbers."""
    n, rng = 260, np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 9, n)])
    group, of_x = {"active_dims": [2]}, {"active_dims": [0, 1]}
    parts = {
        "slope": np.float64(0.5) * pm.gp.cov.Linear(3, c=0.2, **of_x) * Levels(3, **group),
        "by": np.float64(1.5) * pm.gp.cov.ExpQuad(3, ls=0.9, **of_x) * Levels(3, **group),
    }
    same = X[:, None, 2] == X[:, 2]
    A = X[:, :2] - 0.2
    distances = ((X[:, None, :2] - X[:, :2]) ** 2).sum(-1)
    expected = {
        "slope": 0.5 * A @ A.T * same,
        "by": 1.5 * np.exp(-0.5 * distances / 0.81) * same,
    }
    values = {"slope": [0.2, 0.5], "by": [0.9, 1.5]}
    for name, cov_func in parts.items():
        K = Gram(lower(cov_func), X, values[name]).matrix
        np.testing.assert_allclose(K, expected[name], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(K, K.T)
