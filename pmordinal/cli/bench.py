"""``pmordinal bench``: the papers' experiments."""

import argparse
from itertools import groupby
from pathlib import Path
from typing import Any

from pmordinal.cli.base import Command, local_path, name_list, show_progress
from pmordinal.data import files

SUITES = ("gpor", "plsor", "loo", "ssgpor", "inductive", "modl")
WITH_PARTITIONS = ("gpor", "plsor", "loo")  # their sets come with published partitions


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", required=True, choices=SUITES, help="whose experiment")
    parser.add_argument(
        "--data",
        type=local_path,
        required=True,
        help="folder with chu/, large/, modl/; a set of chu/ is NAME.csv with a column y, and NAME_partitions.csv "
        "with columns y5 (classes 1 to 5) and s5_1, s5_2, ... (1 for training rows, 0 for the others)",
    )
    parser.add_argument("--sets", type=name_list, help="default: all that are there")
    parser.add_argument(
        "--engines",
        type=name_list,
        help="methods, e.g. ep,ep:loo,plsor,best,linear,gpr,svm,sklearn-gpc,mord; default: the paper's",
    )
    parser.add_argument("--bins", type=name_list, help="numbers of classes; default: 5,10")
    parser.add_argument("--partitions", type=int, help="the first so many; default: the paper's")
    parser.add_argument(
        "--starts",
        type=int,
        default=1,
        help="starting points, the best of which counts (default 1)",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument(
        "--out",
        type=local_path,
        default=Path("bench"),
        help="folder of the results (default: bench)",
    )
    parser.add_argument("--retry", action="store_true", help="run again what failed before")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def _run(options: argparse.Namespace) -> None:
    from pmordinal.bench.methods import with_starts
    from pmordinal.bench.partitions import check
    from pmordinal.bench.result_tables import write
    from pmordinal.bench.run import run, warn
    from pmordinal.bench.suites import SUITES as suites

    suite = suites[options.suite]
    bins = None if options.bins is None else [int(number) for number in options.bins]
    chosen = list(options.engines or suite.methods)
    methods = [with_starts(name, options.starts) for name in chosen]
    tasks = suite.tasks(options.data, options.sets, bins, options.partitions, methods)
    if options.suite in WITH_PARTITIONS:
        for (name, number), some in groupby(sorted(tasks, key=_set), key=_set):
            check(options.data, name, number, sorted({task.partition for task in some}))
    if options.starts > 1 and (single := sorted(set(methods) & set(chosen))):
        warn(f"--starts: {', '.join(single)}: always one start")
    files.make_folder(options.out)
    file = options.out / f"{suite.name}.csv"
    table = run(
        suite,
        options.data,
        file,
        tasks,
        options.jobs,
        retry=options.retry,
        progressbar=show_progress(options),
        say=warn,
    )
    for written in (file, *write(suite.name, table, options.out, options.typed)):
        print(files.printable(written))
    if failed := int((table["error"] != "").sum()):
        raise ValueError(
            f"{failed} tasks failed: the column error of {files.printable(file)} says why, --retry runs them again"
        )


def _set(task: Any) -> tuple[str, int]:
    return task.set, task.bins


BENCH = Command(
    name="bench",
    help="run the papers' experiments and set the results beside theirs",
    arguments=_arguments,
    run=_run,
    examples=(
        "pmordinal bench --suite gpor --data data --sets diabetes,machine --jobs 4",
        "pmordinal bench --suite loo --data data --engines ep:loo,best,linear --partitions 5",
    ),
)
