"""``pmordinal compare``: several engines on one table."""

import argparse

from pmordinal.cli.base import (
    DENSE,
    Command,
    check_output,
    data_arguments,
    fit_engine,
    local_path,
    model_arguments,
    name_list,
    print_table,
    read_data,
)
from pmordinal.data import tables


def _arguments(parser: argparse.ArgumentParser) -> None:
    data_arguments(parser)
    model_arguments(parser)
    parser.add_argument(
        "--engines", type=name_list, default=list(DENSE), help=f"default: {','.join(DENSE)}"
    )
    parser.add_argument("--reference", help="engine to measure distances from; default: the first")
    parser.add_argument(
        "--all", action="store_true", help="print every column, not the short table"
    )
    parser.add_argument("--out", type=local_path, help="table to write")


def _run(options: argparse.Namespace) -> None:
    from pmordinal import checks
    from pmordinal.diagnostics.compare import compare
    from pmordinal.engines import get_engine

    for engine in options.engines:
        get_engine(engine)
    reference = options.reference or options.engines[0]
    checks.one_of("--reference", reference, options.engines)
    check_output(options.out)
    data = read_data(options)
    if options.kernel is None:
        options.kernel = "expquad"  # the one that every engine has
    fits = {engine: fit_engine(engine, data, options) for engine in options.engines}
    table = compare(fits, reference=reference)
    shown = table.full.T if options.all else table.short.T
    print_table(shown, f"{options.target}: compared with {reference}")
    for note in [] if options.all else table.notes()[:-1]:
        print(note)
    if options.out is not None:
        tables.write([table.reset_index()], options.out)


COMPARE = Command(
    name="compare",
    help="fit several engines to a table, side by side",
    arguments=_arguments,
    run=_run,
    examples=(
        "pmordinal compare data.csv --target rating",
        "pmordinal compare data.csv --target rating --engines ep,laplace --reference ep",
    ),
)
