"""What every engine must do, for every link: engines and links that are added are tested on arrival."""

import dataclasses

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import integrate

from pmordinal.engines import ENGINES
from pmordinal.engines.objectives import OBJECTIVES
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.links import LINKS
from pmordinal.posterior import MeasuredPosterior
from tests.repeated import first_fast

c = pm.gp.cov
SYMMETRIC = ("probit", "logit")
# Engines that draw have statistical errors and their own tests.
DETERMINISTIC = [name for name, engine in ENGINES.items() if not engine.is_monte_carlo]
each_engine = pytest.mark.parametrize("engine_name", DETERMINISTIC)
# Engines that approximate the ordinal posterior; the others (regression on labels) only predict.
WITH_EVIDENCE = [name for name in DETERMINISTIC if "evidence" in ENGINES[name].objectives]
each_with_evidence = pytest.mark.parametrize("engine_name", WITH_EVIDENCE)
each_link = pytest.mark.parametrize("link", LINKS)


def each_pair(names):
    """Parametrise by engine and link; pairs that take seconds are slow."""
    pairs = [
        pytest.param(name, link, marks=pytest.mark.slow if (name, link) in SLOW else ())
        for name in names
        for link in LINKS
    ]
    return pytest.mark.parametrize(("engine_name", "link"), pairs)


# by quadrature, for each row in each pass
SLOW = {("inducing", "logit"), ("inducing", "cloglog")}


def tight(engine_name):
    """Return the engine at a tolerance that finite differences do not see."""
    engine = ENGINES[engine_name]
    has_tol = any(field.name == "tol" for field in dataclasses.fields(engine))
    return engine(tol=1e-11) if has_tol else engine()


def v(*value):
    return pt.constant(np.asarray(value[0] if len(value) == 1 else value, dtype=np.float64))


def kernel_and_values(cov):
    kernel = lower(cov)
    return kernel, [p.data.astype(float) for p in kernel.parameters]


COVARIANCES = {
    "iso": c.ExpQuad(2, ls=v(0.8)),
    "ard": c.Matern52(2, ls=v(0.7, 1.9)),
    "sum": v(0.6) * c.ExpQuad(2, ls=v(0.9)) + c.Linear(2, c=v(0.2, -0.1)) + c.Constant(v(0.3)),
    "product": v(1.4) * c.RatQuad(2, ls=v(1.2), alpha=v(0.9)) * c.Matern32(2, ls=v(2.0)),
}


class Case:
    """Rows, labels and parameters of a small problem, and what an engine makes of them."""

    def __init__(self, rng, link, cov="iso", n=14, thresholds=(-0.8, 0.1, 0.9), noise=0.5):
        self.kernel, self.values = kernel_and_values(COVARIANCES[cov])
        self.X = rng.normal(size=(n, 2))
        self.thresholds, self.noise, self.link = np.array(thresholds), noise, link
        latent = np.sin(2 * self.X[:, 0]) + self.X[:, 1] + 0.4 * rng.normal(size=n)
        self.y = np.searchsorted(self.thresholds, latent)

    def run(self, engine, values=None, thresholds=None, noise=None, start=None):
        gram = Gram(self.kernel, self.X, self.values if values is None else values)
        likelihood = OrdinalLikelihood(
            self.thresholds if thresholds is None else thresholds,
            self.noise if noise is None else noise,
            self.link,
        )
        return engine(gram, self.y, likelihood, start)


def five_point(function, h=1e-3):
    """Return f'(0), with an error of h⁴ f⁽⁵⁾/30 and rounding of about 1e-13/h."""
    return (8 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (12 * h)


def assert_gradient(engine, objective, case, rtol=1e-6):
    """Compare the objective's gradient with finite differences in every parameter."""
    likelihood = OrdinalLikelihood(case.thresholds, case.noise, case.link)
    # what an engine chooses, it holds fixed while the parameters move
    engine = engine.select(Gram(case.kernel, case.X, case.values), case.y, likelihood)
    start = case.run(engine)
    _, gradient = OBJECTIVES[objective](start)

    def value(**moved):
        return OBJECTIVES[objective](case.run(engine, start=start.start, **moved))[0]

    found, expected = [], []
    for i, parameter in enumerate(case.values):
        for index in np.ndindex(parameter.shape):

            def moved_kernel(t, i=i, index=index):
                values = [p.copy() for p in case.values]
                values[i][index] += t
                return value(values=values)

            found.append(gradient.parameters[i][index])
            expected.append(five_point(moved_kernel))
    for j in range(case.thresholds.size):
        unit = np.arange(case.thresholds.size) == j
        found.append(gradient.thresholds[j])
        expected.append(five_point(lambda t, u=unit: value(thresholds=case.thresholds + t * u)))
    found.append(gradient.log_noise)
    expected.append(five_point(lambda t: value(noise=case.noise * np.exp(t))))
    # relative to the largest: single entries may vanish by accident
    np.testing.assert_allclose(
        found, expected, rtol=rtol, atol=rtol * 0.1 * np.max(np.abs(expected))
    )


def objective_of(engine_name):
    """Return the objective whose gradient has to be exact."""
    objectives = ENGINES[engine_name].objectives
    return "evidence" if "evidence" in objectives else objectives[0]


@each_pair(DETERMINISTIC)
@pytest.mark.parametrize(
    "cov", [pytest.param("iso", marks=pytest.mark.slow), "ard", "sum", "product"]
)
def test_gradient_is_that_of_finite_differences(engine_name, link, cov, rng):
    if link != "probit" and cov in ("iso", "product"):
        pytest.skip("kernels and links meet only in dK: the others are enough")
    case = Case(rng, link, cov)
    assert_gradient(tight(engine_name), objective_of(engine_name), case)


@each_with_evidence
@pytest.mark.parametrize("noise", [0.05, 3.0])
def test_gradient_with_little_and_much_noise(engine_name, noise, rng):
    # 1e-5: with little noise the fifth derivative of the objective grows like noise⁻⁵
    case = Case(rng, "probit", noise=noise)
    assert_gradient(tight(engine_name), objective_of(engine_name), case, rtol=1e-5)


@each_with_evidence
@each_link
def test_posterior_is_consistent(engine_name, link, rng):
    """The mean is K α, the factor that of B = I + W^½ K W^½, variance, cavities: against dense inverses."""
    case = Case(rng, link, "sum")
    post = case.run(ENGINES[engine_name]())
    assert post.status.converged
    assert post.status.iterations >= 1
    K, W = post.gram.matrix, post.precision
    assert np.all(W >= 0)
    if isinstance(post, MeasuredPosterior):
        B = np.eye(len(K)) + np.sqrt(W)[:, None] * K * np.sqrt(W)
        L = np.tril(post.factor)
        np.testing.assert_allclose(L @ L.T, B, rtol=1e-10, atol=1e-12)
    # what the weights of inducing rows stand for is not always f there
    k = post.cross(post.gram.X).T if engine_name == "inducing" else K[:, post.support]
    np.testing.assert_allclose(post.mean, k @ post.alpha, rtol=1e-8, atol=1e-8)
    A = K - K @ np.linalg.solve(K + np.diag(1 / W), K)
    np.testing.assert_allclose(post.variance, np.diag(A), rtol=1e-7)
    mean, var = post.cavity
    np.testing.assert_allclose(1 / var, 1 / np.diag(A) - W, rtol=1e-6)
    # sites N(f; α/W + h, 1/W): removing one moves the mean by −var·α
    site = post.mean + np.linalg.solve(K, post.mean) / W
    np.testing.assert_allclose(
        mean, var * (post.mean / np.diag(A) - W * site), rtol=1e-6, atol=1e-7
    )
    loo = case.run(ENGINES[engine_name]()).leave_one_out
    np.testing.assert_allclose(loo.value, post.likelihood.tilted(case.y, mean, var).value)


@each_with_evidence
@each_link
def test_prediction_equals_dense_formulas(engine_name, link, rng):
    case = Case(rng, link, "product")
    post = case.run(ENGINES[engine_name]())
    X_star = rng.normal(size=(6, 2))
    mean, var = post.latent(X_star)
    K, k = post.gram.matrix, post.gram.cross(X_star)
    prior = np.diag(Gram(case.kernel, X_star, case.values).matrix)
    np.testing.assert_allclose(mean, k.T @ np.linalg.solve(K, post.mean), rtol=1e-5, atol=1e-6)
    dense = prior - np.sum(k * np.linalg.solve(K + np.diag(1 / post.precision), k), axis=0)
    np.testing.assert_allclose(var, dense, rtol=1e-8)
    here_mean, here_var = post.latent(case.X)
    np.testing.assert_allclose(here_mean, post.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(here_var, post.variance, rtol=1e-7)


@each_with_evidence
def test_prediction_far_away_is_the_prior(engine_name, rng):
    post = Case(rng, "probit").run(ENGINES[engine_name]())
    mean, var = post.latent(np.array([[1e3, -1e3]]))
    assert abs(mean[0]) < 1e-12
    assert var[0] == pytest.approx(1.0, abs=1e-12)


@each_engine
@each_link
def test_permuting_rows_changes_nothing(engine_name, link, rng):
    case = Case(rng, link)
    a = case.run(ENGINES[engine_name]())
    order = rng.permutation(len(case.y))
    case.X, case.y = case.X[order], case.y[order]
    b = case.run(ENGINES[engine_name]())
    # the engine's own tolerance: both runs stop within it
    assert b.log_evidence == pytest.approx(a.log_evidence, abs=1e-6)
    np.testing.assert_allclose(b.mean, a.mean[order], atol=1e-5)
    objective = OBJECTIVES[objective_of(engine_name)]
    np.testing.assert_allclose(
        objective(b)[1].thresholds, objective(a)[1].thresholds, rtol=1e-4, atol=1e-4
    )


@each_engine
@pytest.mark.parametrize("link", SYMMETRIC)
def test_reflection(engine_name, link, rng):
    """Labels r − 1 − y with −f leave the evidence and mirror the latent function."""
    case = Case(rng, link)
    a = case.run(ENGINES[engine_name]())
    case.y, case.thresholds = case.thresholds.size - case.y, -case.thresholds[::-1]
    b = case.run(ENGINES[engine_name]())
    assert b.log_evidence == pytest.approx(a.log_evidence, abs=1e-6)
    np.testing.assert_allclose(b.mean, -a.mean, atol=1e-5)


@each_engine
@each_link
def test_warm_start_gives_the_same_answer(engine_name, link, rng):
    case, engine = Case(rng, link), ENGINES[engine_name]()
    cold = case.run(engine)
    far = case.run(engine, values=[0.2 * v for v in case.values], noise=0.1)
    for start in (cold.start, far.start):
        warm = case.run(engine, start=start)
        assert warm.status.converged
        assert warm.log_evidence == pytest.approx(cold.log_evidence, abs=1e-6)
        np.testing.assert_allclose(warm.mean, cold.mean, atol=1e-5)
    assert case.run(engine, start=cold.start).status.iterations <= cold.status.iterations


@each_engine
def test_a_start_of_another_size_is_ignored(engine_name, rng):
    engine = ENGINES[engine_name]()
    other = Case(rng, "probit", n=5).run(engine).start
    case = Case(rng, "probit")
    assert case.run(engine, start=other).log_evidence == pytest.approx(
        case.run(engine).log_evidence, abs=1e-6
    )


@each_with_evidence
@each_link
@pytest.mark.parametrize("y", [[1], [0], [0, 1], [2, 2]])
def test_evidence_is_near_the_integral_for_one_and_two_rows(engine_name, link, y):
    """Noise one: Laplace errs by at most 0.08 nats at n = 10 [NUMERICS], others by less."""
    kernel, values = kernel_and_values(c.ExpQuad(1, ls=v(1.0)))
    X, y = np.array([[0.0], [0.7]])[: len(y)], np.array(y)
    likelihood = OrdinalLikelihood([-0.5, 0.6], 1.0, link)
    gram = Gram(kernel, X, values)
    L = np.linalg.cholesky(gram.matrix)
    x, w = np.polynomial.hermite_e.hermegauss(80)
    grids = np.stack(np.meshgrid(*[x] * len(y)), -1).reshape(-1, len(y))
    weights = np.prod(np.stack(np.meshgrid(*[w] * len(y)), -1).reshape(-1, len(y)), 1)
    weights /= np.sqrt(2 * np.pi) ** len(y)
    f = grids @ L.T
    log_prob = sum(likelihood.log_prob(np.full(len(f), k), f[:, i]).value for i, k in enumerate(y))
    truth = np.log(weights @ np.exp(log_prob))
    post = ENGINES[engine_name]()(gram, y, likelihood)
    assert post.status.converged
    assert post.log_evidence == pytest.approx(truth, abs=0.08)
    mean = weights @ (np.exp(log_prob - truth) * f[:, 0])
    assert post.mean[0] == pytest.approx(mean, abs=0.15)  # a mode differs from the mean


@each_link
def test_quadrature_of_the_previous_test(link):
    """The tilted integral is the evidence of one row."""
    likelihood = OrdinalLikelihood([-0.5, 0.6], 1.0, link)

    def integrand(f):
        density = np.exp(-0.5 * f * f) / np.sqrt(2 * np.pi)
        return np.exp(likelihood.log_prob(np.array([1]), np.array([f])).value[0]) * density

    truth = np.log(integrate.quad(integrand, -12, 12, epsabs=1e-13)[0])
    value = likelihood.tilted(np.array([1]), np.zeros(1), np.ones(1)).value[0]
    assert value == pytest.approx(truth, abs=1e-11)


@each_with_evidence
def test_what_a_posterior_says_does_not_depend_on_the_order_of_questions(engine_name, rng):
    case, engine = Case(rng, "probit"), ENGINES[engine_name]()
    first, second = case.run(engine), case.run(engine)
    kept = second.precision.copy(), second.explain(np.eye(second.support.size)).copy()
    by_evidence = second.evidence_gradient()
    np.testing.assert_array_equal(second.precision, kept[0])
    np.testing.assert_array_equal(second.explain(np.eye(second.support.size)), kept[1])
    names = [name for name in ("evidence", "loo") if name in engine.objectives]
    for name in reversed(names):
        value, gradient = OBJECTIVES[name](first)
        again, same = OBJECTIVES[name](second)
        assert again == value
        np.testing.assert_array_equal(same.thresholds, gradient.thresholds)
        for a, b in zip(same.parameters, gradient.parameters, strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(by_evidence.thresholds, first.evidence_gradient().thresholds)


def usable(post):
    """Say whether a posterior holds numbers only, its gradient included."""
    gradient = post.evidence_gradient()
    arrays = [post.alpha, post.mean, post.precision, post.variance, *post.cavity]
    arrays += [post.leave_one_out.value, gradient.thresholds, *gradient.parameters]
    arrays += [post.log_evidence, gradient.log_noise]
    return all(np.all(np.isfinite(a)) for a in arrays)


@each_pair(WITH_EVIDENCE)
@pytest.mark.parametrize("noise", first_fast([1e-3, 10.0, 0.1], 2))
@pytest.mark.parametrize("ls", [1e-3, 1.0, 1e3])
def test_extreme_parameters(engine_name, link, noise, ls, rng):
    """Numbers everywhere, and convergence or a reason; warnings are errors."""
    for thresholds in ([0.0], [-0.8, 0.1, 0.9], np.linspace(-1, 1, 9), [5.0, 5.001, 40.0]):
        kernel, _ = kernel_and_values(c.ExpQuad(2, ls=v(1.0)))
        X = rng.normal(size=(12, 2))
        y = rng.integers(0, len(thresholds) + 1, 12)
        likelihood = OrdinalLikelihood(thresholds, noise, link)
        post = ENGINES[engine_name]()(Gram(kernel, X, [ls]), y, likelihood)
        assert usable(post)
        assert post.log_evidence < 0
        assert post.status.converged or "no convergence" in post.status.message
        if noise >= 0.1 and link != "cloglog":
            assert post.status.converged, post.status


@each_pair(WITH_EVIDENCE)
@pytest.mark.parametrize("noise", [1e-2, 0.5])
def test_conflicting_duplicates_without_jitter(engine_name, link, noise):
    """K is singular, the labels at one place contradict each other."""
    kernel, values = kernel_and_values(c.ExpQuad(1, ls=v(1.0)))
    X = np.repeat([[0.0], [0.5], [2.0]], 4, axis=0)
    y = np.array([0, 1, 2, 2, 0, 0, 1, 1, 2, 2, 2, 0])
    post = ENGINES[engine_name]()(
        Gram(kernel, X, values), y, OrdinalLikelihood([-0.3, 0.4], noise, link)
    )
    assert usable(post)
    assert post.status.converged, post.status
    np.testing.assert_allclose(post.mean[:4], post.mean[0], rtol=1e-6, atol=1e-8)
    # the second of two equal rows knows the label of the first
    assert post.leave_one_out.value.shape == (12,)
    mean, var = post.latent(X)
    np.testing.assert_allclose(mean, post.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(var, post.variance, rtol=1e-5)


@each_with_evidence
def test_one_row_and_one_class_of_ten(engine_name):
    kernel, values = kernel_and_values(c.ExpQuad(1, ls=v(1.0)))
    likelihood = OrdinalLikelihood(np.linspace(-2, 2, 9), 0.5)
    post = ENGINES[engine_name]()(Gram(kernel, [[0.3]], values), np.array([9]), likelihood)
    assert post.status.converged
    assert usable(post)
    truth = likelihood.tilted(np.array([9]), np.zeros(1), np.ones(1)).value[0]
    assert post.log_evidence == pytest.approx(truth, abs=0.3)
    assert post.mean[0] > 1.0


@each_engine
def test_classes_of_a_latent_prediction_sum_to_one(engine_name, rng):
    post = Case(rng, "probit").run(ENGINES[engine_name]())
    probs = post.likelihood.probabilities(*post.latent(rng.normal(size=(5, 2))))
    np.testing.assert_allclose(probs.sum(1), 1.0, rtol=1e-14)
    assert np.all(probs > 0)


@pytest.mark.parametrize("engine_name", ENGINES)
def test_the_engine_is_what_it_says(engine_name):
    engine = ENGINES[engine_name]
    assert engine.name == engine_name
    assert engine.objectives
    assert all(objective in OBJECTIVES for objective in engine.objectives)
    assert any(link.is_normal or not engine.needs_normal_noise for link in LINKS.values())
    with pytest.raises(dataclasses.FrozenInstanceError):
        engine().tol = 1.0


def test_unknown_engine_lists_the_known():
    with pytest.raises(ValueError, match=r"unknown engine 'laplas': choose one of .*'laplace'"):
        ENGINES["laplas"]
