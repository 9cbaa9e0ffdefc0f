"""``pmordinal modl``: columns ranked by how informative they are about the target, and their grids."""

import argparse

import pandas as pd

from pmordinal.cli.base import (
    Command,
    check_output,
    data_arguments,
    local_path,
    print_table,
    read_target,
    say_written,
    show_progress,
)
from pmordinal.data import files, tables


def _arguments(parser: argparse.ArgumentParser) -> None:
    data_arguments(parser)
    parser.add_argument("--grids", type=int, default=3, help="grids to show (default 3)")
    parser.add_argument("--out", type=local_path, help="table of the ranking to write")
    parser.add_argument("--report", type=local_path, help="HTML report to write, with pictures")


def _run(options: argparse.Namespace) -> None:
    from pmordinal.modl import fit_grids
    from pmordinal.modl.regression.ranking import ranking_table
    from pmordinal.results.summary import grid_table

    check_output(options.out)
    check_output(options.report, ".html")
    X, y = read_target(options)
    ordered = isinstance(y.dtype, pd.CategoricalDtype)
    names = [str(level) for level in y.cat.categories] if ordered else None
    grids = fit_grids(X, y, seed=options.seed, progressbar=show_progress(options))
    ranking = ranking_table(grids)
    print_table(ranking, f"What says anything about {options.target}")
    shown = [name for name in ranking.index if not grids[name].is_null][: options.grids]
    for name in shown:
        grid = grids[name]
        print_table(grid_table(grid, names), f"{name}: level {grid.level:.4f}")
    if not shown:
        print(f"No column says anything about {options.target}.")
    if options.out is not None:
        tables.write([ranking.reset_index()], options.out)
    if options.report is not None:
        from pmordinal.report.grids import ranking_page  # here: it draws, and needs PyMC

        page = ranking_page(grids, ranking, options.target)
        with files.whole(options.report) as temporary:
            temporary.write_text(page, encoding="utf-8", errors="backslashreplace")
        say_written(options.report)


MODL = Command(
    name="modl",
    help="rank the columns by what they say about the target, and show their grids",
    arguments=_arguments,
    run=_run,
    examples=(
        "pmordinal modl data.csv --target price --report price.html",
        "pmordinal modl data.csv --target grade --order low,medium,high --grids 5",
    ),
)
