"""The same seed gives the same result, whatever runs beside it; and results say which seed that was."""

import numpy as np
import pytest
import xarray as xr
from threadpoolctl import threadpool_limits

import pmordinal as pmo
from pmordinal import modl
from tests.repeated import first_fast

RNG = np.random.default_rng(5)
X = RNG.normal(size=(24, 2))
Y = np.digitize(X[:, 0] + 0.5 * RNG.normal(size=24), [-0.5, 0.5])
FIXED = {"lengthscale": 1.0, "thresholds": [-0.5, 0.5]}
QUIET = {"progressbar": False}


def same(a, b):
    """Tell whether two trees hold the same numbers, bit by bit; times apart."""
    for node in a.subtree:
        one, other = node.to_dataset(), b[node.path].to_dataset()
        assert set(one.data_vars) == set(other.data_vars)
        xr.testing.assert_equal(one, other)


@pytest.mark.parametrize("engine", first_fast(["laplace", "exact", "sparse"]))
def test_fits(engine):
    model = pmo.gp_model(X, Y, "expquad", engine=engine, **FIXED)
    first, second = (pmo.fit(model, starts=2, seed=7, **QUIET) for _ in range(2))
    assert first.status.objectives == second.status.objectives
    np.testing.assert_array_equal(first.noise, second.noise)
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    assert first.status.seed == 7
    other = pmo.fit(model, starts=2, seed=8, **QUIET)
    assert other.status.objectives[1] != first.status.objectives[1]  # the seed does count


@pytest.fixture(scope="module")
def fit():
    return pmo.fit(pmo.gp_model(X, Y, "expquad", engine="ep", **FIXED), seed=3, **QUIET)


def test_a_file_keeps_the_seed(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    assert pmo.load(tmp_path / "fit.nc").status.seed == 3


@pytest.mark.parametrize("hyper", ["point", "gaussian"])
def test_draws(fit, hyper):
    first, second = (fit.to_datatree(draws=5, hyper=hyper, seed=1) for _ in range(2))
    same(first, second)
    assert first.attrs["seed"] == 1
    other = fit.to_datatree(draws=5, hyper=hyper, seed=2)
    assert not np.allclose(other["posterior"]["f"], first["posterior"]["f"])
    assert "seed" not in fit.to_datatree(draws=2).attrs


@pytest.mark.filterwarnings("ignore::pmordinal.ConvergenceWarning")
def test_exact_sampler():
    model = pmo.gp_model(X[:8], Y[:8], "expquad", categories=[0, 1, 2], engine="ep", **FIXED)
    few = {"draws": 4, "tune": 4, "chains": 2, "seed": 11}
    first, second = (pmo.sample_exact(model, **few, **QUIET) for _ in range(2))
    np.testing.assert_array_equal(first["posterior"]["f"], second["posterior"]["f"])
    assert first.attrs["seed"] == 11


def test_grids_whatever_the_number_of_jobs():
    table = {f"x{k}": np.floor(k + 3 * RNG.normal(size=80)) for k in range(5)}
    y = table["x0"] + RNG.normal(size=80)
    alone, together = (modl.fit_grids(table, y, seed=4, n_jobs=n, **QUIET) for n in (1, 2))
    assert list(alone) == list(together)
    for name, grid in alone.items():
        assert grid.cost == together[name].cost
        np.testing.assert_array_equal(grid.counts, together[name].counts)
        np.testing.assert_array_equal(grid.x_boundaries, together[name].x_boundaries)


def test_chains_over_grids_whatever_the_number_of_jobs():
    x = RNG.normal(size=60)
    few = {"draws": 20, "tune": 50, "thin": 2, "chains": 3, "seed": 9}
    alone, together = (modl.sample_grids(x, np.round(x), n_jobs=n, **few, **QUIET) for n in (1, 3))
    same(alone, together)
    assert alone.attrs["seed"] == 9


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["laplace", "ep"])
def test_threads_of_blas(engine):
    """Above 400 rows BLAS uses the threads it may: sums in another order, results the same to 1e-10."""
    rows = np.random.default_rng(1).normal(size=(450, 2))
    y = np.digitize(rows[:, 0], [-0.5, 0.5])
    model = pmo.gp_model(rows, y, engine=engine, noise=0.5, **FIXED)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            results.append(pmo.fit(model, **QUIET))
    one, two = results
    assert one.log_evidence == pytest.approx(two.log_evidence, rel=1e-10)
    np.testing.assert_allclose(one.predict(rows[:50]), two.predict(rows[:50]), atol=1e-10)
