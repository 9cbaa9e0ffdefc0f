"""The judge: a call either works, or fails with an error of our own that names the argument."""

import functools
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import pmordinal as pmo

PACKAGE = str(Path(pmo.__file__).parent)
SECONDS = 60  # an example may take, the first of all with the compilation of what it calls
OUR_WARNINGS = (
    "no unlabelled rows",
    "no row is labelled",
    ".* rows have a missing .* and are left out",
    "the objective is flat or rises",
    "no part of the covariance reads",
)


def outcome(call, *names):
    """Return what `call` returns, or None where it refuses its arguments as it should.

    A refusal is a ValueError or TypeError that is raised in the package itself, not in a library below it, with a
    message that says one of `names` and is long enough to hold a remedy.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", pmo.ConvergenceWarning)
        for message in OUR_WARNINGS:
            warnings.filterwarnings("ignore", message, UserWarning)
        try:
            return call()
        except (ValueError, TypeError) as error:
            frames = traceback.extract_tb(error.__traceback__)
            text = str(error)
            where = frames[-1].filename
            if not where.startswith(PACKAGE):
                raise AssertionError(f"an error from below, {where}: {text}") from error
            if not any(name in text for name in names):
                raise AssertionError(f"the error names none of {names}: {text}") from error
            if len(text.split()) < 4:
                raise AssertionError(f"the error says too little: {text}") from error
            return None


def examples(fast: int, slow: int, *args, **kwargs):
    """Decorate a property of Hypothesis: so many examples in the fast suite, and so many in the slow one."""

    def decorate(function):
        @pytest.mark.parametrize("count", [fast, pytest.param(slow, marks=pytest.mark.slow)])
        def test(count):
            limits = settings(
                max_examples=count,
                deadline=1000 * SECONDS,
                suppress_health_check=list(HealthCheck),
                database=None,
            )
            limits(given(*args, **kwargs)(function))()

        functools.update_wrapper(test, function)
        del test.__wrapped__  # pytest would ask for the property's arguments as fixtures
        return test

    return decorate


def assert_finite(*arrays):
    for array in arrays:
        assert np.all(np.isfinite(np.asarray(array, dtype=float)))


def assert_probabilities(probs):
    probs = np.asarray(probs)
    assert np.all(probs >= 0)
    np.testing.assert_allclose(probs.sum(-1), 1.0, atol=1e-9)
