"""What MODL shows: labels of an ordered target, importances, predicted ranks."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

import pmordinal as pmo
from pmordinal.modl import plots


@pytest.fixture(autouse=True)
def closed():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def graded():
    x = np.arange(90)
    grades = pd.Categorical.from_codes(x // 30, ["low", "medium", "high"], ordered=True)
    return pd.DataFrame({"useful": x, "noise": x % 2}), pd.Series(grades, name="grade")


def test_labels_of_an_ordered_target_are_kept(graded):
    X, y = graded
    grid = pmo.modl.fit_grid(X["useful"], y)
    assert grid.to_frame().columns.to_list() == ["low", "medium", "high"]
    assert "medium" in repr(grid)
    assert pmo.modl.fit_grids(X, y, progressbar=False)["useful"].y_labels == tuple(y.cat.categories)
    some = y != "medium"  # a level that nobody has keeps its place
    joined = pmo.modl.fit_grid(X["useful"][some], y[some])
    assert joined.interval_names() in (["low", "medium to high"], ["low to medium", "high"])
    for ax in (pmo.plots.plot_grid(grid), grid.plot()):
        assert [t.get_text() for t in ax.get_yticklabels()] == ["low", "medium", "high"]
    assert pmo.modl.fit_grid(X["useful"], X["useful"] // 30).interval_names()[0].startswith("(-inf")


def test_importances(graded):
    X, y = graded
    model = pmo.modl.RankRegressor().fit(X, y)
    np.testing.assert_allclose(model.feature_importances_, [1.0, 0.0])
    assert len(model.feature_importances_) == X.shape[1]


def test_predicted_ranks(graded):
    X, y = graded
    model = pmo.modl.RankRegressor().fit(X, y)
    ax = plots.plot_predicted_ranks(model, X.iloc[::-1], top=5)
    means = ax.lines[0].get_xdata()
    assert len(means) == 5 and (np.diff(means) >= 0).all()
    assert ax.get_yticklabels()[0].get_text() in map(str, range(30))
    with pytest.raises(ValueError, match="top must be"):
        plots.plot_predicted_ranks(model, X, top=0)
