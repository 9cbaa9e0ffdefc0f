"""Numerics under stress: engines converge or say why, the evidence stays finite and its gradient right.

The truth is brute force: for n ≤ 2 the evidence is an integral over one or two latent values.
"""

import itertools

import mpmath
import numpy as np
import pymc as pm
import pytest
from scipy import integrate, stats

import pmordinal as pmo
from pmordinal.engines import ENGINES
from pmordinal.engines.objectives import OBJECTIVES
from pmordinal.gram import Gram, lower
from pmordinal.inference.density import PLAIN
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.links import LINKS
from tests.repeated import first_fast

ENGINE_NAMES = ("laplace", "ep")
each_engine = pytest.mark.parametrize("name", ENGINE_NAMES)
each_link = pytest.mark.parametrize("link", LINKS)
KERNEL = lower(pm.gp.cov.ExpQuad(1, ls=np.float64(1.0)))


def run(name, X, y, thresholds, noise, lengthscale=1.0, link="probit", start=None, **options):
    gram = Gram(KERNEL, np.asarray(X, dtype=float).reshape(-1, 1), [np.float64(lengthscale)])
    likelihood = OrdinalLikelihood(np.asarray(thresholds, dtype=float), noise, link)
    return ENGINES[name](**options)(gram, np.asarray(y), likelihood, start)


def assert_sound(posterior, must_converge=True):
    """Everything finite; and converged, or a message that says what to do."""
    value, gradient = OBJECTIVES["evidence"](posterior)
    assert np.isfinite(value)
    assert value <= 1e-9  # the log of a probability
    for part in (*gradient.parameters, gradient.thresholds, gradient.log_noise):
        assert np.all(np.isfinite(part))
    assert np.all(np.isfinite(posterior.mean))
    assert np.all(posterior.variance >= 0)
    probs = posterior.probabilities()
    np.testing.assert_allclose(probs.sum(1), 1.0, atol=1e-9)
    assert np.all(np.isfinite(posterior.leave_one_out.value))
    if must_converge:
        assert posterior.status.converged, posterior.status.message
    elif not posterior.status.converged:
        assert "raise max_" in posterior.status.message


def gradient_by_differences(name, X, y, thresholds, noise, lengthscale, link, h=1e-4):
    """Return (found, expected) derivatives by log length-scale, thresholds (in small units) and log noise."""
    tight = {"tol": 1e-11}
    base = run(name, X, y, thresholds, noise, lengthscale, link, **tight)
    gradient = OBJECTIVES["evidence"](base)[1]
    # Derivatives by thresholds are of order 1/noise: measure them in that unit.
    step = min(noise, 1.0)
    found = [gradient.parameters[0] * lengthscale, *(gradient.thresholds * step)]
    found.append(gradient.log_noise)

    def value(moves):
        b = np.asarray(thresholds) + step * np.asarray(moves[1:-1])
        posterior = run(
            name, X, y, b, noise * np.exp(moves[-1]), lengthscale * np.exp(moves[0]), link,
            start=base.start, **tight,
        )  # fmt: skip
        return posterior.log_evidence

    expected = []
    for k in range(len(found)):
        unit = h * (np.arange(len(found)) == k)
        expected.append((value(unit) - value(-unit)) / (2 * h))
    return np.array(found, dtype=float), np.array(expected)


# Extreme hyperparameters

NOISES = (1e-4, 1e-2, 1.0, 1e4)
LENGTHS = (1e-3, 0.3, 3.0, 1e4)
GRID = list(itertools.product(NOISES, LENGTHS))


@each_engine
@pytest.mark.parametrize("link", first_fast(LINKS, 2))
def test_grid_of_extreme_hyperparameters(name, link, rng):
    X = np.sort(rng.normal(size=12))
    y = np.digitize(X + 0.5 * rng.normal(size=12), [-0.5, 0.5])
    for noise, lengthscale in GRID:
        posterior = run(name, X, y, [-0.5, 0.5], noise, lengthscale, link)
        assert_sound(posterior, must_converge=noise >= 1e-2)


@each_engine
@pytest.mark.parametrize(
    ("noise", "lengthscale"), [(1e-2, 0.3), (1.0, 1e4), (1e4, 0.3), (1.0, 1e-3)]
)
def test_gradient_at_extreme_hyperparameters(name, noise, lengthscale, rng):
    X = np.sort(rng.normal(size=8))
    y = np.digitize(X + 0.5 * rng.normal(size=8), [-0.5, 0.5])
    found, expected = gradient_by_differences(name, X, y, [-0.5, 0.5], noise, lengthscale, "probit")
    # 1e-4: the third derivative of the evidence times h², and rounding of the value over h
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * (1 + abs(expected).max()))


# Near-singular covariances


@each_engine
@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-8])
def test_rows_that_coincide(name, gap, rng):
    """Twenty rows at two places, up to a gap far below what a Cholesky factor of K could bear."""
    X = np.repeat([0.0, 1.0], 10) + gap * np.arange(20)
    y = np.r_[rng.integers(0, 2, 10), rng.integers(1, 3, 10)]
    posterior = run(name, X, y, [-0.5, 0.5], 0.5)
    assert_sound(posterior)
    pair = run(name, np.repeat([0.0, 1.0], 10), y, [-0.5, 0.5], 0.5)
    assert posterior.log_evidence == pytest.approx(pair.log_evidence, abs=1e-6)


@each_engine
def test_contradicting_labels_at_one_place(name):
    posterior = run(name, np.zeros(4), [0, 2, 0, 2], [-0.5, 0.5], 1e-2)
    assert_sound(posterior)
    assert np.ptp(posterior.mean) < 1e-6


# Classes of next to no probability


@pytest.mark.parametrize("link", first_fast(["probit", "logit"]))
@pytest.mark.parametrize("y", [0, 1, 2])
@pytest.mark.parametrize("thresholds", [(-7.0, 7.0), (7.0, 7.0 + 1e-9), (6.0, 40.0)])
def test_one_row_is_exact_where_classes_are_rare(y, thresholds, link):
    """For n = 1 EP is exact: compare with a quadrature in 60 digits, down to log P ≈ −700."""
    posterior = run("ep", [0.0], [y], thresholds, 0.5, link=link)
    edges = [-np.inf, *thresholds, np.inf]

    def cdf(z):
        if np.isinf(float(z)):
            return mpmath.mpf(float(z) > 0)
        return mpmath.ncdf(z) if link == "probit" else 1 / (1 + mpmath.exp(-z))

    with mpmath.workdps(60):
        lower, upper = (mpmath.mpf(edges[y + k]) for k in (0, 1))
        if link == "probit":
            scale = mpmath.sqrt(mpmath.mpf("1.25"))
            # the upper tail from the other side: ncdf loses its digits near one
            exact = mpmath.ncdf(-lower / scale) - mpmath.ncdf(-upper / scale)
        else:
            half = mpmath.mpf("0.5")
            exact = mpmath.quad(
                lambda f: (cdf((upper - f) / half) - cdf((lower - f) / half)) * mpmath.npdf(f),
                [-40, -20, -10, -5, 0, 5, 10, 20, 40],
            )
        expected = float(mpmath.log(exact))
    assert posterior.status.converged
    # the smoothing of links without a closed form is good to eight digits of the logarithm
    rtol = 1e-9 if link == "probit" else 1e-7
    assert posterior.log_evidence == pytest.approx(expected, rel=rtol, abs=1e-12)


@each_engine
@each_link
def test_a_class_of_probability_1e_12(name, link):
    narrow = 1e-12
    thresholds = [-0.5, -0.5 + narrow, 0.5]
    posterior = run(name, [-1.0, 0.0, 1.0], [0, 1, 3], thresholds, 0.5, link=link)
    assert_sound(posterior)
    assert posterior.log_evidence < np.log(narrow) + 1.0
    wide = run(name, [-1.0, 0.0, 1.0], [0, 1, 3], [-0.5, -0.4, 0.5], 0.5, link=link)
    # a class that is narrow beside the noise is a density times its width
    narrower = run(name, [-1.0, 0.0, 1.0], [0, 1, 3], [-0.5, -0.5 + 1e-13, 0.5], 0.5, link=link)
    ratio = posterior.log_evidence - narrower.log_evidence
    # −0.5 + 1e-13 has three digits of the gap
    assert ratio == pytest.approx(np.log(10.0), abs=5e-3)
    assert posterior.log_evidence < wide.log_evidence


# Few rows, many classes


def evidence_of_two(X, y, thresholds, noise):
    """Return the log of a Gaussian rectangle probability of two rows: the probit evidence, exactly."""
    K = np.exp(-0.5 * (X[0] - X[1]) ** 2)
    cov = np.array([[1 + noise**2, K], [K, 1 + noise**2]])
    edges = np.r_[-12.0, thresholds, 12.0]
    lower, upper = edges[y], edges[np.asarray(y) + 1]
    density = stats.multivariate_normal(cov=cov).pdf
    value, _ = integrate.dblquad(
        lambda b, a: density([a, b]), lower[0], upper[0], lower[1], upper[1], epsabs=0, epsrel=1e-9
    )
    return np.log(value)


@each_engine
@pytest.mark.parametrize("r", first_fast([3, 30, 2, 10], 2))
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_and_many_classes(name, r, n):
    thresholds = stats.norm.ppf(np.arange(1, r) / r)
    y = np.linspace(0, r - 1, n).round().astype(int)
    posterior = run(name, np.arange(n), y, thresholds, 0.3)
    assert_sound(posterior)
    if n == 2 and r <= 10:
        exact = evidence_of_two(np.arange(2.0), y, thresholds, 0.3)
        # EP is off by thousandths of a nat for two rows, Laplace by tenths
        assert posterior.log_evidence == pytest.approx(exact, abs=0.02 if name == "ep" else 0.5)


@each_engine
@pytest.mark.parametrize("r", first_fast([30, 2]))
def test_fits_with_few_rows(name, r):
    y = [0, r - 1, r // 2][: max(2, min(r, 3))]
    model = pmo.gp_model(np.arange(len(y)), y, "expquad", categories=list(range(r)), engine=name)
    fit = pmo.fit(model, progressbar=False)
    assert fit.status.converged
    assert np.isfinite(fit.log_evidence)
    np.testing.assert_allclose(fit.predict([[0.5]]).sum("class"), 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("factory", [pmo.gp_model, pmo.linear_model])
def test_models_compile_for_two_classes(factory):
    """The one threshold of two classes has no order to check: a graph of that check does not compile."""
    model = factory(np.arange(6.0), np.arange(6) % 2)
    found = model.compile_logp()(model.initial_point())
    assert found == pytest.approx(model.compile_logp(mode=PLAIN)(model.initial_point()))


# Labels that say too little or too much


@each_engine
def test_separable_labels(name):
    """The likelihood alone has no maximum; with the priors the fit ends, and knows its rows."""
    X = np.r_[np.linspace(-2, -1, 8), np.linspace(1, 2, 8)]
    fit = pmo.fit(pmo.gp_model(X, np.repeat([0, 1], 8), "expquad", engine=name), progressbar=False)
    assert fit.status.converged
    assert np.isfinite(fit.log_evidence)
    assert list(fit.predict(X, "class")) == [0] * 8 + [1] * 8


@pytest.mark.filterwarnings("ignore::pmordinal.ConvergenceWarning")
@each_engine
def test_separable_labels_without_priors(name):
    """Evidence maximisation runs towards noise zero: whatever it says, what it returns is finite."""
    X = np.r_[np.linspace(-2, -1, 8), np.linspace(1, 2, 8)]
    fit = pmo.fit(
        pmo.gp_model(X, np.repeat([0, 1], 8), "expquad", engine=name),
        priors=False,
        progressbar=False,
    )
    assert np.isfinite(fit.log_evidence)
    assert np.isfinite(fit.noise)
    assert np.all(np.isfinite(fit.predict(X)))


@each_engine
@pytest.mark.parametrize("code", first_fast([0, 1, 2]))
def test_all_labels_equal_but_several_declared(name, code):
    X = np.linspace(-1, 1, 10)
    model = pmo.gp_model(X, np.full(10, code), "expquad", categories=[0, 1, 2], engine=name)
    fit = pmo.fit(model, progressbar=False)
    assert fit.status.converged
    assert np.isfinite(fit.log_evidence)
    probs = fit.predict(X).values
    assert np.all(probs.argmax(1) == code)
    assert np.all(probs > 0)  # what was not seen is not impossible
