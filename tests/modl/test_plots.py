"""Pictures run on every kind of grid and show what they should."""

import numpy as np
import pandas as pd
import pytest

from pmordinal.modl import fit_grid, fit_grids, plots, rank_predictors, sample_grids

from .oracles import blocks, heteroscedastic

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def shades(ax):
    return np.asarray(ax.collections[0].get_array())


def test_grid_shades_are_the_rank_density():
    grid = fit_grid(*heteroscedastic(200, np.random.default_rng(0)), x_name="time")
    ax = grid.plot()
    np.testing.assert_allclose(shades(ax).reshape(grid.J, grid.I), grid.rank_density().T)
    assert ax.get_xlabel() == "time" and f"{grid.I} × {grid.J}" in ax.get_title()


def test_missing_and_categorical_and_null_grids():
    rng = np.random.default_rng(1)
    x, y = blocks(150, 0.0, rng)
    labels = np.where(x > 0.5, "a", "b")
    x[::5] = np.nan
    assert fit_grid(x, y).plot().texts[0].get_text() == "missing"
    ax = fit_grid(labels, y).plot(colorbar=False)
    assert {t.get_text() for t in ax.get_xticklabels()} == {"{a}", "{b}"}
    fit_grid(rng.random(50), rng.random(50)).plot()


def test_cdf_has_one_line_a_part():
    grid = fit_grid(*heteroscedastic(200, np.random.default_rng(0)))
    ax = grid.plot_cdf()
    np.testing.assert_allclose(ax.lines[0].get_ydata(), grid.rank_cdf()[0])
    assert len(ax.get_legend().get_texts()) == grid.I


def test_ranking_and_posterior():
    x, y = heteroscedastic(120, np.random.default_rng(2))
    frame = pd.DataFrame({"x": x, "s": np.where(x > 1, "u", "v")})
    assert len(plots.plot_ranking(rank_predictors(frame, y, progressbar=False)).patches) == 2
    tree = sample_grids(x, y, draws=50, chains=2, progressbar=False)
    assert len(plots.plot_boundaries(tree, "x").patches) == 2
    plots.plot_boundaries(tree, "y")
    assert len(plots.plot_averaged_cdf(tree, [0.5, 2.0], fit_grid(x, y)).lines) == 4
    tree = sample_grids(frame["s"], y, draws=20, chains=2, progressbar=False)
    with pytest.raises(ValueError, match="no cuts on axis 'x'"):
        plots.plot_boundaries(tree, "x")


def test_a_grid_without_data_says_what_to_do():
    grid = fit_grids({"x": np.arange(30)}, np.arange(30), progressbar=False)["x"]
    with pytest.raises(ValueError, match=r"fit it by fit_grid\(x, y\)"):
        grid.plot()
