"""Whole weights are repeated rows: in stacks, reports, semi-supervised fits and the scikit-learn estimator."""

import numpy as np
import pandas as pd
import pytest

import pmordinal as pmo
from pmordinal.report import _data
from pmordinal.report.left_out import left_out_section
from pmordinal.report.training_table import repeated, training_table
from pmordinal.results.stacking import stacking_weights

QUIET = {"progressbar": False}


@pytest.fixture(scope="module")
def counted():
    """Rows with counts, and the same rows repeated."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=20), "z": rng.normal(size=20)})
    y = np.digitize(X["x"] + rng.normal(size=20), [-0.6, 0.6])
    w = np.arange(20) % 3 + 1
    again = np.repeat(np.arange(20), w)
    return X, y, w, X.iloc[again].reset_index(drop=True), y[again]


@pytest.fixture(scope="module")
def fits(counted):
    """Two models of either form, at the same hyperparameters."""
    X, y, w, X_again, y_again = counted
    engine = pmo.Laplace(tol=1e-12)
    options = {"engine": engine, "noise": 1.0, "thresholds": [-0.7, 0.7]}
    found = {}
    for name, scale in (("short", 0.5), ("long", 3.0)):
        options["lengthscale"] = scale
        a = pmo.gp_model(X, y, "expquad", weights=w, **options)
        b = pmo.gp_model(X_again, y_again, "expquad", **options)
        found[name] = pmo.fit(a, **QUIET), pmo.fit(b, **QUIET)
    return found


def test_stacks(counted, fits):
    by_weight = pmo.stack({name: pair[0] for name, pair in fits.items()})
    by_rows = pmo.stack({name: pair[1] for name, pair in fits.items()})
    np.testing.assert_allclose(by_weight.weights, by_rows.weights, atol=1e-5)
    assert by_weight.elpd == pytest.approx(by_rows.elpd, rel=1e-7)
    X = counted[0]
    np.testing.assert_allclose(by_weight.predict(X), by_rows.predict(X), atol=1e-5)
    plain = pmo.fit(pmo.gp_model(X, counted[1], lengthscale=1.0), **QUIET)
    with pytest.raises(ValueError, match="other weights than the first"):
        pmo.stack({"a": fits["short"][0], "b": plain})


def test_stacking_weights_count(rng):
    p, counts = rng.uniform(size=(3, 8)), rng.integers(1, 4, 8)
    np.testing.assert_allclose(
        stacking_weights(p, 1.0, counts),
        stacking_weights(np.repeat(p, counts, axis=1), 1.0),
        atol=1e-5,
    )


def test_reports(fits):
    by_weight, by_rows = fits["short"]
    again = repeated(by_weight)
    table = training_table(by_weight).iloc[again].reset_index(drop=True)
    pd.testing.assert_frame_equal(table, training_table(by_rows))
    one, two = _data(by_weight, table, "y").parts, _data(by_rows, table, "y").parts
    assert "given as 20 with weights" in one[0]
    assert one[1:] == two[1:]
    scores = [left_out_section(f, pmo.loo(f), "y").parts for f in (by_weight, by_rows)]
    assert scores[0][1] == scores[1][1]  # the table of scores, and the confusion matrix
    assert "<table" in scores[0][1]


@pytest.mark.slow
def test_a_whole_report(fits, tmp_path):
    pmo.write_report(fits["short"][0], tmp_path / "report.html", target="grade")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "39 rows with a label, given as 20 with weights" in page


@pytest.mark.slow
def test_semi_supervised_fits(counted):
    X, y, w, X_again, y_again = counted
    new = pd.DataFrame({"x": np.linspace(-2, 2, 9), "z": 0.0})
    options = {"engine": pmo.Laplace(tol=1e-12), "unlabeled": new, "noise": 1.0}
    a = pmo.gp_model(X, y, "expquad", weights=w, **options)
    b = pmo.gp_model(X_again, y_again, "expquad", **options)
    one, two = (pmo.fit(m, semisupervised=True, **QUIET) for m in (a, b))
    np.testing.assert_allclose(one.proportions, two.proportions)
    np.testing.assert_array_equal(one.unlabeled_codes, two.unlabeled_codes)
    assert one.objective_value == pytest.approx(two.objective_value, abs=1e-3)
    np.testing.assert_allclose(one.predict_unlabeled(), two.predict_unlabeled(), atol=5e-3)
