"""The page of a fit: its numbers are those of the fit, it has a baseline, and it reads as text and HTML."""

import arviz as az
import numpy as np
import pytest

import pmordinal as pmo
from pmordinal.results.datatree import is_same, with_digits
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
    assert "(hyperparameters fixed)" in repr(fit) and "hyperparameters fixed" in html
    assert "(hyperparameters integrated)" in repr(fit.integrate("ccd"))


def test_terms_and_integrated_fits(wine):
    fit = pmo.fit(pmo.formula_model("rating ~ temperature + contact", wine), progressbar=False)
    page = fit.summary(intervals=False)
    assert page.terms.sum() == pytest.approx(1.0)
    page = fit.integrate("ccd").summary()
    assert "integrated over" in repr(page) and "upper" in page.hyperparameters


def test_a_single_number_has_no_index(wine):
    table = wine.assign(bottle=np.arange(len(wine)) % 8 + 1.0)
    fit = pmo.fit(pmo.formula_model("rating ~ gp(bottle)", table), progressbar=False)
    names = {"gp(bottle)_sd", "gp(bottle)_lengthscale"}
    assert names <= {*fit.summary().hyperparameters.index} & {
        *fit.integrate("ccd").hyperparameters().index
    }


def test_a_fit_from_a_file_has_no_intervals(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    page = pmo.load(tmp_path / "fit.nc").summary()
    assert "No intervals" in repr(page) and list(page.hyperparameters) == ["estimate"]


@pytest.mark.parametrize("kind", ["all", "stats", "diagnostics", "all_median"])
def test_arviz_shows_the_digits_of_fixed_hyperparameters(fit, kind):
    """Without a warning, which would be an error here."""
    shown = az.summary(fit.to_datatree(seed=1), var_names=["thresholds", "noise"], kind=kind)
    assert not shown.drop(columns="r_hat", errors="ignore").isna().any(axis=None)  # of one chain
    if kind != "diagnostics":
        said = [float(row.split()[1]) for row in str(shown).splitlines()[1:]]
        digits = 0.05 if kind == "stats" else 1e-5  # without Monte-Carlo errors: two digits
        np.testing.assert_allclose(said, [*fit.thresholds, fit.noise], rtol=digits)


def test_fixed_hyperparameters_are_the_same_in_all_but_the_last_digits(fit):
    posterior = fit.to_datatree(seed=1)["posterior"]
    for name, value in {"thresholds": fit.thresholds, "noise": fit.noise}.items():
        draws = np.broadcast_to(value, posterior[name].shape)
        np.testing.assert_allclose(posterior[name], draws, rtol=2e-13)


@pytest.mark.parametrize("value", [-0.227, 0.0, 2.3131, 1e-8, 1234.5])
def test_draws_of_a_fixed_number_have_digits(value):
    found = with_digits(np.full((2, 50), value))
    assert len(np.unique(found)) > 50 and is_same(found, np.full((2, 50), value))
    sampled = np.random.default_rng(1).normal(size=(2, 50))
    endless = np.full((2, 50, 1), np.inf)
    both = with_digits(np.concatenate([endless, np.full((2, 50, 1), value)], axis=2))
    np.testing.assert_array_equal(both[..., :1], endless)
    assert is_same(both[..., 1], np.full((2, 50), value))
    assert with_digits(sampled) is sampled and not is_same(sampled, sampled[:1, :1])


def test_intervals_of_a_design_name_better_ones(fit):
    said = "Intervals of a design are somewhat narrow"
    assert said in repr(fit.integrate("ccd").summary())
    assert said not in repr(fit.integrate(draws=256, seed=1).summary())


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
