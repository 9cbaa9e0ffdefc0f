"""Mixtures of fits: weights against a general optimiser, predictions against the parts."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy.optimize import minimize

import pmordinal as pmo
from pmordinal.results.stacking import stacking_weights


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    f = np.sin(2 * X["a"]) + 0.3 * rng.normal(size=40)
    y = pd.Categorical.from_codes(np.searchsorted([-0.4, 0.5], f), ["low", "mid", "high"], True)
    return X, y


@pytest.fixture(scope="module")
def fits(data):
    X, y = data
    models = {
        "smooth": pmo.gp_model(X, y, "expquad"),
        "rough": pmo.gp_model(X, y, cov_func=pm.gp.cov.Matern12),
        "laplace": pmo.gp_model(X, y, engine="laplace", ard=True),
    }
    return {name: pmo.fit(model, progressbar=False) for name, model in models.items()}


@pytest.mark.parametrize("prior", [0.0, 2.0])
def test_weights_are_the_maximum(prior):
    p = np.random.default_rng(0).beta(2, 1, size=(4, 60))
    p[2] *= 1.2

    def loss(x):
        w = np.exp(x - x.max())
        w /= w.sum()
        return -np.log(w @ p).sum() - prior * np.log(w).sum()

    best = min(
        (minimize(loss, x0) for x0 in np.random.default_rng(1).normal(size=(5, 4))),
        key=lambda r: r.fun,
    )
    weights = stacking_weights(p, prior)
    assert weights.sum() == pytest.approx(1.0) and weights.min() >= 0
    assert loss(np.log(np.maximum(weights, 1e-300))) <= best.fun + 1e-6


def test_a_hopeless_candidate_gets_next_to_nothing():
    p = np.vstack([np.full(200, 0.6), np.full(200, 1e-6)])
    assert stacking_weights(p, 0.0)[1] < 1e-6
    assert stacking_weights(p, 1e9) == pytest.approx([0.5, 0.5], abs=1e-6)


def test_predictions_are_the_weighted_mean(fits, data):
    X, _ = data
    mixture = pmo.stack(fits)
    assert list(mixture.weights.index) == ["smooth", "rough", "laplace"]
    expected = sum(mixture.weights[name] * fit.predict(X) for name, fit in fits.items())
    probs = mixture.predict(X)
    np.testing.assert_allclose(probs, expected, rtol=1e-12)
    assert probs.coords["class"].values.tolist() == ["low", "mid", "high"]
    codes = np.argmax(expected.values, 1)
    assert list(mixture.predict(X, kind="class")) == [["low", "mid", "high"][k] for k in codes]
    np.testing.assert_allclose(mixture.predict(X, kind="rank"), expected.values @ [0, 1, 2])
    np.testing.assert_allclose(
        mixture.predict(X, kind="cumulative"), expected.values.cumsum(1)[:, :2]
    )


def test_it_predicts_left_out_labels_at_least_as_well_as_each_part(fits):
    mixture = pmo.stack(fits, prior=0.0)
    assert mixture.elpd >= max(pmo.loo(fit).elpd for fit in fits.values()) - 1e-6
    assert "elpd_loo" in repr(mixture) and "rough" in repr(mixture)


def test_a_single_fit_is_itself(fits, data):
    mixture = pmo.stack({"only": fits["smooth"]})
    assert mixture.weights.to_list() == [1.0]
    np.testing.assert_allclose(mixture.predict(data[0]), fits["smooth"].predict(data[0]))
    assert mixture.elpd == pytest.approx(pmo.loo(fits["smooth"]).elpd)


def test_errors(fits, data):
    X, _ = data
    with pytest.raises(TypeError, match="mapping of names"):
        pmo.stack([fits["smooth"]])
    with pytest.raises(TypeError, match="mapping of names"):
        pmo.stack({})
    with pytest.raises(TypeError, match=r"fits\['x'\] must be a fit"):
        pmo.stack({"x": 3})
    other = pmo.fit(pmo.gp_model(np.arange(6.0), [0, 0, 1, 1, 2, 2], "expquad"), progressbar=False)
    with pytest.raises(ValueError, match=r"fits\['b'\] has 6 labelled rows"):
        pmo.stack({"a": fits["smooth"], "b": other})
    with pytest.raises(ValueError, match="prior must not be negative"):
        pmo.stack(fits, prior=-1)
    with pytest.raises(ValueError, match="kind"):
        pmo.stack(fits).predict(X, kind="latent")


def test_scores_of_two_kinds_are_not_mixed_in_silence(fits):
    integrated = {name: fits[name].integrate("ccd") for name in ("smooth", "rough")}
    with pytest.warns(UserWarning, match="elpd_loo is of two kinds: laplace at fixed .*; smooth"):
        pmo.stack({"laplace": fits["laplace"], "smooth": integrated["smooth"]})
    pmo.stack(integrated)  # warnings are errors
