"""``pmordinal demo``: a fit to the wine ratings that come with the package."""

import argparse
from pathlib import Path

from pmordinal.cli.base import Command, local_path


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=local_path, default=Path("pmordinal-demo"), help="folder to write"
    )
    parser.add_argument("--engine", default="ep", help="inference engine")


def _run(options: argparse.Namespace) -> None:
    from pmordinal.cli import demo_files as demo

    demo.run(options.out, options.engine)


DEMO = Command(
    name="demo",
    help="fit the wine ratings: a table, a picture and a DataTree",
    arguments=_arguments,
    run=_run,
    examples=("pmordinal demo --out folder",),
)
