"""Tables at the border: what becomes of each column, and what every refusal says."""

import datetime
import decimal
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pmordinal.data.features import Features, learn

MATRICES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 4)),
    elements=st.floats(-1e6, 1e6, allow_subnormal=False),
)


def through_json(features):
    return Features.from_json(json.loads(json.dumps(features.to_json(), allow_nan=False)))


def frame():
    return pd.DataFrame(
        {
            "age": [20, 30, 40],
            "colour": ["red", "blue", "red"],
            "size": pd.Categorical(["S", "L", "S"], categories=["S", "M", "L"]),
            "smokes": [True, False, True],
        }
    )


FRAME_NAMES = ("age", "colour=blue", "colour=red", "size=S", "size=M", "size=L", "smokes")
FRAME_MATRIX = [[20, 0, 1, 1, 0, 0, 1], [30, 1, 0, 0, 0, 1, 0], [40, 0, 1, 1, 0, 0, 1]]


# ---- properties


@settings(deadline=None)
@given(MATRICES, st.booleans())
def test_transform_repeats_what_was_learnt(X, standardize):
    features, matrix = learn(X, standardize=standardize)
    assert matrix.dtype == np.float64 and matrix.flags.c_contiguous
    assert not np.shares_memory(matrix, X)
    np.testing.assert_array_equal(features.transform(X), matrix)
    np.testing.assert_array_equal(through_json(features).transform(X), matrix)
    # Two roundings relative to the largest entry of the column.
    scale = np.abs(X).max(axis=0, initial=1e-300)
    assert (np.abs(features.untransform(matrix) - X) <= 1e-14 * scale).all()


@settings(deadline=None)
@given(MATRICES)
def test_standardised_columns_have_mean_zero_and_sd_one_or_zero(X):
    features, matrix = learn(X, standardize=True)
    constant = (X == X[0]).all(axis=0)
    assert (matrix[:, constant] == 0).all() and (features.scale[constant] == 1).all()
    # Rounding of the entries relative to the spread limits how well the moments are met.
    loss = 1e-14 * (1 + np.abs(X).max(axis=0) / features.scale)
    assert (np.abs(matrix.mean(axis=0)) <= loss).all()
    assert (np.abs(matrix.std(axis=0) - 1)[~constant] <= loss[~constant]).all()


@settings(deadline=None)
@given(st.lists(st.text(max_size=4), min_size=1, max_size=8), st.booleans())
def test_text_columns_repeat_what_was_learnt(values, standardize):
    table = pd.DataFrame({"c": pd.Series(values, dtype=object)})
    features, matrix = learn(table, standardize=standardize)
    assert features.names == tuple(f"c={level}" for level in sorted(set(values)))
    np.testing.assert_array_equal(through_json(features).transform(table), matrix)
    hot = features.untransform(matrix)
    assert [features.names[j] for j in hot.argmax(axis=1)] == [f"c={v}" for v in values]


# ---- kinds of input


@pytest.mark.parametrize("polars", [False, True])
def test_frames(polars):
    table = frame()
    if polars:
        table = pl.DataFrame(
            {
                "age": [20, 30, 40],
                "colour": ["red", "blue", "red"],
                "size": pl.Series(["S", "L", "S"], dtype=pl.Enum(["S", "M", "L"])),
                "smokes": [True, False, True],
            }
        )
    features, X = learn(table)
    assert features.names == FRAME_NAMES
    np.testing.assert_array_equal(X, FRAME_MATRIX)
    shuffled = table[["smokes", "size", "colour", "age"]]
    np.testing.assert_array_equal(features.transform(shuffled), X)


def test_pandas_and_polars_are_interchangeable():
    features, X = learn(frame())
    table = frame().assign(size=["S", "L", "S"])
    table = pl.DataFrame({name: table[name].to_list() for name in table})
    np.testing.assert_array_equal(features.transform(table), X)


def test_other_columns_are_ignored_whatever_they_hold():
    features, X = learn(frame())
    other = frame().assign(when=pd.to_datetime(["2020-01-01"] * 3), hole=np.nan, junk=[[1]] * 3)
    np.testing.assert_array_equal(features.transform(other), X)
    twice = pd.concat([frame(), frame()[["age"]].rename(columns={"age": "z"})], axis=1)
    twice = pd.concat([twice, twice[["z"]]], axis=1)
    np.testing.assert_array_equal(features.transform(twice), X)


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        ([1, 2, 3], [[1], [2], [3]]),
        (np.float32([1, 2]), [[1], [2]]),
        (np.array([[1, True], [decimal.Decimal(2), "3"]], dtype=object), [[1, 1], [2, 3]]),
        (np.array([[True, False]]), [[1, 0]]),
        (np.asfortranarray([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.ma.MaskedArray([[1, 2]], mask=False), [[1, 2]]),
        (pd.Series([1, 2]), [[1], [2]]),
        (pl.Series([1, 2]), [[1], [2]]),
        (pd.DataFrame({"a": pd.array([1, 2], dtype="Int64")}), [[1], [2]]),
        (pd.DataFrame({"a": pd.array([True, False], dtype="boolean")}), [[1], [0]]),
        (pd.DataFrame({"a": pd.Series([1, 2.5], dtype=object)}), [[1], [2.5]]),
        (pd.DataFrame({"a": pd.Series([decimal.Decimal(1)], dtype=object)}), [[1]]),
        (pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}), [[0], [1]]),
        (pl.DataFrame({"a": [decimal.Decimal("1.5")]}), [[1.5]]),
        (pd.Series(["b", "a"]), [[0, 1], [1, 0]]),
        (pl.Series(["b", "a"], dtype=pl.Categorical), [[0, 1], [1, 0]]),
        (pd.DataFrame({"a": pd.Categorical([2, 1], categories=[2, 1])}), [[1, 0], [0, 1]]),
        (pd.DataFrame({"a": pd.cut([0.0, 9.0], [-1, 5, 10])}), [[1, 0], [0, 1]]),
    ],
)
def test_kinds_of_input(X, expected):
    features, matrix = learn(X)
    assert matrix.flags.c_contiguous
    np.testing.assert_array_equal(matrix, expected)
    np.testing.assert_array_equal(through_json(features).transform(X), expected)


def test_names():
    assert learn([[1, 2]])[0].names == ("x0", "x1")
    assert learn(pd.Series([1], name="age"))[0].names == ("age",)
    assert learn(pl.Series("age", [1]))[0].names == ("age",)
    assert learn(pd.DataFrame({0: [1]}))[0].names == ("0",)


def test_arrays_and_unnamed_series_go_by_position():
    features, _ = learn(pd.DataFrame({"a": [1, 2], "b": [3, 4]}))
    np.testing.assert_array_equal(features.transform([[5, 6]]), [[5, 6]])
    features, _ = learn(pd.Series([1, 2], name="age"))
    np.testing.assert_array_equal(features.transform(pd.Series([5])), [[5]])


def test_standardise_covers_one_hot_columns_and_unobserved_levels():
    features, X = learn(frame(), standardize=True)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-15)  # a few roundings of order one
    sd = X.std(axis=0)
    assert sd[FRAME_NAMES.index("size=M")] == 0
    np.testing.assert_allclose(np.delete(sd, FRAME_NAMES.index("size=M")), 1)
    np.testing.assert_allclose(features.untransform(X), FRAME_MATRIX, atol=1e-14)


def distances(features, levels):
    rows = features.transform(pd.DataFrame({"c": levels}))
    return np.linalg.norm(rows[:, None] - rows[None, :], axis=-1)


@pytest.mark.parametrize("counts", [[4, 4, 4], [7, 2, 1], [5, 1, 0], [6, 0, 0]])
def test_any_two_levels_of_a_factor_are_equally_far_apart(counts):
    levels = ["a", "b", "c"]
    column = pd.Categorical(np.repeat(levels, counts), categories=[*levels, "new", "newer"])
    features, X = learn(pd.DataFrame({"c": column}), standardize=True)
    apart = distances(features, [*levels, "new", "newer"])
    np.testing.assert_allclose(apart[~np.eye(5, dtype=bool)], apart[0, 1], rtol=1e-14)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-15)  # a few roundings of order one
    seen = np.count_nonzero(counts)
    if seen > 1:  # the spread of the block is that of as many standardised columns
        np.testing.assert_allclose(X.var(axis=0).sum(), seen)


def test_declaring_a_level_moves_no_row():
    values = ["a", "a", "a", "b", "c"]
    fewer = learn(pd.DataFrame({"c": pd.Categorical(values)}), standardize=True)[1]
    more = pd.Categorical(values, categories=["a", "b", "c", "d", "e"])
    X = learn(pd.DataFrame({"c": more}), standardize=True)[1]
    np.testing.assert_array_equal(X[:, :3], fewer)
    np.testing.assert_array_equal(X[:, 3:], 0)


def test_features_of_before_keep_a_scale_for_each_level():
    saved = {
        "columns": [{"name": "c", "levels": ["a", "b"]}],
        "center": [0.75, 0.0],
        "scale": [0.5, 1.0],
    }
    X = Features.from_json(saved).transform(pd.DataFrame({"c": ["a", "b"]}))
    np.testing.assert_array_equal(X, [[0.5, 0.0], [-1.5, 1.0]])


@pytest.mark.parametrize("size", [1e300, 1e-300, 1e308])
def test_standardise_neither_overflows_nor_underflows(size):
    X = size * np.array([[1.0], [-1.0], [0.5]])
    _, matrix = learn(X, standardize=True)
    _, small = learn(X / size, standardize=True)
    np.testing.assert_allclose(matrix, small, rtol=1e-12)


# ---- refusals


NOT_2D = "X must have 2 dimensions .*got shape .*: reshape it"
DATE = "X column .* is not numeric .*: turn it into numbers, e.g. days since"
COMPLEX = "X column .* is not numeric .*complex.*: pass the real and the imaginary part"
NOT_NUMBERS = "X holds values that are not numbers .*pass a DataFrame"
MISSING = r"X column '{}' has 1 missing value\(s\), the first in row 1: impute them or drop"


@pytest.mark.parametrize(
    ("X", "error", "match"),
    [
        (scipy.sparse.csr_array([[1.0]]), TypeError, r"sparse matrix, .*: pass X.toarray\(\)"),
        (scipy.sparse.dok_array([[1.0]]), TypeError, r"sparse matrix, .*: pass X.toarray\(\)"),
        (np.array([(0.0, 1)], dtype="f8,i8"), TypeError, "array of records: pass pd.DataFrame"),
        (pl.LazyFrame({"a": [1]}), TypeError, r"LazyFrame: pass X.collect\(\)"),
        (np.ones((2, 2, 2)), ValueError, NOT_2D),
        (3.0, ValueError, NOT_2D),
        (None, ValueError, NOT_2D),
        (np.ones((0, 2)), ValueError, "X has no rows: pass at least one"),
        ([], ValueError, "X has no rows: pass at least one"),
        (pd.DataFrame({"a": []}), ValueError, "X has no rows"),
        (pl.DataFrame({"a": []}), ValueError, "X has no rows"),
        (np.ones((2, 0)), ValueError, "X has no columns: pass at least one"),
        (pd.DataFrame(index=[1, 2]), ValueError, "X has no columns"),
        (pl.DataFrame(), ValueError, "X has no columns"),
        ([[1], [1, 2]], ValueError, "X has rows of different lengths: give every row"),
        (np.array([[1j]]), TypeError, COMPLEX),
        (pd.DataFrame({"a": [1j]}), TypeError, COMPLEX),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), TypeError, DATE),
        (pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])}), TypeError, DATE),
        (pd.DataFrame({"t": pd.to_datetime(["2020-01-01"], utc=True)}), TypeError, DATE),
        (pd.DataFrame({"t": pd.to_timedelta([1])}), TypeError, DATE),
        (pd.DataFrame({"t": pd.period_range("2020", periods=1, freq="D")}), TypeError, DATE),
        (pd.DataFrame({"t": [datetime.date(2020, 1, 1)]}), TypeError, DATE),
        (pl.DataFrame({"t": [datetime.datetime(2020, 1, 1)]}), TypeError, DATE),
        (pl.DataFrame({"t": [datetime.date(2020, 1, 1)]}), TypeError, DATE),
        ([["a"]], TypeError, NOT_NUMBERS),
        ([[1, "a"]], TypeError, NOT_NUMBERS),
        (np.array([[{}]], dtype=object), TypeError, NOT_NUMBERS),
        (np.array([[10**400]], dtype=object), TypeError, NOT_NUMBERS),
        (np.array([[b"a"]]), TypeError, "X column 'x0' is not numeric"),
        (pd.DataFrame({"a": ["u", 1]}), TypeError, "'a' is not numeric .mixed.*all of them text"),
        (pd.DataFrame({"a": [[1], [2]]}), TypeError, "X column 'a' is not numeric .mixed"),
        (pl.DataFrame({"a": [[1], [2]]}), TypeError, "X column 'a' is not numeric .mixed"),
        (
            pd.DataFrame({"a": [10**400]}, dtype=object),
            ValueError,
            "X column 'a' has a number beyond 1e308",
        ),
        (np.array([[1.0], [np.nan]]), ValueError, MISSING.format("x0")),
        ([[1], [None]], ValueError, MISSING.format("x0")),
        ([[1], [pd.NA]], ValueError, MISSING.format("x0")),
        (np.ma.MaskedArray([[1], [2]], mask=[[0], [1]]), ValueError, MISSING.format("x0")),
        (pd.DataFrame({"a": [1, None]}), ValueError, MISSING.format("a")),
        (pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), ValueError, MISSING.format("a")),
        (pd.DataFrame({"a": ["u", None]}), ValueError, MISSING.format("a")),
        (pd.DataFrame({"a": pd.Categorical(["u", None])}), ValueError, MISSING.format("a")),
        (pl.DataFrame({"a": [1, None]}), ValueError, MISSING.format("a")),
        (pl.DataFrame({"a": [True, None]}), ValueError, MISSING.format("a")),
        (pl.DataFrame({"a": ["u", None]}), ValueError, MISSING.format("a")),
        (pd.DataFrame({"a": [None]}), ValueError, "'a' has 1 missing value.*in row 0"),
        (
            pd.DataFrame({"a": [1, 2, -np.inf]}),
            ValueError,
            r"X column 'a' has 1 infinite value\(s\), the first in row 2 \(-inf\): replace",
        ),
        (np.array([[np.longdouble("1e400")]]), ValueError, "'x0' has 1 infinite value"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "more than one column named 'a'"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), ValueError, "more than one column named '1'"),
        (
            pd.DataFrame({"a": ["u"], "a=u": [1]}),
            ValueError,
            "X has more than one column named 'a=u': rename the column or the level",
        ),
        (
            pd.DataFrame({"a": pd.Categorical([1, "1"])}),
            ValueError,
            "X column 'a' has levels that read the same as text: rename them",
        ),
    ],
)
def test_refused(X, error, match):
    with pytest.raises(error, match=match):
        learn(X)


def test_transform_wants_the_columns_of_the_fit():
    features, _ = learn(frame())
    with pytest.raises(ValueError, match=r"X lacks the column\(s\) 'age', it has 'colour', "):
        features.transform(frame().drop(columns="age"))
    with pytest.raises(ValueError, match=r"X must have 4 column\(s\), got 1: .*reshape\(1, -1\)"):
        features.transform([1, 2, 3, 4])
    with pytest.raises(TypeError, match=r"X holds values that are not numbers .*DataFrame"):
        features.transform(frame().to_numpy())
    with pytest.raises(ValueError, match="X has more than one column named 'age'"):
        features.transform(pd.concat([frame(), frame()[["age"]]], axis=1))
    with pytest.raises(ValueError, match=r"X must have 2 column\(s\), got 3: pass 'x0', 'x1' in"):
        learn([[1, 2]])[0].transform([[1, 2, 3]])
    with pytest.raises(ValueError, match=r"lacks the column\(s\) 'x0', .*X.to_numpy\(\)"):
        learn([[1]])[0].transform(pd.DataFrame({"age": [1]}))
    with pytest.raises(ValueError, match="Xnew has no rows"):
        features.transform(frame().iloc[:0], name="Xnew")


def test_transform_names_an_unseen_level():
    features, _ = learn(frame())
    with pytest.raises(ValueError, match=r"'colour' has a level .*'green' in row 1; known are 'bl"):
        features.transform(frame().assign(colour=["red", "green", "blue"]))
    with pytest.raises(ValueError, match=r"'size' has a level .*'XL' in row 0; known are 'S', 'M'"):
        features.transform(frame().assign(size=pd.Categorical(["XL", "S", "M"])))


def test_transform_names_bad_cells():
    features, _ = learn(frame())
    with pytest.raises(ValueError, match=r"'age' has 1 missing value.*row 1"):
        features.transform(frame().assign(age=[1, np.nan, 3]))
    with pytest.raises(ValueError, match=r"'colour' has 1 missing value.*row 2"):
        features.transform(frame().assign(colour=["red", "blue", None]))
    with pytest.raises(TypeError, match=r"'age' is not numeric .*it was numeric when the model"):
        features.transform(frame().assign(age=["young", "old", "old"]))


def test_standardise_refuses_overflow():
    features, _ = learn([1e-10, 2e-10], standardize=True)
    with pytest.raises(
        ValueError, match="X column 'x0' overflows when it is standardised or squared: resc"
    ):
        features.transform([1e305])


@pytest.mark.parametrize("Z", [[1.0], [[1.0, 2.0]], 1.0])
def test_untransform_wants_a_matrix(Z):
    with pytest.raises(ValueError, match=r"Z must have shape \(n, 1\), got"):
        learn([1.0, 2.0])[0].untransform(Z)
