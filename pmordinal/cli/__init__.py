"""The command line: ``pmordinal demo | fit | predict | report | compare | modl | bench``.

Each command is a file, listed in `COMMANDS`. Heavy imports happen when a command runs, so that ``--help`` and ``modl``
do not wait for PyMC. An error is one line on stderr and a non-zero exit code.
"""

import argparse
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterable
from importlib.metadata import version
from typing import NoReturn

from pmordinal.cli.bench import BENCH
from pmordinal.cli.compare import COMPARE
from pmordinal.cli.demo import DEMO
from pmordinal.cli.fit import FIT
from pmordinal.cli.modl import MODL
from pmordinal.cli.predict import PREDICT
from pmordinal.cli.report import REPORT
from pmordinal.words import guess, nearest

COMMANDS = {command.name: command for command in (DEMO, FIT, PREDICT, REPORT, COMPARE, MODL, BENCH)}
# These run as they are, one after the other: a test does so.
FIRST_STEPS = (
    "pmordinal demo",
    "pmordinal fit pmordinal-demo/wine.csv 'rating ~ temperature + contact + (1 | judge)' --out wine.nc",
    "pmordinal predict wine.nc pmordinal-demo/wine.csv --out predictions.csv",
    "pmordinal report wine.nc --target rating",
)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line and leave with code 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def parse_known_args(self, args=None, namespace=None):
        """Return options and what is left; a formula may stand after options too, and replaces the target."""
        self._check_names(args or ())
        options, rest = super().parse_known_args(args, namespace)
        if getattr(options, "formula", "") is None:
            later = [i for i, argument in enumerate(rest) if not argument.startswith("-")]
            if later:
                options.formula = rest.pop(later[0])
            elif options.target is None:
                self.error("without a formula the following arguments are required: --target")
        return options, rest

    def _check_names(self, arguments: Iterable[str]) -> None:
        """Guess what an option was meant to be, before another is missed; those of a command are its own's."""
        known = [name for name in self._option_string_actions if name.startswith("--")]
        for argument in arguments if self._subparsers is None else ():
            name = argument.split("=")[0]
            if name == "--":
                return
            if name.startswith("--") and not any(each.startswith(name) for each in known):
                meant = nearest(name[2:], [each[2:] for each in known])
                hint = f". Did you mean '--{meant}'?" if meant else ""
                self.error(f"unrecognized arguments: {name}{hint}")

    def _check_value(self, action, value):
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            hint = guess(value, action.choices)
            raise argparse.ArgumentError(action, f"{error.message}{hint}") from None


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : list of str, optional
        What follows ``pmordinal`` in the terminal; default is what was typed there.
    """
    typed = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(typed)
    options.typed = shlex.join(["pmordinal", *typed])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)  # those of the package
        warnings.showwarning = _show_warning
        try:
            COMMANDS[options.command].run(options)
        except KeyboardInterrupt:
            return _fail("interrupted", 130)
        except BrokenPipeError:  # the reader of a pipe, such as head, has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        except UnicodeEncodeError as error:
            text = error.object[error.start : error.end]
            return _fail(
                f"the terminal's encoding {error.encoding} has no {text!r}: set PYTHONUTF8=1, or use --out",
                1,
            )
        except (ValueError, TypeError, OSError, ModuleNotFoundError) as error:
            return _fail(_in_terms_of_options(str(error)), 1)
    return 0


def _fail(message: str, code: int) -> int:
    print(f"pmordinal: {' '.join(message.split())}", file=sys.stderr)
    return code


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    print(f"pmordinal: warning: {' '.join(str(message).split())}", file=sys.stderr)


def _in_terms_of_options(message: str) -> str:
    """Replace the Python argument `categories` in a message by the option of the command line."""

    def order(match: re.Match) -> str:
        levels = match[1].replace("'", "").replace(", ", ",")
        return f"--order {'LOW,...,HIGH' if levels == '...' else shlex.quote(levels)}"

    return re.sub(r"categories=\[(.*?)\]", order, message)


def _parser() -> Parser:
    parser = Parser(
        prog="pmordinal",
        description="Gaussian-process ordinal regression for PyMC.",
        epilog="first steps, which run as they are:\n" + "\n".join(f"  {s}" for s in FIRST_STEPS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pmordinal {version('pmordinal')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            epilog="examples:\n" + "\n".join(f"  {line}" for line in command.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.arguments(sub)
    return parser
