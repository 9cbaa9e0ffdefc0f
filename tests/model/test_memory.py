"""Predicted starts: they are good where solutions are smooth, harmless elsewhere, and change no result."""

import copy
import gc
import pickle
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pymc as pm
import pytest

import pmordinal as pmo
from pmordinal.inference.density import find_evidence
from pmordinal.model.memory import (
    BATCH,
    CHAINS,
    FIRST,
    LARGEST,
    MANY,
    MOST,
    ChainMemory,
    Chains,
    Starts,
)
from pmordinal.posterior import Start
from tests.repeated import first_fast


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
    starts, x = filled(rng, count=BATCH), np.zeros(2)
    before = starts.predict(x)[0].cavity
    for there in rng.normal(size=(2 * BATCH, 2)):
        starts.add(there, smooth(there + 9.0), missed=False)
    np.testing.assert_array_equal(starts.predict(x)[0].cavity, before)


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
    for x in np.random.default_rng(9).normal(size=(20, 2)):
        found, is_predicted = starts.predict(x)
        assert is_predicted
        np.testing.assert_allclose(found.cavity[0], smooth(x).cavity[0], atol=2e-3)


def test_a_table_among_the_parameters_is_no_place_to_predict_from(rng):
    """A covariance may read one from `pm.Data`: pairs of hundreds of them would fill the memory."""
    starts = Starts()
    for x in rng.normal(size=(BATCH, MANY + 1)):
        starts.add(x, last := smooth(x), missed=True)
    assert starts.predict(x) == (last, False)


def test_the_oldest_are_forgotten(rng):
    starts = filled(rng, count=MOST, solution=lambda x: smooth(x + 9.0))
    size, x = len(pickle.dumps(starts)), np.zeros(2)
    assert np.abs(starts.predict(x)[0].cavity[0] - smooth(x).cavity[0]).max() > 0.1
    for there in rng.normal(size=(MOST, 2)):
        starts.add(there, smooth(there), missed=True)
    np.testing.assert_allclose(starts.predict(x)[0].cavity[0], smooth(x).cavity[0], atol=2e-3)
    assert len(pickle.dumps(starts)) < 1.1 * size


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
    assert starts.predict(np.zeros(2))[1] is False


@pytest.fixture(params=first_fast(["ep", "laplace"]))
def problem(request, rng):
    X = rng.normal(size=(40, 2))
    y = np.digitize(X[:, 0] + 0.4 * rng.normal(size=40), [-0.5, 0.5])
    return find_evidence(pmo.gp_model(X, y, "expquad", engine=request.param).logp()).op.problem


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
        exact.found.begin_from(None)
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
    first = problem.found.solutions(problem.y).starts
    others = problem.y[::-1].copy()
    problem.evaluate(values, b, s, others)
    assert problem.found.solutions(others).starts is not first


def test_a_result_asked_for_again_is_not_computed_again(problem, rng, monkeypatch):
    values, b, s = next(parameters(rng, 1))
    first = problem.evaluate(values, b, s, problem.y)
    monkeypatch.setattr(type(problem), "posterior", None)
    assert problem.evaluate(values, b, s, problem.y) is first
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        problem.evaluate(values, b + 1e-9, s, problem.y)


def chain_of(problem, memory, path):
    """Return the values along a path, as a sampler asks for them: where a trajectory begins, it asks again."""
    values = []
    for k, (parameters, b, s) in enumerate(path):
        for _ in range(2 if k % 7 == 0 else 1):
            values.append(problem.evaluate(parameters, b, s, problem.y, memory)[0])
    return values


def test_a_chain_depends_on_itself_alone(problem, rng):
    """Beside others, after others, in other threads: the numbers are the same, bit by bit."""
    paths = [list(parameters(rng, 60)) for _ in range(3)]
    alone = [chain_of(problem, ChainMemory(), path) for path in paths]
    shared = ChainMemory()
    for path in paths:  # PyMC tries out the starts of all chains
        chain_of(problem, shared, path[:1])
    assert [chain_of(problem, shared, path) for path in paths] == alone
    chains = Chains()

    def in_thread(path):
        return chain_of(problem, chains.mine(), path)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(in_thread, paths)) == alone
    learned = [ChainMemory() for _ in paths]
    for memory, path in zip(learned, paths, strict=True):
        chain_of(problem, memory, path)
    assert all(memory.predict(np.zeros(4))[0] is not None for memory in learned)  # it is in use


def test_chains_that_all_begin_where_nobody_has_tried(problem, rng):
    """Without jitter, chains begin at the same point, and the first one's first evaluations are no starts."""
    start, *first = parameters(rng, 60)
    second = list(parameters(rng, 60))
    paths = [[start, *first], [start, *second]]
    alone = [chain_of(problem, ChainMemory(), path) for path in paths]
    shared = ChainMemory()
    assert [chain_of(problem, shared, path) for path in paths] == alone


def test_first_evaluations_are_functions_of_the_parameters(problem, rng):
    points = list(parameters(rng, FIRST))
    memories = ChainMemory(), ChainMemory()
    there = [problem.evaluate(*point, problem.y, memories[0])[0] for point in points]
    back = [problem.evaluate(*point, problem.y, memories[1])[0] for point in points[::-1]]
    assert there == back[::-1]


def test_other_processes_and_threads_begin_without_memory(monkeypatch):
    chains = Chains()
    mine = chains.mine()
    assert chains.mine() is mine
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(chains.mine).result() is not mine
    assert pickle.loads(pickle.dumps(chains)).mine() is not mine
    monkeypatch.setattr("os.getpid", lambda: -1)  # as after a fork
    assert chains.mine() is not mine


def test_few_memories_are_kept(monkeypatch):
    chains, memories = Chains(), weakref.WeakSet()
    for thread in range(CHAINS + 6):
        monkeypatch.setattr("threading.get_native_id", lambda thread=thread: thread)
        memories.add(chains.mine())
    gc.collect()
    assert len(memories) == CHAINS
    assert chains.mine() in memories  # the youngest are kept


def test_copies_of_a_problem_have_found_nothing(problem, rng):
    values, b, s = next(parameters(rng, 1))
    problem.evaluate(values, b, s, problem.y)
    for other in (copy.deepcopy(problem), pickle.loads(pickle.dumps(problem))):
        assert other.found.engine == problem.found.engine
        assert other.found.solutions(problem.y).starts.last is None
    assert problem.found.solutions(problem.y).starts.last is not None


@pytest.mark.slow
def test_the_same_seed_gives_the_same_chain(rng):
    """Also from a model that has been sampled before: what it has learned is forgotten."""
    X = rng.normal(size=(25, 1))
    y = (X[:, 0] + 0.3 * rng.normal(size=25) > 0).astype(int)
    options = {"draws": 60, "tune": 60, "chains": 1, "cores": 1, "random_seed": 5}
    options |= {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
    model = pmo.gp_model(X, y, "expquad")
    trees = [pm.sample(model=m, **options) for m in (model, model, pmo.gp_model(X, y, "expquad"))]
    first, *others = (tree["posterior"]["noise"].values for tree in trees)
    for other in others:
        np.testing.assert_array_equal(other, first)


SETTINGS = {
    "one core": {"cores": 1, "nuts_sampler": "pymc"},
    "fork": {"cores": 2, "mp_ctx": "fork", "nuts_sampler": "pymc"},
    "spawn": {"cores": 2, "mp_ctx": "spawn", "nuts_sampler": "pymc"},
}


def drawn(model, **options):
    options |= {"draws": 60, "tune": 60, "chains": 3, "random_seed": 5}
    options |= {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
    return pm.sample(model=model, **options)["posterior"]["noise"].values


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("engine", ["ep", "laplace"])
def test_a_seed_gives_the_same_draws_on_any_number_of_cores(rng, engine):
    X = rng.normal(size=(25, 1))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=25), [-0.4, 0.4])
    model = pmo.gp_model(X, y, "expquad", engine=engine)
    first, *others = (drawn(model, **options) for options in SETTINGS.values())
    for other in others:
        np.testing.assert_array_equal(other, first)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("nutpie") is None, reason="needs nutpie")
def test_a_seed_gives_the_same_draws_with_nutpie(rng):
    """Where no thread has two chains."""
    X = rng.normal(size=(25, 1))
    model = pmo.gp_model(X, (X[:, 0] + 0.3 * rng.normal(size=25) > 0).astype(int), "expquad")
    first, second = (drawn(model, cores=3, nuts_sampler="nutpie") for _ in range(2))
    np.testing.assert_array_equal(second, first)
