"""Words that users try: one target by its name, either name of a seed, errors that guess what was meant."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest

import pmordinal as pmo


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_the_target_may_be_a_column(kind):
    table = pmo.datasets.wine()[["temperature", "contact", "rating"]].astype({"rating": int})
    named = pmo.gp_model(kind(table), "rating", "expquad")
    given = pmo.gp_model(table[["temperature", "contact"]], table["rating"], "expquad")
    assert named.coords["feature"] == given.coords["feature"]
    point = given.initial_point()
    assert named.compile_logp()(point) == pytest.approx(given.compile_logp()(point))
    assert "f" in pmo.latent_model(kind(table), "rating", "expquad").named_vars
    assert pmo.linear_model(kind(table), "rating").coords["feature"] == given.coords["feature"]


def test_a_target_that_is_not_there():
    table = pmo.datasets.wine()
    with pytest.raises(ValueError, match=r"no column 'ratings'.* Did you mean 'rating'"):
        pmo.gp_model(table, "ratings", "expquad")
    with pytest.raises(TypeError, match="X has no named columns: pass the labels"):
        pmo.gp_model(np.ones((3, 1)), "rating", "expquad")
    with pytest.raises(ValueError, match="no column besides 'rating'"):
        pmo.gp_model(table[["rating"]], "rating", "expquad")


def test_every_seed_has_two_names():
    functions = [getattr(pmo, name) for name in dir(pmo) if inspect.isfunction(getattr(pmo, name))]
    functions += [getattr(pmo.modl, name) for name in pmo.modl.__all__]
    functions += [getattr(pmo.plots, name) for name in pmo.plots.__all__]
    functions += [pmo.OrdinalFit.to_datatree, pmo.OrdinalFit.integrate]
    seeded = 0
    for function in filter(inspect.isfunction, functions):
        names = inspect.signature(function).parameters
        assert ("seed" in names) == ("random_seed" in names), function
        seeded += "seed" in names
    assert seeded >= 15


def test_either_seed_is_the_same():
    x = np.arange(40.0)
    one, other = ({"seed": 3}, {"random_seed": 3})
    fit = pmo.fit(pmo.gp_model(x, (x > 20).astype(int), lengthscale=1.0), progressbar=False)
    trees = [fit.to_datatree(20, **seed)["posterior"]["f"].values for seed in (one, other)]
    np.testing.assert_array_equal(*trees)
    with pytest.raises(ValueError, match="two names for one thing"):
        fit.to_datatree(20, seed=1, random_seed=2)


def test_errors_guess():
    table = pmo.datasets.wine()
    with pytest.raises(ValueError, match="Did you mean 'laplace'"):
        pmo.gp_model(table, "rating", "expquad", engine="Laplac")
    with pytest.raises(ValueError, match="Did you mean 'matern52'"):
        pmo.gp_model(table, "rating", cov_func="matern_52")
    with pytest.raises(ValueError, match="Did you mean 'temperature'"):
        pmo.formula_model("rating ~ temprature", table)
    with pytest.raises(AttributeError, match="Did you mean 'gp_model'"):
        pmo.gpmodel  # noqa: B018


@pytest.mark.parametrize(
    "call, meant",
    [
        (lambda t: pmo.gp_model(data=t, y="rating"), "X"),
        (lambda t: pmo.gp_model(t, target="rating"), "y"),
        (lambda t: pmo.gp_model(t, "rating", kernel="expquad"), "cov_func"),
        (lambda t: pmo.gp_model(t, "rating", "rbf"), "expquad"),
        (lambda t: pmo.gp_model(t, "rating", engine="SVGP"), "inducing"),
        (lambda t: pmo.gp_model(t, "rating", engine="expectation propagation"), "ep"),
        (lambda t: pmo.gp_model(t, "rating", method="ep"), "engine"),
        (lambda t: pmo.gp_model(t, "rating", link="normal"), "probit"),
        (lambda t: pmo.gp_model(t, "rating", cutpoints=[1.0, 2.0, 3.0, 4.0]), "thresholds"),
        (lambda t: pmo.gp_model(t, "rating", ls=1.0), "lengthscale"),
        (lambda t: pmo.linear_model(t, "rating", family="logit"), "link"),
        (lambda t: pmo.latent_model(t, "rating", kernel="expquad"), "cov_func"),
        (lambda t: pmo.formula_model("rating ~ temp", t), "temperature"),
        (lambda t: pmo.formula_model("rating ~ s(bottle)", t), "gp"),
        (lambda t: pmo.formula_model("rating ~ gp(bottle, kernel='rbf')", t), "cov"),
        (lambda t: pmo.formula_model("rating ~ gp(bottle, cov='rbf')", t), "expquad"),
        (lambda t: pmo.fit(None, max_iter=9), "max_evaluations"),
        (lambda t: pmo.fit(None, hyper="mcmc"), "integrate"),
        (lambda t: pmo.fit(None, random_state=1), "seed"),
        (lambda t: pmo.sample(None, samples=9), "draws"),
        (lambda t: pmo.sample(None, n_chains=9), "chains"),
        (lambda t: pmo.sample(None, tun=9), "tune"),
        (lambda t: pmo.sample(None, corected=True), "corrected"),
        (lambda t: pmo.compare({}, ref="ep"), "reference"),
        (lambda t: pmo.compare_engines(t, "rating", engine="ep"), "engines"),
        (lambda t: pmo.compare_engines(t, "rating", kernel="rbf"), "cov_func"),
        (lambda t: pmo.compare_engines(t, "rating", reference="NUTS"), "nuts"),
        (lambda t: pmo.plots.plot_terms(None, hdi_prob=0.9), "ci_prob"),
        (lambda t: pmo.modl.rank_predictors(t, "ratings"), "rating"),
        (lambda t: pmo.modl.sample_grids(t, "rating", samples=9), "draws"),
        (lambda t: pmo.modl.RankRegressor(random_seed=1), "random_state"),
        (lambda t: pmo.sklearn.OrdinalGPClassifier(kernel="rbf"), "cov_func"),
        (lambda t: pmo.OrdinalGPClassifier, "sklearn.OrdinalGPClassifier"),
        (lambda t: pmo.plot_term, "plots.plot_terms"),
    ],
)
def test_words_of_others(call, meant):
    with pytest.raises((ValueError, TypeError, AttributeError), match=f"Did you mean '{meant}'"):
        call(pmo.datasets.wine())


def test_what_nobody_can_guess_is_listed():
    with pytest.raises(
        TypeError, match=r"fit\(\) has no argument 'qwerty'; it has model, objective"
    ):
        pmo.fit(None, qwerty=1)
    with pytest.raises(ValueError, match=r"no engine: pmo\.sample"):
        pmo.gp_model(pmo.datasets.wine(), "rating", engine="nuts")
    with pytest.raises(TypeError, match="got dict"):
        pmo.loo({})
    with pytest.raises(ValueError, match="Write 'outcome ~ terms'"):
        pmo.formula_model("rating = temperature", pmo.datasets.wine())
    with pytest.raises(AttributeError, match=r"pmordinal\.plots and"):
        pmo.modl.plot_grid  # noqa: B018


def test_options_of_the_sampler_are_not_refused():
    x, options = np.arange(30.0), {"tune": 20, "chains": 1, "cores": 1, "quiet": True}
    model = pmo.gp_model(x, (x > 15).astype(int), lengthscale=1.0)
    for more in ({"target_accept": 0.9}, {"nuts": {"max_treedepth": 5}}, {"max_treedepth": 5}):
        tree = pmo.sample(model, 10, progressbar=False, seed=1, **options, **more)
        assert tree["posterior"].sizes["draw"] == 10


def test_rankings_take_the_column_of_the_target():
    table = pmo.datasets.wine()
    named = pmo.modl.rank_predictors(table, "rating", progressbar=False)
    given = pmo.modl.rank_predictors(
        table.drop(columns="rating"), table["rating"], progressbar=False
    )
    pd.testing.assert_frame_equal(named, given)
