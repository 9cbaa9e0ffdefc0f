"""``pmordinal predict``: class probabilities as new columns of a table, read in blocks."""

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

from pmordinal.cli.base import Command, check_output, local_path, say_written
from pmordinal.cli.folders import cluster, is_folder, predict_files, scheduler_argument
from pmordinal.data import tables

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("fit", type=local_path, help="a file that fit --out wrote")
    parser.add_argument(
        "data", type=local_path, help="table with the columns of the fit, or 'folder/*.parquet'"
    )
    parser.add_argument(
        "--out", type=local_path, help="table to write; default: CSV to the terminal"
    )
    parser.add_argument(
        "--rule", default="mode", choices=("mode", "median"), help="predicted class"
    )
    scheduler_argument(parser)
    parser.add_argument("--block", type=int, default=5000, help="rows at a time (default 5000)")


def _run(options: argparse.Namespace) -> None:
    from pmordinal import checks
    from pmordinal.results.load import load

    checks.integer("--block", options.block, minimum=1)
    fit = load(options.fit)
    if is_folder(options.data):
        with cluster(options):
            predict_files(fit, options)
        return say_written(options.out)
    check_output(options.out)
    rows = tables.write(_predictions(fit, options), options.out or sys.stdout)
    if options.out is not None:
        say_written(options.out, f", {rows} rows")


def _predictions(fit: "OrdinalFit", options: argparse.Namespace) -> Iterator[pd.DataFrame]:
    from pmordinal.results.decisions import decide

    wanted = {column.name: column for column in (*fit.by_row.columns, *fit.features.given)}
    new = [f"P({name})" for name in fit.labels.class_names]
    done = 0
    for block in tables.blocks(options.data, options.block):
        if block.empty:
            raise ValueError(f"{options.data} has no rows")
        if not isinstance(block.index, pd.RangeIndex):  # an index read from Parquet
            block = block.reset_index()
        twice = [name for name in (*new, "predicted") if name in block.columns]
        if twice:
            raise ValueError(f"{options.data} has a column {twice[0]!r} already: rename it")
        rows = tables.typed(block, list(wanted.values()), options.data)
        try:
            probs = fit.predict(rows).values
        except ValueError as error:
            where = f"{options.data}, rows from {done} on" if done else f"{options.data}"
            raise ValueError(f"{where}: {str(error).removeprefix('Xnew ')}") from error
        done += len(block)
        labels = fit.labels.decode(decide(probs, options.rule))
        extra = {name: probs[:, k] for k, name in enumerate(new)} | {"predicted": labels}
        yield pd.concat([block.reset_index(drop=True), pd.DataFrame(extra)], axis=1)


PREDICT = Command(
    name="predict",
    help="add class probabilities and the predicted class to a table",
    arguments=_arguments,
    run=_run,
    examples=(
        "pmordinal predict fit.nc new.csv --out predictions.csv",
        "pmordinal predict fit.nc 'new/*.parquet' --out predictions --scheduler tcp://host:8786",
        "pmordinal predict fit.nc new.parquet --rule median | head",
    ),
)
