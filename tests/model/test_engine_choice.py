"""Which engine a model has where the user names none."""

import numpy as np
import pandas as pd
import pytest

import pmordinal as pmo
from pmordinal.engines import COMFORTABLE, base
from pmordinal.sklearn import OrdinalGPClassifier


@pytest.fixture
def table(rng):
    x = rng.normal(size=40)
    return pd.DataFrame({"x": x, "grade": np.digitize(x + 0.3 * rng.normal(size=40), [-0.5, 0.5])})


@pytest.mark.parametrize(("most", "engine"), [(40, "ep"), (39, "inducing")])
def test_many_rows_are_for_inducing_points(table, most, engine, monkeypatch):
    monkeypatch.setattr(base, "COMFORTABLE", most)
    fit = pmo.fit(pmo.gp_model(table[["x"]], table["grade"], "expquad"), progressbar=False)
    assert fit.engine == engine
    assert pmo.fit(pmo.formula_model("grade ~ x", table), progressbar=False).engine == engine
    assert OrdinalGPClassifier().fit(table[["x"]], table["grade"]).fit_.engine == engine


def test_rows_without_labels_do_not_count(table, monkeypatch):
    monkeypatch.setattr(base, "COMFORTABLE", 30)
    y = table["grade"].astype(float).where(table.index < 30)
    assert pmo.fit(pmo.gp_model(table[["x"]], y, "expquad"), progressbar=False).engine == "ep"


def test_what_the_user_names_is_kept(table, monkeypatch):
    monkeypatch.setattr(base, "COMFORTABLE", 10)
    X, y = table[["x"]], table["grade"]
    assert (
        pmo.fit(pmo.gp_model(X, y, "expquad", engine="laplace"), progressbar=False).engine
        == "laplace"
    )
    # only some engines have this objective
    assert pmo.fit(pmo.gp_model(X, y, "expquad", objective="loo"), progressbar=False).engine == "ep"


def test_the_fit_says_why(table, monkeypatch):
    monkeypatch.setattr(base, "COMFORTABLE", 39)
    fit = pmo.fit(
        pmo.gp_model(table[["x"]], table["grade"], "expquad", engine="inducing"), progressbar=False
    )
    assert "rows stand for all; 40 are too many for 'ep'" in str(fit)
    assert COMFORTABLE > 1000
    assert "estimated error" in str(fit)


def test_the_fit_says_where_the_error_of_the_evidence_is_not_estimated(table, monkeypatch):
    for module in ("correction", "posterior"):
        monkeypatch.setattr(f"pmordinal.engines.inducing.{module}.MOST_PAIRED", 39)
    model = pmo.gp_model(table[["x"]], table["grade"], "expquad", engine="inducing")
    fit = pmo.fit(model, progressbar=False)
    assert fit.status.log_evidence_correction is None
    assert "its error is not estimated beyond 39 rows" in str(fit)
    assert "its error is not estimated beyond 39 rows" in fit.summary()._repr_html_()
