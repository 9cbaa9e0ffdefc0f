"""The Laplace engine: its mode, its evidence, its limits. What all engines share is in the contract."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import optimize
from scipy.stats import multivariate_normal, norm

import pmordinal as pmo
from pmordinal.engines import Laplace
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.links import LINKS

KERNEL = lower(pm.gp.cov.ExpQuad(1, ls=1.0))
each_link = pytest.mark.parametrize("link", LINKS)


def problem(rng, link="probit", n=12, noise=0.4, ls=0.7):
    X = np.sort(rng.uniform(-2, 2, n))[:, None]
    likelihood = OrdinalLikelihood([-0.7, 0.2, 1.1], noise, link)
    y = likelihood.draw(np.sin(2 * X[:, 0]), rng)
    return Gram(KERNEL, X, [ls]), y, likelihood


@each_link
def test_mode_is_stationary(link, rng):
    gram, y, likelihood = problem(rng, link)
    post = Laplace()(gram, y, likelihood)
    terms = likelihood.log_prob(y, post.mean)
    # f = K L'(f): the residual is that of a decrement of 1e-8
    np.testing.assert_allclose(post.alpha, terms.d1, atol=1e-6)
    np.testing.assert_allclose(post.mean, gram.matrix @ terms.d1, atol=1e-8)
    np.testing.assert_allclose(post.precision, terms.curvature, rtol=1e-12)


@each_link
def test_mode_is_the_one_that_scipy_finds(link, rng):
    gram, y, likelihood = problem(rng, link, n=6, ls=0.3)
    L = np.linalg.cholesky(gram.matrix)

    def negative(z):
        terms = likelihood.log_prob(y, L @ z)
        return 0.5 * z @ z - terms.value.sum(), z - L.T @ terms.d1

    found = optimize.minimize(
        negative, np.zeros(6), jac=True, method="BFGS", options={"gtol": 1e-9}
    )
    np.testing.assert_allclose(Laplace()(gram, y, likelihood).mean, L @ found.x, atol=1e-6)


@each_link
def test_evidence_equals_the_dense_formula(link, rng):
    """−½ log|I + K W| + log P(y | f) − ½ fᵀ K⁻¹ f, with K inverted outright [CG2005, eq. 11]."""
    gram, y, likelihood = problem(rng, link, ls=0.4)
    post = Laplace()(gram, y, likelihood)
    K, f = gram.matrix, post.mean
    W = np.diag(likelihood.log_prob(y, f).curvature)
    dense = likelihood.log_prob(y, f).value.sum() - 0.5 * f @ np.linalg.solve(K, f)
    dense -= 0.5 * np.linalg.slogdet(np.eye(len(K)) + K @ W)[1]
    assert post.log_evidence == pytest.approx(dense, rel=1e-9)


def test_evidence_of_one_row_is_laplaces_formula():
    """At n = 1 the approximation can be written down: ψ(f) = L(f) − f²/2, log Z ≈ ψ − ½ log(1 + W)."""
    likelihood = OrdinalLikelihood([0.0], 0.5)
    post = Laplace()(Gram(KERNEL, [[0.0]], [1.0]), np.array([1]), likelihood)
    f = optimize.brentq(
        lambda f: likelihood.log_prob(np.ones(1, int), np.array([f])).d1[0] - f, 0, 5
    )
    terms = likelihood.log_prob(np.ones(1, int), np.array([f]))
    expected = terms.value[0] - 0.5 * f * f - 0.5 * np.log1p(terms.curvature[0])
    assert post.log_evidence == pytest.approx(expected, rel=1e-10)


def test_two_classes_are_binary_classification(rng):
    """Rasmussen & Williams, algorithm 3.1: with b = 0 and noise one it is probit GP classification."""
    gram, _, _ = problem(rng, n=15, ls=0.5)
    sign = np.where(rng.random(15) < 0.5, -1.0, 1.0)
    post = Laplace(tol=1e-12)(gram, (sign > 0).astype(int), OrdinalLikelihood([0.0], 1.0))
    K, f = gram.matrix, np.zeros(15)
    for _ in range(50):
        ratio = norm.pdf(f) / norm.cdf(sign * f)
        W = ratio**2 + sign * f * ratio  # R&W, eq. 3.16
        b = W * f + sign * ratio
        B = np.eye(15) + np.sqrt(W)[:, None] * K * np.sqrt(W)
        a = b - np.sqrt(W) * np.linalg.solve(B, np.sqrt(W) * (K @ b))
        f = K @ a
    log_z = -0.5 * a @ f + norm.logcdf(sign * f).sum() - 0.5 * np.linalg.slogdet(B)[1]
    np.testing.assert_allclose(post.mean, f, atol=1e-9)
    assert post.log_evidence == pytest.approx(log_z, rel=1e-10)


@each_link
@pytest.mark.parametrize("noise", [1e-3, 1e-2])
def test_the_mode_is_found_from_far_away(link, noise, rng):
    """Classes hundreds of noise units from the start: cloglog's slope there is e^300."""
    gram, y, likelihood = problem(rng, link, n=30, noise=noise)
    labels = rng.permutation(y)  # no smooth function explains these
    post = Laplace()(gram, labels, likelihood)
    assert post.status.converged, post.status
    terms = likelihood.log_prob(labels, post.mean)
    residual = post.mean - gram.matrix @ terms.d1
    step = np.linalg.solve(np.eye(30) + gram.matrix * terms.curvature, residual)
    assert np.abs(step).max() < 1e-6 * noise  # how far the mode is, in units of the noise


def test_giving_up_is_reported(rng):
    gram, y, likelihood = problem(rng, noise=0.05)
    post = Laplace(max_iterations=1)(gram, y, likelihood)
    assert not post.status.converged
    assert post.status.iterations == 1
    assert "no convergence in 1 Newton steps" in post.status.message
    assert "raise max_iterations" in post.status.message
    assert np.isfinite(post.log_evidence)


def test_a_warm_start_saves_factorisations(rng):
    gram, y, likelihood = problem(rng, n=60, noise=0.2)
    cold = Laplace()(gram, y, likelihood)
    nearby = OrdinalLikelihood(likelihood.thresholds + 0.01, 0.205, "probit")
    warm = Laplace()(gram, y, nearby, cold.start)
    again = Laplace()(gram, y, nearby)
    assert warm.status.factorizations < again.status.factorizations
    assert warm.status.factorizations <= 3
    assert warm.log_evidence == pytest.approx(again.log_evidence, abs=1e-8)


def test_ill_conditioned_gradient_equals_differences():
    """K of rank two, labels that contradict each other, little noise: no jitter anywhere."""
    X, y = np.repeat([[0.0], [1.0]], 5, axis=0), np.array([0, 1, 1, 2, 0, 2, 2, 1, 0, 2])

    def evidence(ls, noise):
        likelihood = OrdinalLikelihood([-0.3, 0.4], noise)
        return Laplace(tol=1e-12)(Gram(KERNEL, X, [ls]), y, likelihood)

    gradient = evidence(0.8, 0.05).evidence_gradient()
    h = 1e-4
    by_ls = (evidence(0.8 + h, 0.05).log_evidence - evidence(0.8 - h, 0.05).log_evidence) / (2 * h)
    up, down = (evidence(0.8, 0.05 * np.exp(t)).log_evidence for t in (h, -h))
    assert gradient.parameters[0] == pytest.approx(by_ls, rel=1e-6)
    assert gradient.log_noise == pytest.approx((up - down) / (2 * h), rel=1e-6)


def test_memory_of_one_evaluation_with_gradient(rng):
    """At most eight n × n matrices are alive at once."""
    n = 300
    X = rng.normal(size=(n, 3))
    kernel = lower(pm.gp.cov.ExpQuad(3, ls=np.ones(3)))
    likelihood = OrdinalLikelihood([-0.7, 0.2, 1.1], 0.4)
    y = likelihood.draw(np.sin(2 * X[:, 0]), rng)
    Laplace()(Gram(kernel, X, [np.ones(3)]), y, likelihood).evidence_gradient()  # fill the caches
    tracemalloc.start()
    try:
        Laplace()(Gram(kernel, X, [np.ones(3)]), y, likelihood).evidence_gradient()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 8 * 8 * n * n, f"{peak / (8 * n * n):.1f} matrices"


# How far off the evidence is


def test_correction_equals_the_dense_formula(rng):
    """(1/8) Σ L⁗ A_ii² + Σ_ij L‴_i L‴_j (A_ii A_ij A_jj / 8 + A_ij³ / 12), by plain loops over A."""
    gram, y, likelihood = problem(rng, ls=0.4)
    post = Laplace()(gram, y, likelihood)
    terms = likelihood.log_prob(y, post.mean)
    A = np.linalg.inv(np.linalg.inv(gram.matrix) + np.diag(terms.curvature))
    a, n = np.diag(A), len(A)
    expected = (terms.d4 * a**2).sum() / 8
    for i in range(n):
        for j in range(n):
            pair = a[i] * A[i, j] * a[j] / 8 + A[i, j] ** 3 / 12
            expected += terms.d3[i] * terms.d3[j] * pair
    assert post.log_evidence_correction == pytest.approx(expected, rel=1e-6)


def test_correction_brings_the_evidence_nearer_to_the_truth(rng):
    errors = []
    for seed in range(6):
        gram, y, likelihood = problem(np.random.default_rng(seed), n=6, noise=0.8)
        post = Laplace()(gram, y, likelihood)
        covariance = gram.matrix + likelihood.noise**2 * np.eye(6)
        lower_edge, upper_edge = (np.clip(b, -30, 30) for b in likelihood.bounds(y))
        truth = np.log(
            multivariate_normal.cdf(
                upper_edge,
                np.zeros(6),
                covariance,
                lower_limit=lower_edge,
                abseps=1e-9,
                releps=1e-6,
            )
        )
        errors.append(
            (truth - post.log_evidence, truth - post.log_evidence - post.log_evidence_correction)
        )
    plain, corrected = np.abs(errors).max(0)
    assert corrected < 0.2 * plain


def test_a_doubtful_evidence_is_a_warning(rng):
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 5, 60)
    model = pmo.gp_model(X, y, "expquad", engine="laplace", categories=range(5))
    where = {"noise": 0.03, "lengthscale": 0.5, "thresholds": [-0.9, -0.3, 0.3, 0.9]}
    with pytest.warns(pmo.ConvergenceWarning, match="evidence is doubtful"):
        fit = pmo.fit(model, start=where, optimize=False, progressbar=False)
    assert abs(fit.status.log_evidence_correction) > 30


def test_a_sampler_gets_four_digits_also_where_the_mode_is_hard_to_find(rng):
    """Separable labels and next to no noise: the mode is off by more than the last step was long."""
    X = rng.normal(size=(40, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    kernel = lower(pm.gp.cov.ExpQuad(2, ls=pt.dscalar()))
    loose = Laplace().loosened("evidence", sampled=True)
    worst = 0.0
    for _ in range(150):
        ls, noise = np.exp(rng.normal(1.0, 0.5)), np.exp(rng.normal(-6.0, 1.0))
        gram, likelihood = Gram(kernel, X, [ls]), OrdinalLikelihood([-0.3, 0.3], noise)
        there = Laplace()(gram, y, likelihood)
        moved = Gram(kernel, X, [ls * np.exp(0.01 * rng.normal())])
        near = Laplace()(moved, y, replace(likelihood, noise=noise * np.exp(0.01 * rng.normal())))
        found = loose(gram, y, likelihood, near.start)
        assert found.status.converged
        worst = max(worst, abs(found.log_evidence - there.log_evidence))
    assert worst < 1e-4
