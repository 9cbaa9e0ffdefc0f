"""Matrices that one evaluation after another uses."""

import copy
import pickle

import numpy as np
import pymc as pm
import pytest

import pmordinal as pmo
from pmordinal.linalg.workspace import LEAST_ENTRIES, MOST, Workspace, empty

SHAPE = (200, 200)


def test_matrices_of_one_evaluation_are_apart_and_those_of_the_next_the_same():
    workspace = Workspace()
    with workspace:
        first = [empty(SHAPE) for _ in range(MOST)]
        assert not any(np.shares_memory(a, b) for i, a in enumerate(first) for b in first[:i])
        first[0].flags.writeable = False
    with workspace:
        again = [empty(SHAPE) for _ in range(MOST + 1)]
        again[0][...] = 1.0  # whoever had it before may have made it read-only
        assert all(np.shares_memory(a, b) for a, b in zip(first, again, strict=False))
        assert not any(np.shares_memory(again[-1], b) for b in first)
        assert not np.shares_memory(empty(SHAPE, np.float32), again[0])
    assert not np.shares_memory(empty(SHAPE), first[0])


def test_entering_it_again_inside_hands_out_nothing_twice():
    workspace = Workspace()
    with workspace:
        first = empty(SHAPE)
        with workspace:
            assert not np.shares_memory(first, empty(SHAPE))
        assert not np.shares_memory(first, empty(SHAPE))


def test_small_matrices_are_not_kept():
    workspace, n = Workspace(), int(LEAST_ENTRIES**0.5) - 1
    with workspace:
        first = empty((n, n))
    with workspace:
        assert not np.shares_memory(first, empty((n, n)))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_have_memory_of_their_own(copied):
    workspace = Workspace()
    with workspace:
        first = empty(SHAPE)
    with copied(workspace):
        assert not np.shares_memory(first, empty(SHAPE))


@pytest.mark.parametrize("engine", ["ep", "laplace", "plsor"])
@pytest.mark.parametrize(
    "cov", [pm.gp.cov.ExpQuad, pytest.param(pm.gp.cov.Matern32, marks=pytest.mark.slow)]
)
def test_evaluations_do_not_see_what_the_last_one_left(engine, cov, rng):
    """Value and gradient are those of a model that has been nowhere before, to the engine's tolerance."""
    X = rng.normal(size=(150, 2))
    y = np.searchsorted([-0.5, 0.5], np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=150))
    used, new = (
        pmo.gp_model(X, y, cov, engine=engine).logp_dlogp_function(ravel_inputs=True)
        for _ in range(2)
    )
    model = pmo.gp_model(X, y, cov, engine=engine)
    x = np.concatenate([np.ravel(v) for v in model.initial_point(random_seed=0).values()])
    for _ in range(4):
        used(x + 0.1 * rng.normal(size=x.size))
    (value, gradient), (expected, expected_gradient) = used(x), new(x)
    np.testing.assert_allclose(value, expected, rtol=1e-7)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-5, atol=1e-5)
