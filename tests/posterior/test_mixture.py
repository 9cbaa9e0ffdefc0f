"""Mixtures over hyperparameters: their moments, quantiles and shares of draws."""

import numpy as np
from scipy.stats import norm

from pmordinal.posterior.mixture import mixed, quantiles, shares


def test_moments_are_those_of_draws(rng):
    weights, means, variances = np.array([0.2, 0.8]), np.array([-2.0, 1.0]), np.array([0.5, 2.0])
    which = rng.choice(2, 200_000, p=weights)
    draws = means[which] + np.sqrt(variances[which]) * rng.standard_normal(which.size)
    mean, variance = mixed(weights, means, variances)
    assert abs(mean - draws.mean()) < 0.02  # five standard errors
    assert abs(variance - draws.var()) < 0.05


def test_one_member_is_left_as_it_is(rng):
    mean, variance = rng.normal(size=(1, 5)), rng.uniform(size=(1, 5))
    for ours, own in zip(mixed(np.ones(1), mean, variance), (mean, variance), strict=True):
        np.testing.assert_array_equal(ours, own[0])
    low, _ = quantiles(np.ones(1), mean, variance, (0.05, 0.95))
    np.testing.assert_allclose(low, norm.ppf(0.05, mean[0], np.sqrt(variance[0])))


def test_quantiles_solve_the_distribution_function(rng):
    weights = rng.dirichlet(np.ones(4))
    means, variances = rng.normal(size=(4, 3)), rng.uniform(0.1, 2.0, size=(4, 3))
    for tail, found in zip(
        (0.03, 0.6), quantiles(weights, means, variances, (0.03, 0.6)), strict=True
    ):
        np.testing.assert_allclose(
            weights @ norm.cdf(found, means, np.sqrt(variances)), tail, atol=1e-10
        )


def test_members_without_spread_have_quantiles():
    low, high = quantiles(
        np.array([0.5, 0.5]), np.array([[1.0], [2.0]]), np.zeros((2, 1)), (0.1, 0.9)
    )
    np.testing.assert_allclose([low[0], high[0]], [1.0, 2.0], atol=1e-9)


def test_shares_add_up_and_follow_the_weights(rng):
    for draws in (1, 7, 500):
        weights = rng.dirichlet(np.ones(30))
        counts = shares(weights, draws)
        assert counts.sum() == draws and np.all(np.abs(counts - draws * weights) <= 1.0)
