"""``pmordinal report``: the HTML report of a fit that was kept in a file."""

import argparse

from pmordinal.cli.base import Command, check_output, local_path, say_written


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("fit", type=local_path, help="file of the fit: .nc or .zarr")
    parser.add_argument(
        "--out", type=local_path, help="file to write; default: the name of the fit with .html"
    )
    parser.add_argument("--target", default="y", help="what the labels are called (default y)")


def _run(options: argparse.Namespace) -> None:
    out = options.fit.with_suffix(".html") if options.out is None else options.out
    check_output(out, ".html")
    from pmordinal.report import write_report
    from pmordinal.results.load import load

    write_report(
        load(options.fit), out, target=options.target, command=options.typed, saved=options.fit
    )
    say_written(out)


REPORT = Command(
    name="report",
    help="write the HTML report of a fit that was kept",
    arguments=_arguments,
    run=_run,
    examples=("pmordinal report fit.nc --target rating --out report.html",),
)
