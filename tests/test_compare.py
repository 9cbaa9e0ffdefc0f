"""Engines side by side."""

import numpy as np
import pytest

import pmordinal as pmo

ENGINES = ("laplace", "ep", "plsor")


@pytest.fixture(scope="module")
def fits():
    data = pmo.datasets.wine()
    X, y = data[["temperature", "contact"]], data["rating"]
    fixed = {"lengthscale": 2.0, "noise": 0.4, "thresholds": [-1.3, -0.3, 0.5, 1.1]}
    some = {
        e: pmo.fit(pmo.gp_model(X, y, engine=e, **fixed), progressbar=False) for e in ENGINES[:2]
    }
    return some | {"plsor": pmo.fit(pmo.gp_model(X, y, engine="plsor"), progressbar=False)}


def test_table(fits):
    table = pmo.compare(fits)
    assert table.index.tolist() == list(ENGINES)
    assert table["converged"].all()
    assert (table["seconds"] > 0).all()
    for name, fit in fits.items():
        assert table.loc[name, "elpd_loo"] == pytest.approx(pmo.loo(fit).elpd)
    correction = fits["ep"].posterior.log_evidence_correction
    assert table.loc["ep", "log_evidence_correction"] == pytest.approx(correction)
    assert np.isnan(table.loc["laplace", "log_evidence_correction"])
    assert "tv_max" not in table


def test_distances(fits):
    table = pmo.compare(fits, reference="ep")
    assert np.all(table.loc["ep", ["latent_mean", "latent_sd", "thresholds", "tv_max"]] == 0)
    p, q = fits["laplace"].posterior, fits["ep"].posterior
    by_hand = np.max(np.abs(p.mean - q.mean) / np.sqrt(q.variance))
    assert table.loc["laplace", "latent_mean"] == pytest.approx(by_hand)
    assert 0 < table.loc["laplace", "tv_max"] < 0.1
    assert table.loc["laplace", "tv_mean"] <= table.loc["laplace", "tv_max"]
    assert table.loc["plsor", "thresholds"] > 0.1  # in label units: another scale


@pytest.mark.filterwarnings("ignore:Estimated shape parameter:UserWarning")
def test_trees_enter(fits):
    """Draws of a fit are as far from it as Monte Carlo makes them."""
    tree = fits["ep"].to_datatree(draws=4000, seed=2)
    table = pmo.compare({"ep": fits["ep"], "draws": tree}, reference="ep")
    assert table.loc["draws", "engine"] == "mcmc"
    assert table.loc["draws", "latent_mean"] < 0.1  # 4/√4000 standard deviations
    assert table.loc["draws", "latent_sd"] < 0.08
    assert table.loc["draws", "tv_max"] < 0.05
    assert table.loc["draws", "elpd_loo"] == pytest.approx(table.loc["ep", "elpd_loo"], abs=1.0)


def test_errors(fits):
    with pytest.raises(ValueError, match="reference"):
        pmo.compare(fits, reference="nuts")
    with pytest.raises(ValueError, match="results is empty"):
        pmo.compare({})
    other = pmo.fit(pmo.gp_model(np.arange(6.0), [0, 0, 1, 1, 2, 2]), progressbar=False)
    with pytest.raises(ValueError, match="compare results of the same data"):
        pmo.compare({"ep": fits["ep"], "other": other}, reference="ep")
    bare = fits["ep"].to_datatree(draws=50, seed=0)
    del bare["posterior_predictive"]
    with pytest.raises(ValueError, match="lacks posterior_predictive/y"), pytest.warns(UserWarning):
        pmo.compare({"ep": fits["ep"], "bare": bare}, reference="ep")
