"""Warnings of the package; errors are plain ``ValueError`` and ``TypeError``."""

import os
import warnings

PACKAGE = os.path.join(os.path.dirname(__file__), "")


class ConvergenceWarning(UserWarning):
    """An iteration stopped before its tolerance; the message says why and what to do."""


class LabelOrderWarning(UserWarning):
    """Labels were put in an order that nobody has declared; the message says which."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of the package that led here."""
    warnings.warn(message, category, skip_file_prefixes=(PACKAGE,))
