"""Tables of Dask: what is learned of them is what is learned of the same table in memory."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from pmordinal.data import design as in_memory
from pmordinal.data import features, moments
from pmordinal.data.spread import is_dask
from pmordinal.data.spread import read as module
from pmordinal.data.spread.read import read
from pmordinal.engines.inducing import blocks


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(module, "ROWS", 40)
    monkeypatch.setattr(moments, "ROWS", 40)
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def table(rng):
    n = 150
    X = pd.DataFrame({"a": 1e8 + rng.normal(size=n), "b": rng.uniform(size=n), "one": 3.3})
    X["c"] = rng.choice(["u", "v", "w"], n)
    return X, pd.Series(
        np.sort(rng.integers(1, 4, n)), name="y"
    )  # sorted: classes unseen in blocks


def parts(frame, *bounds):
    """Return a Dask frame with partitions that begin at these rows."""
    ends = [*bounds[1:], len(frame)]
    pieces = [frame.iloc[a:b] for a, b in zip(bounds, ends, strict=True)]
    return dd.from_delayed([dask.delayed(p) for p in pieces], meta=frame.iloc[:0])


def everything(n):
    return np.arange(n)


@pytest.mark.parametrize("bounds", [(0,), (0, 40, 80, 120), (0, 0, 7, 99, 99, 150)])
def test_rules_rows_and_labels_are_those_in_memory(table, bounds):
    X, y = table
    expected = in_memory.read(X, y, standardize=True)
    frame = parts(X.assign(y=y), *bounds)
    found = read(frame[list(X)], frame["y"], standardize=True, sample=everything)
    assert found.features.columns == expected.features.columns
    np.testing.assert_allclose(found.features.center, expected.features.center, rtol=1e-12)
    np.testing.assert_allclose(found.features.scale, expected.features.scale, rtol=1e-12)
    np.testing.assert_allclose(found.X, expected.X, rtol=0, atol=1e-7)  # 1e8 is subtracted
    np.testing.assert_array_equal(found.y, expected.y)
    assert found.labels.categories == expected.labels.categories
    assert found.whole.rows == 150 and found.whole.counts == tuple(expected.labels.counts)
    assert found.lengths == [40, 40, 40, 30]


def test_blocks_do_not_depend_on_partitions(table):
    X, y = table
    several = []
    for bounds in ((0,), (0, 11, 90)):
        frame = parts(X.assign(y=y), *bounds)
        found = read(frame[list(X)], frame["y"], standardize=True, sample=everything)
        several.append(dask.compute(*found.parts))
    for (A, a), (B, b) in zip(*several, strict=True):
        np.testing.assert_array_equal(A, B)
        np.testing.assert_array_equal(a, b)


def test_arrays_with_other_chunks_and_a_sample(rng):
    X, y = rng.normal(size=(100, 3)), rng.integers(0, 3, 100)
    chosen = np.array([3, 39, 40, 99])
    found = read(
        da.from_array(X, chunks=(30, 2)),
        da.from_array(y, chunks=45),
        standardize=True,
        sample=lambda n: chosen,
    )
    expected = features.learn(X, standardize=True)[1]
    np.testing.assert_allclose(found.X, expected[chosen], rtol=1e-12)
    assert found.index.tolist() == chosen.tolist() and found.y.tolist() == y[chosen].tolist()


def test_rows_without_a_label_are_left_out_and_counted(table):
    X, y = table
    y = y.astype(float).mask(np.arange(150) % 3 == 0)
    y[:45] = np.nan  # a whole block, and a partition
    frame = parts(X.assign(y=y), 0, 45)
    found = read(frame[list(X)], frame["y"], standardize=True, sample=everything)
    expected = in_memory.read(X, y, standardize=True)
    np.testing.assert_array_equal(found.y, expected.y)
    assert found.whole.unlabeled == len(expected.unlabeled) and sum(found.lengths) == len(found.X)


def test_ordered_labels_keep_their_order_and_text_needs_one(table):
    X, y = table
    names = ["low", "mid", "high"]
    text = y.map(dict(zip((1, 2, 3), names, strict=True)))
    frame = parts(X.assign(y=pd.Categorical(text, names, ordered=True)), 0, 70)
    assert read(frame[["a"]], frame["y"], sample=everything).labels.categories == tuple(names)
    frame = parts(X.assign(y=text), 0, 70)
    found = read(frame[["a"]], frame["y"], names, sample=everything)
    assert found.labels.class_names == names
    with pytest.raises(ValueError, match="holds text, whose order is not known"):
        read(frame[["a"]], frame["y"], sample=everything)


def broken(frame, change):
    """Return a Dask frame of three partitions, the last of which is changed."""
    pieces = [frame[:50], frame[50:120], change(frame[120:].copy())]
    delayed = [dask.delayed(p) for p in pieces]
    return dd.from_delayed(delayed, meta=frame.iloc[:0], verify_meta=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="b"), r"X, partition 2 \(counted from 0\)"),
        (lambda t: t.assign(b=t.b.mask(t.b > 0.5)), r"X column 'b' has \d+ missing value"),
        (lambda t: t.assign(b=np.inf), r"rows from 120 on: X column 'b' has 30 infinite"),
        (lambda t: t.assign(b="x"), r"X column 'b' holds numbers in the rows from 0 on, and text"),
    ],
)
def test_a_partition_with_faults_is_named(table, change, message):
    X, y = table
    frame = broken(X.assign(y=y), change)
    with pytest.raises((ValueError, TypeError), match=message):
        read(frame[list(X)], frame["y"], sample=everything)


def test_what_does_not_match_is_refused(rng):
    X, y = da.from_array(rng.normal(size=(20, 2)), chunks=10), np.arange(20) % 2
    with pytest.raises(TypeError, match="X and y must both be spread over Dask"):
        read(X, y, sample=everything)
    with pytest.raises(ValueError, match="X has 20 rows and y has 10 labels"):
        read(X, da.from_array(y[:10]), sample=everything)
    with pytest.raises(ValueError, match="bin a measurement"):
        module.different_labels(np.arange(20_000.0), 0)
    with pytest.raises(TypeError, match="of Dask: pass a DataFrame"):
        read(dask.delayed(1), dask.delayed(2), sample=everything)


def test_blocks_in_memory_are_as_large(monkeypatch):
    monkeypatch.undo()
    assert blocks.ROWS == moments.ROWS == module.ROWS
    assert not is_dask(np.zeros(3)) and is_dask(da.zeros(3))
