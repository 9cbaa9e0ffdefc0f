"""The package's warnings. Its errors are ordinary ``ValueError`` and ``TypeError``."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

PACKAGE = os.path.join(os.path.dirname(__file__), "")
KEPT = (np.linalg.LinAlgError, ValueError, TypeError, ArithmeticError, MemoryError, OSError)


class ConvergenceWarning(UserWarning):
    """An iteration stopped before it reached its tolerance; the message says why and what to do."""


class LabelOrderWarning(UserWarning):
    """The order of the labels was guessed, because none was declared; the message shows it."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning that points to the user's line, not to one of the package."""
    warnings.warn(message, category, skip_file_prefixes=(PACKAGE,))


@contextmanager
def located(where: str) -> Iterator[None]:
    """Say in an error where it happened; errors of unusual types become a RuntimeError."""
    try:
        yield
    except Exception as error:
        kind = next((each for each in KEPT if isinstance(error, each)), RuntimeError)
        text = str(error) if kind is not RuntimeError else repr(error)
        raise kind(f"{where}: {text}") from error
