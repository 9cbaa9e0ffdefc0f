"""Simulation-based calibration: draws of a posterior rank the truth uniformly [Talts et al. 2018]."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pmordinal as pmo
from pmordinal.engines import Exact
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood

X = np.random.default_rng(1).normal(size=(10, 2))


def assert_uniform(ranks, most):
    """Chi-square test of ranks 0, …, most in about ten bins, for each column."""
    edges = np.linspace(0, most + 1, 11)
    for column in np.transpose(ranks):
        counts = np.histogram(column, edges)[0]
        expected = len(column) * np.diff(np.ceil(edges)) / (most + 1)
        assert stats.chisquare(counts, expected).pvalue > 1e-4, counts


@pytest.mark.slow
def test_ranks_of_exact_draws_are_uniform():
    """The latent function, hyperparameters known: accept–reject."""
    rng = np.random.default_rng(2)
    gram = Gram(lower(pm.gp.cov.ExpQuad(2, ls=1.0)), X, [1.0])
    likelihood = OrdinalLikelihood([-0.6, 0.3], 0.3)
    R = np.linalg.cholesky(gram.matrix)
    ranks = []
    for seed in range(300):
        f = R @ rng.normal(size=10)
        y = likelihood.draw(f, rng)
        post = Exact(draws=50, standard_error=np.inf, seed=seed)(gram, y, likelihood)
        draws = post.draw(99, rng).f
        found = [*(draws < f).sum(0), (draws.mean(1) < f.mean()).sum()]
        found.append((draws.var(1) < f.var()).sum())
        ranks.append(found)
    assert_uniform(ranks, 99)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_ranks_of_the_pseudo_marginal_sampler_are_uniform():
    """Hyperparameters and latent function, drawn from the priors; two proposals, so that Ẑ is rough."""
    rng = np.random.default_rng(3)
    priors = {
        "lengthscale": pm.LogNormal.dist(0.0, 0.5),
        "noise": pm.LogNormal.dist(-1.0, 0.5),
        "thresholds": [-0.5, 0.4],
        "standardize": False,
    }
    kernel = lower(pm.gp.cov.ExpQuad(2, ls=pm.math.constant(1.0)))
    ranks = []
    for seed in range(120):
        ls, noise = np.exp(0.5 * rng.normal()), np.exp(-1.0 + 0.5 * rng.normal())
        K = Gram(kernel, X, [ls]).matrix
        f = np.linalg.cholesky(K + 1e-10 * np.eye(10)) @ rng.normal(size=10)
        y = OrdinalLikelihood([-0.5, 0.4], noise).draw(f, rng)
        model = pmo.gp_model(X, y, "expquad", categories=[0, 1, 2], **priors)
        options = {"chains": 1, "proposals": 2, "seed": seed, "progressbar": False}
        tree = pmo.sample_exact(model, draws=180, tune=80, **options)
        thin = tree["posterior"].to_dataset().isel(chain=0, draw=slice(19, None, 20))
        found = [int((thin["lengthscale"] < ls).sum()), int((thin["noise"] < noise).sum())]
        ranks.append([*found, *(thin["f"].values < f).sum(0)[:3]])
    assert_uniform(ranks, 9)
