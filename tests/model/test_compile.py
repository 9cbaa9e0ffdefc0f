"""Graphs run by NumPy give what PyTensor's own interpreter gives, and samplers use them unless told otherwise."""

import pickle

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.ifelse import ifelse  # where it is in all versions

import pmordinal as pmo
from pmordinal.model.compile import OFTEN, NumpyLinker, SmallModel

PYTHON = Mode(linker="py", optimizer="fast_compile")
# Graphs as they are written have operations that rewriting removes.
MERGED = Mode(linker=NumpyLinker(), optimizer="merge")
each_mode = pytest.mark.parametrize("mode", [MERGED, OFTEN])


def same(inputs, outputs, values, mode):
    """Compare all outputs, their types included, with those of PyTensor's interpreter."""
    expected = pytensor.function(inputs, outputs, mode=PYTHON, on_unused_input="ignore")(*values)
    found = pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore")(*values)
    for a, b in zip(found, expected, strict=True):
        assert isinstance(a, np.ndarray)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-14, equal_nan=True)


x, v, M = pt.dscalar("x"), pt.vector("v", shape=(3,)), pt.matrix("M", shape=(3, 4))
w, i = pt.dvector("w"), pt.lscalar("i")
VALUES = [0.7, [1.5, -0.2, 3.0], np.arange(12.0).reshape(3, 4) - 4.0, [1.0, 2.0], 2]
EXPRESSIONS = {
    "numbers": pt.exp(x) * x - x**2 / (1.0 + pt.sqr(x)) + pt.log1p(pt.sqrt(x)) - (-x),
    "overflow": pt.exp(1e3 * x) - pt.exp(1e3 * x),
    "division by zero": 1.0 / (x - x),
    "vector and number": v * x + pt.exp(-v) / (x + 1.0),
    "one entry": v[:1] * x + v[1:2],
    "one row": M[1:2, :] * v[:1],
    "many terms": pt.add(v, v, x, v) + pt.mul(v, x, v),
    "axes": (M.T * v)[:, ::-1] + v[None, :],
    "dropped axis": pt.specify_shape(M[:, :1], (3, 1)).squeeze(axis=1),
    "sums": pt.sum(M, axis=0).sum() + pt.sum(M, axis=1).max() + pt.prod(v),
    "sum that keeps an axis": v - pt.sum(v, keepdims=True),
    "sum of one entry": pt.sum(v[:1]) + pt.all(v[:1] > 0.0, axis=0),
    "mean of integers": pt.mean(pt.cast(M, "int32"), axis=1),
    "all": pt.all(v > 0.0) | pt.all(M < 100.0),
    "choice of numbers": pt.switch(x > 0.0, x, -np.inf) + pt.switch(x < 0.0, 1.0, x),
    "choice of vectors": pt.switch(x > 0.0, v, 0.0) - pt.switch(x < 0.0, v, pt.zeros(3)),
    "choice by entry": pt.switch(v > 0.0, v, x),
    "constant choice": pt.switch(pt.gt(x, 0.0)[None], v, np.zeros(1)),
    "comparisons": pt.stack([pt.ge(x, 0.7), pt.le(x, 0.7), pt.lt(x, 0.7), pt.gt(x, 0.7)]),
    "join": pt.concatenate([v, v[:1], x[None]]),
    "join of matrices": pt.concatenate([M, M], axis=1),
    "unknown length": w * 2.0 + pt.sum(w) + x,
    "an index that varies": v[i] + M[i, 1] + v[i:],
    "integers": pt.cast(v, "int64") // 2 + i,
    "special functions": pt.gammaln(x) + pt.erf(v) + pt.sigmoid(v),
    "softplus": pt.softplus(50.0 * v) + pt.softplus(x) + pt.softplus(i),
    "entries changed": pt.inc_subtensor(v[1], x) + pt.set_subtensor(v[::2], M[0, :2]),
    "an entry of one changed": pt.inc_subtensor(v[:1][0], x) + x,
    "an entry changed that varies": pt.inc_subtensor(v[i], x),
    "filled": pt.alloc(x, 3) + v + pt.alloc(v, 4, 3)[1] + pt.alloc(x, 1),
    "filled to an unknown length": pt.alloc(x, w.shape[0]) + w,
    "a condition": ifelse(x > 0.0, v, 2.0 * v) + ifelse(x < 0.0, x, 3.0 * x),
    "a condition on one entry": ifelse(x > 0.0, w[:1], v[:1]),
    "cumulated": pt.cumsum(v) * pt.sum(pt.diff(w)),
    "several results": pt.max_and_argmax(v)[0] + pt.concatenate(pt.split(v, [1, 2])[::-1]),
}


@each_mode
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(name, mode):
    same([x, v, M, w, i], [EXPRESSIONS[name]], VALUES, mode)


@each_mode
def test_gradients(mode):
    value = pt.sum(pt.log1p(pt.exp(M * v[:, None])) * x) + pt.switch(x > 0, pt.sum(v**2) / x, 0.0)
    same([x, v, M], [value, *pytensor.grad(value, [x, v, M])], VALUES[:3], mode)


def test_what_numpy_would_broadcast_is_refused_as_by_pytensor():
    a, b = pt.dvector("a"), pt.dvector("b")
    run = pytensor.function([a, b], a + b, mode=OFTEN)
    np.testing.assert_allclose(run([1.0, 2.0], [3.0, 4.0]), [4.0, 6.0])
    with pytest.raises(ValueError, match="broadcast"):
        run([1.0, 2.0], [3.0])
    with pytest.raises(ValueError, match="reshape"):
        pytensor.function([a], a.squeeze(0), mode=OFTEN)([1.0, 2.0])
    with pytest.raises(ValueError, match="broadcast"):
        pytensor.function([a], pt.alloc(a, 3), mode=MERGED)([1.0])


def test_the_inputs_are_not_written_into():
    given = np.array([1.0, 2.0, 3.0])
    run = pytensor.function([v], [v * 2.0, v[1:], pt.set_subtensor(v[:1], 5.0)], mode=OFTEN)
    run(given)
    np.testing.assert_array_equal(given, [1.0, 2.0, 3.0])


def test_results_are_the_callers_own():
    """To write into one harms neither the inputs nor the next call."""
    run = pytensor.function([x, v], [pt.switch(x > 0, v, np.zeros(3)), v], mode=OFTEN)
    given = np.array([1.0, 2.0, 3.0])
    for number in (1.0, -1.0, 1.0, -1.0):
        for result in run(number, given):
            result[:] = 7.0
        np.testing.assert_array_equal(given, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(run(-1.0, given)[0], np.zeros(3))


@each_mode
def test_a_function_of_nothing(mode):
    assert pytensor.function([], [], mode=mode)() == []
    np.testing.assert_array_equal(pytensor.function([], [pt.ones(2)], mode=mode)()[0], [1.0, 1.0])


def test_a_function_survives_pickling():
    run = pickle.loads(pickle.dumps(pytensor.function([v], v * 2.0, mode=OFTEN)))
    np.testing.assert_allclose(run([1.0, 2.0, 3.0]), [2.0, 4.0, 6.0])


@pytest.fixture
def model(rng):
    X = rng.normal(size=(12, 2))
    return pmo.gp_model(X, np.arange(12) % 3, "expquad")


def linker(function):
    return function.maker.linker


def test_the_model_is_interpreted_unless_a_mode_is_asked_for(model):
    assert isinstance(model, SmallModel)
    density = model.logp_dlogp_function(ravel_inputs=True)
    assert isinstance(linker(density._pytensor_function), NumpyLinker)
    python = model.logp_dlogp_function(ravel_inputs=True, mode=PYTHON)
    assert not isinstance(linker(python._pytensor_function), NumpyLinker)
    q = pm.blocking.DictToArrayBijection.map(model.initial_point(0)).data
    for a, b in zip(density._pytensor_function(q), python._pytensor_function(q), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    for chosen in ({"mode": "FAST_COMPILE"}, {"linker": "py"}):
        with pytensor.config.change_flags(**chosen):
            other = model.compile_fn(model.unobserved_value_vars, inputs=model.value_vars)
            assert not isinstance(linker(other.f), NumpyLinker)


def test_a_model_of_the_users_own_stays_as_it_is(rng):
    with pm.Model() as own:
        assert pmo.gp_model(rng.normal(size=(6, 1)), np.arange(6) % 2, "expquad") is own
    assert not isinstance(own, SmallModel)
