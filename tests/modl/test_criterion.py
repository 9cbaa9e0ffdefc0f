"""Each term of the criterion against counting, and the slips of the paper."""

import itertools
import math

import numpy as np
import pytest

from pmordinal.modl.partition import criterion as c

from .oracles import bell_sum


def compositions(n, parts):
    """Count the ways to write n as an ordered sum of `parts` numbers ≥ 0, by listing them."""
    return sum(1 for k in itertools.product(range(n + 1), repeat=parts) if sum(k) == n)


@pytest.mark.parametrize(("n", "parts"), [(1, 1), (4, 2), (5, 3), (6, 4)])
def test_part_prior_counts_the_divisions_of_n(n, parts):
    assert c.part_prior(n, parts) == pytest.approx(math.log(compositions(n, parts)), abs=1e-12)


def test_distribution_prior_counts_the_distributions_of_each_part():
    counts = np.array([[2, 1, 0], [0, 1, 3]])
    expected = math.log(compositions(3, 3)) + math.log(compositions(4, 3))
    assert c.distribution_prior(counts) == pytest.approx(expected, abs=1e-12)


def test_multinomial_likelihood_counts_the_arrangements():
    arrangements = len(set(itertools.permutations("aabbb"))) * len(
        set(itertools.permutations("abb"))
    )
    assert c.multinomial_likelihood([[2, 3], [1, 2]]) == pytest.approx(math.log(arrangements))


def test_rank_likelihood_counts_the_orders_within_intervals():
    assert c.rank_likelihood([[2, 3], [1, 2]]) == pytest.approx(math.log(6 * 120))


@pytest.mark.parametrize("v", [1, 2, 3, 5, 7])
def test_partition_numbers_equal_counting(v):
    logs = c.log_partition_numbers(v)
    assert logs[0] == -np.inf
    for i in range(1, v + 1):
        assert logs[i] == pytest.approx(math.log(bell_sum(v, i)), abs=1e-12)


def test_partition_numbers_stay_finite_for_many_values():
    logs = c.log_partition_numbers(2000, 50)
    assert logs.shape == (51,)
    assert np.isfinite(logs[1:]).all() and (np.diff(logs[1:]) > 0).all()
    # S(V, 2) = 2^(V−1) − 1
    assert logs[2] == pytest.approx(1999 * math.log(2), abs=1e-9)


def test_values_of_the_paper_at_150():
    n = 150
    assert c.cost([[n]]) == pytest.approx(615.04, abs=5e-3)
    assert c.null_cost(n) == pytest.approx(c.cost([[n]]))
    assert c.cost(np.eye(n, dtype=int)) == pytest.approx(965.79, abs=5e-3)
    closed = 2 * math.log(n) + math.lgamma(2 * n) - math.lgamma(n) - math.lgamma(n + 1)
    assert c.cost(np.eye(n, dtype=int)) == pytest.approx(closed + n * math.log(n))


def test_null_model_of_the_categorical_criterion_is_equation_3_at_one_cell():
    assert c.null_cost(40, 7) == pytest.approx(math.log(7) + math.log(40) + math.lgamma(41))
    assert c.null_cost(40, 7) == pytest.approx(c.cost([[40]], n_values=7))


def test_cost_is_the_sum_of_its_terms():
    counts = np.array([[5, 0, 2], [1, 4, 4]])
    for v in (None, 6):
        terms = (
            c.size_prior(16, v), c.part_prior(16, 2, v), c.distribution_prior(counts),
            c.multinomial_likelihood(counts), c.rank_likelihood(counts),
        )  # fmt: skip
        assert c.cost(counts, v) == pytest.approx(sum(terms))


def test_level_of_null_and_of_half():
    assert c.level(10.0, 10.0) == 0.0
    assert c.level(5.0, 10.0) == 0.5
