"""ANOVA terms of numbers and levels in a model."""

import numpy as np
import pandas as pd
import pytest

import pmordinal as pmo
from pmordinal.model.strongest_pairs import strongest_pairs

QUIET = {"progressbar": False}


def survey(n=60, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"x": rng.normal(size=n), "group": rng.choice(list("abc"), n)})
    table["code"] = rng.integers(0, 3, n)
    slope = table["group"].map({"a": -1.5, "b": 0.0, "c": 1.5})
    table["y"] = np.digitize(slope * table["x"] + 0.5 * rng.normal(size=n), [-0.7, 0.0, 0.7])
    return table


@pytest.fixture(scope="module")
def fit():
    return pmo.fit(pmo.formula_model("y ~ anova(x, group)", survey()), **QUIET)


def test_levels_have_terms_of_their_own(fit):
    names = ["anova(x)", "anova(group)", "anova(x, group)"]
    assert fit.terms()["term"].values.tolist() == names
    assert fit.dims["anova(x, group)_lengthscale"] == ("anova(x, group)_column",)
    assert fit.point["anova(x, group)_lengthscale"].shape == (1,)
    assert fit.variance_shares().drop("noise").idxmax() == "anova(x, group)"
    pmo.plots.plot_terms(fit)


def test_terms_have_mean_zero_over_the_data(fit):
    means = fit.terms()["mean"]
    np.testing.assert_allclose(means[:2].mean("obs"), 0.0, atol=1e-8)
    # a product has mean zero along each of its columns, at any value of the other one
    table = survey()
    for level in "abc":
        there = fit.terms(table.assign(group=level))["mean"][2]
        assert abs(float(there.mean())) < 1e-8


def test_a_new_level_has_the_priors_variance(fit):
    with pytest.warns(UserWarning, match="level"):
        new = fit.terms(survey().head(2).assign(group="new"))
    variance = fit.point["anova(x, group)_main"][1]
    np.testing.assert_allclose(new["sd"][1] ** 2, variance, rtol=1e-10)
    np.testing.assert_allclose(new["mean"][1], 0.0, atol=1e-10)


def test_names_and_order_of_levels_do_not_matter(fit):
    table = survey()
    other = table.assign(group=table["group"].map({"a": "z", "b": "y", "c": "x"}))
    again = pmo.fit(pmo.formula_model("y ~ anova(x, group)", other), **QUIET)
    assert again.log_evidence == pytest.approx(fit.log_evidence, abs=1e-6)
    np.testing.assert_allclose(again.predict(other), fit.predict(table), atol=1e-4)


def test_a_saved_fit_predicts_the_same(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    new = survey(seed=1)
    np.testing.assert_array_equal(pmo.load(tmp_path / "fit.nc").predict(new), fit.predict(new))


def test_numbers_as_levels_and_levels_alone():
    model = pmo.formula_model("y ~ anova(C(code), group)", survey())
    names = [v.name for v in model.free_RVs]
    assert not any("lengthscale" in name for name in names)
    assert pmo.fit(model, **QUIET).status.converged
    with pytest.raises(ValueError, match="no column has a lengthscale"):
        priors = {"anova(group)": {"lengthscale": 1.0}}
        pmo.formula_model("y ~ x + anova(group)", survey(), priors=priors)


@pytest.mark.slow
@pytest.mark.parametrize("formula", ["y ~ anova(x, group)", "y ~ anova(x)"])
def test_weights_are_repeated_rows(formula):
    """The means that are taken out are those of the repeated rows."""
    table = survey(30)
    counts = np.arange(30) % 4 + 1
    repeated = table.loc[table.index.repeat(counts)].reset_index(drop=True)
    # the same distinct rows, in units that do not depend on how often they are there
    by_weight, by_rows = (
        pmo.fit(pmo.formula_model(formula, t, engine="laplace", weights=w), **QUIET)
        for t, w in ((table, counts), (repeated, None))
    )
    assert by_weight.log_evidence == pytest.approx(by_rows.log_evidence, rel=1e-8)
    np.testing.assert_allclose(by_weight.predict(table), by_rows.predict(table), atol=1e-6)


def test_the_covariance_of_numbers_is_chosen_by_name():
    table = survey(30)
    fits = [
        pmo.fit(pmo.formula_model(f"y ~ anova(x{cov})", table), **QUIET)
        for cov in ("", ', cov="expquad"', ', cov="matern12"')
    ]
    assert fits[0].log_evidence == pytest.approx(fits[1].log_evidence, abs=1e-8)
    assert abs(fits[0].log_evidence - fits[2].log_evidence) > 1e-3
    with pytest.raises(ValueError, match="matern12"):
        pmo.formula_model("y ~ anova(x, cov='cubic')", table)


def test_the_strongest_pairs_may_be_of_levels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    X[:, 2] = rng.integers(0, 5, 400)
    y = (np.where(X[:, 2] == 3, -X[:, 0], X[:, 0]) > 0).astype(int)
    assert strongest_pairs(X, y, 1, levels=[2]) == [(0, 2)]
