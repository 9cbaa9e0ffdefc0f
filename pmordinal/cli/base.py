"""Shared by the commands: the class `Command`, options, reading the table, fitting, printing."""

import argparse
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pmordinal.data import files, tables
from pmordinal.errors import warn

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit

KERNELS = ("expquad", "matern52", "matern32", "matern12", "linear", "anova", "recommended")
DENSE = ("laplace", "ep", "plsor")  # fast on tables of up to a thousand rows
MANY_LEVELS = 30  # a column with more texts than this, and than half the rows, is suspect


@dataclass(frozen=True)
class Command:
    """A subcommand of ``pmordinal``.

    Attributes
    ----------
    name, help : str
    arguments : callable
        Adds its arguments to a parser.
    run : callable
        Takes the parsed options; ``options.typed`` is the whole command as it was typed.
    examples : tuple of str
        Shown by ``--help``.
    """

    name: str
    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]
    examples: tuple[str, ...]


def local_path(text: str) -> Path:
    """Return an argument as a path on this computer; refuse an address such as ``https://…``."""
    return _argument(files.local, text)


def name_list(text: str) -> list[str]:
    """Return the items of a comma-separated argument."""
    return _argument(tables.split, text)


def _argument(convert: Callable[[str], Any], text: str) -> Any:
    try:
        return convert(text)
    except ValueError as error:  # argparse shows messages of its own type only
        raise argparse.ArgumentTypeError(str(error)) from error


def data_arguments(parser: argparse.ArgumentParser, formula: bool = False) -> None:
    """Add the arguments for the table, its target and its columns; a formula may name these instead."""
    parser.add_argument(
        "data",
        type=local_path,
        help="table: .csv, .tsv, .csv.gz or .parquet, or 'folder/*.parquet'",
    )
    if formula:
        parser.add_argument(
            "formula",
            nargs="?",
            help="model in words, e.g. 'rating ~ age + gp(income) + (1 | judge)'; names target and features",
        )
        parser.add_argument(
            "--na",
            default="refuse",
            choices=("refuse", "drop"),
            help="with a formula, what to do with rows in which a feature is missing (default refuse)",
        )
    parser.add_argument(
        "--target",
        required=not formula,
        help="column of the labels; rows without one are unlabelled",
    )
    parser.add_argument(
        "--order",
        type=name_list,
        help="labels from lowest to highest, e.g. low,medium,high; integers and ordered Parquet columns have theirs",
    )
    parser.add_argument("--features", type=name_list, help="columns to use; default: all others")
    parser.add_argument("--drop", type=name_list, default=[], help="columns to leave out")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (default 0)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the model and of the fit."""
    parser.add_argument("--link", default="probit", help="probit (default), logit or cloglog")
    parser.add_argument(
        "--kernel",
        type=str.lower,
        choices=KERNELS,
        help="covariance function; default is that of gp_model: recommended, or expquad with --ard or plsor",
    )
    parser.add_argument("--ard", action="store_true", help="one length-scale for each attribute")
    parser.add_argument("--starts", type=int, default=1, help="starting points (default 1)")


def read_data(options: argparse.Namespace) -> tuple[pd.DataFrame, pd.Series, list | None]:
    """Return attributes, labels, and the levels if their order was given; with a formula, the whole table."""
    table = tables.read(options.data, labels=options.order or ())
    if getattr(options, "formula", None) is not None:
        return _read_for_formula(table, options)
    y, levels = tables.ordered(tables.column(table, options.target, options.data), options.order)
    X = _attributes(table, options)
    _point_out(X, options)
    return X, y, levels


def _read_for_formula(
    table: pd.DataFrame, options: argparse.Namespace
) -> tuple[pd.DataFrame, pd.Series, list | None]:
    """Return the whole table, its labels, and the levels if their order was given; set ``options.target``."""
    from pmordinal.model.formula import read

    for name, value in (("--features", options.features), ("--drop", options.drop)):
        if value:
            raise ValueError(f"{name} has no place beside a formula, which names the features")
    if options.ard or options.kernel is not None:
        raise ValueError(
            "--ard and --kernel have no place beside a formula: write gp(x, cov='matern52')"
        )
    written = read(options.formula)
    if options.target not in (None, written.outcome):
        raise ValueError(
            f"--target {options.target!r} is not what the formula predicts, {written.outcome!r}: leave it out"
        )
    options.target = written.outcome
    y, levels = tables.ordered(tables.column(table, options.target, options.data), options.order)
    for name in written.variables:
        tables.column(table, name, options.data)  # raises if it is not there
    _point_out(table[[]], options)
    return table.assign(**{options.target: y}), y, levels


def read_target(options: argparse.Namespace) -> tuple[pd.DataFrame, pd.Series]:
    """Return attributes and a target of numbers or of ordered labels."""
    table = tables.read(options.data, labels=options.order or ())
    y = tables.column(table, options.target, options.data)
    if options.order is not None or not pd.api.types.is_numeric_dtype(y):
        y, levels = tables.ordered(y, options.order)
        if levels is not None:
            y = pd.Series(pd.Categorical(y, levels, ordered=True), name=options.target)
    X = _attributes(table, options)
    _point_out(X, options)
    return X, y


def _attributes(table: pd.DataFrame, options: argparse.Namespace) -> pd.DataFrame:
    """Return the columns to predict from."""
    chosen = options.features or [name for name in table.columns if name != options.target]
    for name in (*chosen, *options.drop):
        tables.column(table, name, options.data)
    chosen = [name for name in chosen if name not in options.drop]
    if options.target in chosen:
        raise ValueError(f"the target {options.target!r} is among the features: leave it out")
    if not chosen:
        raise ValueError("no column is left to predict from: use --features or --drop otherwise")
    return table[chosen]


def _point_out(X: pd.DataFrame, options: argparse.Namespace) -> None:
    """Warn about labels that are read as missing and about columns that look like identifiers."""
    words = tables.missing_words(options.data, options.target, options.order or ())
    for word, count in words.items():
        warn(
            f"{count} label(s) {word!r} of {options.target!r} count as missing; if it is a level, name it in --order"
        )
    for name in X.columns:
        count = X[name].nunique()
        if pd.api.types.is_string_dtype(X[name]) and count > max(MANY_LEVELS, len(X) / 2):
            warn(
                f"column {name!r} holds {count} different texts in {len(X)} rows; if it is a name or an identifier, "
                f"leave it out with --drop {shlex.quote(name)}"
            )


def fit_engine(
    engine: str | None, data: tuple, options: argparse.Namespace, **fit_options: Any
) -> "OrdinalFit":
    """Return the fit of one engine, with the options of the command line."""
    from pmordinal.inference.fit import fit
    from pmordinal.model.factories import gp_model
    from pmordinal.model.formula_model import formula_model

    X, y, levels = data
    common: dict[str, Any] = {"engine": engine, "link": options.link, "categories": levels}
    if getattr(options, "formula", None) is not None:
        model = formula_model(options.formula, X, na=options.na, **common)
    else:
        model = gp_model(X, y, options.kernel, ard=options.ard, **common)
    steps = {"starts": options.starts, "progressbar": show_progress(options), "seed": options.seed}
    return fit(model, **steps, **fit_options)


def print_table(table: pd.DataFrame, title: str | None = None) -> None:
    """Print a table, its index as the first column."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from pmordinal.results.summary import number

    out = Table(title=title and escape(title))
    out.add_column(escape(str(table.index.name or "")))
    for name in table.columns:
        out.add_column(escape(str(name)), justify="right")
    for name, row in zip(table.index, table.itertuples(index=False), strict=True):
        out.add_row(escape(str(name)), *(escape(number(value)) for value in row))
    Console().print(out)


def show_progress(options: argparse.Namespace) -> bool:
    """Tell whether to show a progress bar: on a terminal, and without ``--quiet``."""
    return not options.quiet and sys.stdout.isatty()


def check_output(path: Path | None, *suffixes: str) -> None:
    """Refuse an output that cannot be written, before the work begins.

    Parameters
    ----------
    path : Path, optional
    *suffixes : str
        Suffixes that its name may have; by default those of a table.
    """
    if path is None:
        return
    if not suffixes:
        tables.suffix(path)
    elif path.suffix not in suffixes:
        raise ValueError(f"cannot write {path}: its name must end in {' or '.join(suffixes)}")
    if path.suffix in (".nc", ".zarr"):
        from pmordinal.results import stores

        stores.check_target(path)
    else:
        files.target(path)


def say_written(path: Path, what: str = "") -> None:
    """Print the path of an output file."""
    print(f"Wrote {files.printable(path)}{what}")
