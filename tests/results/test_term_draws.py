"""Effects of terms in trees: drawn together with f, and distributed as the joint Gaussian says."""

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from matplotlib import pyplot as plt
from scipy.linalg import block_diag

import pmordinal as pmo
from pmordinal.linalg import factor_psd
from pmordinal.posterior import LatentDraws
from pmordinal.results.term_draws import MOST_EFFECTS, Effects
from pmordinal.results.terms import effect_rows, parts


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    n = 50
    table = pd.DataFrame({"age": rng.uniform(20, 60, n), "f": rng.choice(["a", "b", "c"], n)})
    table["judge"] = rng.integers(1, 6, n)
    latent = 0.05 * table["age"] + (table["f"] == "b") + 0.4 * table["judge"]
    table["rating"] = np.digitize(latent + rng.normal(size=n), [2.7, 3.8])
    return table


def fitted(formula, data, **options):
    model = pmo.formula_model(formula, data, **options)
    return pmo.fit(model, optimize=False, progressbar=False)


def brute_force(fit):
    """Return mean and covariance of (f, e) given the sites of the posterior, from all matrices in full."""
    posterior = fit.posterior
    X, K = posterior.gram.X, posterior.gram.matrix
    cross, blocks, units = [], [], []
    for term, kernel, values in parts(fit):
        if term.kind == "smooth":
            continue
        rows, _, unit = effect_rows(fit.features, term)
        cross.append(kernel.matrix(values, X, rows)[0])
        blocks.append(kernel.matrix(values, rows, rows)[0])
        units += [unit] * len(rows)
    k = np.concatenate([K, *cross], axis=1)
    prior = np.block([[K, k[:, len(K) :]], [k[:, len(K) :].T, block_diag(*blocks)]])
    S = np.linalg.inv(K + np.diag(1.0 / posterior.precision))
    u = 1.0 / np.concatenate([np.ones(len(K)), units])
    covariance = prior - k.T @ S @ k
    return u * (k.T @ posterior.alpha), u[:, None] * covariance * u


FORMULAS = [
    "rating ~ age + f + (1 | judge)",
    "rating ~ f + age:f + gp(age) + (age | judge) + (1 | judge)",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_the_distribution_is_that_of_the_joint_gaussian(data, formula):
    fit = fitted(formula, data)
    n, posterior = len(data), fit.posterior
    effects = Effects.of(fit.features, fit.model_terms)
    mean, covariance = brute_force(fit)
    C, P, V = effects.given_latent(posterior)
    units = np.repeat([one.unit for one in effects.terms], [len(one.rows) for one in effects.terms])
    C, V = C / units[:, None], V / np.outer(units, units)
    np.testing.assert_allclose(C @ (P @ posterior.mean), mean[n:], atol=1e-6)
    # e = C z + rest and f = R z, where the posterior of z has the precision I + Rᵀ W R
    R = factor_psd(posterior.gram.matrix)
    of_z = np.linalg.inv(np.eye(R.shape[1]) + R.T @ (posterior.precision[:, None] * R))
    np.testing.assert_allclose(P @ R, np.eye(len(P)), atol=1e-6)
    np.testing.assert_allclose(C @ of_z @ C.T + V, covariance[n:, n:], atol=1e-6)
    np.testing.assert_allclose(C @ of_z @ R.T, covariance[n:, :n], atol=1e-6)
    draws = 20_000
    rng = np.random.default_rng(1)
    latent = posterior.draw(draws, rng)
    f, e = latent.f, effects.draw(posterior, latent, rng)
    both, variance = np.concatenate([f, e], axis=1), np.diagonal(covariance)
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / draws)  # Monte-Carlo
    assert np.all(np.abs(both.mean(0) - mean) < 5 * np.sqrt(variance / draws) + 1e-8)
    assert np.all(np.abs(np.cov(both.T) - covariance) < 6 * error + 1e-8)


def test_effects_of_a_draw_add_up_to_its_latent_function(data):
    fit = fitted("rating ~ age + f + age:f + (1 | judge)", data)
    posterior = fit.to_datatree(draws=20, seed=2)["posterior"].isel(chain=0)
    age = data["age"].to_numpy() - data["age"].mean()
    codes, judge = pd.Categorical(data["f"]).codes, data["judge"].to_numpy() - 1
    total = posterior["age"].values[:, None] * age + posterior["f_effect"].values[:, codes]
    total += posterior["age:f"].values[:, codes] * age + posterior["1|judge"].values[:, judge]
    np.testing.assert_allclose(total, posterior["f"].values, atol=1e-6)


@pytest.mark.slow
def test_variables_have_names_of_levels(data, tmp_path):
    fit = fitted("rating ~ age + f + (1 | judge) + (1 | f:judge) + gp(age)", data)
    tree = fit.to_datatree(draws=400, seed=3)
    posterior = tree["posterior"]
    assert posterior["age"].dims == ("chain", "draw")
    # `f` is the latent function, and a variable cannot share its name with a dimension
    assert posterior["f"].dims == ("chain", "draw", "obs")
    assert posterior["f_effect"].dims == ("chain", "draw", "f_level")
    assert posterior["1|judge"].dims == ("chain", "draw", "judge")
    assert posterior["1|f:judge"].dims == ("chain", "draw", "f_level", "judge")
    assert posterior["judge"].values.tolist() == list("12345")
    assert "gp(age)" not in posterior
    table = fit.coefficients().set_index(["term", "level"])
    for level in "12345":
        drawn = posterior["1|judge"].sel(judge=level)
        mean, sd = table.loc[("1|judge", level), ["mean", "sd"]]
        assert abs(float(drawn.mean()) - mean) < 5 * sd / 20
        assert abs(float(drawn.std()) / sd - 1) < 0.2
    forest = az.plot_forest(tree, var_names=["1|judge"])
    written = [text.get_text() for ax in forest.viz["figure"].item().axes for text in ax.texts]
    assert set("12345") < set(written)
    plt.close("all")
    assert len(az.summary(tree, var_names=["1|judge", "f_effect"])) == 8
    tree.to_netcdf(tmp_path / "tree.nc")
    with xr.open_datatree(tmp_path / "tree.nc") as again:
        xr.testing.assert_equal(again["posterior"]["1|judge"], posterior["1|judge"])


def test_a_slash_is_not_in_the_name_of_a_variable(data):
    tree = fitted("rating ~ I(age / 2) + age:judge", data).to_datatree(draws=3, seed=1)
    names = [v for v in tree["posterior"].data_vars if tree["posterior"][v].attrs.get("term")]
    assert len(names) == 2 and not any("/" in name for name in names)


def test_fits_without_terms_draw_what_they_drew(data):
    """No effect, no random numbers: the draws of other models stay as they were."""
    fit = pmo.fit(
        pmo.gp_model(data[["age"]], data["rating"], "expquad"), optimize=False, progressbar=False
    )
    rng = np.random.default_rng(4)
    assert Effects.of(fit.features, fit.model_terms).draw(
        fit.posterior, LatentDraws(np.zeros((2, 50)), np.zeros(2), np.zeros(2)), rng
    ).shape == (2, 0)
    assert rng.random() == np.random.default_rng(4).random()
    assert "terms_left_out" not in fit.to_datatree(draws=2, seed=4)["posterior"].attrs


def test_too_many_effects_are_left_out_by_name(data):
    data = data.assign(a=np.arange(50).astype(str), b=np.arange(50)[::-1].astype(str))
    assert 50 * 50 > MOST_EFFECTS
    fit = fitted("rating ~ age + (1 | a:b)", data)
    posterior = fit.to_datatree(draws=2, seed=4)["posterior"]
    assert posterior.attrs["terms_left_out"] == ["1|a:b"]
    assert "age" in posterior and "1|a:b" not in posterior


@pytest.mark.parametrize("engine", ["laplace", "sparse", "exact"])
def test_every_engine_has_effects(data, engine):
    fit = fitted("rating ~ f + (1 | judge)", data, engine=engine)
    tree = fit.to_datatree(draws=300, seed=5)
    table = fit.coefficients().query("term == '1|judge'")
    drawn = tree["posterior"]["1|judge"].values[0]
    assert np.all(np.abs(drawn.mean(0) - table["mean"]) < 6 * table["sd"] / np.sqrt(300))


def test_effects_follow_the_draws_of_the_hyperparameters(data):
    """With hyperparameters that are drawn too, effects still add up to f, draw by draw."""
    model = pmo.formula_model("rating ~ age + (1 | judge)", data)
    fit = pmo.fit(model, progressbar=False)

    def check(posterior):
        age, judge = data["age"].to_numpy() - data["age"].mean(), data["judge"].to_numpy() - 1
        total = posterior["age"].values[..., None] * age + posterior["1|judge"].values[..., judge]
        np.testing.assert_allclose(total, posterior["f"].values, atol=1e-6)

    check(fit.to_datatree(draws=10, hyper="gaussian", seed=6)["posterior"])
    prior = pm.sample_prior_predictive(6, model=model, random_seed=1)["prior"].to_dataset()
    tree = xr.DataTree.from_dict({"posterior": prior})
    once = pmo.sample_posterior(model, tree, seed=7, progressbar=False)
    check(once["posterior"])
    again = pmo.sample_posterior(model, once, seed=7, progressbar=False)
    xr.testing.assert_equal(again["posterior"].to_dataset(), once["posterior"].to_dataset())
