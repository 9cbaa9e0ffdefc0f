"""`sample`: one call gives a complete tree, and says how far the engine is off."""

from functools import partial

import arviz as az
import numpy as np
import pandas as pd
import pytest

import pmordinal as pmo
from pmordinal.inference.sample import _judge

FEW = {"tune": 30, "chains": 1, "cores": 1, "progressbar": False, "quiet": True, "seed": 1}


@pytest.fixture(scope="module")
def tree():
    rng = np.random.default_rng(2)
    x = rng.uniform(-2.0, 2.0, size=(20, 1))
    y = np.digitize(np.sin(1.5 * x[:, 0]) + 0.3 * rng.normal(size=20), [-0.5, 0.5])
    return pmo.sample(pmo.gp_model(x, y, "expquad", categories=[0, 1, 2]), 40, x[:3], **FEW)


def test_one_call_gives_a_complete_tree(tree):
    assert {"posterior", "posterior_predictive", "log_likelihood", "predictions"} <= set(
        tree.children
    )
    assert tree["posterior"]["f"].shape == (1, 40, 20)
    assert tree["predictions"]["y"].shape == (1, 40, 3)
    assert "diverging" in tree["sample_stats"]


def test_the_error_of_the_engine_is_kept(tree):
    correction = tree["sample_stats"]["log_evidence_correction"]
    assert correction.shape == (1, 40) and np.isfinite(correction).all()


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_leave_one_out_corrects_the_engine(tree):
    """Densities are those given the hyperparameters; with the evidence they are those of the draws."""
    stats = tree["sample_stats"]
    given = stats["log_p"] - stats["log_q"]
    assert (given - stats["log_evidence"]).std() < 0.5 < given.std()
    density = {"log_p": stats["log_p"], "log_q": stats["log_q"] + stats["log_evidence"]}
    found = az.loo_approximate_posterior(tree, **density).elpd
    assert found == pytest.approx(pmo.loo(tree).elpd, abs=0.3)


def test_a_spread_error_is_said(tree):
    biased = tree.copy()
    stats = biased["sample_stats"].to_dataset()
    spread = stats["log_evidence_correction"] + np.linspace(-1.0, 1.0, 40)
    biased["sample_stats"] = type(biased)(stats.assign(log_evidence_correction=spread))
    with pytest.warns(pmo.ConvergenceWarning, match="the error of ep differs between the draws"):
        _judge(biased)
    _judge(tree)  # warnings are errors


def test_options_of_its_own_are_refused():
    model = pmo.gp_model([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1], "expquad")
    with pytest.raises(TypeError, match="does not take 'return_inferencedata'"):
        pmo.sample(model, return_inferencedata=True)
    with pytest.raises(TypeError, match="adds the log likelihood"):
        pmo.sample(model, idata_kwargs={"log_likelihood": True})
    latent = pmo.latent_model([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1], "expquad")
    with pytest.raises(ValueError, match="exact already"):
        pmo.sample(latent, corrected=True)


@pytest.mark.parametrize(
    ("factory", "options", "message"),
    [
        (pmo.gp_model, {"Xnew": pd.DataFrame({"b": [1.0]})}, r"Xnew lacks the column\(s\) 'a'"),
        (pmo.latent_model, {"Xnew": pd.DataFrame({"b": [1.0]})}, r"Xnew lacks the column\(s\) 'a'"),
        (pmo.gp_model, {"thin": 0}, "thin must be"),
        (partial(pmo.gp_model, engine="exact"), {"Xnew": [[1.0]]}, "not Gaussian"),
    ],
)
def test_what_is_refused_is_so_before_sampling_begins(factory, options, message):
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=message):
        pmo.sample(factory(X, [0, 0, 1, 1], "expquad"), 10**9, **options, **FEW)
