"""Argument checks: what passes, what it becomes, and what every refusal says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmordinal.checks import finite_array, integer, one_of, positive


@settings(deadline=None)
@given(st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_positive_returns_the_number(value):
    assert positive("a", value) == value
    assert type(positive("a", np.float64(value))) is float


@pytest.mark.parametrize("value", [1, np.int64(1), np.array(1.0)])
def test_positive_converts(value):
    assert positive("a", value) == 1.0


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, -np.inf, 10**400])
def test_positive_refuses_numbers_out_of_range(value):
    with pytest.raises(ValueError, match="noise must be a finite number greater than 0, got"):
        positive("noise", value)


@pytest.mark.parametrize(
    "value", ["1", b"1", True, np.True_, None, [1.0], np.ones(1), 1j, [[1], [2, 3]], {}]
)
def test_positive_refuses_what_is_not_one_number(value):
    with pytest.raises(TypeError, match=r"noise must be one number greater than 0, got .+ \("):
        positive("noise", value)


@settings(deadline=None)
@given(st.integers())
def test_integer_returns_the_integer(value):
    assert integer("a", value) == value
    assert integer("a", value, minimum=value) == value
    with pytest.raises(ValueError, match=f"a must be an integer of at least {value + 1}, got"):
        integer("a", value, minimum=value + 1)


def test_integer_converts_numpy():
    assert type(integer("a", np.uint8(3))) is int


@pytest.mark.parametrize("value", [1.5, "1", True, np.False_, None, [1], np.nan, np.inf])
def test_integer_refuses_other_types(value):
    with pytest.raises(TypeError, match=r"draws must be an integer of at least 1, got .+ \("):
        integer("draws", value, minimum=1)


def test_integer_suggests_the_whole_float():
    with pytest.raises(TypeError, match=r"draws must be an integer, got 3.0 .float.; pass 3"):
        integer("draws", 3.0)


def test_one_of():
    assert one_of("kind", "b", iter("ab")) == "b"
    assert one_of("kind", None, [None, "a"]) is None


@pytest.mark.parametrize("value", ["c", None, 1, ["a"], np.array(["a", "b"]), {}])
def test_one_of_lists_the_choices(value):
    with pytest.raises(ValueError, match="kind must be one of 'a', 'b', got"):
        one_of("kind", value, ["a", "b"])


def test_finite_array_is_a_contiguous_copy():
    source = np.arange(6.0).reshape(2, 3).T
    out = finite_array("a", source, ndim=2)
    assert out.flags.c_contiguous and out.dtype == np.float64
    assert not np.shares_memory(out, source)
    np.testing.assert_array_equal(out, source)


@pytest.mark.parametrize("value", [3, [True, False], np.float32([1, 2]), [[1, 2]], []])
def test_finite_array_converts(value):
    np.testing.assert_array_equal(finite_array("a", value), np.asarray(value, dtype=float))


@pytest.mark.parametrize("value", [["a"], "a", [1j], [[1], [2, 3]], [{}], [10**400], [b"1"]])
def test_finite_array_refuses_what_is_not_numbers(value):
    with pytest.raises(TypeError, match=r"b must be an array of numbers, got .+ \("):
        finite_array("b", value)


def test_finite_array_names_shape_and_place():
    with pytest.raises(ValueError, match=r"b must have 1 dimension\(s\), got shape \(1, 2\)"):
        finite_array("b", [[1, 2]], ndim=1)
    with pytest.raises(ValueError, match=r"b must be finite, got inf at index \(0, 1\): remove"):
        finite_array("b", [[1, np.inf]])
    with pytest.raises(ValueError, match="b must be finite, got nan: remove or replace"):
        finite_array("b", None)


def test_long_values_are_shortened():
    with pytest.raises(TypeError, match=r"a must be an integer, got '0{56}\.\.\. \(str\)$"):
        integer("a", "0" * 1000)
