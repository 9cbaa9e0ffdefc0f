"""The main job, and the pieces it is made of."""

import arviz as az
import numpy as np
import pytest
from matplotlib import pyplot as plt

import pmordinal as pmo
from pmordinal.cli import main
from pmordinal.effects import effects
from pmordinal.plots import plot_categories, plot_latent


@pytest.fixture(scope="module")
def fit():
    data = pmo.datasets.wine()
    columns = ["temperature", "contact", "judge"]
    return pmo.fit(pmo.gp_model(data[columns], data["rating"]), progressbar=False)


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


def test_effects_average_over_rows(fit):
    table = effects(fit, ["temperature", "contact"])
    assert table["value"].values.tolist() == ["cold, no", "cold, yes", "warm, no", "warm, yes"]
    np.testing.assert_allclose(table["probs"].sum("class"), 1.0)
    data = pmo.datasets.wine()
    moved = data.assign(temperature="warm", contact="yes")
    expected = fit.predict(moved).values.mean(0)
    np.testing.assert_allclose(table["probs"].sel(value="warm, yes"), expected, rtol=1e-10)
    assert np.all(np.diff(table["latent"]) > 0)  # contact and warmth make it more bitter


def test_effects_along_a_number():
    x = np.linspace(0, 1, 15)
    fit = pmo.fit(pmo.gp_model(x, (x * 2.99).astype(int)), progressbar=False)
    table = effects(fit, "x0", n_grid=7)
    np.testing.assert_allclose(table["value"], np.linspace(0, 1, 7), atol=1e-12)
    np.testing.assert_allclose(table["probs"], fit.predict(np.linspace(0, 1, 7)), rtol=1e-8)
    with pytest.raises(ValueError, match="feature"):
        effects(fit, "x1")


def test_plots_draw_the_numbers(fit):
    table = effects(fit, ["temperature", "contact"])
    ax = plot_categories(fit, ["temperature", "contact"])
    heights = np.array([[bar.get_height() for bar in bars] for bars in ax.containers])
    np.testing.assert_allclose(heights, table["probs"].values.T)
    assert [t.get_text() for t in ax.get_xticklabels()] == table["value"].values.tolist()
    ax = plot_latent(fit, ["temperature", "contact"])
    lines = [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--"]
    np.testing.assert_allclose(lines, fit.thresholds)
    assert [t.get_text() for t in ax.texts] == ["1", "2", "3", "4", "5"]
    plt.close("all")


def test_plots_along_a_number():
    x = np.linspace(0, 1, 15)
    fit = pmo.fit(pmo.gp_model(x, (x * 2.99).astype(int)), progressbar=False)
    ax = plot_categories(fit, "x0", n_grid=9)
    assert len(ax.collections) == 3
    ax = plot_latent(fit, "x0", n_grid=9)
    curve = next(line for line in ax.lines if line.get_linestyle() == "-")
    np.testing.assert_allclose(curve.get_ydata(), effects(fit, "x0", n_grid=9)["latent"])
    plt.close("all")
