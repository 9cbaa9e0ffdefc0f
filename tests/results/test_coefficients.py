"""Coefficients of the linear parts of sums by name, in the user's units."""

import numpy as np
import pandas as pd
import pytest

import pmordinal as pmo
from tests.repeated import first_fast

QUIET = {"progressbar": False}


@pytest.fixture(scope="module")
def survey():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(20, 80, 50), "income": rng.lognormal(3, 0.5, 50)})
    X["group"] = pd.Categorical(rng.choice(list("abc"), 50))
    f = 0.05 * (X["age"] - 50) + X["group"].map({"a": -0.5, "b": 0.0, "c": 0.5}).astype(float)
    return X, np.digitize(f + rng.normal(size=50), [-1.0, 0.0, 1.0])


@pytest.mark.parametrize("name", first_fast(["linear", "anova", "recommended"], 2))
def test_effects_are_differences_of_the_linear_term(survey, name):
    X, y = survey
    fit = pmo.fit(pmo.gp_model(X, y, name, engine="laplace"), **QUIET)
    table = fit.coefficients()
    where = "factors" if name == "anova" else "linear"

    def at(**values):
        return float(fit.terms(X.head(1).assign(**values)).sel(term=where)["mean"][0])

    groups = table.query("term == 'group'").set_index("level")["mean"]
    assert groups.index.tolist() == list("abc")
    assert groups.sum() == pytest.approx(0.0, abs=1e-9)
    difference = at(group="c") - at(group="a")
    assert groups["c"] - groups["a"] == pytest.approx(difference, rel=1e-6, abs=1e-9)
    assert (table["sd"] > 0.0).all()
    if name == "anova":  # numbers are smooth there
        assert set(table["term"]) == {"group"}
        return
    one = table.query("term == 'age'").iloc[0]
    assert pd.isna(one["level"])
    assert one["mean"] == pytest.approx(at(age=31.0) - at(age=30.0), rel=1e-6)
    assert one["lower"] < one["mean"] < one["upper"]


def test_they_are_those_of_the_same_model_as_a_formula(survey):
    """With a Gaussian slope of the same size, and no other column."""
    X, y = survey
    fit = pmo.fit(pmo.gp_model(X[["age"]], y, "linear"), **QUIET)
    size = float(fit.point["amplitude"])
    model = pmo.formula_model(
        "y ~ age", X.assign(y=y), priors={"age": {"sd": size}}, thresholds=fit.thresholds
    )
    ours, theirs = fit.coefficients(), pmo.fit(model, **QUIET).coefficients()
    pd.testing.assert_frame_equal(ours, theirs, rtol=1e-5)


def test_a_saved_fit_has_them(survey, tmp_path):
    X, y = survey
    fit = pmo.fit(pmo.gp_model(X, y, "linear", engine="laplace"), **QUIET)
    fit.save(tmp_path / "fit.nc")
    again = pmo.load(tmp_path / "fit.nc").coefficients()
    pd.testing.assert_frame_equal(again, fit.coefficients(), rtol=1e-6)
