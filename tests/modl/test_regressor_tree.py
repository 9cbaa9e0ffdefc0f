"""DataTrees of every predictor, and ArviZ on them."""

import warnings

import numpy as np
import pytest

from pmordinal.modl import RankRegressor
from pmordinal.modl.regression.kinds import KINDS

az = pytest.importorskip("arviz")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    z = rng.normal(size=250)
    X = np.column_stack([z + 0.3 * (k + 1) * rng.normal(size=250) for k in range(3)])
    return X, 2 * z + 0.4 * rng.normal(size=250)


@pytest.fixture(scope="module")
def trees(data):
    return {kind: RankRegressor(kind).fit(*data).to_datatree() for kind in KINDS}


@pytest.mark.parametrize("kind", list(KINDS))
def test_layout(trees, data, kind):
    tree = trees[kind]
    for group in (
        "posterior",
        "posterior_predictive",
        "log_likelihood",
        "observed_data",
        "constant_data",
    ):
        assert group in tree.children
    assert tree["log_likelihood"]["y"].dims == ("chain", "draw", "row")
    assert tree["posterior"].attrs["kind"] == kind
    for name in tree["posterior"].data_vars:
        np.testing.assert_allclose(tree["posterior"][name].sum(f"{name}_interval"), 1.0)
    assert np.isin(tree["posterior_predictive"]["y"], data[1]).all()
    assert len(az.summary(tree, var_names=[next(iter(tree["posterior"].data_vars))])) > 3


def test_draws_centre_on_the_fitted_densities(trees, data):
    for kind in KINDS:
        model = RankRegressor(kind).fit(*data)
        mean = trees[kind]["log_likelihood"]["y"].mean(("chain", "draw"))
        assert np.abs(mean - model.log_score(*data)).mean() < 0.1


def test_loo_of_one_predictor_is_the_count_without_the_row(trees, data):
    """Importance sampling over Dirichlet draws against the closed form N_ij / (N_i + J − 1)."""
    X, y = data
    model = RankRegressor("univariate").fit(X, y)
    (name,) = model.weights_
    grid = model.grids_[name]
    i, j = model.parts_train_[name], grid.interval_of(y)
    closed = np.log(
        grid.counts[i, j] / (grid.counts[i].sum(1) + grid.J - 1) * 250 / grid.counts.sum(0)[j]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # cells with one instance have a large k-hat
        found = az.loo(trees["univariate"], pointwise=True)
    assert found.elpd == pytest.approx(closed.sum(), abs=2.0)
    assert np.abs(found.elpd_i.to_numpy() - closed).mean() < 0.02


@pytest.mark.slow
def test_compare_ranks_all_kinds(trees):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        table = az.compare(trees)
    assert set(table.index) == set(KINDS)
    assert table.index[-1] in ("univariate", "nb")


def test_held_out_rows(data):
    X, y = data
    model = RankRegressor("snb").fit(X[:200], y[:200])
    tree = model.to_datatree(X[200:], y[200:], draws=20, chains=2)
    assert tree["log_likelihood"]["y"].shape == (2, 20, 50)
    again = model.to_datatree(X[200:], y[200:], draws=20, chains=2)
    np.testing.assert_array_equal(tree["log_likelihood"]["y"], again["log_likelihood"]["y"])
