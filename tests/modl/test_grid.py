"""What a grid reports: values, ranks, labels, missing parts, predictions; and bad input."""

import numpy as np
import pandas as pd
import pytest

from pmordinal.modl import fit_grid
from pmordinal.modl.partition import criterion

from .oracles import blocks, heteroscedastic


@pytest.fixture(scope="module")
def grid():
    x, y = heteroscedastic(300, np.random.default_rng(0))
    return fit_grid(pd.Series(x, name="time"), pd.Series(y, name="height"))


def test_counts_belong_to_the_boundaries(grid):
    table = np.zeros_like(grid.counts)
    np.add.at(table, (grid.part_of(grid.x), grid.interval_of(grid.y)), 1)
    np.testing.assert_array_equal(table, grid.counts)
    assert grid.cost == pytest.approx(criterion.cost(grid.counts))
    assert grid.level == pytest.approx(1 - grid.cost / criterion.null_cost(300))
    np.testing.assert_allclose(np.cumsum(grid.counts.sum(0))[:-1] / 300, grid.y_ranks)
    np.testing.assert_allclose(np.cumsum(grid.counts.sum(1))[:-1] / 300, grid.x_ranks)


def test_a_boundary_belongs_to_the_upper_part(grid):
    assert grid.part_of(grid.x_boundaries).tolist() == list(range(1, grid.I))
    below = np.nextafter(grid.x_boundaries, -np.inf)
    assert grid.part_of(below).tolist() == list(range(grid.I - 1))


def test_boundaries_separate_neighbouring_floats():
    low = 1.0
    high = np.nextafter(1.0, 2.0)
    x = np.repeat([low, high], 30)
    grid = fit_grid(x, np.repeat([0.0, 1.0], 30))
    assert grid.part_of([low, high]).tolist() == [0, 1]


def test_repr_names_sizes_cost_and_parts(grid):
    text = repr(grid)
    for piece in ("time → height", f"{grid.I} × {grid.J}", f"{grid.cost:.2f}", "[", "N = 300"):
        assert piece in text
    assert "null model" in repr(fit_grid([1, 1, 1], [1, 2, 3]))


def test_density_and_cdf(grid):
    for smoothing in (1.0, 1 / 300):
        p = grid.probabilities(smoothing)
        np.testing.assert_allclose(p.sum(1), 1.0)
        widths = np.diff(np.concatenate(([0.0], grid.y_ranks, [1.0])))
        np.testing.assert_allclose((grid.rank_density(smoothing) * widths).sum(1), 1.0)
    expected = (grid.counts[2, 1] + 1) / (grid.counts[2].sum() + grid.J)
    assert grid.probabilities()[2, 1] == pytest.approx(expected)
    cdf = grid.rank_cdf()
    assert cdf.shape == (grid.I, grid.J + 1)
    assert (np.diff(cdf, axis=1) > 0).all() and (cdf[:, 0] == 0).all() and (cdf[:, -1] == 1).all()
    # linear between the cuts, with the density as slope
    at = np.array([0.3, 0.3001])
    slope = np.diff(grid.rank_cdf(at), axis=1)[:, 0] / 1e-4
    j = np.searchsorted(grid.y_ranks, 0.3, side="right")
    np.testing.assert_allclose(slope, grid.rank_density()[:, j], rtol=1e-9)


def test_groups_keep_their_labels_and_unseen_ones_have_no_part():
    rng = np.random.default_rng(1)
    x = rng.choice(["red", "green", "blue", "pink"], 200)
    y = np.where(np.isin(x, ["red", "pink"]), 0, 3) + rng.random(200)
    grid = fit_grid(pd.Categorical(x), y)
    assert sorted(map(sorted, grid.groups)) == [["blue", "green"], ["pink", "red"]]
    assert grid.kind == "categorical"
    part = grid.part_of(["red", "pink", "blue", "violet"])
    assert part[0] == part[1] != part[2] and part[3] == -1
    assert "{pink, red}" in grid.part_names()
    assert grid.cost == pytest.approx(criterion.cost(grid.counts, n_values=4))


def test_missing_predictors_are_a_part_of_their_own():
    rng = np.random.default_rng(2)
    x, y = blocks(200, 0.0, rng)
    x[::5] = np.nan
    grid = fit_grid(x, y)
    assert grid.missing_part == grid.I - 1 == 2
    assert grid.counts[2].sum() == 40 and grid.counts.sum() == 200
    assert grid.part_of([np.nan, 0.1, 0.9]).tolist() == [2, 0, 1]
    assert grid.cost == pytest.approx(criterion.cost(grid.counts))
    labels = pd.Series(np.where(x > 0.5, "b", "a"), dtype=object).where(~np.isnan(x), None)
    grid = fit_grid(labels, y)
    assert grid.missing_part == 2 and grid.part_of(pd.Series([None, "a"], dtype=object))[0] == 2
    assert grid.cost == pytest.approx(criterion.cost(grid.counts, n_values=3))


def test_informative_missingness_alone_is_found():
    y = np.arange(80.0)
    x = np.where(y < 40, np.nan, 1.0)
    grid = fit_grid(x, y)
    assert (grid.I, grid.J, grid.missing_part) == (2, 2, 1)
    np.testing.assert_array_equal(grid.counts, [[0, 40], [40, 0]])


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1, 1, 1, 1], [1, 2, 3, 4]),
        ([1, 2, 3, 4], [5, 5, 5, 5]),
        ([7], [1]),
        ([np.nan] * 3, [1, 2, 3]),
    ],
)
def test_constant_axes_give_the_null_model(x, y):
    grid = fit_grid(x, y)
    assert grid.is_null and grid.level == 0.0
    assert grid.cost == pytest.approx(criterion.null_cost(len(x)))
    assert grid.part_of([3.0, np.nan]).tolist() == [0, 0]
    np.testing.assert_allclose(grid.rank_density(), 1.0)


def test_missing_targets_are_left_out_with_a_warning():
    x, y = blocks(100, 0.0, np.random.default_rng(3))
    holes = y.copy()
    holes[:7] = np.nan
    with pytest.warns(UserWarning, match="7 of 100 rows have a missing y"):
        grid = fit_grid(x, holes)
    assert grid.cost == pytest.approx(fit_grid(x[7:], y[7:]).cost)


def test_many_categories_are_grouped():
    rng = np.random.default_rng(4)
    x = rng.integers(0, 600, 6000)
    y = (x % 2) + rng.random(6000)
    grid = fit_grid(x, y, categorical=True)
    assert sum(map(len, grid.groups)) == len(np.unique(x))
    even = [np.mean([v % 2 == 0 for v in g]) for g in grid.groups]
    assert grid.I == 2 and sorted(even) == [0.0, 1.0]


@pytest.mark.parametrize(
    ("x", "y", "error", "match"),
    [
        ([1, 2], [1, 2, 3], ValueError, "x has 2 rows and y has 3"),
        ([[1, 2]], [1], ValueError, "must be one column"),
        ([1, np.inf], [1, 2], ValueError, "x contains infinity"),
        ([1, 10**400], [1, 2], ValueError, "x contains infinity"),
        ([1, 2], [1, np.inf], ValueError, "y contains infinity"),
        ([], [], ValueError, "no row has a value of y"),
        ([1, 2], ["a", "b"], TypeError, "ordered"),
        ([1, 2], pd.Categorical(["a", "b"]), ValueError, "unordered categorical"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), [1, 2], TypeError, "holds dates"),
        ([1j, 2], [1, 2], ValueError, "Complex data not supported"),
    ],
)
def test_bad_input_is_refused_with_advice(x, y, error, match):
    with pytest.raises(error, match=match):
        fit_grid(x, y)


def test_bad_starts():
    with pytest.raises(ValueError, match="starts must be an integer of at least 1"):
        fit_grid([1, 2], [1, 2], starts=0)


def test_ordered_labels_as_target():
    x = np.arange(90.0)
    y = pd.Categorical(np.repeat(["low", "mid", "high"], 30), ["low", "mid", "high"], ordered=True)
    assert fit_grid(x, y).y_boundaries.tolist() == [0.5, 1.5]
