"""Expectation propagation against exact integrals, its own identities, and its failure modes.

What holds of every engine (gradients, permutations, reflection, warm starts, duplicates) is in
`test_engine_contract.py`.
"""

import itertools

import numpy as np
import pymc as pm
import pytest
from scipy import integrate, stats
from scipy.special import log_ndtr

from pmordinal.engines import EP, Laplace
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.links import LINKS
from tests.repeated import first_fast

KERNELS = {d: lower(pm.gp.cov.ExpQuad(d, ls=1.0)) for d in (1, 2, 3)}


def gram_of(X, ls):
    return Gram(KERNELS[X.shape[1]], X, [np.array(ls)])


def draw_case(rng, n_max=12, noise=(0.2, 1.0)):
    """Return a random problem whose labels come from the model, so that they are not absurd."""
    n, d, r = rng.integers(2, n_max + 1), rng.integers(1, 4), rng.integers(2, 7)
    gram = gram_of(rng.normal(size=(n, d)), 10 ** rng.uniform(-0.5, 0.7))
    thresholds = np.sort(rng.normal(size=r - 1)) + 0.05 * np.arange(r - 1)
    likelihood = OrdinalLikelihood(thresholds, rng.uniform(*noise))
    values, vectors = np.linalg.eigh(gram.matrix)
    f = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.normal(size=n))
    return gram, likelihood.draw(f, rng), likelihood


def exact_log_evidence(gram, y, likelihood, seed=0):
    """Return the probability of a rectangle under N(0, K + s² I), good to about 1e-4 nats."""
    n = len(y)
    lo, hi = likelihood.bounds(y)
    p = stats.multivariate_normal.cdf(
        hi,
        mean=np.zeros(n),
        cov=gram.matrix + likelihood.noise**2 * np.eye(n),
        lower_limit=lo,
        maxpts=40_000 * n,
        abseps=0.0,
        releps=2e-5,
        rng=np.random.default_rng(seed),
    )
    return np.log(p)


# --- exact cases ------------------------------------------------------------------------------


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("noise", first_fast([0.01, 5.0, 0.5], 2))
@pytest.mark.parametrize("y", first_fast([0, 1, 2], 2))
def test_one_row_is_exact(link, noise, y):
    """With one datum moment matching is all there is: log Z and both moments are the integrals'."""
    gram = gram_of(np.zeros((1, 1)), 1.0)
    likelihood = OrdinalLikelihood([-0.4, 0.9], noise, link)
    post = EP()(gram, np.array([y]), likelihood)
    assert post.status.message == "converged"

    def integral(g):
        def integrand(f):
            at = likelihood.log_prob(np.array([y]), np.array([f])).value[0]
            return g(f) * np.exp(at - 0.5 * f * f) / np.sqrt(2 * np.pi)

        breaks = sorted({-12, *likelihood.thresholds, 12})
        near = sorted(b + k * noise for b in likelihood.thresholds for k in (-6, 6))
        points = sorted(p for p in {*breaks, *near} if -12 <= p <= 12)
        return sum(
            integrate.quad(integrand, a, b, epsabs=1e-14, epsrel=1e-12)[0]
            for a, b in itertools.pairwise(points)
        )

    Z, first, second = integral(lambda f: 1.0), integral(lambda f: f), integral(lambda f: f * f)
    # 1e-9: the tolerance of the piecewise integrals
    assert post.log_evidence == pytest.approx(np.log(Z), abs=1e-9)
    assert post.mean[0] == pytest.approx(first / Z, abs=1e-8)
    assert post.variance[0] == pytest.approx(second / Z - (first / Z) ** 2, abs=1e-8)


def test_independent_rows_are_exact():
    """Rows too far apart to be correlated are problems of one row each."""
    gram = gram_of(np.array([[0.0], [1e3], [-1e3]]), 1.0)
    likelihood = OrdinalLikelihood([-0.4, 0.9], 0.3)
    y = np.array([0, 1, 2])
    post = EP()(gram, y, likelihood)
    one = likelihood.tilted(y, np.zeros(3), np.ones(3))
    assert post.log_evidence == pytest.approx(one.value.sum(), abs=1e-12)
    np.testing.assert_allclose(post.leave_one_out.value, one.value, atol=1e-12)
    assert post.log_evidence_correction == pytest.approx(0.0, abs=1e-12)


def test_two_rows_against_nested_quadrature():
    gram = gram_of(np.array([[0.0], [0.6]]), 1.0)
    rho = gram.matrix[0, 1]
    likelihood = OrdinalLikelihood([-0.4, 0.9], 0.5)
    y = np.array([0, 1])

    def inner(f):  # the second row given the first is Gaussian: one integral is closed form
        first = likelihood.log_prob(y[:1], np.array([f])).value[0]
        second = likelihood.tilted(y[1:], np.array([rho * f]), np.array([1 - rho**2])).value[0]
        return np.exp(first + second - 0.5 * f * f) / np.sqrt(2 * np.pi)

    truth = np.log(integrate.quad(inner, -12, 12, epsabs=1e-13)[0])
    assert exact_log_evidence(gram, y, likelihood) == pytest.approx(truth, abs=1e-5)
    post = EP()(gram, y, likelihood)
    assert post.log_evidence == pytest.approx(truth, abs=2e-3)  # EP's own error
    corrected = post.log_evidence + post.log_evidence_correction
    assert abs(corrected - truth) < 0.5 * abs(post.log_evidence - truth)


# --- accuracy ---------------------------------------------------------------------------------


def errors_of(n_cases, seed):
    """Return |log Z − exact| of EP, corrected EP and Laplace, shape (n_cases, 3)."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n_cases):
        case = draw_case(rng)
        truth = exact_log_evidence(*case, seed=i)
        ep = EP()(*case)
        assert ep.status.converged, ep.status
        corrected = ep.log_evidence + ep.log_evidence_correction
        found = [ep.log_evidence, corrected, Laplace()(*case).log_evidence]
        rows.append(np.abs(np.array(found) - truth))
    return np.array(rows)


@pytest.mark.parametrize(
    ("n_cases", "share"),
    [
        pytest.param(24, 0.9, marks=pytest.mark.slow),
        pytest.param(200, 0.95, marks=pytest.mark.slow),
    ],
)
def test_evidence_against_rectangle_probabilities(n_cases, share):
    """The evidence of the ordinal probit process is a Gaussian rectangle probability."""
    ep, corrected, laplace = errors_of(n_cases, seed=1).T
    assert np.median(ep) <= 0.005
    assert np.quantile(ep, share) <= 0.05
    # 3e-4: where both are as good as the integrator nothing can be compared
    assert np.mean((ep < laplace) | (laplace < 3e-4)) >= share
    # Errors at the integrator's own level would make the ratio that of noise.
    seen = ep > 1e-3
    assert seen.sum() >= 5
    assert np.median(ep[seen]) >= 3 * np.median(corrected[seen])


def test_two_classes_around_zero():
    """Two classes with a threshold at zero is binary classification: symmetric, and −n log 2 at best."""
    X = np.array([[0.0], [0.4], [1.5], [2.0]])
    gram, likelihood = gram_of(X, 1.0), OrdinalLikelihood([0.0], 0.5)
    y = np.array([0, 1, 1, 0])
    a, b = EP()(gram, y, likelihood), EP()(gram, 1 - y, likelihood)
    assert a.log_evidence == pytest.approx(b.log_evidence, abs=1e-12)
    np.testing.assert_allclose(a.mean, -b.mean, atol=1e-10)
    # two rows: P(same class) = ½ + asin(ρ)/π (Sheppard), halved for each of the two classes
    two = EP()(gram_of(X[:2], 1.0), np.array([1, 1]), likelihood)
    rho = np.exp(-0.5 * 0.16) / 1.25
    truth = np.log(0.25 + np.arcsin(rho) / (2 * np.pi))
    # correlated binary labels are where EP is worst; the correction knows by how much
    assert two.log_evidence == pytest.approx(truth, abs=0.01)
    assert two.log_evidence + two.log_evidence_correction == pytest.approx(truth, abs=1e-3)


def test_tilted_moments_match_the_marginals(rng):
    """The fixed point itself: α = ∂ log Ẑ/∂μ and the marginal has the tilted variance."""
    gram, y, likelihood = draw_case(rng)
    post = EP()(gram, y, likelihood)
    terms, (mean, var) = post.leave_one_out, post.cavity
    np.testing.assert_allclose(post.alpha, terms.d1, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(post.variance, var * terms.shrink, rtol=1e-7)
    np.testing.assert_allclose(post.mean, mean + var * terms.d1, rtol=1e-7, atol=1e-8)


def test_evidence_is_stationary_in_the_sites(rng):
    """Ten thousand times the tolerance changes log Z by its square."""
    gram, y, likelihood = draw_case(rng, n_max=30)
    loose, tight = EP(tol=1e-2)(gram, y, likelihood), EP(tol=1e-12)(gram, y, likelihood)
    assert loose.log_evidence == pytest.approx(tight.log_evidence, abs=1e-3)


def test_single_precision_leaves_no_trace(rng):
    """Early sweeps are in single precision where B is well conditioned, never the last one."""
    gram = gram_of(rng.normal(size=(150, 2)), 1.0)
    y = rng.integers(0, 4, 150)
    likelihood = OrdinalLikelihood([-0.7, 0.0, 0.7], 0.5)
    post = EP()(gram, y, likelihood)
    again = EP(tol=1e-11)(gram, y, likelihood)
    assert post.factor.dtype == np.float64
    assert post.variance.dtype == np.float64
    assert post.log_evidence == pytest.approx(again.log_evidence, abs=1e-10)
    np.testing.assert_allclose(post.variance, again.variance, rtol=1e-7)


# --- robustness -------------------------------------------------------------------------------


def hard_case(rng):
    """Return a problem with extreme parameters, often with duplicated rows and bad thresholds."""
    n, d, r = rng.integers(2, 60), rng.integers(1, 4), rng.integers(2, 11)
    X = rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X[n // 2 :] = X[: n - n // 2]
    ordered = np.clip((X[:, 0] + 2) / 4 * r, 0, r - 1).astype(int)
    y = ordered if rng.random() < 0.5 else rng.integers(0, r, n)
    thresholds = np.sort(rng.normal(size=r - 1)) * 10 ** rng.uniform(-1, 1)
    thresholds += 1e-3 * np.arange(r - 1) + 5 * (rng.random() < 0.2)
    noise = 10 ** rng.uniform(-3, 1)
    return gram_of(X, 10 ** rng.uniform(-3, 3)), y, OrdinalLikelihood(thresholds, noise)


@pytest.mark.parametrize(
    ("n_cases", "share"), [(60, 0.8), pytest.param(600, 0.9, marks=pytest.mark.slow)]
)
def test_hard_problems(n_cases, share):
    rng = np.random.default_rng(5)
    low = []
    for _ in range(n_cases):
        gram, y, likelihood = hard_case(rng)
        post = EP()(gram, y, likelihood)
        gradient = post.evidence_gradient()
        numbers = [post.log_evidence, gradient.log_noise, *gradient.thresholds]
        numbers += [*post.mean, *post.leave_one_out.value, float(gradient.parameters[0])]
        assert np.all(np.isfinite(numbers))
        converged = post.status.message == "converged"  # to the tolerance, not to a rounding floor
        if likelihood.noise >= 0.1:
            assert converged, (likelihood, post.status)
        else:
            low.append((post.status.converged, converged))
            assert post.status.converged or "no convergence" in post.status.message
    stopped, converged = np.mean(low, axis=0)
    assert stopped == 1.0
    # Rows of K α with |α| = 1e6 round to a residual of 1e-6: the state itself has no more digits.
    assert converged >= share


def test_narrow_class_far_out():
    """Every label lies in a class of width 1e-6, forty prior standard deviations away."""
    gram = gram_of(np.linspace(0, 1, 5)[:, None], 1.0)
    likelihood = OrdinalLikelihood([40.0, 40.000001], 0.5)
    y = np.ones(5, dtype=int)
    post = EP()(gram, y, likelihood)
    assert post.status.converged
    covariance = gram.matrix + 0.25 * np.eye(5)
    density = stats.multivariate_normal.logpdf(np.full(5, 40.0), np.zeros(5), covariance)
    # the density times the volume; relative error of the density across the box: 40·1e-6·n
    assert post.log_evidence == pytest.approx(density + 5 * np.log(1e-6), rel=1e-6)


def test_forced_non_convergence_is_reported(rng):
    gram, y, likelihood = hard_case(rng)
    for most in (1, 2):
        post = EP(max_sweeps=most, tol=1e-13)(gram, y, likelihood)
        assert not post.status.converged
        assert post.status.iterations == most
        assert "raise max_sweeps" in post.status.message
        assert np.isfinite(post.log_evidence)
        assert np.all(np.isfinite(post.evidence_gradient().thresholds))
    assert EP()(gram, y, likelihood).status.converged


def test_rounding_floor_is_reported():
    """A tolerance below rounding ends in a stop that says how far it got."""
    rng = np.random.default_rng(2)
    gram, y, likelihood = draw_case(rng)
    post = EP(tol=0.0)(gram, y, likelihood)
    assert "rounding floor" in post.status.message
    assert post.status.iterations < 30
    assert post.log_evidence == pytest.approx(EP()(gram, y, likelihood).log_evidence, abs=1e-10)


def test_warm_start_saves_sweeps(rng):
    X = rng.normal(size=(60, 2))
    y = np.searchsorted([-0.7, 0.0, 0.7], X[:, 0] + 0.3 * rng.normal(size=60))
    likelihood = OrdinalLikelihood([-0.7, 0.0, 0.7], 0.1)
    start = EP()(gram_of(X, 1.0), y, likelihood).start
    cold, warm = (EP()(gram_of(X, 1.01), y, likelihood, s) for s in (None, start))
    assert warm.status.iterations < cold.status.iterations
    assert warm.log_evidence == pytest.approx(cold.log_evidence, abs=1e-10)


def test_far_labels_have_the_tail_probability():
    """All labels on the improbable side of a far threshold: log Φ(−z), no underflow."""
    gram = gram_of(np.zeros((1, 1)), 1.0)
    post = EP()(gram, np.array([1]), OrdinalLikelihood([50.0], 0.5))
    assert post.log_evidence == pytest.approx(log_ndtr(-50 / np.sqrt(1.25)), rel=1e-12)


def test_labels_that_say_nothing_leave_the_prior():
    """Where 1 − diag B⁻¹ has lost its digits, the variances are still those of the prior."""
    X = np.linspace(0.0, 1.0, 6)[:, None]
    y = np.array([0, 1, 0, 1, 0, 1])
    gram = Gram(lower(pm.gp.cov.ExpQuad(1, ls=1.0)), X, [np.asarray(1.0)])
    likelihood = OrdinalLikelihood([0.0], noise=1e4)  # the labels say nothing
    posterior = EP()(gram, y, likelihood)
    assert posterior.log_evidence == pytest.approx(6 * np.log(0.5), abs=1e-6)
    np.testing.assert_allclose(posterior.variance, 1.0, rtol=1e-6)


def test_a_sampler_needs_one_sweep_from_a_good_start():
    """Above 200 rows a first sweep in single precision would always take a second one."""
    rng = np.random.default_rng(5)
    gram, likelihood = gram_of(rng.normal(size=(220, 2)), 1.0), OrdinalLikelihood([-0.5, 0.5], 0.5)
    y = likelihood.draw(gram.matrix @ rng.normal(size=220) / 15.0, rng)
    solution = EP()(gram, y, likelihood)
    sampled = EP().loosened("evidence", sampled=True)(gram, y, likelihood, solution.start)
    assert sampled.status.factorizations == 1
    np.testing.assert_allclose(sampled.log_evidence, solution.log_evidence, atol=1e-9)


def test_cavities_of_the_last_sweep_are_those_of_the_posterior():
    gram, y, likelihood = draw_case(np.random.default_rng(6))
    posterior = EP()(gram, y, likelihood)
    mean, variance = posterior.cavity
    share = 1.0 - posterior.precision * posterior.variance
    np.testing.assert_allclose(variance, posterior.variance / share, rtol=1e-8)
    np.testing.assert_allclose(mean, posterior.mean - variance * posterior.alpha, atol=1e-10)
