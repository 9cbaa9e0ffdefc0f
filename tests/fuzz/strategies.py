"""What users pass: tables, labels and options, good ones and bad ones of every kind we could think of."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse
import xarray as xr
from hypothesis import strategies as st

GOOD = st.floats(-5, 5).map(lambda v: round(v, 2))
HARD = st.sampled_from(
    [0.0, -0.0, 1.0, 1e-310, 5e-324, 1e-30, 1e30, 1e154, -1e154, 1.7e308, -1.7e308, 1e16]
)
NOT_FINITE = st.sampled_from([np.nan, np.inf, -np.inf])
ODD_CELLS = st.sampled_from(
    [
        None,
        "a",
        b"a",
        True,
        1 + 2j,
        Decimal("1.5"),
        10**400,
        (1, 2),
        datetime.date(2020, 1, 1),
        pd.NA,
    ]
)


@st.composite
def columns(draw, n, cells=None):
    """Return one column of numbers: random, constant, repeated, huge or tiny, or with a bad cell."""
    if cells is None:
        cells = draw(st.sampled_from([GOOD, GOOD, GOOD, HARD, st.one_of(GOOD, NOT_FINITE)]))
    form = draw(st.sampled_from(["random", "random", "constant", "repeated"]))
    if form == "constant":
        return [draw(cells)] * n
    if form == "repeated":
        pool = draw(st.lists(cells, min_size=1, max_size=2))
        return [draw(st.sampled_from(pool)) for _ in range(n)]
    return [draw(cells) for _ in range(n)]


@st.composite
def frame_columns(draw, n):
    """Return one column of a data frame, of any type."""
    kind = draw(
        st.sampled_from(["number"] * 4 + ["text", "category", "bool", "date", "span", "odd", "int"])
    )
    if kind == "text":
        return pd.Series([draw(st.sampled_from(["a", "b", "", "ü", None])) for _ in range(n)])
    if kind == "category":
        levels = draw(
            st.sampled_from([["u", "v"], ["u", "v", "w"], [1, 2], [1, "1"], [True, False]])
        )
        values = [draw(st.sampled_from([*levels, None])) for _ in range(n)]
        with_missing = draw(st.booleans())
        values = values if with_missing else [levels[0] if v is None else v for v in values]
        return pd.Series(pd.Categorical(values, categories=levels))
    if kind == "bool":
        return pd.Series([draw(st.booleans()) for _ in range(n)], dtype=bool)
    if kind == "int":
        dtype = draw(st.sampled_from(["int8", "uint64", "int64", "Int64", "float16"]))
        return pd.Series([draw(st.integers(0, 100)) for _ in range(n)], dtype=dtype)
    if kind == "date":
        return pd.Series(pd.date_range("2020-01-01", periods=n))
    if kind == "span":
        return pd.Series(pd.to_timedelta(np.arange(n), unit="D"))
    if kind == "odd":
        return pd.Series([draw(st.one_of(GOOD, ODD_CELLS)) for _ in range(n)], dtype=object)
    return pd.Series(draw(columns(n)), dtype=float)


@st.composite
def good_tables(draw, n, d=None):
    """Return a float array that any model can use."""
    d = draw(st.integers(1, 3)) if d is None else d
    return np.array([draw(columns(n, GOOD)) for _ in range(d)], dtype=float).reshape(d, n).T


@st.composite
def tables(draw, n):
    """Return a table of n rows in one of the forms that tables come in, right or wrong."""
    form = draw(
        st.sampled_from(
            ["array"] * 5 + ["frame"] * 5 + ["polars", "lazy", "sparse", "masked", "object", "ragged", "none"]
            + ["scalar", "text", "cube", "list", "series", "dates", "complex", "structured", "dict", "float32"]
            + ["xarray", "generator", "empty", "flat", "longdouble"]
        )
    )  # fmt: skip
    d = draw(st.sampled_from([1, 1, 2, 2, 3, 0]))
    numbers = np.array([draw(columns(n)) for _ in range(d)], dtype=float).reshape(d, n).T
    if form in ("frame", "polars", "lazy"):
        names = draw(st.sampled_from([["a", "b", "c"], ["a", "a", "c"], [0, 1, 2], ["", " ", "x"]]))
        if form == "frame":
            data = pd.DataFrame({i: draw(frame_columns(n)) for i in range(d)}, index=range(n))
            data.columns = names[:d]
            if draw(st.booleans()):
                data.index = draw(st.sampled_from([[0] * n, [f"r{i}" for i in range(n)]]))
            return data
        data = pl.DataFrame({f"c{i}": numbers[:, i] for i in range(d)})
        if d and draw(st.booleans()):
            data = data.with_columns(pl.Series("c0", ["u", "v"] * n)[:n])
        return data.lazy() if form == "lazy" else data
    with np.errstate(over="ignore"):
        return {
            "array": lambda: numbers,
            "sparse": lambda: scipy.sparse.csr_array(numbers),
            "masked": lambda: np.ma.masked_array(numbers, mask=numbers > 1),
            "object": lambda: np.array(
                [[draw(st.one_of(GOOD, ODD_CELLS)) for _ in range(d)] for _ in range(n)],
                dtype=object,
            ),
            "ragged": lambda: [[1.0], [1.0, 2.0]] * n,
            "none": lambda: None,
            "scalar": lambda: 3.0,
            "text": lambda: "table",
            "cube": lambda: numbers[:, :, None],
            "list": lambda: numbers.tolist(),
            "series": lambda: pd.Series(draw(frame_columns(n))),
            "dates": lambda: np.array(["2020-01-01"] * n, dtype="datetime64[D]"),
            "complex": lambda: numbers + 1j,
            "structured": lambda: np.zeros(n, dtype=[("a", float), ("b", int)]),
            "dict": lambda: {"a": numbers[:, 0].tolist() if d else [], "b": list(range(n))},
            "float32": lambda: numbers.astype(np.float32),
            "xarray": lambda: xr.DataArray(numbers, dims=("row", "column")),
            "generator": lambda: (row for row in numbers.tolist()),
            "empty": lambda: np.zeros((n, 0)),
            "flat": lambda: numbers[:, 0] if d else np.zeros(0),
            "longdouble": lambda: numbers.astype(np.longdouble),
        }[form]()


@st.composite
def good_labels(draw, n, r=None):
    """Return labels 0, …, r − 1 with every class among them where n allows it."""
    r = draw(st.integers(2, 4)) if r is None else r
    return np.array([i if i < r else draw(st.integers(0, r - 1)) for i in range(n)])


@st.composite
def labels(draw, n):
    """Return labels of n rows (or not quite), right or wrong, and the categories to pass with them."""
    r = draw(st.integers(1, 5))
    codes = np.array([draw(st.integers(0, r - 1)) for _ in range(n)], dtype=int)
    names = list("abcde")
    form = draw(
        st.sampled_from(
            ["codes"] * 4 + ["full"] * 6 + ["gap", "missing", "floats", "halves", "bools", "text", "bytes"]
            + ["dates", "ordered", "unordered", "all missing", "short", "column", "scalar", "none", "huge"]
            + ["negative", "objects", "decimals", "infinite", "enum", "set", "complex", "tuples", "nullable"]
            + ["series", "interval", "mixed", "string dtype"]
        )
    )  # fmt: skip
    y = {
        "codes": lambda: codes,
        "full": lambda: draw(good_labels(n)),
        "gap": lambda: codes * 2,
        "missing": lambda: np.where(codes == 0, np.nan, codes),
        "floats": lambda: codes.astype(float),
        "halves": lambda: codes + 0.5,
        "bools": lambda: codes > 0,
        "text": lambda: np.array([names[c] for c in codes]),
        "bytes": lambda: np.array([names[c].encode() for c in codes], dtype=bytes),
        "dates": lambda: np.array(["2020-01-01"], dtype="datetime64[D]") + codes,
        "ordered": lambda: pd.Categorical.from_codes(codes, names, ordered=True),
        "unordered": lambda: pd.Categorical.from_codes(codes, names),
        "all missing": lambda: np.full(n, np.nan),
        "short": lambda: codes[1:],
        "column": lambda: codes[:, None],
        "scalar": lambda: 1,
        "none": lambda: None,
        "huge": lambda: [int(c) * 10**30 for c in codes],
        "negative": lambda: codes - 3,
        "objects": lambda: np.array([object()] * n, dtype=object),
        "decimals": lambda: [Decimal(int(c)) for c in codes],
        "infinite": lambda: np.where(codes == 0, np.inf, codes),
        "enum": lambda: pl.Series([names[c] for c in codes], dtype=pl.Enum(names)),
        "set": lambda: set(codes.tolist()),
        "complex": lambda: codes + 1j,
        "tuples": lambda: [(int(c),) for c in codes],
        "nullable": lambda: pd.array([None if c == 0 else int(c) for c in codes], dtype="Int64"),
        "series": lambda: pd.Series(codes, index=range(5, n + 5)),
        "interval": lambda: pd.cut(codes.astype(float), [-1, 0, 1, 9]) if n else codes,
        "mixed": lambda: [int(c) if c else "a" for c in codes],
        "string dtype": lambda: pd.Series([names[c] for c in codes], dtype="string"),
    }[form]()
    categories = draw(
        st.sampled_from(
            [None] * 8 + [names, names[:2], [0, 1, 2, 3, 4], [1, 1, 2], [], ["a"], "abc", 3, [0, "a"], [b"a", b"b"]]
            + [[np.nan, 1], list(range(30)), [2, 1, 0], [0.5, 1.5, 2.5, 3.5, 4.5], {"a", "b"}, [[0], [1]]]
        )
    )  # fmt: skip
    return y, categories


# Values of options; which of them are right depends on the option.
NUMBERS = [
    -1.0,
    0.0,
    -1e-8,
    np.nan,
    np.inf,
    1e-320,
    1e300,
    0.5,
    1,
    3,
    True,
    "many",
    [1.0],
    (1, 2),
    2.5,
    "5",
    1 + 1j,
]
COUNTS = [-1, 0, 1, 2, 3, 1.0, 2.5, "3", np.nan, True, np.int64(2), [2]]
NAMES = ["", "EP", "nonsense", 3, ["ep"], b"ep", 0.5, object, True]
SEEDS = [0, 1, None, -1, 1.5, "seed", [1, 2], np.nan, 2**70, True]


@st.composite
def options(draw, kinds):
    """Return one or two of the options, each with one of its values."""
    names = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=2, unique=True))
    return {name: draw(st.sampled_from(kinds[name])) for name in names}
