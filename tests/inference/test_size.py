"""Fits with n × n matrices say what many rows cost."""

import numpy as np
import pytest

import pmordinal as pmo
from pmordinal.inference import size


@pytest.fixture
def model():
    x = np.linspace(0, 3, 12)
    return pmo.gp_model(x, np.repeat([0, 1, 2], 4), "expquad", engine="ep")


def test_a_large_table_warns_before_it_starts(model, monkeypatch):
    monkeypatch.setattr(size, "MANY", 11)
    with pytest.warns(UserWarning, match=r"matrices of 12 × 12 numbers: .*engine='inducing'"):
        pmo.fit(model, progressbar=False)


def test_cost_grows_with_the_cube():
    assert size.cost(50_000) == "some 35 hours and 1.6e+02 GB"


def test_engines_without_such_matrices_do_not_warn(monkeypatch):
    monkeypatch.setattr(size, "MANY", 11)
    x = np.linspace(0, 3, 40)
    y = np.digitize(x, [1, 2])
    pmo.fit(pmo.gp_model(x, y, "expquad", engine="inducing"), progressbar=False)


def test_a_memory_error_names_the_alternative(model, monkeypatch):
    def fails(*arguments):
        raise MemoryError

    monkeypatch.setattr(pmo.EP, "__call__", fails)
    with pytest.raises(
        MemoryError, match="not enough for engine 'ep' and 12 rows: engine='inducing'"
    ):
        pmo.fit(model, progressbar=False)
