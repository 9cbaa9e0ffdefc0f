"""The recommended covariance: a linear, a smooth and a rough function, added up."""

import warnings

import numpy as np
import pandas as pd
import pytest

import pmordinal as pmo


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.uniform(20, 80, n), "income": rng.normal(size=n)})
    X["colour"] = rng.choice(["red", "green", "blue"], n)
    f = np.sin(X["age"] / 8) + 0.5 * X["income"]
    return X, np.digitize(f + 0.5 * rng.normal(size=n), [-0.7, 0.7])


def fitted(X, y, **options):
    return pmo.fit(pmo.gp_model(X, y, "recommended", **options), progressbar=False)


@pytest.fixture(scope="module")
def fit():
    return fitted(*table(80))


def test_terms_have_names(fit):
    assert list(fit.variance_shares().index) == ["linear", "smooth", "rough", "noise"]
    terms = fit.terms()
    assert list(terms["term"].values) == ["linear", "smooth", "rough"]
    f = fit.posterior.latent(fit.posterior.gram.X)[0]
    np.testing.assert_allclose(terms["mean"].sum("term"), f, atol=1e-8)
    assert fit.noise == 1.0


def test_levels_of_a_factor_share_a_lengthscale(fit):
    scale = fit.point["lengthscale"]
    assert scale.shape == (5,)
    assert fit.point["lengthscale_ratio"].shape == (3,)
    assert scale[2] == scale[3] == scale[4]
    assert set(fit.relevance().index[:2]) == {"age", "income"}


def test_a_saved_fit_predicts_the_same(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    again = pmo.load(tmp_path / "fit.nc")
    X, _ = table(5, seed=1)
    np.testing.assert_array_equal(again.predict(X), fit.predict(X))
    assert list(again.terms()["term"].values) == ["linear", "smooth", "rough"]


@pytest.mark.parametrize(
    "X",
    [
        np.arange(8.0),
        pd.DataFrame({"colour": list("rgbrgbrg"), "size": list("sslllsls")}),
        pd.DataFrame({"one": np.ones(8), "x": np.arange(8.0)}),
        pd.DataFrame({"one": np.ones(8)}),
        np.random.default_rng(0).normal(size=(8, 40)),
    ],
    ids=["one column", "factors", "a constant column", "constants alone", "many columns"],
)
def test_odd_tables(X):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*constant.*")
        found = fitted(X, [1, 1, 2, 1, 2, 3, 2, 3])
    probs = found.predict(X).to_numpy()
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)


def test_papers_model_is_a_name_away():
    """Numbers of the default fit of version 0.1, which was the papers' model."""
    X, y = table(30)
    found = pmo.fit(pmo.gp_model(X, y, "expquad"), progressbar=False)
    # to what the optimiser's tolerance leaves open
    assert found.log_evidence == pytest.approx(-29.532911, abs=1e-4)
    assert found.noise == pytest.approx(0.763599, rel=1e-3)
    assert found.point["lengthscale"] == pytest.approx(0.539268, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_sine_beside_factors_is_found(seed):
    rng = np.random.default_rng(seed)
    n = 300
    X = pd.DataFrame({"age": rng.uniform(20, 80, n), "sex": rng.choice(["f", "m"], n)})
    X["region"] = rng.choice(list("abcde"), n)
    f = (
        1.5 * np.sin(2 * np.pi * X["age"] / 40)
        + 0.8 * (X["sex"] == "f")
        + 0.5 * (X["region"] == "a")
    )
    y = np.digitize(f + rng.normal(size=n), [-1.0, 0.0, 1.0])
    effect = fitted(X, y).effects("age", "latent").set_index("age")["mean"]
    first, peak, second = effect.loc[20:40], effect.loc[40:60], effect.loc[60:80]
    turns = [first.idxmin(), peak.idxmax(), second.idxmin()]
    np.testing.assert_allclose(turns, [30.0, 50.0, 70.0], atol=5.0)  # of the true sine
    assert peak.max() - max(first.min(), second.min()) > 1.5  # the sine's is 3
