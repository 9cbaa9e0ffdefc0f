"""Covariances by name, in all factories."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pmordinal as pmo
from pmordinal.model.covariances import COVARIANCES, SUMS
from tests.repeated import first_fast

X = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 0.5], [3.0, 2.0], [4.0, 1.5], [5.0, 0.0]])
y = [1, 1, 2, 2, 3, 3]
NAMES = ["expquad", "matern12", "matern32", "matern52", "linear", "anova", "recommended"]


def names(model):
    return {v.name for v in model.free_RVs}


def test_the_names_are_these():
    assert sorted([*COVARIANCES, *SUMS]) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "factory", [pmo.gp_model, pytest.param(pmo.latent_model, marks=pytest.mark.slow)]
)
def test_every_name_is_a_model_with_a_density(factory, name):
    model = factory(X, y, cov_func=name)
    assert all(np.isfinite(value) for value in model.point_logps().values())


@pytest.mark.parametrize("factory", [pmo.gp_model, pmo.latent_model])
def test_an_unknown_name_lists_those_there_are(factory):
    with pytest.raises(
        ValueError, match=r"cov_func must be one of 'expquad', .*'recommended', got 'rbf'"
    ):
        factory(X, y, "rbf")


@pytest.mark.parametrize("name", first_fast(COVARIANCES, 2))
def test_a_name_is_the_class_of_that_name(name):
    by_name, by_class = (pmo.gp_model(X, y, c).point_logps() for c in (name, COVARIANCES[name]))
    assert by_name == by_class


@pytest.mark.parametrize(
    "given",
    [
        {"ard": True},
        {"lengthscale": 1.0},
        {"amplitude": 2.0},
        {"noise": 0.5},
    ],
)
@pytest.mark.parametrize("factory", [pmo.gp_model, pmo.latent_model])
def test_sums_take_no_parameters_of_one_covariance(factory, given):
    (name,) = given
    with pytest.raises(ValueError, match=f"{name} belongs to one covariance"):
        factory(X, y, "recommended", **given)


def test_labels_as_numbers_have_one_covariance():
    assert names(pmo.gp_model(X, y, engine="plsor")) == {
        "lengthscale",
        "noise_fraction",
        "scales",
        "thresholds",
    }
    with pytest.raises(ValueError, match="regresses on the labels with one covariance"):
        pmo.gp_model(X, y, "linear", engine="plsor")


def test_a_basis_needs_a_spectral_density():
    with pytest.raises(ValueError, match="needs a covariance with a spectral density"):
        pmo.latent_model(X, y, "recommended", approx="hsgp")


def test_anova_has_functions_of_numbers_and_levels_of_factors():
    table = pd.DataFrame({"age": X[:, 0], "dose": X[:, 1], "sex": list("ababab"), "one": 1.0})
    model = pmo.gp_model(table, y, "anova")
    assert list(model.coords["main_term"]) == ["anova(age)", "anova(dose)"]
    assert list(model.coords["pair_term"]) == ["anova(age, dose)"]
    shares = pmo.fit(model, progressbar=False).variance_shares()
    assert list(shares.index) == [
        "factors",
        "anova(age)",
        "anova(dose)",
        "anova(age, dose)",
        "noise",
    ]


def test_anova_of_many_columns_says_that_pairs_are_left_out():
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="66 most promising of 78 pairs; left out are"):
        model = pmo.gp_model(rng.normal(size=(6, 13)), y, "anova")
    assert len(model.coords["pair_term"]) == 66


def test_anova_of_a_table_of_factors_is_linear():
    model = pmo.gp_model(pd.DataFrame({"sex": list("ababab")}), y, "anova")
    assert names(model) == {"amplitude", "thresholds"}


def test_linear_is_a_function_without_bends():
    fit = pmo.fit(pmo.gp_model(X, y, "linear"), progressbar=False)
    f = fit.predict([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]], kind="latent")["mean"].to_numpy()
    assert f[2] - f[1] == pytest.approx(f[1] - f[0])
    assert list(fit.variance_shares().index) == ["linear", "noise"]


def test_classifier_takes_names():
    pytest.importorskip("sklearn")
    from pmordinal.sklearn import OrdinalGPClassifier

    by_name, by_class = (
        OrdinalGPClassifier(cov_func=c).fit(X, y).predict_proba(X)
        for c in ("matern52", pm.gp.cov.Matern52)
    )
    np.testing.assert_array_equal(by_name, by_class)


def test_the_default_is_the_recommended_sum_and_one_covariance_where_one_is_meant():
    X, y = np.linspace(-1, 1, 8)[:, None], [0, 0, 1, 0, 1, 1, 2, 2]

    def names(model):
        return [v.name for v in model.free_RVs]

    assert names(pmo.gp_model(X, y)) == names(pmo.gp_model(X, y, "recommended"))
    assert names(pmo.latent_model(X, y))[:-1] == names(pmo.gp_model(X, y))
    papers = names(pmo.gp_model(X, y, "expquad"))
    assert papers == ["lengthscale", "noise", "thresholds"]
    assert names(pmo.gp_model(X, y, ard=True)) == papers
    assert names(pmo.gp_model(X, y, noise=pm.HalfNormal.dist(1.0))) == papers
    assert names(pmo.latent_model(X, y, approx="hsgp"))[:-1] == papers
    plsor = names(pmo.gp_model(X, y, engine="plsor"))
    assert "lengthscale" in plsor and "rough_amplitude" not in plsor


@pytest.mark.parametrize(
    "made", [lambda: pm.gp.cov.Constant(1.0), lambda: pm.gp.cov.WhiteNoise(1e-3)]
)
@pytest.mark.parametrize("options", [{"engine": "plsor"}, {"amplitude": 2.0}])
def test_a_covariance_that_reads_no_column_cannot_be_scaled(made, options):
    with pytest.raises(ValueError, match="reads no column of X: add a covariance that does"):
        pmo.gp_model(X, y, made(), **options)
    pmo.gp_model(X, y, pm.gp.cov.ExpQuad(2, ls=1.0) + made(), **options)
