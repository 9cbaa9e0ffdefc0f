"""The PyTensor Ops: one computation for value and gradient, no silent second derivative, no NaN."""

import warnings
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.gradient import NullTypeGradError

from pmordinal.data import features, labels
from pmordinal.engines import get_engine
from pmordinal.gram import lower
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.links import LINKS, get_link
from pmordinal.model import memory as starts
from pmordinal.model.memory import Found
from pmordinal.model.ops.evidence import OrdinalEvidence, PriorLatent
from pmordinal.model.ops.interval import IntervalLogProb, LinkQuantile
from pmordinal.model.problem import Problem

PYTHON = Mode(linker="py", optimizer="fast_compile")


def problem(rng, ls, n=10, engine="laplace"):
    X = rng.normal(size=(n, 2))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=n), [-0.5, 0.5])
    table, rows = features.learn(X)
    return Problem(
        kernel=lower(pm.gp.cov.ExpQuad(2, ls=ls)),
        X=rows,
        labels=labels.encode(y, [0, 1, 2]),
        features=table,
        engine=get_engine(engine),
        objective="evidence",
        link=get_link("probit"),
        unlabeled=np.empty((0, 2)),
    )


@pytest.fixture
def evidence(rng):
    """Return the problem, the inputs' variables and the evidence as an expression of them."""
    ls, b, s = pt.dvector("ls"), pt.dvector("b"), pt.dscalar("s")
    task = problem(rng, ls)
    value = OrdinalEvidence(task)(ls, b, s, task.labels.codes)[0]
    return task, [ls, b, s], value


POINT = [np.array([0.8, 1.5]), np.array([-0.4, 0.6]), np.array(0.5)]


def test_gradient_through_pytensor_is_that_of_differences(evidence):
    _, inputs, value = evidence
    both = pytensor.function(inputs, [value, *pytensor.grad(value, inputs)], mode=PYTHON)
    _, *gradient = both(*POINT)
    h = 1e-5
    for i, g in enumerate(gradient):
        assert g.shape == POINT[i].shape
        for index in np.ndindex(POINT[i].shape):
            ends = []
            for sign in (1, -1):
                point = [p.copy() for p in POINT]
                point[i][index] += sign * h
                ends.append(float(both(*point)[0]))
            # central differences: h² f''' ~ 1e-9, the engine's tolerance over h 1e-7 at worst
            assert g[index] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-6)


def test_value_and_gradient_are_computed_once(evidence, monkeypatch):
    _, inputs, value = evidence
    calls = []
    original = OrdinalEvidence.perform

    def counted(self, *args):
        calls.append(1)
        return original(self, *args)

    monkeypatch.setattr(OrdinalEvidence, "perform", counted)
    both = pytensor.function(inputs, [value, *pytensor.grad(value, inputs)], mode=PYTHON)
    both(*POINT)
    assert len(calls) == 1


def test_second_derivatives_are_refused(evidence):
    _, inputs, value = evidence
    slope = pytensor.grad(value, inputs[2])
    with pytest.raises(NullTypeGradError, match="second derivatives of OrdinalEvidence"):
        pytensor.grad(slope, inputs[2])
    eta = pt.dvector("eta")
    log_prob = IntervalLogProb(LINKS["probit"])(eta, -1.0, 1.0, 0.5)[0]
    with pytest.raises(NullTypeGradError, match="second derivatives"):
        pytensor.grad(pt.sum(pytensor.grad(pt.sum(log_prob), eta)), eta)


@pytest.mark.parametrize(
    ("index", "bad"),
    [
        (1, [0.5, 0.5]),
        (1, [0.6, -0.4]),
        (1, [np.nan, 1.0]),
        (1, [0.0, np.inf]),
        (2, 0.0),
        (2, -1.0),
        (2, np.nan),
        (0, [np.nan, 1.0]),
        (0, [np.inf, 1.0]),
    ],
)
def test_degenerate_inputs_are_minus_infinity_with_zero_gradient(evidence, index, bad):
    _, inputs, value = evidence
    both = pytensor.function(inputs, [value, *pytensor.grad(value, inputs)], mode=PYTHON)
    point = list(POINT)
    point[index] = np.asarray(bad)
    value, *gradient = both(*point)
    assert value == -np.inf
    assert all(np.all(g == 0.0) for g in gradient)
    assert np.isfinite(both(*POINT)[0])  # and what came before does not harm the next


@pytest.mark.parametrize("code", [-1, 3, 7000, 0.5, np.nan])
def test_a_code_that_is_no_class_is_impossible(evidence, code):
    """And is never looked up: compiled loops would read whatever is there."""
    task, inputs, _ = evidence
    y = pt.tensor("y", shape=(None,), dtype=np.asarray(code).dtype)
    value = OrdinalEvidence(task)(*inputs, y)[0]
    run = pytensor.function([*inputs, y], [value, *pytensor.grad(value, inputs)], mode=PYTHON)
    codes = task.y.astype(y.dtype)
    valid, *_ = run(*POINT, codes)
    codes[1] = code
    found, *gradient = run(*POINT, codes)
    assert np.isfinite(valid)
    assert found == -np.inf
    assert all(np.all(g == 0.0) for g in gradient)


def test_codes_of_other_rows_are_refused(evidence):
    task, inputs, _ = evidence
    y = pt.lvector("y")
    run = pytensor.function([*inputs, y], OrdinalEvidence(task)(*inputs, y)[0], mode=PYTHON)
    with pytest.raises(ValueError, match=r"labelled rows, got 3 class codes"):
        run(*POINT, task.y[:3])


def test_a_warm_start_does_not_change_the_value(evidence):
    task, _, _ = evidence

    def value(ls, b, s):
        return task.evaluate([ls], b, s, task.y)[0]

    first = value(*POINT)
    assert task.found.solutions(task.y).starts.last is not None
    task.found.solutions(task.y).results.clear()
    value(np.array([9.0, 0.1]), np.array([-3.0, 4.0]), np.array(2.0))
    assert value(*POINT) == pytest.approx(first, abs=1e-7)


def test_what_is_kept_is_not_what_others_write_into(evidence):
    """Results are kept for the next time, and a compiled graph may work in the arrays that it is given."""
    task, inputs, _ = evidence
    op = OrdinalEvidence(task)
    node = op.make_node(*inputs, task.y)
    op.prepare_node(node, None, None, "py")
    cells = [[[None] for _ in range(4)] for _ in range(2)]
    for outputs in cells:
        op.perform(node, [*POINT, task.y], outputs)
        for cell in outputs:
            cell.append(cell[0].copy())
            cell[0][...] = 7.0
    for (_, first), (_, second) in zip(*cells, strict=True):
        np.testing.assert_array_equal(first, second)


def test_ops_are_named_without_their_data(evidence):
    _, _, value = evidence
    assert str(value.owner.op) == "OrdinalEvidence"
    assert "array" not in pytensor.dprint(value, file="str")
    assert str(IntervalLogProb(get_link("probit"))) == "IntervalLogProb"


def test_the_default_back_end_runs_the_evidence_without_a_warning(evidence):
    """No object-mode fallback: pytest turns Numba's and PyTensor's warnings into errors."""
    _, inputs, value = evidence
    both = pytensor.function(inputs, [value, *pytensor.grad(value, inputs)])
    slow = pytensor.function(inputs, [value, *pytensor.grad(value, inputs)], mode=PYTHON)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = both(*POINT)
    for a, b in zip(found, slow(*POINT), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("link", LINKS)
def test_interval_op_equals_the_likelihood(link, rng):
    likelihood = OrdinalLikelihood([-0.5, 0.8], 0.7, link)
    y, f = rng.integers(0, 3, 20), rng.normal(size=20) * 3
    lower_end, upper_end = likelihood.bounds(y)
    terms = likelihood.log_prob(y, f)
    inputs = [pt.dvector(name) for name in ("eta", "lower", "upper")] + [pt.dscalar("noise")]
    value = pt.sum(IntervalLogProb(get_link(link))(*inputs)[0])
    run = pytensor.function(inputs, [value, *pytensor.grad(value, inputs)], mode=PYTHON)
    found = run(f, lower_end, upper_end, 0.7)
    assert found[0] == pytest.approx(terms.value.sum())
    np.testing.assert_allclose(found[1], terms.d1)
    np.testing.assert_allclose(found[2], terms.lower[0])
    np.testing.assert_allclose(found[3], terms.upper[0])
    assert found[4].shape == ()  # the gradient of what was broadcast is summed
    assert found[4] == pytest.approx(terms.log_noise[0].sum() / 0.7)


def test_interval_op_broadcasts(rng):
    eta, noise = rng.normal(size=(4, 1)), np.array([0.5, 1.0, 2.0])
    x, s = pt.tensor("x", shape=(None, 1), dtype="float64"), pt.dvector("s")
    value = IntervalLogProb(LINKS["logit"])(x, -np.inf, 0.3, s)[0]
    gx, gs = pytensor.grad(pt.sum(value), [x, s])
    out, gx, gs = pytensor.function([x, s], [value, gx, gs], mode=PYTHON)(eta, noise)
    np.testing.assert_allclose(out, -np.log1p(np.exp(-(0.3 - eta) / noise)), rtol=1e-12)
    assert (out.shape, gx.shape, gs.shape) == ((4, 3), (4, 1), (3,))
    tail = 1 / (1 + np.exp((0.3 - eta) / noise))  # 1 − F
    np.testing.assert_allclose(gx, (-tail / noise).sum(1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(gs, (-tail * (0.3 - eta) / noise**2).sum(0), rtol=1e-12)


def test_the_default_back_end_runs_the_interval_op():
    x = pt.dvector("x")
    value = IntervalLogProb(LINKS["probit"])(x, [-1.0, 0.0], [0.0, np.inf], 1.0)[0]
    both = pytensor.function([x], [value, pytensor.grad(pt.sum(value), x)])
    found, gradient = both(np.array([-40.0, -40.0]))
    # log(Φ(40) − Φ(39)) and log Φ(−40), from mpmath
    np.testing.assert_allclose(found, [-765.08315681, -804.60844201], rtol=1e-9)
    np.testing.assert_allclose(gradient, [39.0256069, 40.0249688], rtol=1e-7)


@pytest.mark.parametrize("link", LINKS)
def test_quantiles_keep_the_digits_of_both_tails(link):
    p = np.array([1e-300, 1e-20, 0.3, 0.5, 0.9])
    q = pt.dvector("q")
    op = LinkQuantile(get_link(link))
    low = op(q, 1.0 - q).eval({q: p}, mode=PYTHON)
    np.testing.assert_allclose(get_link(link).cdf(low), p, rtol=1e-10)
    high = op(1.0 - q, q).eval({q: p[:2]}, mode=PYTHON)
    tail = get_link(link).interval(high, np.inf, np.inf).log_prob
    np.testing.assert_allclose(tail, np.log(p[:2]), rtol=1e-12)


def test_prior_latent_draws_have_the_covariance(rng):
    """Duplicated rows make the matrix singular: equal rows get equal values."""
    ls = pt.dscalar("ls")
    task = problem(rng, ls, n=6)
    task.X[3] = task.X[0]
    z = pt.dvector("z")
    draw = pytensor.function([z, ls], PriorLatent(task)(z, ls), mode=PYTHON)
    R = np.column_stack([draw(e, 0.9) for e in np.eye(6)])
    K = task.kernel.matrix([np.array(0.9)], task.X)[0]
    np.testing.assert_allclose(R @ R.T, K, atol=1e-8)
    np.testing.assert_allclose(R[3], R[0], atol=1e-7)


def status_of(task, **changes):
    """Run the problem's engine, and say of what it finds what the changes say."""

    class Fickle(type(task.engine)):
        def __call__(self, gram, y, likelihood, start=None):
            found = super().__call__(gram, y, likelihood, start)
            asked.append(start)
            if start is not None or "always" in changes:
                value = changes.get("log_evidence", found.log_evidence)
                lost = replace(found.status, converged=False)
                return replace(found, status=lost, log_evidence=value)
            return found

    asked = []
    return replace(task, engine=Fickle(), found=Found()), asked


def test_a_start_that_leads_nowhere_is_given_up(evidence):
    task, asked = status_of(evidence[0])
    ls, b, s = POINT
    for point in (ls, 1.1 * ls):
        assert task.posterior([point], b, s, task.y).status.converged
    assert [start is None for start in asked] == [True, False, True]


def test_probabilities_above_one_are_rejected(evidence):
    """An engine that has not converged may say anything."""
    inputs, codes = evidence[1], evidence[0].labels.codes
    for value, expected in ((3.0, -np.inf), (-3.0, -3.0)):
        task, _ = status_of(evidence[0], always=True, log_evidence=value)
        run = pytensor.function(inputs, OrdinalEvidence(task)(*inputs, codes)[0], mode=PYTHON)
        assert run(*POINT) == expected


def test_results_are_kept_for_these_labels_and_few_parameters(evidence, monkeypatch):
    task = evidence[0]
    ls, b, s = POINT
    first, _ = task.evaluate([ls], b, s, task.y)
    assert task.evaluate([ls], b, s, task.y)[0] is first
    other, _ = task.evaluate([ls], b, s, task.y[::-1].copy())
    assert other != first
    assert task.evaluate([ls], b, s, task.y)[0] == pytest.approx(first)
    assert len(task.found.solutions(task.y).results) == 1
    monkeypatch.setattr(starts, "LONGEST", 8)
    task.evaluate([1.1 * ls], b, s, task.y)
    assert len(task.found.solutions(task.y).results) == 1
