"""The table of priors."""

import numpy as np
import pymc as pm
import pytest

import pmordinal as pmo

X = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 0.5], [3.0, 2.0]])
y = [1, 1, 2, 3]


def test_priors_with_their_terms():
    table = pmo.model_summary(pmo.gp_model(X, y, "recommended"))
    assert table.index.name == "variable"
    assert table.loc["rough_amplitude", "term"] == "rough"
    assert table.loc["lengthscale_ratio"].to_list() == ["Normal(0, 1)", "column", "smooth"]
    assert table.loc["lengthscale"].to_list() == ["computed", "feature", "smooth"]
    assert table.loc["thresholds", "term"] == ""
    assert "..." not in str(table)


def test_one_covariance_has_no_terms():
    model = pmo.gp_model(X, y, "expquad", noise=pm.HalfNormal.dist(2.0))
    table = pmo.model_summary(model)
    assert table.loc["noise", "prior"] == "HalfNormal(0, 2)"
    assert set(table["term"]) == {""}


def test_terms_of_a_formula():
    formula = "rating ~ temperature + gp(bottle) + anova(bottle) + (1 | judge)"
    table = pmo.model_summary(pmo.formula_model(formula, pmo.datasets.wine()))
    assert table.loc["1|judge_sd", "term"] == "1|judge"
    assert table.loc["gp(bottle)_lengthscale", "term"] == "gp(bottle)"
    assert table.loc["anova(bottle)_main", "term"] == "anova(bottle)"


def test_a_model_of_pymc():
    with pm.Model() as model:
        pm.Normal("x", 0.0, 2.0)
    assert pmo.model_summary(model).loc["x", "prior"] == "Normal(0, 2)"
    with pytest.raises(TypeError, match=r"must be a pm\.Model"):
        pmo.model_summary("model")
