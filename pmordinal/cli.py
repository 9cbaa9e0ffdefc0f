"""The command line: ``pmordinal demo``."""

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="pmordinal", description="Gaussian-process ordinal regression for PyMC."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo", help="fit the wine ratings: a table, a picture and a DataTree"
    )
    demo.add_argument("--out", type=Path, default=Path("pmordinal-demo"), help="folder to write to")
    demo.add_argument("--engine", default="ep", help="inference engine")
    options = parser.parse_args(arguments)
    try:
        from pmordinal import demo as demonstration

        demonstration.run(options.out, options.engine)
    except (ValueError, OSError) as error:
        print(f"pmordinal: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
