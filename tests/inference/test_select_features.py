"""Relevance of attributes, and elimination of the irrelevant ones."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pmordinal as pmo


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(70, 5)), columns=list("abcde"))
    z = 1.5 * X["b"] + 0.6 * X["d"] + 0.2 * rng.normal(size=70)
    return X, np.digitize(z, [-0.8, 0.8])


def test_relevance_ranks_and_keeps_names(data):
    X, y = data
    fit = pmo.fit(pmo.gp_model(X, y, ard=True), progressbar=False)
    relevance = fit.relevance()
    assert relevance.index[:2].tolist() == ["b", "d"]
    assert relevance.is_monotonic_decreasing
    expected = 1 / fit.point["lengthscale"][1] ** 2  # standardised: unit variance
    assert relevance["b"] == pytest.approx(expected)


def test_relevance_does_not_depend_on_units(data):
    X, y = data
    Z = X * [1, 1000, 1, 1, 1]
    with pm.Model() as model:
        ls = pm.LogNormal("ls", np.log([2, 2000, 2, 2, 2]), 0.5, shape=5)
        pmo.gp_model(Z, y, 1.0 * pm.gp.cov.ExpQuad(5, ls=ls), noise=0.3)
    assert pmo.fit(model, progressbar=False).relevance().index[0] == "b"


def test_relevance_needs_ard(data):
    X, y = data
    fit = pmo.fit(pmo.gp_model(X, y, "expquad"), progressbar=False)
    with pytest.raises(ValueError, match="ard=True"):
        fit.relevance()


@pytest.mark.slow
def test_elimination_keeps_what_matters(data):
    X, y = data
    table = pmo.select_features(X, y, engine="laplace", progressbar=False)
    assert table["n_features"].tolist() == [5, 2, 1]
    assert table["features"].iloc[1] == ["b", "d"]
    assert table["features"].iloc[2] == ["b"]
    assert table["log_evidence"].iloc[1] > table["log_evidence"].iloc[2] + 2  # d matters too


def test_bad_options(data):
    X, y = data
    with pytest.raises(ValueError, match="keep"):
        pmo.select_features(X, y, keep=1.0)
    with pytest.raises(ValueError, match="smallest"):
        pmo.select_features(X, y, smallest=0)
