"""The main job, and the pieces it is made of."""

import arviz as az
import pytest
from matplotlib import pyplot as plt

import pmordinal as pmo
from pmordinal.cli import main


def test_wine_table():
    data = pmo.datasets.wine()
    assert data.shape == (72, 5)
    assert data.groupby(["temperature", "contact"], observed=True).size().tolist() == [18] * 4
    assert data["rating"].cat.ordered
    warm = data["temperature"] == "warm"
    assert data["rating"].astype(int)[warm].mean() > data["rating"].astype(int)[~warm].mean() + 0.9


def test_demo_writes_what_it_promises(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    for piece in ("lengthscale", "noise", "threshold 1|2", "log evidence", "leave-one-out"):
        assert piece in printed
    image = plt.imread(tmp_path / "out" / "demo.png")
    assert image.shape[0] > 300
    assert image[..., :3].std() > 0.1  # something was drawn
    tree = az.from_netcdf(tmp_path / "out" / "demo.nc")
    assert tree["posterior"].sizes["obs"] == 72


def test_errors_are_one_line(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path), "--engine", "magic"]) == 1
    assert capsys.readouterr().err.startswith("pmordinal: unknown engine 'magic': choose one of")
    with pytest.raises(SystemExit) as stop:
        main(["frobnicate"])
    assert stop.value.code == 2
