"""The commands that ``pmordinal --help`` shows run as they are; reports of kept fits; files of partitions."""

import shlex

import numpy as np
import pandas as pd
import pytest

from pmordinal.cli import FIRST_STEPS, main


def test_help_runs_as_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    for step in FIRST_STEPS:
        assert step in shown
        assert main(shlex.split(step)[1:]) == 0, step
    assert pd.read_csv("predictions.csv").columns[-1] == "predicted"
    assert "rating" in (tmp_path / "wine.html").read_text("utf-8")


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=30)
    (tmp_path / "chu").mkdir()
    pd.DataFrame({"x": x, "y": x}).to_csv(tmp_path / "chu" / "own.csv", index=False)
    ranks = np.argsort(np.argsort(x))
    table = pd.DataFrame({"y5": ranks // 6 + 1, "s5_1": (np.arange(30) % 3 > 0).astype(int)})
    return tmp_path, table, tmp_path / "chu" / "own_partitions.csv"


def bench(folder):
    options = [
        "--bins",
        "5",
        "--partitions",
        "1",
        "--engines",
        "linear",
        "--out",
        str(folder / "out"),
    ]
    return main(["bench", "--suite", "gpor", "--data", str(folder), *options])


def test_a_set_of_your_own(data):
    folder, table, path = data
    table.to_csv(path, index=False)
    assert bench(folder) == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda t: t.drop(columns="s5_1"), "has no column 's5_1'"),
        (lambda t: t.assign(y5=t["y5"] - 1), "y5 must hold classes 1 to 5, got 0, 1"),
        (lambda t: t.assign(s5_1=2), "s5_1 must hold 1 for training rows and 0"),
        (lambda t: t.assign(y5="a"), "y5 must hold whole numbers"),
        (lambda t: t.head(20), "has 20 rows, and own.csv has 30"),
    ],
)
def test_wrong_partitions_are_refused_in_one_line(data, capsys, wrong, message):
    folder, table, path = data
    wrong(table).to_csv(path, index=False)
    assert bench(folder) == 1
    line = capsys.readouterr().err
    assert message in line and line.count("\n") == 1
    assert not (folder / "out").exists()


def test_failed_tasks_end_with_an_error(data, capsys):
    folder, table, path = data
    table.to_csv(path, index=False)
    words = pd.DataFrame({"x": ["a"] * 30, "y": 1.0})  # attributes must be numbers
    words.to_csv(folder / "chu" / "own.csv", index=False)
    assert bench(folder) == 1
    assert "tasks failed: the column error of" in capsys.readouterr().err
