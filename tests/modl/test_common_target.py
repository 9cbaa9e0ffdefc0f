"""One partition of the target for all predictors: the sum of costs, missing entries, and the estimator's option."""

import numpy as np
import pandas as pd
import pytest

from pmordinal.modl import RankRegressor
from pmordinal.modl.partition.criterion import cost
from pmordinal.modl.regression.common_target import _kept


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    a, b, noise = rng.uniform(size=(3, n))
    y = np.digitize(a, [0.3, 0.7]) + (b > 0.5) + 0.4 * rng.normal(size=n)
    label = np.array(["low", "mid", "high"])[np.digitize(a + 0.1 * rng.normal(size=n), [0.3, 0.7])]
    b[rng.uniform(size=n) < 0.1] = np.nan
    return pd.DataFrame({"a": a, "b": b, "label": label, "noise": noise}), y


def test_all_predictors_have_the_same_cuts():
    X, y = table()
    own, common = (RankRegressor("nb", target=t).fit(X, y) for t in ("own", "common"))
    used = [g for g in common.grids_.values() if not g.is_null]
    assert len(used) == 3 and common.grids_["noise"].is_null
    for grid in used:
        np.testing.assert_array_equal(grid.y_boundaries, used[0].y_boundaries)
        np.testing.assert_array_equal(
            np.searchsorted(grid.y_boundaries, y, side="right"), grid.interval_of(y)
        )
        V = None if grid.groups is None else 3
        assert grid.missing_part is not None or grid.cost == pytest.approx(cost(grid.counts, V))
    assert len({g.J for g in own.grids_.values()}) > 1
    assert common.grids_["b"].missing_part is not None
    rows = [len(g.counts) for g in used]
    assert sum(rows) == sum(g.I for g in used)
    assert np.isfinite(common.nlrpd(X, y)) and common.nlrpd(X, y) < -0.3


def test_merged_cuts_are_the_cheapest_on_the_path():
    """Neighbouring intervals with the same distribution are one; others stay apart."""
    tables = [np.array([[50, 50, 2], [1, 1, 60]]), np.array([[30, 30, 2], [21, 21, 60]])]
    np.testing.assert_array_equal(_kept(tables), [0, 2, 3])
    apart = [np.array([[50, 2, 50], [1, 50, 1]]), np.array([[26, 26, 26], [25, 26, 25]])]
    np.testing.assert_array_equal(_kept(apart), [0, 1, 2, 3])


def test_a_table_without_information_is_left_as_it_is():
    rng = np.random.default_rng(1)
    model = RankRegressor("snb", target="common").fit(
        rng.uniform(size=(50, 2)), rng.uniform(size=50)
    )
    assert all(g.is_null for g in model.grids_.values())
    with pytest.raises(ValueError, match="target must be"):
        RankRegressor(target="both").fit(rng.uniform(size=(50, 2)), rng.uniform(size=50))
