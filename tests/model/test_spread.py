"""Models of tables that are spread over Dask: one and the same fit as in memory, on a cluster of processes too."""

import os
import signal

import dask
import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pmordinal as pmo
from pmordinal.data import moments
from pmordinal.data.spread import read
from pmordinal.engines.inducing import basis, blocks, iteration, passes
from pmordinal.engines.inducing import engine as inducing
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.model import reading

ENGINE = pmo.Inducing(n_inducing=16, rounds=1)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in (moments, read, blocks):
        monkeypatch.setattr(module, "ROWS", 40)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    n = 140
    X = pd.DataFrame({"a": 5 + 3 * rng.normal(size=n), "c": rng.choice(["u", "v"], n)})
    f = np.sin(X.a / 3) + (X.c == "u")
    y = np.digitize(f + 0.3 * rng.normal(size=n), [0.0, 1.0])
    return X, pd.Series(np.where(np.arange(n) < 50, np.minimum(y, 1), y), name="y")


@pytest.fixture(scope="module")
def in_memory(table):
    """Return the fit in memory, in blocks of the same size."""
    before, blocks.ROWS = blocks.ROWS, 40
    fit = pmo.fit(pmo.gp_model(*table, "expquad", engine=ENGINE), progressbar=False)
    blocks.ROWS = before
    return fit


def spread(table, *bounds):
    X, y = table
    frame = X.assign(y=y)
    ends = [*bounds[1:], len(frame)]
    pieces = [dask.delayed(frame.iloc[a:b]) for a, b in zip(bounds, ends, strict=True)]
    frame = dd.from_delayed(pieces, meta=frame.iloc[:0])
    return frame[["a", "c"]], frame["y"]


def assert_same(fit, other):
    assert fit.log_evidence == pytest.approx(other.log_evidence, abs=1e-8)
    assert fit.point.keys() == other.point.keys()
    for name, value in fit.point.items():
        np.testing.assert_allclose(value, other.point[name], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("bounds", [(0, 0, 33, 90, 90)])
def test_a_fit_is_that_in_memory(table, in_memory, bounds):
    with dask.config.set(scheduler="synchronous"):
        fit = pmo.fit(
            pmo.gp_model(*spread(table, *bounds), "expquad", engine=ENGINE), progressbar=False
        )
    assert_same(fit, in_memory)
    assert fit.whole.rows == 140 and "140 rows" in repr(fit)


def test_a_sample_stands_for_single_rows_and_files_know_all(table, monkeypatch, tmp_path):
    for module in (basis, inducing):
        monkeypatch.setattr(module, "POOL", 50)
    monkeypatch.setattr(basis, "FEWEST", 40)
    monkeypatch.setattr(basis, "LARGEST", 70)
    monkeypatch.setattr(inducing, "STAGES", (30, 70))
    engine = pmo.Inducing(n_inducing=8, rounds=1, sites="laplace")
    with dask.config.set(scheduler="synchronous"):
        expected = pmo.fit(pmo.gp_model(*table, "expquad", engine=engine), progressbar=False)
        fit = pmo.fit(
            pmo.gp_model(*spread(table, 0, 99), "expquad", engine=engine), progressbar=False
        )
    assert_same(fit, expected)
    assert len(fit.status.stages) == len(expected.status.stages) == 2
    assert fit.posterior.y.size == 70
    np.testing.assert_allclose(fit.posterior.mean, expected.posterior.mean[fit.index], atol=1e-8)
    assert "140 rows" in repr(fit) and "(of a sample of 70 rows)" in repr(fit)
    counts = table[1].value_counts().sort_index().tolist()
    assert fit.whole.counts == tuple(counts) and f"'0': {counts[0]}" in repr(fit)
    fit.save(tmp_path / "fit.nc")
    loaded = pmo.load(tmp_path / "fit.nc")
    assert loaded.whole == fit.whole and repr(loaded) == repr(fit)
    new = table[0][:7]
    np.testing.assert_allclose(loaded.predict(new), expected.predict(new), atol=1e-8)
    assert fit.to_datatree(draws=3)["posterior"]["f"].sizes["obs"] == 70


def test_other_labels_are_refused(table):
    with dask.config.set(scheduler="synchronous"):
        X, y = spread(table, 0)
        design, engine = reading.read(ENGINE, X, y, None, standardize=True)
        kernel = lower(pm.gp.cov.ExpQuad(3, ls=1.0))
        gram, likelihood = Gram(kernel, design.X, [1.0]), OrdinalLikelihood([0.0, 1.0], 0.5)
        assert engine(gram, design.y, likelihood).elsewhere.n == 140
        with pytest.raises(ValueError, match="with the labels that they were read with"):
            engine(gram, 2 - design.y, likelihood)


def test_what_needs_rows_in_memory_is_refused(table):
    X, y = spread(table, 0)
    with dask.config.set(scheduler="synchronous"):
        model = pmo.gp_model(X, y, "expquad", engine=ENGINE)
    with pytest.raises(ValueError, match="sample_exact needs all of them in memory"):
        pmo.sample_exact(model, draws=2)
    with pytest.raises(ValueError, match="does not differentiate its predictions"):
        pmo.fit(model, semisupervised=True, progressbar=False)
    with pytest.raises(ValueError, match="X is spread over Dask, and engine 'ep' needs all rows"):
        pmo.gp_model(X, y, "expquad", engine="ep")
    with pytest.raises(ValueError, match="thresholds_by= is for tables in memory"):
        pmo.gp_model(X, y, "expquad", engine=ENGINE, thresholds_by="c")
    with pytest.raises(TypeError, match="X and y must both be spread over Dask"):
        pmo.gp_model(X, table[1], "expquad", engine=ENGINE)
    with pytest.raises(TypeError, match="formulas are for tables in memory"):
        pmo.formula_model("y ~ a", X.assign(y=y), engine=ENGINE)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_workers_of_joblib_give_the_same(table, in_memory, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        fit = pmo.fit(pmo.gp_model(*table, "expquad", engine=ENGINE), progressbar=False)
    assert_same(fit, in_memory)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_a_cluster_of_processes_gives_the_same(table, in_memory, client):
    fit = pmo.fit(
        pmo.gp_model(*spread(table, 0, 60, 61), "expquad", engine=ENGINE), progressbar=False
    )
    assert_same(fit, in_memory)
    lazily = fit.predict(spread(table, 0, 130)[0])
    assert isinstance(lazily, dd.DataFrame)
    np.testing.assert_allclose(lazily.compute(), fit.predict(table[0]).values, atol=1e-12)


def dies_once(block, shared):
    """Do as a pass, but kill the worker's process if a file says that this was not done yet."""
    marker, state = shared
    if len(block) == 20 and not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return passes.site_pass(block, state)


@pytest.mark.slow
def test_a_worker_that_is_killed_does_no_harm(table, in_memory, client, tmp_path, monkeypatch):
    model = pmo.gp_model(*spread(table, 0, 100), "expquad", engine=ENGINE)
    marker, plain = tmp_path / "died", iteration.over_blocks

    def deadly(function, rows, shared):
        if function is passes.site_pass:
            return plain(dies_once, rows, (str(marker), shared))
        return plain(function, rows, shared)

    monkeypatch.setattr(iteration, "over_blocks", deadly)
    fit = pmo.fit(model, progressbar=False)
    assert marker.exists()
    assert_same(fit, in_memory)


def fails(block, shared):
    if len(block) == 20:
        raise FloatingPointError("no such thing")
    return {}


@pytest.mark.slow
def test_a_worker_that_raises_gives_one_error_with_its_rows(table, client):
    model = pmo.gp_model(*spread(table, 0, 100), "expquad", engine=ENGINE)
    fit = pmo.fit(model, progressbar=False, max_evaluations=40, optimize=False)
    with pytest.raises(ArithmeticError, match="rows 120 to 139: no such thing"):
        fit.posterior.elsewhere.sums(fails, fit.posterior.state)


@pytest.mark.parametrize("kind", ["probs", "class", "cumulative", "latent", "rank"])
def test_predictions_stay_in_dask(table, in_memory, kind):
    X, _ = table
    expected = in_memory.predict(X, kind)
    if kind == "latent":
        expected = np.column_stack([expected["mean"], expected["sd"]])
    with dask.config.set(scheduler="synchronous"):
        found = in_memory.predict(spread(table, 0, 0, 100)[0], kind)
        assert isinstance(found, dd.DataFrame | dd.Series)
        computed = found.compute()
    np.testing.assert_allclose(computed, np.asarray(expected), atol=1e-12)
    assert computed.index.equals(X.index)
    if kind == "probs":
        assert list(found.columns) == in_memory.labels.class_names


def test_predictions_for_arrays_are_arrays(rng):
    X = rng.normal(size=(60, 2))
    fit = pmo.fit(pmo.gp_model(X, X[:, 0] > 0, "expquad", engine="laplace"), progressbar=False)
    spread_rows = da.from_array(X, chunks=(25, 1))
    with dask.config.set(scheduler="synchronous"):
        for kind, shape in {"probs": (60, 2), "rank": (60,), "latent": (60, 2)}.items():
            found = fit.predict(spread_rows, kind)
            assert isinstance(found, da.Array) and found.shape == shape
            expected = fit.predict(X, kind)
            if kind == "latent":
                expected = np.column_stack([expected["mean"], expected["sd"]])
            np.testing.assert_allclose(found.compute(), expected, atol=1e-12)
        labels = fit.predict(spread_rows, "class").compute()
    np.testing.assert_array_equal(labels, fit.predict(X, "class"))
