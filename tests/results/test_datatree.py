"""The DataTree contract, held by running ArviZ on it."""

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import pmordinal as pmo

GROUPS = {
    "posterior",
    "posterior_predictive",
    "log_likelihood",
    "log_prior",
    "sample_stats",
    "observed_data",
    "constant_data",
}


@pytest.fixture(scope="module")
def fit():
    data = pmo.datasets.wine()
    levels = ["mild", "light", "medium", "strong", "harsh"]
    data["rating"] = data["rating"].cat.rename_categories(levels)
    data.index = [f"row{i}" for i in range(len(data))]
    return pmo.fit(
        pmo.gp_model(data[["temperature", "contact"]], data["rating"], "expquad"), progressbar=False
    )


@pytest.fixture(scope="module")
def tree(fit):
    return fit.to_datatree(draws=800, seed=3)


def test_groups_and_names(fit, tree):
    assert GROUPS <= set(tree.children)
    posterior = tree["posterior"]
    assert {"lengthscale", "noise", "thresholds", "f"} <= set(posterior.data_vars)
    assert posterior.sizes["draw"] == 800
    assert posterior["threshold"].values.tolist() == [
        "mild|light",
        "light|medium",
        "medium|strong",
        "strong|harsh",
    ]
    assert posterior["obs"].values[:2].tolist() == ["row0", "row1"]
    np.testing.assert_allclose(posterior["thresholds"].values[0, -1], fit.thresholds)
    stats = tree["sample_stats"]
    assert stats["engine"].item() == fit.engine
    assert stats["converged"].values.all()
    assert tree["posterior_predictive"]["y"].dtype.kind == "i"
    assert tree["constant_data"]["label"].values.tolist()[-1] == "harsh"
    np.testing.assert_array_equal(tree["observed_data"]["y"].values, fit.posterior.y)
    assert set(np.unique(tree["constant_data"]["X"].values)) == {0.0, 1.0}  # the user's units


def test_draws_have_the_posterior_moments(fit):
    f = fit.posterior.draw(20_000, np.random.default_rng(5)).f
    p = fit.posterior
    K, S = p.gram.matrix, p.root_precision
    B = np.eye(len(S)) + S[:, None] * K * S
    A = K - K @ (S[:, None] * np.linalg.solve(B, S[:, None] * K))
    scale = np.sqrt(np.diag(A))
    # Monte-Carlo errors: 1/√20000 = 0.007 standard deviations for means, the same for correlations
    assert np.abs((f.mean(0) - p.mean) / scale).max() < 0.035
    assert np.abs((np.cov(f.T) - A) / np.outer(scale, scale)).max() < 0.05


@pytest.mark.slow
def test_log_densities_recover_the_evidence(fit):
    """E_q exp(log_p − log_q) is the evidence: a slip of a normaliser moves it by tens of nats."""
    draws = fit.posterior.draw(20_000, np.random.default_rng(6))
    p = fit.posterior
    terms = p.likelihood.log_prob(np.tile(p.y, 20_000), draws.f.ravel())
    w = draws.log_prior + terms.value.reshape(draws.f.shape).sum(1) - draws.log_q
    weights = np.exp(w - w.max())
    estimate = w.max() + np.log(weights.mean())
    error = weights.std() / weights.mean() / np.sqrt(len(w))
    assert abs(estimate - fit.log_evidence) < 0.5 + 5 * error  # 0.5: Laplace's own error here


def test_predictive_draws_follow_the_class_probabilities(fit):
    tree = fit.to_datatree(draws=4000, seed=8)
    y = tree["posterior_predictive"]["y"].values[0]
    frequencies = np.stack([(y == k).mean(0) for k in range(5)], 1)
    mean, var = fit.posterior.mean, fit.posterior.variance
    expected = fit.posterior.likelihood.probabilities(mean, var)
    assert np.abs(frequencies - expected).max() < 0.04  # five Monte-Carlo standard errors


def test_summary(tree):
    table = az.summary(tree)
    assert "thresholds[mild|light]" in table.index
    assert np.isfinite(table.loc["f[row0]", "mean"])


@pytest.mark.filterwarnings("ignore:Estimated shape parameter:UserWarning")
def test_loo_agrees_with_the_cavities(fit, tree):
    psis = az.loo(tree, pointwise=True)
    ours = fit.posterior.leave_one_out.value.sum()
    assert abs(psis.elpd - ours) < 2.0
    comparison = az.compare({"a": tree, "b": tree})
    assert len(comparison) == 2


def test_pava_and_pit_plots(tree):
    from matplotlib import pyplot as plt

    assert az.plot_ppc_pava(tree, data_type="ordinal") is not None
    assert az.plot_loo_pit(tree) is not None
    plt.close("all")


def test_seed_and_errors(fit):
    a, b = fit.to_datatree(draws=5, seed=1), fit.to_datatree(draws=5, seed=1)
    np.testing.assert_array_equal(a["posterior"]["f"], b["posterior"]["f"])
    with pytest.raises(ValueError, match="draws"):
        fit.to_datatree(draws=0)
    with pytest.raises(ValueError, match="hyper"):
        fit.to_datatree(hyper="everything")


def test_duplicated_rows_need_no_jitter():
    """K is singular: draws exist, and conflicting duplicates share their latent value exactly."""
    X = pd.DataFrame({"x": [0.0, 0.0, 1.0, 1.0, 2.0]})
    fit = pmo.fit(pmo.gp_model(X, [0, 1, 1, 2, 2], "expquad"), progressbar=False)
    f = fit.to_datatree(draws=50, seed=0)["posterior"]["f"].values[0]
    np.testing.assert_allclose(f[:, 0], f[:, 1], atol=1e-10)


def test_log_priors_are_those_of_pymc():
    """Also where priors depend on other hyperparameters: thresholds of groups."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(12, 2)), columns=["a", "b"]).assign(rater=list("uvw") * 4)
    y = np.tile([1, 2, 3, 3], 3)
    model = pmo.gp_model(X, y, ard=True, thresholds_by="rater")
    fit = pmo.fit(model, progressbar=False, optimize=False)
    draws = pm.sample_prior_predictive(3, model=model, random_seed=1)["prior"].to_dataset()
    sampled = xr.DataTree.from_dict({"posterior": draws})
    tree = pmo.sample_posterior(model, sampled, seed=1, progressbar=False)
    expected = pm.stats.compute_log_prior(sampled, model=model, progressbar=False)["log_prior"]
    assert set(tree["log_prior"].data_vars) == set(expected.data_vars)
    for name, values in expected.data_vars.items():
        np.testing.assert_allclose(tree["log_prior"][name].values, values.values, rtol=1e-10)
    point = fit.to_datatree(4, seed=1)["log_prior"].to_dataset()
    assert set(point.data_vars) == set(expected.data_vars)
    assert all(np.ptp(v.values, axis=1).max() == 0 for v in point.values())


@pytest.mark.slow
def test_log_priors_of_sampled_latent_models():
    X, y = np.linspace(0, 3, 8), [1, 1, 2, 1, 2, 3, 3, 3]
    model = pmo.latent_model(X, y, "expquad")
    sampled = pm.sample(5, tune=5, chains=1, model=model, random_seed=1, progressbar=False)
    tree = pmo.sample_posterior(model, sampled, seed=1, progressbar=False)["log_prior"]
    expected = pm.stats.compute_log_prior(sampled, model=model, progressbar=False)["log_prior"]
    assert set(tree.data_vars) == set(expected.data_vars) - {"f_white"}
    for name, values in tree.data_vars.items():
        np.testing.assert_allclose(values.values, expected[name].values, rtol=1e-10)


def test_a_fit_from_a_file_has_no_priors(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    assert "log_prior" not in pmo.load(tmp_path / "fit.nc").to_datatree(3, seed=1).children


@pytest.fixture(scope="module")
def moving(fit):
    return fit.to_datatree(300, "gaussian", seed=2)


def test_sensitivity_to_priors(moving):
    found = az.psense_summary(moving, var_names=["noise", "lengthscale"])
    assert found.index.to_list() == ["noise", "lengthscale"]
    assert (found[["prior", "likelihood"]] > 0.01).all(axis=None)  # few wines, priors that matter


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_leave_one_out_of_approximations_and_of_a_part_of_the_rows(fit, tree, moving):
    integrated = fit.integrate("ccd")
    weighted = integrated.to_datatree(500, seed=1)
    for draws in (tree, moving, weighted):
        stats = draws["sample_stats"]
        density = {"log_p": stats["log_p"], "log_q": stats["log_q"]}
        whole = az.loo_approximate_posterior(draws, **density)
        part = az.loo_subsample(draws, observations=40, seed=1, **density)
        assert 0.0 < part.subsampling_se < 1.0
        assert part.elpd == pytest.approx(whole.elpd, abs=2 * part.subsampling_se)
        plain = az.loo_subsample(draws, observations=40, seed=1)
        assert plain.elpd == pytest.approx(az.loo(draws).elpd, abs=2 * plain.subsampling_se)
    # EP is nearly exact here: the correction moves its draws little, and the exact weights of a design not at all
    for draws, known in ((tree, pmo.loo(fit)), (weighted, pmo.loo(integrated))):
        stats = draws["sample_stats"]
        found = az.loo_approximate_posterior(draws, log_p=stats["log_p"], log_q=stats["log_q"])
        assert found.elpd == pytest.approx(known.elpd, abs=0.5)


def test_summary_of_fixed_hyperparameters(fit, tree):
    """Statistics without the diagnostics of a sampler, which fixed values do not have."""
    table = az.summary(tree, var_names=["~f"], kind="stats", round_to="none")
    assert not table.isna().any(axis=None)
    assert table.loc["noise", "mean"] == pytest.approx(float(fit.noise))
    assert (table["sd"] < 1e-12).all()
