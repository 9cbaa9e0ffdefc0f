"""Tables, labels and options at the border of the model factories and of `fit`."""

import pymc as pm
from hypothesis import strategies as st

import pmordinal as pmo

from . import strategies as s
from .outcome import assert_finite, assert_probabilities, examples, outcome

ROWS = st.sampled_from([0, 1, 2, 3, 5, 8, 12])


@st.composite
def data(draw):
    """Return a table and labels; one of the two is usually good, so that errors do not hide each other."""
    n = draw(ROWS)
    which = draw(st.sampled_from(["table", "labels", "both", "good"]))
    X = draw(s.tables(n) if which in ("table", "both") else s.good_tables(n))
    y, categories = (
        draw(s.labels(n)) if which in ("labels", "both") else (draw(s.good_labels(n)), None)
    )
    return X, y, categories


def assert_good(fit, X):
    """Everything that a user reads of a fit is finite."""
    assert_finite(fit.log_evidence, fit.thresholds, fit.noise, fit.objective_value)
    assert_probabilities(fit.predict(X))
    assert_finite(fit.predict(X, "cumulative"), fit.predict(X, "rank"))
    latent = fit.predict(X, "latent")
    assert_finite(latent["mean"], latent["sd"])
    assert len(fit.predict(X, "class")) == latent["mean"].size
    assert "log evidence" in repr(fit)


@examples(40, 2500, data(), st.sampled_from(["gp", "linear"]))
def test_models_from_any_data(data, kind):
    X, y, categories = data
    factory = pmo.gp_model if kind == "gp" else pmo.linear_model
    model = outcome(lambda: factory(X, y, categories=categories), "X", "y", "categories")
    if model is not None:
        assert isinstance(model, pm.Model)
        codes = model.rvs_to_values[model["y"]].data
        assert 0 < codes.size == len(model.coords["obs"])
        assert 0 <= codes.min() <= codes.max() < len(model.coords["class"])
        assert_finite(*(v.data for v in model.basic_RVs if hasattr(v, "data")))


@examples(
    20, 600, data(), st.sampled_from(["laplace", "ep", "plsor"]), st.sampled_from(list(pmo.LINKS))
)
def test_fits_of_any_data(data, engine, link):
    X, y, categories = data

    def run():
        model = pmo.gp_model(X, y, "expquad", engine=engine, link=link, categories=categories)
        return pmo.fit(model, progressbar=False, max_evaluations=15)

    fit = outcome(run, "X", "y", "categories")
    if fit is not None:
        assert_good(fit, X)
