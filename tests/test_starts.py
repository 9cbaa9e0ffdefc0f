"""Predicted starts: they are good where solutions are smooth, harmless elsewhere, and change no result."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pymc as pm
import pytest

import pmordinal as pmo
from pmordinal.posterior import Start
from pmordinal.starts import BATCH, LARGEST, MANY, MOST, Starts
from pmordinal.target import find_evidence


def smooth(x, n=5):
    """Return a made-up solution at the parameters x, a smooth function of them."""
    phase = np.arange(n)
    f = np.sin(0.3 * x.sum() + phase)
    return Start(np.cos(0.4 * x[0] + phase), (f, np.exp(0.3 * f)))


def filled(rng, count=200, solution=smooth):
    starts = Starts()
    for x in rng.normal(size=(count, 2)):
        starts.add(x, solution(x), missed=True)
    return starts


def test_the_last_solution_until_there_are_enough(rng):
    starts = Starts()
    assert starts.predict(np.zeros(2)) == (None, False)
    for k in range(BATCH - 1):
        x = rng.normal(size=2)
        starts.add(x, last := smooth(x), missed=True)
        assert starts.predict(x) == (last, False), k
    starts.add(x, last, missed=True)
    assert starts.predict(x)[1]


def test_smooth_solutions_are_predicted_to_three_digits(rng):
    starts, away = filled(rng), []
    for x in rng.normal(size=(20, 2)):
        found, is_predicted = starts.predict(x)
        expected = smooth(x)
        assert is_predicted
        np.testing.assert_allclose(found.cavity[0], expected.cavity[0], atol=2e-3)
        np.testing.assert_allclose(found.cavity[1], expected.cavity[1], rtol=2e-3)
        away.append(np.abs(expected.cavity[0] - starts.last.cavity[0]).max())
    assert np.median(away) > 0.1  # the last solution is not that good


def test_far_from_all_solutions_nothing_is_predicted(rng):
    starts = filled(rng)
    assert starts.predict(np.array([40.0, 0.0])) == (starts.last, False)


def test_solutions_that_were_predicted_well_are_not_kept(rng):
    starts = filled(rng, count=BATCH)
    for x in rng.normal(size=(50, 2)):
        starts.add(x, smooth(x), missed=False)
    assert len(starts._found) == BATCH


def test_chains_in_threads_may_share_them():
    """As nutpie's do: parameters stay with their solutions, and the process is never half of one."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    starts = Starts()

    def chain(seed):
        for x in np.random.default_rng(seed).normal(size=(300, 2)):
            starts.predict(x)
            starts.add(x, smooth(x), missed=True)

    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(chain, range(4)))
    finally:
        sys.setswitchinterval(interval)
    for x, numbers in starts._found:
        np.testing.assert_array_equal(numbers[:5], smooth(x).cavity[0])


def test_a_table_among_the_parameters_is_no_place_to_predict_from(rng):
    """A covariance may read one from `pm.Data`: pairs of hundreds of them would fill the memory."""
    starts = Starts()
    for x in rng.normal(size=(BATCH + 1, MANY + 1)):
        starts.add(x, last := smooth(x), missed=True)
    assert not starts._found
    assert starts.predict(x) == (last, False)


def test_the_oldest_are_forgotten(rng):
    starts = filled(rng, count=MOST + 3 * BATCH)
    assert len(starts._found) <= MOST + BATCH
    assert len(starts._process[2]) == MOST


def test_solutions_without_cavities_constant_parameters_and_copies(rng):
    """Laplace has no cavities; a parameter that never moves has no scale; chains copy their problem."""
    starts = Starts()
    for x in rng.normal(size=(60, 1)):
        starts.add(np.append(x, 1.0), Start(np.cos(0.5 * x + np.arange(3))), missed=True)
    for other in (starts, copy.deepcopy(starts), pickle.loads(pickle.dumps(starts))):
        found, is_predicted = other.predict(np.array([0.1, 1.0]))
        assert is_predicted
        assert found.cavity is None
        np.testing.assert_allclose(found.alpha, np.cos(0.05 + np.arange(3)), atol=1e-3)


def test_large_solutions_are_not_collected(rng):
    starts = filled(rng, count=BATCH, solution=lambda x: Start(np.zeros(LARGEST + 1)))
    assert not starts._found
    assert starts.predict(np.zeros(2))[1] is False


@pytest.fixture(params=["ep", "laplace"])
def problem(request, rng):
    X = rng.normal(size=(40, 2))
    y = np.digitize(X[:, 0] + 0.4 * rng.normal(size=40), [-0.5, 0.5])
    return find_evidence(pmo.gp_model(X, y, engine=request.param).logp()).op.problem


def parameters(rng, count):
    """Return parameters along a path such as a sampler takes."""
    for z in np.cumsum(0.15 * rng.normal(size=(count, 3)), axis=0) * 0.5:
        middle = 0.3 * np.tanh(z[1])
        yield (
            [np.asarray(np.exp(0.3 + 0.5 * z[0]))],
            np.array([middle - 0.6, middle + 0.6]),
            0.5 * np.exp(0.4 * z[2]),
        )


def test_predictions_save_work_and_leave_the_objective_as_it_is(problem, rng):
    """Along a path: fewer iterations than from the last solution, and the evidence to 1e-5, its gradient to 1e-3."""
    exact = copy.deepcopy(problem)
    engine, spent, last = problem.engine, [], None
    for k, (values, b, s) in enumerate(parameters(rng, 400)):
        value, gradient = problem.evaluate(values, b, s, problem.y)
        if k < 300:
            continue
        posterior = problem.posterior(values, b, s, problem.y, loosely=True)
        plain = engine(posterior.gram, problem.y, posterior.likelihood, last)
        last = plain.start
        spent.append((posterior.status.iterations, plain.status.iterations))
        exact.cache.clear()
        true, slope = exact.evaluate(values, b, s, exact.y)
        assert value == pytest.approx(true, abs=1e-5)
        np.testing.assert_allclose(gradient.thresholds, slope.thresholds, rtol=1e-3, atol=5e-3)
        np.testing.assert_allclose(gradient.parameters, slope.parameters, rtol=1e-3, atol=5e-3)
        assert gradient.log_noise == pytest.approx(slope.log_noise, rel=1e-3, abs=5e-3)
    ours, theirs = np.mean(spent, axis=0)
    assert ours < 0.7 * theirs


def test_other_labels_have_solutions_of_their_own(problem, rng):
    values, b, s = next(parameters(rng, 1))
    problem.evaluate(values, b, s, problem.y)
    first = problem.cache["memory"].starts
    problem.evaluate(values, b, s, problem.y[::-1].copy())
    assert problem.cache["memory"].starts is not first


def test_a_result_asked_for_again_is_not_computed_again(problem, rng, monkeypatch):
    values, b, s = next(parameters(rng, 1))
    first = problem.evaluate(values, b, s, problem.y)
    monkeypatch.setattr(type(problem), "posterior", None)
    assert problem.evaluate(values, b, s, problem.y) is first
    with pytest.raises(TypeError):
        problem.evaluate(values, b + 1e-9, s, problem.y)


def test_the_same_seed_gives_the_same_chain(rng):
    """Also from a model that has been sampled before: what it has learned is forgotten."""
    X = rng.normal(size=(25, 1))
    y = (X[:, 0] + 0.3 * rng.normal(size=25) > 0).astype(int)
    options = {"draws": 60, "tune": 60, "chains": 1, "cores": 1, "random_seed": 5}
    options |= {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
    model = pmo.gp_model(X, y)
    trees = [pm.sample(model=m, **options) for m in (model, model, pmo.gp_model(X, y))]
    first, *others = (tree["posterior"]["noise"].values for tree in trees)
    for other in others:
        np.testing.assert_array_equal(other, first)
