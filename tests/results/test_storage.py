"""Files: a fit comes back as it was, and bad files are refused by name."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import pmordinal as pmo

RNG = np.random.default_rng(11)
X = pd.DataFrame({"age": RNG.normal(size=24), "town": np.tile(["a", "b"], 12)})
Y = pd.Categorical(
    np.where(X["age"] < -0.4, "low", np.where(X["age"] < 0.5, "mid", "high")),
    categories=["low", "mid", "high", "extreme"],
    ordered=True,
)

COVARIANCES = {
    "default": None,
    "class": pm.gp.cov.Matern32,
    "sum": 2.0 * pm.gp.cov.ExpQuad(3, ls=[1.0, 2.0, 3.0]) + pm.gp.cov.Linear(3, c=0.1) + 0.5,
    "product": pm.gp.cov.RatQuad(3, ls=1.0, alpha=2.0, active_dims=[0])
    * pm.gp.cov.Periodic(3, period=2.0, ls=1.5, active_dims=[1, 2]),
    "power": pm.gp.cov.Matern52(3, ls=1.0) ** 2 + pm.gp.cov.WhiteNoise(0.3),
}


@pytest.fixture(scope="module", params=COVARIANCES)
def fit(request):
    model = pmo.gp_model(X, Y, COVARIANCES[request.param], link="logit")
    return pmo.fit(model, progressbar=False)


@pytest.mark.parametrize("suffix", [".nc", pytest.param(".zarr", marks=pytest.mark.slow)])
def test_round_trip(fit, tmp_path, suffix):
    path = tmp_path / f"fit{suffix}"
    fit.save(path)
    fit.save(path)  # overwrites
    back = pmo.load(path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    new = pd.DataFrame({"town": ["b", "a"], "age": [0.1, -2.0]})
    np.testing.assert_allclose(back.predict(new), fit.predict(new), rtol=1e-12)
    assert list(back.predict(new, "class")) == list(fit.predict(new, "class"))
    assert back.predict(new, "class").categories.tolist() == ["low", "mid", "high", "extreme"]
    latent, original = back.predict(new, "latent"), fit.predict(new, "latent")
    np.testing.assert_allclose(latent["sd"], original["sd"], rtol=1e-10)
    assert repr(back) == repr(fit)
    assert back.status == fit.status
    for name, value in fit.point.items():
        np.testing.assert_array_equal(back.point[name], value)
    tree, other = fit.to_datatree(draws=4, seed=0), back.to_datatree(draws=4, seed=0)
    np.testing.assert_allclose(tree["posterior"]["f"], other["posterior"]["f"], atol=1e-9)


@pytest.mark.parametrize("engine", pmo.ENGINES)
def test_round_trip_of_every_engine(engine, tmp_path):
    model = pmo.gp_model(X, Y, engine=engine, lengthscale=1.0, noise=0.5)
    fit = pmo.fit(model, progressbar=False)
    fit.save(tmp_path / "fit.nc")
    back = pmo.load(tmp_path / "fit.nc")
    new = pd.DataFrame({"town": ["b", "a"], "age": [0.1, -2.0]})
    for name in ("mean", "sd"):
        found, wanted = back.predict(new, "latent")[name], fit.predict(new, "latent")[name]
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
    np.testing.assert_allclose(back.posterior.variance, fit.posterior.variance, rtol=1e-8)
    assert repr(back) == repr(fit)


def test_precomputed_round_trip(tmp_path):
    K = np.corrcoef(RNG.normal(size=(12, 4)) + np.linspace(-2, 2, 12)[:, None] * [1, -1, 1, -1])
    rows = np.arange(10)[:, None]
    model = pmo.gp_model(rows, np.arange(10) // 4, pmo.Precomputed(K))
    fit = pmo.fit(model, progressbar=False)
    fit.save(tmp_path / "fit.nc")
    back = pmo.load(tmp_path / "fit.nc")
    np.testing.assert_allclose(back.predict([[10], [11]]), fit.predict([[10], [11]]), rtol=1e-12)


def test_a_covariance_that_is_code_is_not_saved(tmp_path):
    class Mine(pm.gp.cov.ExpQuad):
        def full(self, X, Xs=None):
            return super().full(X, Xs) * 2

    fit = pmo.fit(pmo.gp_model(X[["age"]], Y, Mine(1, ls=1.0)), progressbar=False)
    with pytest.raises(TypeError, match="cannot be written to a file as data"):
        fit.save(tmp_path / "fit.nc")
    assert not list(tmp_path.iterdir())


def test_bad_files(tmp_path):
    fit = pmo.fit(pmo.gp_model(X[["age"]], Y, "expquad"), progressbar=False)
    with pytest.raises(ValueError, match=r"\.nc \(netCDF\) or \.zarr"):
        fit.save(tmp_path / "fit.pkl")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        pmo.load(tmp_path / "none.nc")
    path = tmp_path / "fit.nc"
    fit.save(path)
    half = tmp_path / "half.nc"
    half.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match="not a pmordinal fit, or it is damaged"):
        pmo.load(half)
    foreign = tmp_path / "foreign.nc"
    xr.Dataset({"a": 1}).to_netcdf(foreign)
    with pytest.raises(ValueError, match="not a pmordinal fit"):
        pmo.load(foreign)
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        newer = tree.load().copy()
    newer["fit"].attrs["format"] = 99
    newer.to_netcdf(tmp_path / "newer.nc")
    with pytest.raises(ValueError, match="newer version"):
        pmo.load(tmp_path / "newer.nc")
    with pytest.raises(OSError, match="cannot write"):
        fit.save(tmp_path / "missing" / "fit.nc")


def test_the_header_is_plain_json(tmp_path):
    fit = pmo.fit(pmo.gp_model(X[["age"]], Y, "expquad"), progressbar=False)
    fit.save(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc", engine="h5netcdf") as tree:
        header = json.loads(tree["fit"]["header"].values.astype(np.uint8).tobytes())
    assert header["kernel"] == {"kernel": "ExpQuadKernel", "active": [0], "parameters": [1, 0]}


def test_a_file_of_version_0_1_still_loads():
    """Numbers that the fit itself gave when it was saved, before modules had rooms."""
    fit = pmo.load(Path(__file__).parent / "files" / "fit_of_0_1.nc")
    expected = [
        [0.000633320909728, 0.696649983906584, 0.302716695183688],
        [0.000001681594134, 0.096326810328295, 0.903671508077572],
        [0.177072015267317, 0.820923043637219, 0.002004941095464],
    ]
    new = np.array([[0.13, -0.13], [0.64, 0.10], [-0.54, 0.36]])
    np.testing.assert_allclose(fit.predict(new), expected, rtol=1e-7)
    np.testing.assert_allclose(fit.log_evidence, -14.7369121584264, rtol=1e-9)
    assert "posterior" in fit.to_datatree(draws=2, seed=0)
