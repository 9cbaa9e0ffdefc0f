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
