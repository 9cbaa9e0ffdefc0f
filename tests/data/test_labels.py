"""Labels at the border: what is understood, what comes back, and what every refusal says."""

import builtins
import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmordinal.data.labels import Labels, encode

SIZES = ["low", "medium", "high"]
INT_TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint64"]


def through_json(labels):
    return Labels.from_json(json.loads(json.dumps(labels.to_json())), codes=labels.codes)


# ---- round trips


@settings(deadline=None)
@given(st.data(), st.sampled_from(INT_TYPES), st.integers(0, 100), st.integers(2, 6))
def test_integers_come_back(data, dtype, low, r):
    values = data.draw(st.lists(st.integers(low, low + r - 1), min_size=1))
    y = np.array([*values, *range(low, low + r)], dtype=dtype)
    labels = encode(y)
    assert labels.categories == tuple(range(low, low + r))
    np.testing.assert_array_equal(labels.codes, y.astype(int) - low)
    for one in (labels, through_json(labels)):
        out = one.decode(labels.codes)
        assert out.dtype == y.dtype
        np.testing.assert_array_equal(out, y)


@settings(deadline=None)
@given(st.data(), st.lists(st.text(max_size=5), min_size=2, max_size=6, unique=True))
def test_strings_come_back(data, categories):
    # "a", "|", "" and the like may give two thresholds one name, which is refused: see below.
    categories = [f"{k}{c.replace('|', '')}" for k, c in enumerate(categories)]
    y = data.draw(st.lists(st.sampled_from([*categories, None]), min_size=1))
    labels = encode([*y, categories[0]], categories=categories)
    assert labels.n_classes == len(categories)
    for one in (labels, through_json(labels)):
        out = one.decode(labels.codes)
        assert [None if v != v else v for v in out] == [*y, categories[0]]


@settings(deadline=None)
@given(st.data(), st.permutations(["a", "b", "c", "d"]))
def test_ordered_categoricals_come_back(data, categories):
    codes = [*data.draw(st.lists(st.integers(-1, 3), min_size=1)), 0]
    y = pd.Categorical.from_codes(codes, categories=categories, ordered=True)
    for source in (y, pd.Series(y, index=range(5, 5 + len(y))), pd.CategoricalIndex(y)):
        labels = encode(source)
        np.testing.assert_array_equal(labels.codes, codes)
        pd.testing.assert_extension_array_equal(through_json(labels).decode(labels.codes), y)


CASES = {
    "list": ([2, 1, 3], [2, 1, 3]),
    "numpy": (np.array([2, 1, 3], dtype="int16"), np.array([2, 1, 3], dtype="int16")),
    "series": (pd.Series([2, 1, 3], index=list("abc")), np.array([2, 1, 3])),
    "Int64": (pd.Series([2, 1, None], dtype="Int64"), pd.array([2, 1, None], dtype="Int64")),
    "list with None": ([2, 1, None], pd.array([2, 1, None], dtype="Int64")),
    "float": (np.float32([2, 1, np.nan]), np.float32([2, 1, np.nan])),
    "float list": ([2.0, 1, np.nan], np.array([2, 1, np.nan])),
    "masked": (
        np.ma.MaskedArray([2, 1, 9], mask=[False, False, True]),
        pd.array([2, 1, None], dtype="Int64"),
    ),
    "bool": ([True, False, True], np.array([True, False, True])),
    "bool with None": ([True, None], pd.array([True, None], dtype="boolean")),
    "boolean": (pd.array([True, None], dtype="boolean"), pd.array([True, None], dtype="boolean")),
    "object": (np.array([2, 1, None], dtype=object), np.array([2, 1, np.nan], dtype=object)),
    "polars int": (pl.Series([2, 1, 3], dtype=pl.Int8), np.array([2, 1, 3], dtype="int8")),
    "polars int null": (pl.Series([2, 1, None]), pd.array([2, 1, None], dtype="Int64")),
    "polars bool": (pl.Series([True, False]), np.array([True, False])),
    "polars float": (pl.Series([2.0, None, 1.0]), np.array([2, np.nan, 1])),
    "IntervalDtype": (pd.cut(pd.Series([0.0, 9]), [-np.inf, 5, 6, np.inf]), None),
    "float categories": (pd.Categorical([0.5, 1.5, None], ordered=True), None),
    "int categories": (pd.Categorical([3, 2, 3], categories=[3, 2], ordered=True), None),
    "bool categories": (pd.Categorical([True, False], ordered=True), None),
}


@pytest.mark.parametrize("case", CASES)
def test_out_comes_what_came_in(case):
    y, expected = CASES[case]
    expected = pd.Categorical(y) if expected is None else expected
    labels = encode(y)
    for one in (labels, through_json(labels)):
        out = one.decode(labels.codes)
        if isinstance(expected, (np.ndarray, list)):
            expected = np.asarray(expected)
            assert type(out) is np.ndarray and out.dtype == expected.dtype
            pd.testing.assert_series_equal(pd.Series(out), pd.Series(expected))
        else:
            pd.testing.assert_extension_array_equal(out, expected)


@pytest.mark.parametrize(
    ("y", "dtype"),
    [
        (["low", "high"], "<U6"),
        (np.array(["low", "high"]), "<U6"),
        (np.array(["low", "high"], dtype=np.dtypes.StringDType()), "<U6"),
        (np.array(["low", "high"], dtype=object), object),
        (pd.Series(["low", "high"]), object),
        (pd.Series(["low", None, "high"]), object),
        (pl.Series(["low", "high"]), "<U6"),
        (pl.Series(["low", None, "high"]), object),
        (pl.Series(["low", "high"], dtype=pl.Categorical), "category"),
        (pd.Categorical(["low", "high"]), "category"),
    ],
)
def test_text_with_categories(y, dtype):
    labels = encode(y, categories=SIZES)
    assert labels.codes[0] == 0 and labels.codes[-1] == 2
    out = labels.decode(labels.codes)
    assert out.dtype == dtype or (dtype == "category" and out.ordered)
    assert out[0] == "low" and out[-1] == "high"


def test_polars_enum_comes_back():
    y = pl.Series(["high", None, "low"], dtype=pl.Enum(SIZES))
    labels = encode(y)
    assert labels.categories == tuple(SIZES)
    np.testing.assert_array_equal(labels.codes, [2, -1, 0])
    out = through_json(labels).decode(labels.codes)
    assert out.dtype == y.dtype and out.to_list() == y.to_list()


def test_polars_enum_without_polars_is_a_pandas_categorical(monkeypatch):
    labels = encode(pl.Series(["high", None, "low"], dtype=pl.Enum(SIZES)))
    real = builtins.__import__

    def absent(name, *args, **kwargs):
        if name == "polars":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    out = labels.decode([2, -1])
    monkeypatch.undo()
    expected = pd.Categorical(["high", None], categories=SIZES, ordered=True)
    pd.testing.assert_extension_array_equal(out, expected)


def test_json_is_plain_data_and_holds_no_codes():
    labels = encode(pd.cut(pd.Series([0.0, 9]), [-np.inf, 5, np.inf]))
    data = labels.to_json()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert set(data) == {"kind", "dtype", "categories"}
    assert Labels.from_json(data).codes.shape == (0,)
    assert Labels.from_json(data).codes.dtype == np.int64


def test_json_is_checked():
    with pytest.raises(ValueError, match="levels of the saved labels hold 1 more than once"):
        Labels.from_json({"kind": "array", "dtype": "int64", "categories": [1, 1]})


# ---- levels


def test_views():
    labels = encode(pd.Series(["low", None, "low", "high"]), categories=SIZES)
    assert labels.n_classes == 3
    assert labels.class_names == SIZES
    assert labels.threshold_names == ["low|medium", "medium|high"]
    assert labels.codes.dtype == np.int64
    np.testing.assert_array_equal(labels.observed, [True, False, True, True])
    np.testing.assert_array_equal(labels.counts, [2, 0, 1])


def test_integers_have_names_without_a_point_whatever_the_dtype():
    assert encode([1.0, 2.0, np.nan]).class_names == ["1", "2"]
    assert encode([1, 2]).threshold_names == ["1|2"]


def test_declared_levels_keep_their_place():
    assert encode(pd.Categorical(["low"], categories=SIZES, ordered=True)).n_classes == 3
    np.testing.assert_array_equal(encode([4, 1], categories=[1, 2, 3, 4]).codes, [3, 0])
    np.testing.assert_array_equal(encode([4, 1], categories=range(1, 5)).codes, [3, 0])
    np.testing.assert_array_equal(encode([4, 1], categories=np.array([1, 4])).codes, [1, 0])
    assert encode([True, True]).categories == (False, True)
    assert encode([1, 1], categories=[1, 2]).n_classes == 2


def test_categories_overrule_the_order_of_a_categorical():
    y = pd.Categorical(["a", "b"], categories=["a", "b"], ordered=True)
    np.testing.assert_array_equal(encode(y, categories=["b", "a"]).codes, [1, 0])
    labels = encode(y, categories=["c", "b", "a"])
    np.testing.assert_array_equal(labels.codes, [2, 1])
    assert list(labels.decode([0]).categories) == ["c", "b", "a"]


def test_declared_fractions_are_levels():
    labels = encode([0.5, 1.0, 0.5], categories=[0.5, 1, 1.5])
    np.testing.assert_array_equal(labels.codes, [0, 1, 0])
    np.testing.assert_array_equal(labels.decode([2]), [1.5])


@pytest.mark.parametrize(
    ("y", "categories", "dtype"),
    [
        (np.uint8([1, 2]), [1, 2, 300], "int64"),
        (np.array([1, 2]), [1, 2, 2.5], "float64"),
        (np.array([1, 2]), [1, 2, "no answer"], "object"),
        (pd.array([1, None], dtype="UInt8"), [1, 300], "object"),
        (np.array(["a"]), ["a", 1], "object"),
        (["a"], ["a", "b\0"], "object"),
        (np.array([True, False]), [0, 1], "bool"),
        (["a", 1], ["a", 1], "object"),
        ([2**70, 0], [0, 2**70], "object"),
    ],
)
def test_dtype_widens_to_hold_every_category(y, categories, dtype):
    labels = encode(y, categories=categories)
    assert labels.decode([1]).dtype == dtype
    assert labels.decode(np.arange(len(categories))).tolist() == categories


def test_categorical_dtype_widens_to_hold_every_category():
    y = pd.Categorical([1, 2], ordered=True)
    assert list(encode(y, categories=[1, 2, 2.5]).decode([2])) == [2.5]
    y = pl.Series(["a"], dtype=pl.Enum(["a", "b"]))
    assert list(encode(y, categories=["a", "b", 3]).decode([2])) == [3]


# ---- refusals

EMPTY = "y is empty: pass at least one label"
ALL_MISSING = "y has no label at all, all 2 are missing"
FEWER = "the levels of y must be two or more, got .*declare .* categories="
INFINITE = "y holds -?inf, which is not a label: replace it"
DATE = "y holds labels of type .*: turn dates and times into levels first"
BYTES = "y holds labels of type .*: turn bytes into text first"
CONVERT = "y holds labels of type .*: labels are integers, text"
SHAPE = "y must be 1-dimensional, got shape .*: pass one column"
TEXT = r"y holds text, .* levels found are 'high', 'low': pass categories=\[...\] from lowest"
UNORDERED = r"y is an unordered categorical .*pass categories=\[...\].*ordered=True.*pl.Enum"
FRACTION = "y holds numbers that are not whole .1.5.*pd.cut or pd.qcut, or pass categories="


@pytest.mark.parametrize(
    ("y", "error", "match"),
    [
        ([], ValueError, EMPTY),
        (np.array([]), ValueError, EMPTY),
        (pd.Categorical([], ordered=True), ValueError, EMPTY),
        ([None, np.nan], ValueError, ALL_MISSING),
        (pd.array([None, None], dtype="Int64"), ValueError, ALL_MISSING),
        (pd.Categorical([None, None], categories=SIZES, ordered=True), ValueError, ALL_MISSING),
        ([1, 1, 1], ValueError, FEWER),
        (pd.Categorical(["a"], ordered=True), ValueError, FEWER),
        ([1.0, np.inf], ValueError, INFINITE),
        ([1.0, -np.inf], ValueError, INFINITE),
        (pd.Categorical([1.0, np.inf], ordered=True), ValueError, INFINITE),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), TypeError, DATE),
        (np.array([1, 2], dtype="timedelta64[s]"), TypeError, DATE),
        ([datetime.date(2020, 1, 1)], TypeError, DATE),
        (pd.Series(pd.to_datetime(["2020-01-01"])), TypeError, DATE),
        (pd.Series(pd.period_range("2020", periods=2, freq="D")), TypeError, DATE),
        (pl.Series([datetime.date(2020, 1, 1)]), TypeError, DATE),
        (pd.Categorical(pd.to_datetime(["2020-01-01"]), ordered=True), TypeError, DATE),
        (
            pd.cut(pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])), 2),
            TypeError,
            DATE,
        ),
        (np.array([b"a", b"b"]), TypeError, BYTES),
        ([b"a", b"b"], TypeError, BYTES),
        ([1j], TypeError, CONVERT),
        (np.array([1j]), TypeError, CONVERT),
        ([[1], [1, 2]], TypeError, CONVERT),
        ([{}, {}], TypeError, CONVERT),
        ([[1, 2], [1, 2]], ValueError, SHAPE),
        (np.ones((3, 1)), ValueError, SHAPE),
        (3, ValueError, SHAPE),
        ({1, 2}, ValueError, SHAPE),
        (pd.DataFrame({"a": [1]}), ValueError, "y must be one column of labels, got a table"),
        (pl.DataFrame({"a": [1]}), ValueError, "y must be one column of labels, got a table"),
        ("low", TypeError, "y must be a sequence of labels, got 'low'"),
        (None, TypeError, "y must be a sequence of labels, got None"),
        (["low", "high", None], ValueError, TEXT),
        (np.array(["low", "high"]), ValueError, TEXT),
        (pd.Series(["low", "high"]), ValueError, TEXT),
        (pl.Series(["low", "high"]), ValueError, TEXT),
        (["low", 1], ValueError, "y holds mixed labels, .*'1', 'low'"),
        (pd.Categorical(["low", "high"]), ValueError, UNORDERED),
        (pd.Series(["low", "high"], dtype="category"), ValueError, UNORDERED),
        (pl.Series(["low", "high"], dtype=pl.Categorical), ValueError, UNORDERED),
        ([1.0, 1.5], ValueError, FRACTION),
        (
            [1, 2, 4],
            ValueError,
            r"y has a gap: levels 1, 2, 4 but not 3. Pass categories=\[1, 2, 3, 4\] if .*"
            r"or categories=\[1, 2, 4\] if",
        ),
        ([1, 1000], ValueError, r"not 998 values. Pass categories=range\(1, 1001\)"),
        (list(range(0, 200, 2)), ValueError, "a gap: .*; bin a measurement with pd.qcut"),
        (
            pd.Categorical([1, "1"], categories=[1, "1"], ordered=True),
            ValueError,
            "the levels of y hold levels that read the same, 1, '1': rename them",
        ),
    ],
)
def test_refused(y, error, match):
    with pytest.raises(error, match=match):
        encode(y)


@pytest.mark.parametrize(
    ("y", "categories", "error", "match"),
    [
        (["a"], ["a", "b", "a"], ValueError, "categories hold 'a' more than once: list each"),
        ([1, 2], [1, 2, True], ValueError, "categories hold 1 more than once"),
        (["a"], ["a"], ValueError, "categories must be two or more, got 'a'"),
        (["a"], [], ValueError, "categories must be two or more, got none"),
        (["a"], ["a", None], ValueError, "categories hold a missing value: leave it out"),
        (["a"], ["a", pd.NA], ValueError, "categories hold a missing value: leave it out"),
        ([1.0], [1, np.nan], ValueError, "categories hold a missing value: leave it out"),
        ([1.0], [1, np.inf], ValueError, "categories holds? inf, which is not a label"),
        (["a"], "ab", TypeError, "categories must be a list of levels .*, got 'ab'"),
        (["a"], {"a", "b"}, TypeError, "categories must be a list of levels from lowest"),
        (["a"], 3, TypeError, "categories must be a list of levels .*, got 3"),
        (["a"], ["a", b"b"], TypeError, "categories holds? labels of type bytes"),
        (["a"], ["a", ["b"]], TypeError, "categories holds? labels of type list"),
        (["1"], [1, "1"], ValueError, "read the same, 1, '1': rename them"),
        # Two thresholds would be named "b|a|b".
        (["a"], ["a", "b|a", "b", "a|b"], ValueError, "categories give two thresholds one name"),
        (
            ["a", "x", "y", "x"],
            ["a", "b"],
            ValueError,
            r"not in categories: 'x', 'y' \(first in row 1\); the categories are 'a', 'b': add",
        ),
        (list("abcdefgh"), ["a", "z"], ValueError, r"'b', 'c', 'd', 'e', 'f', … \(7 in all\)"),
        (["1", "2"], [1, 2], ValueError, "'1' is str in y but int in categories, use one type"),
        (
            pd.Categorical(["a"], categories=["a", "b"], ordered=True),
            ["a", "c"],
            ValueError,
            r"categories must hold every level of the categorical y, but lacks 'b': add them",
        ),
    ],
)
def test_refused_with_categories(y, categories, error, match):
    with pytest.raises(error, match=match):
        encode(y, categories=categories)


def test_name_is_used_in_messages():
    with pytest.raises(ValueError, match="rating is empty"):
        encode([], name="rating")


@pytest.mark.parametrize("codes", [[[0]], [0.5], ["a"], 0, [True]])
def test_decode_wants_integers(codes):
    with pytest.raises(ValueError, match="codes must be a 1-d array of integers, got shape"):
        encode([1, 2]).decode(codes)


@pytest.mark.parametrize("code", [-2, 2])
def test_decode_wants_known_codes(code):
    with pytest.raises(ValueError, match=f"codes must be between 0 and 1 .*got {code}"):
        encode([1, 2]).decode([code])


@pytest.mark.parametrize("y", [[1, 2], [True, False]])
def test_decode_says_when_the_dtype_has_no_missing_value(y):
    with pytest.raises(ValueError, match=r"codes hold -1 .* labels cannot express: decode codes"):
        encode(y).decode([-1])


def test_many_levels_take_no_quadratic_time():
    assert encode(np.arange(50_000)).n_classes == 50_000


def test_decode_of_nothing_is_empty():
    out = encode([1, 2]).decode([])
    assert out.shape == (0,) and out.dtype == np.int64
