"""Tables on disk: headers and rows that do not fit are refused, formulas are marked, bad files are called by name."""

import gzip
import re

import numpy as np
import pandas as pd
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from pmordinal.data import spreadsheet_cells, tables

READERS = {"read": tables.read, "blocks": lambda path: pd.concat(tables.blocks(path, 1))}
BOTH = pytest.mark.parametrize("reader", READERS.values(), ids=READERS)


def table(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


@BOTH
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,b\n0,2,\n1,4,\n", 2),  # pandas takes the first entries for an index
        ("a,b\n0,2,3\n1,4\n", 2),
        ("a,b\n0,2,3,4\n", 2),
        ("a,b\n0,2\n1,4,\n", 3),
        ("a\n1,\n2,\n", 2),
        ('a,b\n"x, y",2\nx, y,2\n', 3),
        ("\ufeffa,b\n\n0,2,\n", 3),
        ("\n\na,b\n0,2\n\n1,2\n1,2,\n", 7),
        ("a,b\r0,2\r1,2,\r", 3),
        ('a,b\n"two\nlines",2\n"three\n\nlines",2,3\n', 6),
    ],
)
def test_rows_longer_than_the_header(reader, tmp_path, text, line):
    path = table(tmp_path, text)
    with pytest.raises(ValueError, match=rf"table\.csv cannot be read as a table: line {line} has"):
        reader(path)


@BOTH
@pytest.mark.parametrize("header", ["x,rating,rating", '"rating",x,rating', "'=x,=x,rating"])
def test_a_column_that_is_there_twice(reader, tmp_path, header):
    path = table(tmp_path, f"{header}\n1,2,3\n")
    with pytest.raises(ValueError, match=r"more than one column '(rating|=x)': rename or remove"):
        reader(path)


@BOTH
def test_long_entries_are_no_matter(reader, tmp_path):
    found = reader(table(tmp_path, f"a,b\n1,{'x' * 200_000}\n"))
    assert len(found["b"].iloc[0]) == 200_000


def test_a_column_that_is_there_twice_in_parquet(tmp_path):
    twice = pyarrow.table([[1, 2], [3, 4]], names=["rating", "rating"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    for reader in READERS.values():
        with pytest.raises(ValueError, match="more than one column 'rating'"):
            reader(tmp_path / "twice.parquet")


@BOTH
def test_what_is_read_as_before(reader, tmp_path):
    """Shorter rows end in missing entries, nameless columns get a name, and a name may end in .1."""
    path = table(tmp_path, "\ufeffx,x.1,,\n1,2,3,4\n5,6\n")
    found = reader(path)
    assert list(found.columns) == ["x", "x.1", "Unnamed: 2", "Unnamed: 3"]
    assert found["x"].astype(int).tolist() == [1, 5]
    assert str(found["Unnamed: 2"].iloc[1]) in ("", "nan")
    assert tables.missing_words(path, "Unnamed: 2") == {}


@BOTH
@pytest.mark.parametrize("damage", ["no gzip", "cut off", "garbled"])
def test_compressed_files_are_called_by_name(reader, tmp_path, damage):
    path = tmp_path / "table.csv.gz"
    data = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    if damage == "no gzip":
        data = b"a,b\n1,2\n"
    elif damage == "cut off":
        data = data[: len(data) // 2]
    else:
        data = data[:20] + b"\xff" * 20 + data[40:]
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"table\.csv\.gz cannot be read as a table: "):
        reader(path)


# Formulas

DANGEROUS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1+1",
    "-x",
]
HARMLESS = ["-1", "+1.5", "-1e-5", ".5", "-.5", "-1,5", "-5%", "-inf", "-nan", "-1.#IND", "-", "+", "++", "--", "=",
            "a=1", "'", "''", "'a", "'-1", " x", ""]  # fmt: skip


@pytest.mark.parametrize("separator", [",", "\t"])
def test_formulas_are_marked(tmp_path, separator):
    path = tmp_path / ("out.csv" if separator == "," else "out.tsv")
    values = [*DANGEROUS, *HARMLESS]
    frame = pd.DataFrame({"=name": values, "text": values[::-1], "number": -1.5})
    frame["label"] = pd.Categorical(values)
    frame["object"] = pd.Series([*values[1:], -3], dtype=object)
    tables.write([frame], path)
    raw = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False)
    assert raw.columns[0] == "'=name"
    for name in ("'=name", "text", "label", "object"):
        for cell in raw[name]:
            assert cell in HARMLESS or cell == "-3" or cell[0] == "'"
    assert raw["number"].unique().tolist() == ["-1.5"]
    assert raw["'=name"].tolist() == [*(f"'{value}" for value in DANGEROUS), *HARMLESS]
    back = pd.concat(tables.blocks(path, 5))
    assert back["=name"].tolist() == values
    assert back["label"].tolist() == values
    assert tables.read(path, labels=tables.MISSING)["=name"].tolist() == values
    assert tables.read(path, labels=tables.MISSING)["number"].tolist() == [-1.5] * len(values)


def test_parquet_needs_no_marks(tmp_path):
    tables.write([pd.DataFrame({"=a": ["=1+1"]})], tmp_path / "out.parquet")
    assert tables.read(tmp_path / "out.parquet")["=a"].tolist() == ["=1+1"]


@given(st.text(alphabet="'=+-@\t\r\n.,1eax ", max_size=6))
def test_a_mark_can_be_taken_off(text):
    assert spreadsheet_cells.unmarked(spreadsheet_cells.marked(text)) == text
    begins = re.match(r"[=+\-@\t\r\n].*\w", spreadsheet_cells.marked(text), re.DOTALL)
    assert not begins or np.isfinite(float(text.replace(",", ".")))  # only numbers begin so


def test_lists_of_names():
    assert tables.split('low, "in, between",high') == ["low", "in, between", "high"]
    assert tables.split('"two\nlines",high') == ["two\nlines", "high"]
    assert tables.split("") == []
    with pytest.raises(ValueError, match="a list must be one line, with commas"):
        tables.split("low\nhigh")
    with pytest.raises(ValueError, match="is not a list with commas"):
        tables.split('"low,high')
