"""Random variables by their law: one class for all, whose data die with their model."""

import copy
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytest
from pytensor.compile.mode import Mode

import pmordinal as pmo
from pmordinal.inference.density import find_evidence, find_latent
from pmordinal.model.compile import OFTEN
from pmordinal.model.laws import LawRV

PYTHON = Mode(linker="py", optimizer="fast_compile")
QUIET = {"progressbar": False}


@pytest.fixture
def table(rng):
    X = rng.normal(size=(12, 2))
    return X, np.digitize(X[:, 0], [-0.5, 0.5])


def few(**options):
    """Return options of the shortest chain."""
    silent = {"quiet": True, "compute_convergence_checks": False, "nuts_sampler": "pymc"}
    return {"draws": 2, "tune": 2, "chains": 1, "cores": 1, **silent, **QUIET, **options}


def built(X, y):
    """Return the problem of a model, which alone is not to keep it."""
    return find_evidence(pmo.gp_model(X, y, "expquad").logp()).op.problem


def fitted(X, y):
    model = pmo.gp_model(X, y, "expquad", engine="laplace")
    fit = pmo.fit(model, max_evaluations=2, **QUIET)
    fit.predict(X)
    return find_evidence(model.logp()).op.problem


def sampled(X, y):
    model = pmo.gp_model(X, y, "expquad", engine="laplace")
    tree = pm.sample(model=model, **few(random_seed=1))
    pmo.sample_posterior(model, tree, X[:2], seed=1, **QUIET)
    return find_evidence(model.logp()).op.problem


def latent(X, y):
    model = pmo.latent_model(X, y, "expquad")
    model.compile_logp(mode=OFTEN)(model.initial_point())
    return find_latent(model).op.problem


def basis(X, y):
    model = pmo.latent_model(X, y, "expquad", approx="hsgp", m=3, c=2.0)
    model.compile_logp(mode=OFTEN)(model.initial_point())
    return find_latent(model).op.problem


def copied(X, y):
    model = pmo.gp_model(X, y, "expquad")
    pm.do(model, {"noise": 1.0})
    other = cloudpickle.loads(cloudpickle.dumps(model))
    return find_evidence(other.logp()).op.problem


@pytest.mark.filterwarnings("ignore::pmordinal.ConvergenceWarning")
@pytest.mark.parametrize("use", [built, fitted, sampled, latent, basis, copied])
def test_a_model_that_is_dropped_leaves_no_data(table, use):
    kept = weakref.ref(use(*table))
    gc.collect()
    assert kept() is None


def test_a_linear_model_that_is_dropped_leaves_no_table(table):
    model = pmo.linear_model(*table)
    model.compile_logp(mode=OFTEN)(model.initial_point())
    inner = [v for v in pytensor.graph.traversal.ancestors([model["y"]]) if hasattr(v, "data")]
    (rows,) = [weakref.ref(v.data) for v in inner if v.type.ndim == 2]
    del model, inner
    gc.collect()
    assert rows() is None


@pytest.mark.slow
@pytest.mark.parametrize("make", [pmo.gp_model, pmo.latent_model])
@pytest.mark.parametrize("mode", [PYTHON, OFTEN])
def test_functions_and_graphs_hold_what_they_need(table, make, mode):
    """Also when the model itself is gone."""
    model = make(*table)
    point, expected = (
        model.initial_point(),
        float(model.compile_logp(mode=mode)(model.initial_point())),
    )
    function, graph, inputs = model.compile_logp(mode=mode), model.logp(), model.value_vars
    labels = model["y"]
    del model
    gc.collect()
    assert float(function(point)) == pytest.approx(expected)
    later = pytensor.function(inputs, graph, mode=mode)
    del graph
    gc.collect()
    assert float(later(*(point[v.name] for v in inputs))) == pytest.approx(expected)
    assert pm.draw(labels, mode=mode, random_seed=1).shape == (12,)


def pickled(model):
    return cloudpickle.loads(cloudpickle.dumps(model))


@pytest.mark.parametrize(
    ("make", "copying"),
    [
        (pmo.gp_model, copy.deepcopy),
        (pmo.gp_model, pm.Model.copy),
        (pmo.gp_model, pickled),
        (pmo.latent_model, pickled),
        (pmo.linear_model, pm.Model.copy),
        pytest.param(pmo.latent_model, copy.deepcopy, marks=pytest.mark.slow),
        pytest.param(pmo.latent_model, pm.Model.copy, marks=pytest.mark.slow),
        pytest.param(pmo.linear_model, copy.deepcopy, marks=pytest.mark.slow),
        pytest.param(pmo.linear_model, pickled, marks=pytest.mark.slow),
    ],
)
def test_copies_have_the_same_density_and_live_without_the_first(table, make, copying):
    model = make(*table)
    point = model.initial_point()
    expected = float(model.compile_logp(mode=OFTEN)(point))
    other = copying(model)
    del model
    gc.collect()
    assert float(other.compile_logp(mode=OFTEN)(point)) == pytest.approx(expected)


def test_one_class_for_all_variables_and_models(table):
    ops = [
        rv.owner.op
        for model in (pmo.gp_model(*table, "expquad"), pmo.linear_model(*table))
        for rv in model.basic_RVs
    ]
    laws = [op for op in ops if type(op) is LawRV]
    assert len(laws) == 4  # thresholds and labels of both
    assert len(set(laws)) == 3  # the priors of the thresholds are one law, with other parameters
    assert pmo.gp_model(*table, "expquad")["y"].owner.op != laws[1]  # other data
    text = pmo.linear_model(*table).str_repr()
    assert "InducedDirichlet(" in text
    assert "Ordinal(" in text


def test_two_likelihoods_in_one_model(rng):
    X, y = rng.normal(size=9), np.array([0, 1, 2] * 3)
    with pm.Model() as model:
        slope = pm.Normal("slope")
        pmo.Ordinal("a", slope * X, [-1.0, 1.0], observed=y)
        pmo.Ordinal("b", slope * X, [-1.0, 1.0], link="logit", observed=y)
    logps = model.point_logps(round_vals=10, mode=PYTHON)
    assert logps["a"] != logps["b"]


def test_sizes_follow_the_parameters_of_a_copy():
    rv = pmo.Ordinal.dist(np.zeros(3), [-1.0, 1.0])
    assert pm.draw(rv, draws=4, mode=PYTHON, random_seed=1).shape == (4, 3)
    with pm.Model() as model:
        shift = pm.Normal("shift")
        pmo.Ordinal("y", shift + np.zeros(3), [-1.0, 1.0])
    far = pm.do(model, {"shift": 50.0})
    drawn = pm.draw(far["y"], draws=4, mode=PYTHON, random_seed=1)
    assert np.all(drawn == 2)


def test_threads_may_use_one_model(table):
    model = pmo.gp_model(*table, "expquad")
    run = model.logp_dlogp_function(ravel_inputs=True)
    x = pm.blocking.DictToArrayBijection.map(model.initial_point()).data
    gate = threading.Barrier(3)

    def chain(_):
        function = run.copy()
        gate.wait()
        return [float(function([x + 0.01 * k], extra_vars={})[0]) for k in range(30)]

    with ThreadPoolExecutor(3) as pool:
        first, *others = pool.map(chain, range(3))
    assert all(other == first for other in others)


def test_missing_labels_may_be_imputed():
    """PyMC makes a variable of the missing ones, which has a start."""
    y = np.ma.masked_values([0, 1, -9, 2], -9)
    with pm.Model() as model, pytest.warns(Warning, match="missing|imput"):
        pmo.Ordinal("y", np.zeros(4), [-1.0, 1.0], observed=y)
    assert np.isfinite(model.compile_logp(mode=PYTHON)(model.initial_point()))
