"""Names of rows: tables with an index of any kind can be fitted, drawn from, saved and predicted."""

import datetime

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pmordinal as pmo
from pmordinal.data.rows import check_paired, storable
from tests.repeated import first_fast

N = 12
Y = np.arange(N) // 4
LETTERS = list("abcdefghijkl")
# an index, and the first of its names
INDEXES = {
    "multi": (pd.MultiIndex.from_product([["a", "b"], range(6)]), "a, 0"),
    "zone": (pd.date_range("2024", periods=N, tz="Europe/Berlin"), "2024-01-01 00:00:00+01:00"),
    "interval": (pd.interval_range(0, N), "(0, 1]"),
    "period": (pd.period_range("2024", periods=N, freq="M"), "2024-01"),
    "date": (pd.Index([datetime.date(2024, 1, 1 + k) for k in range(N)]), "2024-01-01"),
    "time": (pd.date_range("2024", periods=N), np.datetime64("2024-01-01")),
    "nanoseconds": (pd.date_range("2024", periods=N, freq="ns"), np.datetime64("2024-01-01", "ns")),
    "far": (pd.Index(np.arange(3000, 3000 + N).astype("M8[Y]").astype("M8[s]")), None),
    "duration": (pd.timedelta_range("1s", periods=N), np.timedelta64(1, "s")),
    "text": (pd.Index(LETTERS), "a"),
    "mixed": (pd.Index(["a", *range(1, N)], dtype=object), "a"),
    "objects": (pd.Index(list(range(N)), dtype=object), 0),
    "nullable": (pd.Index(range(N), dtype="Int64"), 0),
    "missing": (pd.Index([None, *LETTERS[1:]]), "nan"),
    "category": (pd.CategoricalIndex(LETTERS), "a"),
    "category with a gap": (pd.CategoricalIndex([None, *range(1, N)]), None),
    "unsigned": (pd.Index(range(N), dtype="uint8"), 0),
    "huge": (pd.Index([2**70 + k for k in range(N)]), str(2**70)),
    "complex": (pd.Index([k + 1j for k in range(N)]), "1j"),
    "nul": (pd.Index([f"\0{k}" for k in LETTERS]), "\\x00a"),
    "surrogate": (pd.Index([f"\ud800{k}" for k in LETTERS], dtype=object), "\\ud800a"),
}


@pytest.mark.parametrize("kind", first_fast(INDEXES, 10))
def test_any_index(kind, tmp_path):
    index, first = INDEXES[kind]
    X = pd.DataFrame({"a": np.linspace(-1, 1, N)}, index=index)
    fixed = {"lengthscale": 1.0, "noise": 0.5, "thresholds": [-0.5, 0.5]}
    fit = pmo.fit(pmo.gp_model(X, Y, "expquad", engine="laplace", **fixed), progressbar=False)
    assert fit.index.shape == (N,)
    if first is not None:
        assert fit.index[0] == first
    probs = fit.predict(X)
    np.testing.assert_array_equal(probs["obs"], fit.index)  # rows have the same names everywhere
    for suffix in ("nc", "zarr"):
        fit.save(tmp_path / f"fit.{suffix}")
        back = pmo.load(tmp_path / f"fit.{suffix}")
        np.testing.assert_array_equal(back.index, fit.index)
        xr.testing.assert_equal(back.predict(X), probs)
    probs.to_netcdf(tmp_path / "probs.nc", engine="h5netcdf")
    tree = fit.to_datatree(draws=2, seed=0)
    np.testing.assert_array_equal(tree["posterior"]["obs"], fit.index)
    tree.to_netcdf(tmp_path / "tree.nc", engine="h5netcdf")


def test_names_that_read_the_same_are_numbered():
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0]}, index=pd.Index(["1", 1, 2], dtype=object))
    assert pmo.gp_model(X, [0, 1, 1], "expquad").coords["obs"] == (0, 1, 2)


def test_labels_that_no_file_holds(tmp_path):
    """Only the names of thresholds in the file are escaped; the labels come back as they were."""
    levels = ["a\0", "\ud800b", "c"]
    y = [levels[k] for k in Y]
    fixed = {"lengthscale": 1.0, "noise": 0.5, "thresholds": [-0.5, 0.5]}
    model = pmo.gp_model(
        np.arange(N)[:, None], y, "expquad", categories=levels, engine="laplace", **fixed
    )
    fit = pmo.fit(model, progressbar=False)
    for suffix in ("nc", "zarr"):
        fit.save(tmp_path / f"fit.{suffix}")
        back = pmo.load(tmp_path / f"fit.{suffix}")
        assert back.labels.categories == tuple(levels)
        assert list(back.predict([[0], [11]], "class")) == ["a\0", "c"]


def test_no_names():
    assert storable([]).shape == (0,)


TABLE = pd.DataFrame({"x": np.arange(6.0), "w": 1.0, "y": [1, 1, 2, 1, 2, 2]}, index=list("abcdef"))


@pytest.mark.parametrize(
    "call",
    [
        lambda t, by: pmo.gp_model(t[["x"]], by(t["y"]), "expquad"),
        lambda t, by: pmo.gp_model(t[["x"]], t["y"], "expquad", weights=by(t["w"])),
        lambda t, by: pmo.formula_model("y ~ x", t, weights=by(t["w"])),
        lambda t, by: pmo.modl.fit_grid(t["x"], by(t["y"])),
        lambda t, by: pmo.modl.sample_grids(t["x"], by(t["y"]), draws=5, tune=5, progressbar=False),
        lambda t, by: pmo.modl.rank_predictors(t[["x"]], by(t["y"]), progressbar=False),
    ],
)
@pytest.mark.parametrize("numbered", [False, True])
def test_rows_in_another_order_are_refused(call, numbered):
    table = TABLE.reset_index(drop=True) if numbered else TABLE
    with pytest.raises(ValueError, match="row names or another order"):
        call(table, lambda column: column[::-1])
    call(table, lambda column: column)


@pytest.mark.parametrize(
    "y",
    [
        TABLE["y"].to_numpy(),
        TABLE["y"].reset_index(drop=True),
        TABLE["y"].astype("category").to_list(),
    ],
)
def test_rows_without_names_go_by_position(y):
    check_paired(TABLE, y)


def test_rows_of_other_names_are_refused():
    with pytest.raises(ValueError, match=r"pass y\.loc\[X\.index\], or y\.to_numpy\(\)"):
        check_paired(TABLE, TABLE["y"].rename(str.upper))
