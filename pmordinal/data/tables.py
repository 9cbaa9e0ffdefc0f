"""Tables on disk: CSV and Parquet files, read at once or in blocks, and written safely."""

import csv
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pandas as pd

from pmordinal.data import files
from pmordinal.data.coding import Column
from pmordinal.data.labels import encode
from pmordinal.data.levels import show
from pmordinal.data.spreadsheet_cells import mark, unmark, unmarked
from pmordinal.words import guess

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
# Texts that pandas reads as missing; a declared label such as "None" is removed from the list.
MISSING = frozenset(
    "#N/A,#N/A N/A,#NA,-1.#IND,-1.#QNAN,-NaN,-nan,1.#IND,1.#QNAN,<NA>,N/A,NA,NULL,NaN,None,n/a,nan,null".split(",")
) | {""}  # fmt: skip


# Errors of the readers for a file of another format, cut off, or compressed in another way.
UNREADABLE = (
    *(ValueError, OSError, EOFError, LookupError, NotImplementedError),
    *(zlib.error, csv.Error),
)


def read(path: Path, labels: Iterable[str] = ()) -> pd.DataFrame:
    """Return a table from a ``.csv``, ``.tsv`` (also ``.gz``) or ``.parquet`` file.

    Parameters
    ----------
    path : Path
    labels : iterable of str
        Entries that are values even where they look missing, such as ``"None"`` or ``"NA"``.
    """
    kind = _existing(path)
    with _readable(path):
        _check_form(path)
        if kind in PARQUET:
            with _pyarrow_parquet().ParquetFile(path) as file:
                table = file.read().to_pandas()
        else:
            table = unmark(_csv(path, na_values=sorted(MISSING - set(labels))))
    if table.empty:
        raise ValueError(f"{path} has no rows")
    return table


def missing_words(path: Path, name: str, labels: Iterable[str] = ()) -> dict[str, int]:
    """Return the words of a column that `read` takes as missing, such as ``"None"``, with their counts."""
    if suffix(path) in PARQUET:
        return {}
    position = list(unmark(_csv(path, nrows=0)).columns).index(name)
    values = _csv(path, usecols=[position], dtype="str").iloc[:, 0]
    counts = values[values.isin(MISSING - {""} - set(labels))].value_counts()
    return {str(word): int(count) for word, count in counts.items()}


def blocks(path: Path, rows: int) -> Iterator[pd.DataFrame]:
    """Yield a table in blocks of at most `rows` rows; entries of a CSV file stay text.

    So they can be written again as they were; `typed` makes numbers of them.
    """
    kind = _existing(path)
    with _readable(path):
        _check_form(path)
        if kind in PARQUET:
            with _pyarrow_parquet().ParquetFile(path) as file:
                for batch in file.iter_batches(rows):
                    yield batch.to_pandas()
        else:
            with _csv(path, chunksize=rows, dtype="str") as reader:
                yield from map(unmark, reader)


def _csv(path: Path, **options: Any) -> Any:
    """Return a CSV file as a data frame, after `_check_form`."""
    return pd.read_csv(
        os.path.abspath(path),  # else pandas takes http:/x as an address
        sep=SEPARATORS[suffix(path)],
        keep_default_na=False,
        encoding="utf-8-sig",
        index_col=False,
        **options,
    )


def _check_form(path: Path) -> None:
    """Raise if a column name occurs twice, or if a row has more entries than the header.

    pandas renames the second column of a name. Of longer rows it takes the first entries for an index, or it drops the
    last ones, or it raises, which depends on where they are and on its version: so they are counted here.
    """
    kind = suffix(path)
    if kind in PARQUET:
        with _pyarrow_parquet().ParquetFile(path) as file:
            names = file.schema_arrow.names
    else:
        longest = csv.field_size_limit(2**31 - 1)
        try:
            with _opener(path)(path, "rt", encoding="utf-8-sig", newline="") as stream:
                names = _count_entries(csv.reader(stream, delimiter=SEPARATORS[kind]))
        finally:
            csv.field_size_limit(longest)
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        raise ValueError(f"it has more than one column {twice[0]!r}: rename or remove all but one")


def _count_entries(rows: Any) -> list[str]:
    """Return the header of a CSV file; raise if it is shorter than a row."""
    header: list[str] = next((row for row in rows if row), [])  # skips empty lines
    for row in rows:
        if len(row) > len(header):
            raise ValueError(
                f"line {rows.line_num} has {len(row)} entries, the header has {len(header)}: quote an entry with a "
                "separator in it, and remove separators at the end of a line"
            )
    return [unmarked(name) for name in header]


def _opener(path: Path) -> Any:
    return gzip.open if path.suffix == ".gz" else open


def typed(block: pd.DataFrame, columns: Sequence[Column], path: Path) -> pd.DataFrame:
    """Return those columns of a block that a fit needs, texts converted to numbers where needed.

    Parameters
    ----------
    block : DataFrame
    columns : sequence of Column
    path : Path
        Where the block comes from, for error messages.
    """
    lost = [item.name for item in columns if item.name not in block.columns]
    if lost:
        raise ValueError(
            f"{path} lacks the column(s) {show(lost)} that the fit needs, it has {show(block.columns, 12)}"
        )
    out = {}
    for item in columns:
        values = block[item.name]
        if pd.api.types.is_string_dtype(values):
            values = values.mask(values.isin(MISSING - set(item.levels or ())))
            if item.levels is None:
                values = _numbers(values, path)
        out[item.name] = values
    return pd.DataFrame(out)


def _numbers(values: pd.Series, path: Path) -> pd.Series:
    numbers = pd.to_numeric(values.replace({"True": "1", "False": "0"}), errors="coerce")
    wrong = numbers.isna() & values.notna()
    if wrong.any():
        raise ValueError(
            f"{path} column {values.name!r} must hold numbers, got {values[wrong].iloc[0]!r}"
        )
    return numbers


def _existing(path: Path) -> str:
    kind = suffix(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    return kind


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn the readers' various errors into one that names the file."""
    try:
        yield
    except UNREADABLE as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from error


def suffix(path: Path) -> str:
    """Return the suffix of a table's file, such as ``.csv``; raise if it is not supported."""
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if kind not in SEPARATORS and (kind not in PARQUET or path.suffix == ".gz"):
        raise ValueError(
            f"{path} is not a table that can be read or written: its name must end in "
            f"{', '.join((*SEPARATORS, '.csv.gz', *PARQUET))}"
        )
    if kind in PARQUET:
        _pyarrow_parquet()
    return kind


def _pyarrow_parquet():
    try:
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Parquet needs pyarrow: pip install pyarrow, or use CSV", name="pyarrow"
        ) from error
    return pyarrow.parquet


def column(table: pd.DataFrame, name: str, path: Path) -> pd.Series:
    """Return a column by name; raise if there is none."""
    if name not in table.columns:
        hint = guess(name, table.columns)
        raise ValueError(f"{path} has no column {name!r}, it has {show(table.columns, 12)}{hint}")
    return table[name]


def ordered(values: pd.Series, order: Sequence[str] | None) -> tuple[pd.Series, list | None]:
    """Return the labels and their levels from lowest to highest.

    Parameters
    ----------
    values : Series
    order : sequence of str, optional
        The levels as a user typed them; they get the type of the column.

    Returns
    -------
    Series, list or None
        The labels, and `order` in their type.

    Examples
    --------
    >>> ordered(pd.Series([1.0, None, 3.0]), ["1", "2", "3"])[1]
    [1, 2, 3]
    """
    if order is None:
        encode(values, name=repr(values.name))  # raises if an order is needed
        return values, None
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    levels: list[Any] = list(order)
    if isinstance(values.dtype, pd.CategoricalDtype):
        known = {str(level): level for level in values.cat.categories}
        levels = [known.get(level, level) for level in order]
    elif numeric:
        try:
            levels = [int(level) if _is_whole(level) else float(level) for level in order]
        except ValueError as error:
            raise ValueError(
                f"the order {','.join(order)!r} does not fit the column {values.name!r}, which holds numbers"
            ) from error
    else:
        values = values.map(str, na_action="ignore")
    encode(values, levels, name=repr(values.name))
    return values, levels


def _is_whole(text: str) -> bool:
    return text.strip().lstrip("+-").isdigit()


def split(text: str) -> list[str]:
    """Return the items of a comma-separated list; quotes protect commas.

    Examples
    --------
    >>> split('low, "in, between",high')
    ['low', 'in, between', 'high']
    """
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise ValueError(f"{text!r} is not a list with commas: {error}") from error
    if len(rows) > 1:
        raise ValueError(f"a list must be one line, with commas between the items, got {text!r}")
    return [item.strip() for row in rows for item in row]


def write(parts: Iterable[pd.DataFrame], target: Path | IO[str]) -> int:
    """Write blocks of a table one after the other; return the number of rows.

    Parameters
    ----------
    parts : iterable of DataFrame
        Blocks with the same columns.
    target : Path or text stream
        A ``.csv``, ``.tsv`` (also ``.gz``) or ``.parquet`` file, which appears when all is written; a
        stream gets CSV at once.
    """
    if not isinstance(target, Path):
        return _write_csv(parts, target, ",")
    kind = suffix(target)
    with files.whole(target) as temporary:
        if kind in PARQUET:
            return _write_parquet(parts, temporary)
        with _opener(target)(temporary, "wt", encoding="utf-8", newline="") as stream:
            return _write_csv(parts, stream, SEPARATORS[kind])


def _write_csv(parts: Iterable[pd.DataFrame], stream: IO[str], separator: str) -> int:
    rows = 0
    for block in parts:
        table = mark(block)
        options: dict[str, Any] = {"sep": separator, "index": False, "header": rows == 0}
        text = table.to_csv(lineterminator="\n", **options)
        # up to Python 3.12, csv leaves such a text without quotes, and it ends the row
        if "\r" in text:
            text = table.to_csv(lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC, **options)
        stream.write(text)
        rows += len(block)
    return rows


def _write_parquet(parts: Iterable[pd.DataFrame], target: Path) -> int:
    import pyarrow

    parquet = _pyarrow_parquet()
    rows, writer = 0, None
    with target.open("wb") as file:  # pyarrow reads some paths as addresses
        try:
            for block in parts:
                if writer is None:
                    schema = pyarrow.Schema.from_pandas(block, preserve_index=False)
                    writer = parquet.ParquetWriter(file, schema)
                writer.write_table(pyarrow.Table.from_pandas(block, schema, preserve_index=False))
                rows += len(block)
        finally:
            if writer is not None:
                writer.close()
    return rows
