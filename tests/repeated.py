"""Repetitions of a test: the first stay in the fast suite."""

import pytest


def first_fast(values, count=1):
    """Return values to parametrise by, of which those after the first `count` are slow."""
    return [
        value if place < count else pytest.param(value, marks=pytest.mark.slow)
        for place, value in enumerate(values)
    ]
