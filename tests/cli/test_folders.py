"""Folders of Parquet files on the command line."""

import dask
import numpy as np
import pandas as pd
import pytest

import pmordinal as pmo
from pmordinal.cli import main

OPTIONS = ["--target", "pain", "--drop", "id", "--quiet", "--order", "none,mild,severe"]


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    n = 90
    age = rng.uniform(20, 80, n)
    codes = np.digitize(age / 20 + 0.3 * rng.normal(size=n), [2.0, 3.2])
    pain = np.array(["none", "mild", "severe"])[codes]
    return pd.DataFrame({"id": np.arange(n), "age": age, "pain": pain})


@pytest.fixture
def folder(table, tmp_path):
    (tmp_path / "in").mkdir()
    for k, rows in enumerate((table[:40], table[40:])):
        rows.to_parquet(tmp_path / "in" / f"part-{k}.parquet", index=False)
    return tmp_path


def test_a_folder_is_fitted_and_predicted(table, folder, capsys):
    files, saved = str(folder / "in" / "*.parquet"), str(folder / "fit.nc")
    assert main(["fit", files, *OPTIONS, "--engine", "inducing", "--out", saved]) == 0
    fit = pmo.load(saved)
    assert fit.whole.rows == 90 and fit.features.names == ("age",)
    out = folder / "out"
    assert main(["predict", saved, str(folder / "in"), "--out", str(out)]) == 0
    assert "Wrote" in capsys.readouterr().out
    found = pd.read_parquet(out)
    names = [f"P({name})" for name in ("none", "mild", "severe")]
    np.testing.assert_allclose(found[names], fit.predict(table), atol=1e-12)
    assert found["predicted"].tolist() == fit.predict(table, "class").tolist()
    assert found["id"].tolist() == table["id"].tolist()
    assert main(["predict", saved, files, "--out", str(out)]) == 1
    assert "exists already" in capsys.readouterr().err


@pytest.mark.slow
def test_a_cluster_fits_and_predicts_a_folder(table, folder):
    distributed = pytest.importorskip("distributed")
    files, saved = str(folder / "in" / "*.parquet"), str(folder / "fit.nc")
    fit = ["fit", files, *OPTIONS, "--engine", "inducing", "--out"]
    assert main([*fit, str(folder / "here.nc")]) == 0
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=True, **options) as cluster:
        there = ["--scheduler", cluster.scheduler_address]
        assert main([*fit, saved, *there]) == 0
        fitted = cluster.scheduler.transition_counter
        assert fitted > 0
        assert main(["predict", saved, files, "--out", str(folder / "out"), *there]) == 0
        assert cluster.scheduler.transition_counter > fitted
    here = pmo.load(folder / "here.nc")
    assert pmo.load(saved).log_evidence == pytest.approx(here.log_evidence, abs=1e-8)
    found = pd.read_parquet(folder / "out")
    assert found["predicted"].tolist() == here.predict(table, "class").tolist()


@pytest.mark.parametrize(
    ("further", "message"),
    [
        ([], "needs --engine inducing"),
        (["--engine", "inducing", "--features", "height"], "has no column 'height'"),
        (["--engine", "inducing", "--report", "x.html"], "--report is for a table in memory"),
        (["--engine", "inducing", "--scheduler", "tcp://127.0.0.1:1"], "no Dask scheduler at tcp"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(folder, further, message, capsys, monkeypatch):
    import distributed

    def nobody(address, timeout):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", nobody)
    assert main(["fit", str(folder / "in" / "*.parquet"), *OPTIONS, *further]) == 1
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


def test_a_folder_without_files_and_a_scheduler_without_a_folder(folder, capsys):
    fit = ["--engine", "inducing"]
    assert main(["fit", str(folder / "*.parquet"), *OPTIONS, *fit]) == 1
    assert "there is no Parquet file" in capsys.readouterr().err
    one = str(folder / "in" / "part-0.parquet")
    assert main(["fit", one, *OPTIONS, *fit, "--scheduler", "tcp://x:1"]) == 1
    assert "--scheduler is for a folder" in capsys.readouterr().err
