"""The package's warnings. Its errors are ordinary ``ValueError`` and ``TypeError``."""

import os
import warnings

PACKAGE = os.path.join(os.path.dirname(__file__), "")


class ConvergenceWarning(UserWarning):
    """An iteration stopped before it reached its tolerance; the message says why and what to do."""


class LabelOrderWarning(UserWarning):
    """The order of the labels was guessed, because none was declared; the message shows it."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning that points to the user's line, not to one of the package."""
    warnings.warn(message, category, skip_file_prefixes=(PACKAGE,))
