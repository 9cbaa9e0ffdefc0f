"""Warnings of the package; errors are plain ``ValueError`` and ``TypeError``."""


class ConvergenceWarning(UserWarning):
    """An iteration stopped before its tolerance; the message says why and what to do."""


class LabelOrderWarning(UserWarning):
    """Labels were put in an order that nobody has declared; the message says which."""
