"""Many predictors: types, order, names, parallel back ends."""

import joblib
import numpy as np
import pandas as pd
import pytest
import rich

from pmordinal.modl import RankRegressor, fit_grid, fit_grids, rank_predictors


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 240
    strong, weak = rng.random(n), rng.random(n)
    y = strong + 0.35 * (weak > 0.5) + 0.05 * rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "noise": rng.random(n),
            "weak": np.where(weak > 0.5, "yes", "no"),
            "strong": strong,
            "flag": strong > 0.5,
            "holes": np.where(rng.random(n) < 0.2, np.nan, strong),
        }
    )
    return frame, y


def test_levels_are_sorted_and_equal_single_fits(table):
    frame, y = table
    ranking = rank_predictors(frame, y, progressbar=False)
    assert ranking.index[0] == "strong"
    assert ranking["level"].is_monotonic_decreasing
    assert ranking.loc["noise", "level"] == 0.0
    assert ranking.loc["weak", "kind"] == ranking.loc["flag", "kind"] == "categorical"
    assert ranking.loc["holes", "missing"] == frame["holes"].isna().sum()
    for name, seed in zip(frame, np.random.SeedSequence(0).spawn(5), strict=True):
        single = fit_grid(frame[name], y, seed=seed)
        assert ranking.loc[name, "cost"] == pytest.approx(single.cost, abs=1e-9)
        assert ranking.loc[name, "level"] == pytest.approx(single.level, abs=1e-12)


def test_kinds_of_tables_agree(table):
    polars = pytest.importorskip("polars")
    frame, y = table
    expected = {k: g.cost for k, g in fit_grids(frame, y, progressbar=False).items()}
    as_dict = {k: frame[k].to_numpy() for k in frame}
    for X in (as_dict, polars.DataFrame(as_dict)):
        found = {k: g.cost for k, g in fit_grids(X, y, progressbar=False).items()}
        assert found == pytest.approx(expected)
    numbers = frame[["noise", "noise", "strong"]].to_numpy()  # the same seed for the third column
    found = fit_grids(numbers, y, progressbar=False)
    assert found["x2"].cost == pytest.approx(expected["strong"])


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_results_are_the_same_whatever_the_back_end_and_the_workers(table, backend):
    frame, y = table
    expected = rank_predictors(frame, y, n_jobs=1, progressbar=False)
    model = RankRegressor("averaged").fit(frame, y)
    for workers in (1, 2):
        with joblib.parallel_config(backend=backend, n_jobs=workers):
            found = rank_predictors(frame, y, n_jobs=None, progressbar=False)
            other = RankRegressor("averaged").fit(frame, y)
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
        assert other.weights_ == model.weights_
        np.testing.assert_array_equal(other.rank_cdf(frame), model.rank_cdf(frame))


@pytest.mark.slow
def test_predictors_spread_over_a_dask_cluster(table):
    distributed = pytest.importorskip("distributed")
    frame, y = table
    expected = rank_predictors(frame, y, n_jobs=1, progressbar=False)
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        before = set(client.run(lambda: __import__("os").getpid()).values())
        with joblib.parallel_config(backend="dask", wait_for_workers_timeout=60):
            found = rank_predictors(frame, y, progressbar=False)
            model = RankRegressor("averaged").fit(frame, y)
        done = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert len(before) == 2 and sum(done.values()) >= 1  # the work was done on the workers
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert model.weights_ == RankRegressor("averaged").fit(frame, y).weights_


def test_progress_bar_runs(table, capsys, monkeypatch, request):
    frame, y = table
    monkeypatch.setenv("TERM", "xterm")  # elsewhere there is no bar
    request.addfinalizer(rich.reconfigure)
    rich.reconfigure(force_terminal=True, force_interactive=True)
    shown = rank_predictors(frame[["strong"]], y, progressbar=True)
    assert "MODL grid of" in capsys.readouterr().out
    quiet = rank_predictors(frame[["strong"]], y, progressbar=False)
    assert capsys.readouterr().out == ""
    pd.testing.assert_frame_equal(shown, quiet)


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (np.zeros(3), [1, 2, 3], "2-dimensional"),
        (np.zeros((3, 0)), [1, 2, 3], "no columns"),
        (np.zeros((3, 2)), [1, 2], "X has 3 rows and y has 2"),
        ({"a": [1, 2], "b": [1]}, [1, 2], "differ in length"),
        (pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]), [1, 2], "same name"),
    ],
)
def test_bad_tables(X, y, match):
    with pytest.raises(ValueError, match=match):
        rank_predictors(X, y)


def test_whole_numbers_too_large_for_a_float_are_refused_by_name():
    """Also where pandas tries to make floats of them (3.0)."""
    with pytest.raises(ValueError, match="x0 contains infinity or a number beyond 1e308"):
        rank_predictors(np.array([[10**400], [1]], dtype=object), [0, 1], progressbar=False)
