"""The page of a fit: its numbers are those of the fit, it has a baseline, and it reads as text and HTML."""

import arviz as az
import numpy as np
import pytest

import pmordinal as pmo
from pmordinal.results.summary import parameters


@pytest.fixture(scope="module")
def wine():
    return pmo.datasets.wine()[["temperature", "contact", "rating"]]


@pytest.fixture(scope="module")
def fit(wine):
    return pmo.fit(pmo.gp_model(wine, "rating", "expquad"), progressbar=False)


def test_numbers(fit, wine):
    page = fit.summary(ci_prob=0.9)
    table = page.hyperparameters
    assert table.loc["noise", "estimate"] == pytest.approx(fit.noise)
    assert table.loc["thresholds[2|3]", "estimate"] == pytest.approx(fit.thresholds[1])
    assert (table["lower"] < table["estimate"]).all() and (table["estimate"] < table["upper"]).all()
    tree = fit.to_datatree(hyper="gaussian", draws=400, random_seed=1)
    low, high = tree["posterior"]["noise"].quantile([0.05, 0.95]).values
    assert table.loc["noise", "lower"] == pytest.approx(low, rel=0.15)
    assert table.loc["noise", "upper"] == pytest.approx(high, rel=0.15)
    scores = page.scores
    loo = fit.posterior.leave_one_out.value.mean()
    assert scores.loc["ep", "mean log score"] == pytest.approx(loo, abs=1e-6)
    most = wine["rating"].value_counts(normalize=True).max()
    assert scores.loc["class shares alone", "error rate"] == pytest.approx(1 - most)


def test_text_and_html(fit):
    page = fit.summary()
    assert "'temperature', 'contact'" in repr(page) and "class shares alone" in repr(page)
    html = fit._repr_html_()
    assert html.count("<table") == 3 and "fit.summary() adds intervals" in html
    assert repr(fit).startswith("OrdinalFit: ep")


def test_terms_and_integrated_fits(wine):
    fit = pmo.fit(pmo.formula_model("rating ~ temperature + contact", wine), progressbar=False)
    page = fit.summary(intervals=False)
    assert page.terms.sum() == pytest.approx(1.0)
    page = fit.integrate("ccd").summary()
    assert "integrated over" in repr(page) and "upper" in page.hyperparameters


def test_a_fit_from_a_file_has_no_intervals(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    page = pmo.load(tmp_path / "fit.nc").summary()
    assert "No intervals" in repr(page) and list(page.hyperparameters) == ["estimate"]


@pytest.mark.filterwarnings("ignore:invalid value")  # ArviZ, of draws that do not move
def test_arviz_rounds_fixed_hyperparameters_sensibly(fit):
    """Without Monte-Carlo errors, which are zero here and would take every decimal away."""
    tree = fit.to_datatree(seed=1)
    shown = az.summary(tree, var_names=["thresholds"], round_to=3)  # with all diagnostics
    assert shown["mean"].tolist() == fit.thresholds.round(3).tolist() and "ess_bulk" in shown
    assert str(shown["mean"].iloc[0]) in str(shown)  # printed with its digits
    shown = az.summary(tree, var_names=["thresholds"], kind="stats")
    said = [float(row.split()[1]) for row in str(shown).splitlines()[1:]]
    np.testing.assert_allclose(said, fit.thresholds, rtol=0.05)


def test_levels_that_share_a_lengthscale_have_one_line():
    wine = pmo.datasets.wine()[["temperature", "judge"]]
    y = pmo.datasets.wine()["rating"]
    shared = parameters(pmo.fit(pmo.gp_model(wine, y), optimize=False, progressbar=False))
    names = ["lengthscale[temperature]", "lengthscale[judge]"]
    assert [name for name in shared if name.startswith("lengthscale[")] == names
    assert "lengthscale_ratio[judge]" in shared
    own = pmo.gp_model(wine, y, "expquad", ard=True)
    start = {"lengthscale": np.arange(1.0, 12.0)}
    each = parameters(pmo.fit(own, start=start, optimize=False, progressbar=False))
    assert each["lengthscale[judge=9]"] == pytest.approx(11.0) and "lengthscale[judge]" not in each
