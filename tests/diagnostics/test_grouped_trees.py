"""Checks of sampled trees whose rows have groups or weights."""

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import pmordinal as pmo
from pmordinal.diagnostics.predictive import predicted, predictions

QUIET = {"progressbar": False}


@pytest.fixture(scope="module")
def survey():
    rng = np.random.default_rng(0)
    n = 40
    X = pd.DataFrame({"x": rng.normal(size=n), "rater": np.tile(list("ab"), n // 2)})
    severe = np.where(X["rater"] == "a", 0.8, -0.8)
    y = np.digitize(X["x"] - severe + rng.normal(size=n), [-0.6, 0.6])
    return X, y


@pytest.fixture(scope="module")
def grouped(survey):
    X, y = survey
    return pmo.fit(
        pmo.gp_model(X, y, thresholds_by="rater", noise_by="rater", lengthscale=1.0), **QUIET
    )


@pytest.fixture(scope="module")
def weighted(survey):
    X, y = survey
    w = np.arange(len(X)) % 3 + 1
    model = pmo.gp_model(X[["x"]], y, weights=w, lengthscale=1.0, noise=1.0, thresholds=[-0.6, 0.6])
    return pmo.fit(model, **QUIET), w


def test_a_tree_knows_the_group_of_each_row(survey, grouped):
    tree = grouped.to_datatree(4000, seed=1)
    np.testing.assert_array_equal(
        tree["constant_data"]["threshold_codes"], survey[0]["rater"] == "b"
    )
    of_tree = predictions(tree, leave_one_out=False)
    of_fit = predictions(grouped, leave_one_out=False)
    np.testing.assert_allclose(of_tree.probs, of_fit.probs, atol=0.02)
    np.testing.assert_allclose(predictions(tree).probs, predictions(grouped).probs, atol=0.05)
    lost = tree.copy()
    lost["constant_data"] = xr.DataTree(
        tree["constant_data"].to_dataset().drop_vars("threshold_codes")
    )
    with pytest.raises(ValueError, match="does not say of which group a row is"):
        predictions(lost, leave_one_out=False)


@pytest.mark.slow
@pytest.mark.parametrize("make", [pmo.gp_model, pmo.latent_model])
def test_new_rows_of_known_and_unknown_groups(survey, make):
    X, y = survey
    model = make(X, y, thresholds_by="rater", lengthscale=1.0, noise=1.0)
    prior = pm.sample_prior_predictive(400, model=model, random_seed=1)
    tree = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})  # a stand-in
    new = pd.DataFrame({"x": [0.0, 0.0, 0.5], "rater": ["a", "b", "new"]})
    result = pmo.sample_posterior(model, tree, Xnew=new, seed=2, **QUIET)
    codes = result["predictions_constant_data"]["threshold_codes"].values
    assert codes.tolist() == [0, 1, 2]
    probs = predicted(result, "it").values
    drawn = result["predictions"]["y"].values
    shares = np.stack([(drawn == k).mean((0, 1)) for k in range(3)], axis=1)
    np.testing.assert_allclose(probs, shares, atol=0.1)


def test_loo_of_a_weighted_tree_is_that_of_repeated_rows(weighted):
    fit, w = weighted
    tree = fit.to_datatree(1000, seed=1)
    found = pmo.loo(tree)
    again = np.repeat(np.arange(w.size), w)
    log_lik = tree["log_likelihood"].to_dataset().isel(obs=again).drop_vars("obs")
    posterior = tree["posterior"].to_dataset().drop_vars(["f", "obs"])
    repeated = xr.DataTree.from_dict({"log_likelihood": log_lik, "posterior": posterior})
    expected = az.loo(repeated, pointwise=True)
    assert found.elpd == pytest.approx(expected.elpd, rel=1e-8)
    assert found.se == pytest.approx(expected.se, rel=1e-6)
    assert found.p == pytest.approx(expected.p, rel=1e-6)
    assert found.n_data_points == w.sum()
    assert found.elpd == pytest.approx(pmo.loo(fit).elpd, abs=1.5)
    half = tree.copy()
    constant = tree["constant_data"].to_dataset()
    half["constant_data"] = xr.DataTree(constant.assign(weights=constant["weights"] / 2))
    with pytest.raises(ValueError, match="less than one label"):
        pmo.loo(half)


def test_bars_and_calibration_count_repeated_rows(weighted, survey):
    fit, w = weighted
    tree = fit.to_datatree(500, seed=1)
    bars = pmo.predictive_bars(tree, by=survey[0]["rater"], seed=1)
    by_hand = pd.crosstab(np.repeat(survey[0]["rater"], w), np.repeat(survey[1], w))
    observed = bars.pivot_table("observed", "group", "class", observed=True)
    np.testing.assert_array_equal(observed, by_hand)
    assert bars["mean"].sum() == pytest.approx(w.sum())
    assert pmo.predictive_bars(fit, draws=20, seed=1)["observed"].sum() == w.sum()
    assert len(predictions(tree, leave_one_out=False).codes) == w.sum()
    # expected counts are those of the class probabilities, each as often as its row
    probs = predictions(tree, leave_one_out=False).probs.sum(0)
    means = bars.groupby("class", observed=True)["mean"].sum()
    np.testing.assert_allclose(means, probs, rtol=0.05)


def test_effects_of_one_group(survey, grouped):
    X, _ = survey
    for rater in ("a", "b"):
        table = grouped.effects("x", "probs", at={"rater": rater}, n_grid=3, rows=len(X))
        new = pd.DataFrame({"x": sorted(set(table["x"])), "rater": rater})
        expected = grouped.predict(new).values
        np.testing.assert_allclose(table["mean"].to_numpy().reshape(3, 3), expected, atol=1e-8)
    population = grouped.effects("x", "probs", n_grid=3)
    assert not np.allclose(population["mean"], table["mean"], atol=1e-3)
    with pytest.raises(ValueError, match="rater"):
        grouped.effects("x", at={"rater": "nobody"})
    ax = pmo.plots.plot_latent(grouped, "x", at={"rater": "b"})
    lines = [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--"]
    np.testing.assert_allclose(lines, grouped.thresholds[1])
    pmo.plots.plot_categories(grouped, "x", at={"rater": "b"})


def test_effects_of_a_group_that_is_a_term_too(survey):
    X, y = survey
    model = pmo.formula_model("y ~ x + (1 | rater)", X.assign(y=y), thresholds_by="rater")
    fit = pmo.fit(model, **QUIET)
    table = fit.effects("x", "probs", at={"rater": "a"}, n_grid=2)
    new = pd.DataFrame({"x": sorted(set(table["x"])), "rater": "a"})
    np.testing.assert_allclose(
        table["mean"].to_numpy().reshape(2, 3), fit.predict(new).values, atol=1e-8
    )
