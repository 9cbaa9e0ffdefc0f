"""Tables of other libraries: their names and levels are heeded, or they are refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr

import pmordinal as pmo
from pmordinal import modl
from pmordinal.data.features import learn
from pmordinal.data.foreign import as_pandas, row_index
from pmordinal.data.labels import encode
from pmordinal.modl.encode import encode_target
from pmordinal.modl.frames import as_columns
from pmordinal.sklearn import OrdinalGPClassifier, RankRegressor
from tests.repeated import first_fast

FRAME = pd.DataFrame(
    {"dose": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "age": [50.0, 20.0, 40.0, 30.0, 60.0, 10.0]},
    index=list("abcdef"),
)
LABELS = [1, 1, 2, 2, 3, 3]


class Exporter:
    """A table of a library that shares nothing but the Arrow interface."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        """Return the capsule."""
        return self.table.__arrow_c_stream__(requested_schema)


def data_array(frame):
    coords = {"row": frame.index, "column": list(frame.columns)}
    return xr.DataArray(frame.to_numpy(), coords, ("row", "column"))


def dask_frame(frame):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)


KINDS = {
    "Table": pa.Table.from_pandas,
    "RecordBatch": pa.RecordBatch.from_pandas,
    "capsule": lambda frame: Exporter(pa.table({name: frame[name] for name in frame})),
    "DataArray": data_array,
    "Dataset": lambda frame: xr.Dataset({name: ("row", frame[name]) for name in frame}),
    "polars": lambda frame: pl.DataFrame({name: frame[name].to_list() for name in frame}),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_columns_are_read_by_name(make):
    features, X = learn(make(FRAME))
    assert features.names == ("dose", "age")
    np.testing.assert_array_equal(X, FRAME)
    swapped = make(FRAME[["age", "dose"]])
    np.testing.assert_array_equal(features.transform(swapped), X)
    with pytest.raises(ValueError, match=r"X lacks the column\(s\) 'age', it has 'dose'"):
        features.transform(make(FRAME[["dose"]]))
    np.testing.assert_array_equal(pd.DataFrame(as_columns(swapped))[["dose", "age"]], FRAME)


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_swapped_columns_predict_the_same(make):
    model = pmo.gp_model(
        make(FRAME),
        LABELS,
        lengthscale=1.0,
        noise=0.3,
        thresholds=[-0.5, 0.5],
        unlabeled=make(FRAME[["age", "dose"]].head(2)),
    )
    fit = pmo.fit(model, progressbar=False)
    expected = fit.predict(FRAME)
    np.testing.assert_array_equal(fit.predict(make(FRAME[["age", "dose"]])), expected)
    # Unlabelled rows stand elsewhere.
    np.testing.assert_array_equal(fit.posterior.gram.X, fit.features.transform(FRAME))


@pytest.mark.parametrize(
    "kind", first_fast(["DataArray", "polars", "Table", "RecordBatch", "capsule", "Dataset"], 2)
)
def test_estimators_of_scikit_learn_learn_the_names(kind):
    make = KINDS[kind]
    model = OrdinalGPClassifier("laplace").fit(make(FRAME), LABELS)
    assert model.feature_names_in_.tolist() == ["dose", "age"]
    np.testing.assert_array_equal(model.predict_proba(make(FRAME)), model.predict_proba(FRAME))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(make(FRAME[["age", "dose"]]))
    ranks = RankRegressor(starts=1).fit(make(FRAME), LABELS)
    assert ranks.feature_names_in_.tolist() == list(ranks.grids_) == ["dose", "age"]


def test_names_of_rows():
    assert row_index(FRAME) is FRAME.index
    assert row_index(data_array(FRAME)).tolist() == list("abcdef")
    assert row_index(xr.DataArray(np.zeros((2, 2)))) is None and row_index([[1.0]]) is None
    known = {"lengthscale": 1.0, "noise": 0.3, "thresholds": [-0.5, 0.5]}
    fit = pmo.fit(pmo.gp_model(data_array(FRAME), LABELS, "expquad", **known), progressbar=False)
    assert fit.predict(data_array(FRAME.tail(2)))["obs"].values.tolist() == ["e", "f"]


def test_arrays_of_xarray_without_names_go_by_position():
    assert learn(xr.DataArray([[1.0, 2.0]]))[0].names == ("x0", "x1")
    assert learn(xr.Variable(("a", "b"), [[1.0, 2.0]]))[0].names == ("x0", "x1")
    assert learn(xr.DataArray([1.0, 2.0], name="age"))[0].names == ("age",)


def test_factors_of_arrow_and_xarray():
    levels = pa.DictionaryArray.from_arrays([0, 1, 0], ["S", "M", "L"])
    names = ("size=S", "size=M", "size=L")
    assert learn(pa.table({"size": levels}))[0].names == names
    column = pd.Categorical(["S", "M", "S"], categories=["S", "M", "L"])
    assert learn(xr.Dataset({"size": ("row", column)}))[0].names == names
    assert learn(pa.table({"size": ["b", "a"]}))[0].names == ("size=a", "size=b")


def arrow_column(values):
    return pd.DataFrame({"a": pd.array(values, dtype=pd.ArrowDtype(values.type))})


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (arrow_column(pa.array([True, False])), [[1], [0]]),
        (arrow_column(pa.array(["u", "v"]).dictionary_encode()), [[1, 0], [0, 1]]),
        (arrow_column(pa.array(["u", "v"])), [[1, 0], [0, 1]]),
        (arrow_column(pa.array([1, 2])), [[1], [2]]),
        (pa.table({"a": [True, False]}), [[1], [0]]),
        (pa.table({"a": pa.array(["v", "u"], pa.large_string())}), [[0, 1], [1, 0]]),
        (pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Int128)}), [[1], [2]]),
    ],
)
def test_types_of_arrow(X, expected):
    np.testing.assert_array_equal(learn(X)[1], expected)


def ordered(codes, levels=("low", "mid", "high")):
    return pa.DictionaryArray.from_arrays(codes, list(levels), ordered=True)


@pytest.mark.parametrize(
    "y",
    [
        ordered([1, None, 0]),
        pa.chunked_array([ordered([1, None]), ordered([0])]),
        pa.chunked_array([ordered([1, None], ["low", "mid"]), ordered([0])]),
        xr.DataArray(pd.Categorical(["mid", None, "low"], ["low", "mid", "high"], ordered=True)),
        pl.Series(["mid", None, "low"], dtype=pl.Enum(["low", "mid", "high"])),
        pd.Series(ordered([1, None, 0]), dtype=pd.ArrowDtype(ordered([0]).type)),
    ],
)
def test_the_order_of_labels_is_kept(y):
    labels = encode(y)
    assert labels.categories == ("low", "mid", "high")
    assert labels.codes.tolist() == [1, -1, 0]
    values, names = encode_target(y)  # MODL's
    np.testing.assert_array_equal(values, [1.0, np.nan, 0.0])
    assert names == ["low", "mid", "high"]


@pytest.mark.parametrize("kind", ["arrow", "polars", "xarray"])
def test_scikit_learns_labels_keep_their_order(kind):
    codes, levels = np.array(LABELS) - 1, ["low", "mid", "high"]
    y = {
        "arrow": ordered(codes),
        "polars": pl.Series([levels[k] for k in codes], dtype=pl.Enum(levels)),
        "xarray": xr.DataArray(pd.Categorical.from_codes(codes, levels, ordered=True)),
    }[kind]
    assert OrdinalGPClassifier().fit(FRAME, y).categories_.tolist() == levels
    if kind == "arrow":  # the others are as quick to read and as slow to fit
        assert RankRegressor(starts=1).fit(FRAME[["dose"]], y).y_labels_ == levels


def test_numbers_of_arrow_keep_their_type_around_missing_ones():
    labels = encode(pa.array([1, 2, None]))
    assert labels.categories == (1, 2) and labels.dtype == "Int64"
    assert labels.decode([0, -1]).tolist() == [1, pd.NA]
    assert encode(pa.array([True, None, False])).dtype == "boolean"
    assert encode(pa.array([1, 2, 1])).dtype == "int64"
    assert encode(pl.Series([1, 2, 1], dtype=pl.Int128)).categories == (1, 2)
    assert encode(pa.array(["b", "a"]), categories=pa.array(["b", "a"])).categories == ("b", "a")


def test_levels_of_chunks_that_contradict_each_other_are_refused():
    y = pa.chunked_array([ordered([0], ["low", "high"]), ordered([1])])
    with pytest.raises(ValueError, match=r"y is an ordered dictionary whose chunks.*categories="):
        encode(y)


DATA = "X is a PyTensor variable, such as pm.Data makes, .*pass the numbers themselves"


@pytest.mark.parametrize(
    ("X", "error", "match"),
    [
        (dask_frame, TypeError, r"X is spread over Dask: pass X.compute\(\)"),
        (lambda f: dask_frame(f)["age"], TypeError, r"X is spread over Dask"),
        (lambda f: pt.matrix("X"), TypeError, DATA),
        (lambda f: f.to_dict("list"), TypeError, r"X is a dict: pass pd.DataFrame\(X\)"),
        (lambda f: pa.Table.from_pandas(f).to_reader(), TypeError, r"only once: .*X.read_all\(\)"),
        (lambda f: pl.LazyFrame(f.to_dict("list")), TypeError, r"LazyFrame: pass X.collect\(\)"),
        (
            lambda f: xr.Dataset({"X": (("row", "column"), f)}),
            TypeError,
            r"X is a Dataset with the variables X\('row', 'column'\): pass .*or a DataArray",
        ),
        (
            lambda f: xr.Dataset({"a": ("row", [1.0]), "b": ("column", [1.0])}),
            TypeError,
            r"X is a Dataset with the variables a\('row',\), b\('column',\)",
        ),
        (lambda f: xr.DataTree(), TypeError, "X is a DataTree with the variables none"),
        (lambda f: xr.Dataset(), ValueError, "X has no columns"),
        (lambda f: xr.DataArray(1.0), ValueError, "X must have 2 dimensions"),
        (
            lambda f: type("Frame", (), {"columns": ["a"], "to_pandas": None})(),
            TypeError,
            r"X is a Frame, whose columns cannot be read by name here: pass X.to_pandas\(\)",
        ),
        (
            lambda f: pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]),
            ValueError,
            "X has more than one column named 'a'",
        ),
        (lambda f: pa.table({"a": [1, None]}), ValueError, "'a' has 1 missing value.*in row 1"),
        (
            lambda f: pa.table({"a": pa.DictionaryArray.from_arrays([0], pa.array(["x", None]))}),
            ValueError,
            "X cannot be read as a table of pandas: ",
        ),
        (lambda f: pl.DataFrame({"a": [{"x": 1}]}), TypeError, "'a' is not numeric .mixed"),
        (
            lambda f: pl.DataFrame({"a": pl.Series([[1, 2]], dtype=pl.Array(pl.Int64, 2))}),
            TypeError,
            "'a' is not numeric .mixed",
        ),
        (lambda f: pa.table({"a": [True, None]}), ValueError, "'a' has 1 missing value.*in row 1"),
    ],
)
def test_refused(X, error, match):
    with pytest.raises(error, match=match):
        learn(X(FRAME))


def test_modl_refuses_what_it_cannot_read_by_name():
    for make in (dask_frame, lambda f: pt.matrix("X"), lambda f: pl.LazyFrame(f.to_dict("list"))):
        with pytest.raises(TypeError, match=r"X is a.*: pass|X is spread over Dask: pass"):
            modl.fit_grids(make(FRAME), LABELS, progressbar=False)


def test_variables_of_a_model_are_no_data():
    with pm.Model():
        X, y = pm.Data("X", FRAME.to_numpy()), pm.Data("y", np.array(LABELS))
        with pytest.raises(TypeError, match=DATA):
            pmo.gp_model(X, LABELS, "expquad")
        for factory in (pmo.gp_model, pmo.latent_model, pmo.linear_model):
            with pytest.raises(TypeError, match=DATA.replace("X is", "y is")):
                factory(FRAME, y)


def test_without_pyarrow(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(TypeError, match="X is a Exporter, an Arrow table, which only pyarrow"):
        as_pandas(Exporter(None), "X")


def test_subclasses_of_frames_stay_what_they_are():
    class Frame(pl.DataFrame):
        pass

    table = Frame({"a": [1.0, 2.0]})
    assert as_pandas(table, "X") is table
    assert learn(table)[0].names == ("a",)
