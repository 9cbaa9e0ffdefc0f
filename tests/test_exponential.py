"""The exponential in place against NumPy's."""

import numpy as np
import pytest

from pmordinal.exponential import exponential


def of(x):
    found = np.array(x, dtype=float)
    exponential(found)
    return found


@pytest.mark.parametrize("lowest", [-1.0, -40.0, -708.0])
def test_the_last_place(lowest):
    x = np.concatenate(
        [np.linspace(lowest, 0.0, 100_001), -np.logspace(-320, np.log10(-lowest), 10_001)]
    )
    x = np.maximum(x, lowest)
    expected = np.exp(x)
    assert (
        np.max(np.abs(of(x) - expected) / np.spacing(expected)) <= 2.0
    )  # NumPy has errors of its own


def test_at_the_ends():
    x = [0.0, -0.0, -1e-300, -708.0, -708.0000001, -745.0, -1e308, -np.inf]
    np.testing.assert_allclose(of(x), np.exp(x), rtol=5e-16, atol=3.4e-308)
    assert of(x)[:3].tolist() == [1.0, 1.0, 1.0]
    assert of(x)[3] > 0.0
    assert of(x)[4:].tolist() == [0.0] * 4


def test_nan_stays_itself_and_alone():
    x = np.full(600, -0.5)
    x[[0, 255, 300, 599]] = np.nan
    found = of(x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(x))
    np.testing.assert_allclose(found[~np.isnan(x)], np.exp(-0.5), rtol=5e-16)


@pytest.mark.parametrize("shape", [(0,), (1,), (255,), (256,), (257,), (3, 100), (0, 5)])
def test_any_shape(shape):
    x = -np.random.default_rng(0).exponential(size=shape)
    np.testing.assert_allclose(of(x), np.exp(x), rtol=5e-16)


def test_a_part_of_a_matrix_is_refused():
    with pytest.raises(ValueError, match="contiguous"):
        exponential(np.zeros((4, 4))[:, :2])
