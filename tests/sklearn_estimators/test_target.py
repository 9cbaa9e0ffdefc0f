"""The order of labels survives scikit-learn: its encoders, its metrics, its containers."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")
from sklearn.preprocessing import LabelEncoder

import pmordinal as pmo
from pmordinal.sklearn.target import labelled_rows, read_target

ORDER = ["low", "medium", "high"]
WORDS = np.array(["medium", "low", "high", "low"])
CODES = [1, 0, 2, 0]  # of WORDS, from lowest to highest


def test_classes_are_sorted_and_know_their_place():
    target = read_target(WORDS, ORDER)
    assert target.classes.tolist() == ["high", "low", "medium"]
    assert target.levels[target.positions].tolist() == target.classes.tolist()
    assert target.levels.tolist() == ORDER
    assert target.labels.codes.tolist() == CODES


def containers():
    ordered = pd.Categorical(WORDS, ORDER, ordered=True)
    words, numbers = (CODES, ORDER), (CODES, [0, 1, 2])
    yield "categorical", ordered, None, words
    yield "series", pd.Series(ordered, index=[7, 5, 3, 1]), None, words
    yield "index", pd.CategoricalIndex(ordered), None, words
    yield "unordered categorical", pd.Categorical(WORDS), ORDER, words
    yield "list", WORDS.tolist(), ORDER, words
    yield "objects", WORDS.astype(object), ORDER, words
    yield "string series", pd.Series(WORDS, dtype="string"), ORDER, words
    yield "range", np.array(CODES), range(3), numbers
    yield "nullable integers", pd.Series(CODES, dtype="Int64"), None, numbers
    yield "whole floats", np.array(CODES) + 1.0, None, (CODES, [1.0, 2.0, 3.0])
    yield "bools", np.array([True, False, True]), None, ([1, 0, 1], [False, True])
    yield "reversed", np.array(CODES), [2, 1, 0], ([1, 2, 0, 2], [2, 1, 0])


@pytest.mark.parametrize(
    ("y", "categories", "expected"), [pytest.param(*case, id=name) for name, *case in containers()]
)
def test_containers(y, categories, expected):
    target = read_target(y, categories)
    assert (target.labels.codes.tolist(), target.levels.tolist()) == expected
    assert target.classes.tolist() == sorted(expected[1])


def test_polars_enum_brings_its_order():
    polars = pytest.importorskip("polars")
    target = read_target(polars.Series(WORDS.tolist(), dtype=polars.Enum(ORDER)), None)
    assert target.levels.tolist() == ORDER
    assert target.labels.codes.tolist() == CODES


def test_table_of_one_column_keeps_its_order():
    table = pd.DataFrame({"y": pd.Categorical(WORDS, ORDER, ordered=True)})
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        target = read_target(table, None)
    assert target.levels.tolist() == ORDER


def test_types_of_levels_survive():
    with pytest.raises(ValueError, match="Unknown label type"):  # scikit-learn's own words
        read_target(np.array([1, "a", 2], dtype=object), None)
    target = read_target(pd.Categorical([1, "a"], [1, "a"], ordered=True), None)
    assert target.classes.tolist() == [1, "a"]
    bins = pd.cut([0.5, 1.5, 2.5], [0, 1, 2, 3])
    assert read_target(bins, None).classes.tolist() == list(bins.categories)
    assert read_target(np.array([True, False]), None).classes.dtype == bool
    assert read_target(pd.Series([1, 2], dtype="Int64"), None).classes.dtype == np.int64
    with pytest.raises(ValueError, match="contains NaN"):
        read_target(pd.Series([1, 2, None], dtype="Int64"), None)


@pytest.mark.parametrize("y", [WORDS, pd.Categorical(WORDS), pd.Series(WORDS, dtype="string")])
def test_text_without_an_order_is_warned_of(y):
    with pytest.warns(pmo.LabelOrderWarning, match="text without an order, .* 'high', 'low', 'med"):
        target = read_target(y, None)
    assert target.levels.tolist() == sorted(ORDER)


@pytest.mark.parametrize("order", [ORDER, [3, 1, 2], [True, False], [0.0, 2.0, 1.0], [5, 7, 11]])
def test_codes_of_an_encoder_are_read_back(order):
    y = np.array(order * 2)
    codes = LabelEncoder().fit_transform(y)
    target = read_target(codes, order, may_be_codes=True)
    assert target.labels.codes.tolist() == read_target(y, order).labels.codes.tolist()
    assert target.levels.tolist() == order
    assert target.classes.tolist() == sorted(set(codes.tolist()))
    np.testing.assert_array_equal(target.positions[codes], target.labels.codes)


def test_codes_are_read_in_a_copy_only():
    """Who fits an estimator directly and passes codes may mean those of the order."""
    codes = LabelEncoder().fit_transform(WORDS)
    with pytest.raises(ValueError, match=r"integers 0, 1, 2, but the categories are 'low'.*0 to 2"):
        read_target(codes, ORDER)
    for other in (pd.Series(codes), codes.astype(np.int8), codes.astype(float), codes.tolist()):
        with pytest.raises(ValueError, match="y holds labels that are not in categories"):
            read_target(other, ORDER, may_be_codes=True)  # no encoder returns these
    with pytest.raises(ValueError, match="not in categories: 2, 1, 0, 3"):
        read_target(np.append(codes, 3), ORDER, may_be_codes=True)


def test_codes_are_not_guessed_where_a_label_did_not_occur():
    with pytest.raises(ValueError, match=r"0, 1, the codes .* 3 categories.*range\(3\)"):
        read_target(np.array([0, 1, 0]), ORDER, may_be_codes=True)
    middle = read_target(np.array([0, 2, 0]), ORDER, may_be_codes=True)  # the largest tells
    assert middle.labels.codes.tolist() == [2, 1, 2]
    with pytest.warns(pmo.LabelOrderWarning, match=r"1, 2, which may be .* taken as labels"):
        labels = read_target(np.array([1, 2]), [1, 2, 3], may_be_codes=True)
    assert labels.levels.tolist() == [1, 2, 3]
    assert read_target(np.array([1, 2]), [1, 2, 3]).labels.codes.tolist() == [0, 1]  # no copy
    for categories in (range(3), [0, 2, 1], [1, 2]):  # code and label are one, or it is no code
        target = read_target(np.array([1, 2]), categories, may_be_codes=True)
        assert target.classes[np.argsort(target.positions)[target.labels.codes]].tolist() == [1, 2]


@pytest.mark.parametrize(
    "y",
    [
        pd.Series([1, None, 2], dtype="Int64"),
        pd.Series(["a", None, "b"], dtype="string"),
        np.array([1, -1, 2]),
        [1.0, np.nan, 2.0],
        ["a", None, "b"],
        np.array(["a", pd.NA, "b"], dtype=object),
        np.array(["a", -1, "b"], dtype=object),
    ],
)
def test_rows_without_a_label(y):
    found = labelled_rows(y, None)
    assert found.dtype == bool
    assert found.tolist() == [True, False, True]
