"""The normal distribution in a box, against quadrature, SciPy, rejection and finite differences."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from pmordinal.engines.exact.box import Box, greedy_order
from pmordinal.engines.exact.truncated import quantile_of, uniforms


def problem(n, noise=0.4, seed=0, thresholds=(-0.8, 0.1, 0.9)):
    """Return a covariance and the box of an ordinal Gaussian process."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
    latent = np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)
    edges = np.array([-np.inf, *thresholds, np.inf])
    y = np.searchsorted(thresholds, latent)
    return K + noise**2 * np.eye(n), edges[y], edges[y + 1]


def estimate(log_weights):
    """Return the log of the average weight and its standard error."""
    top = log_weights.max()
    w = np.exp(log_weights - top)
    return top + np.log(w.mean()), w.std() / w.mean() / np.sqrt(w.size)


# --- quantiles --------------------------------------------------------------------------------


def test_quantiles_equal_those_of_scipy_where_it_has_digits(rng):
    q = 10.0 ** rng.uniform(-15, 0, 2000)
    found = [quantile_of(-np.inf, 40.0, u) for u in q]
    np.testing.assert_allclose(found, special.ndtri(q), rtol=1e-13, atol=1e-14)


def test_quantiles_in_both_tails(rng):
    """Against log tails; 1e-10 is what the asymptotic tail beyond 30 is good to."""
    lo = rng.uniform(-8, 60, 2000)
    width = 10.0 ** rng.uniform(-4, 2, lo.size)
    u = rng.random(lo.size)
    top, low = special.log_ndtr(-lo), special.log_ndtr(-lo - width)
    expected = -special.ndtri_exp(top + np.log1p(u * np.expm1(low - top)))
    ends = list(zip(lo, lo + width, u, strict=True))
    np.testing.assert_allclose([quantile_of(a, b, v) for a, b, v in ends], expected, atol=1e-10)
    mirrored = [-quantile_of(-b, -a, 1 - v) for a, b, v in ends]
    np.testing.assert_allclose(mirrored, expected, atol=1e-10)


@pytest.mark.parametrize(
    "ends", [(-1.0, 2.0), (3.0, np.inf), (-np.inf, -9.0), (50.0, 50.001), (0.1, 0.1 + 1e-9)]
)
@pytest.mark.parametrize("u", [2.0**-54, 0.5, 1.0 - 2.0**-53])
def test_quantiles_stay_inside(ends, u):
    e = quantile_of(*ends, u)
    assert np.isfinite(e)
    assert ends[0] <= e <= ends[1]


# --- probabilities ----------------------------------------------------------------------------


@pytest.mark.parametrize("box", [((-0.3, 0.4), (0.2, 1.5)), ((-9.0, -2.0), (1.0, 9.0))])
def test_two_dimensions_equal_nested_quadrature(box, rng):
    C = np.array([[1.3, 0.9], [0.9, 1.1]])
    density = stats.multivariate_normal(np.zeros(2), C).pdf
    truth = integrate.dblquad(
        lambda b, a: density([a, b]), *box[0], *box[1], epsabs=1e-13, epsrel=1e-11
    )[0]
    lower, upper = np.array(box).T
    box = Box.solve(C, lower, upper)
    value, error = estimate(box.propose(uniforms(rng, 2, 20_000)).log_weights)
    assert error < 0.006
    assert abs(value - np.log(truth)) < 4 * error


@pytest.mark.parametrize("n", [1, 3, 6, 12])
@pytest.mark.parametrize("noise", [0.1, 0.4, 2.0])
def test_probability_equals_that_of_scipy(n, noise, rng):
    C, lower, upper = problem(n, noise)
    box = Box.solve(C, lower, upper)
    value, error = estimate(box.propose(uniforms(rng, n, 4000)).log_weights)
    normal = stats.multivariate_normal(
        np.zeros(n), C, maxpts=400_000, abseps=1e-10, releps=1e-4, seed=1
    )
    ends = np.clip([lower, upper], -12, 12)  # SciPy is slow for infinite ends
    truth = np.log(normal.cdf(ends[1], lower_limit=ends[0]))
    assert abs(value - truth) < 4 * error + 1e-3  # 1e-3: SciPy's own error


def test_improbable_boxes_keep_their_digits():
    """Independent variables: the probability is a product, however small, and the weights are constant."""
    lower, upper = np.array([8.0, -np.inf, 35.0, 3.0]), np.array([np.inf, -20.0, 35.1, 3.0001])
    box = Box.solve(np.eye(4), lower, upper)
    log_weights = box.propose(np.full((4, 3), 0.3)).log_weights
    truth = special.log_ndtr(-8.0) + special.log_ndtr(-20.0)
    truth += special.log_ndtr(-35.0) + np.log1p(
        -np.exp(special.log_ndtr(-35.1) - special.log_ndtr(-35.0))
    )
    truth += np.log(integrate.quad(stats.norm.pdf, 3.0, 3.0001, epsabs=0)[0])
    np.testing.assert_allclose(log_weights, truth, rtol=1e-9)


def test_standard_errors_cover():
    """200 estimates of one probability: their z-scores have mean 0 and variance 1."""
    C, lower, upper = problem(20, 0.3)
    box = Box.solve(C, lower, upper)
    rng = np.random.default_rng(5)
    truth, error = estimate(box.propose(uniforms(rng, 20, 200_000)).log_weights)
    values, errors = np.array(
        [estimate(box.propose(uniforms(rng, 20, 500)).log_weights) for _ in range(200)]
    ).T
    assert error < 0.1 * errors.mean()
    z = (values - truth) / errors
    assert abs(z.mean()) < 4 / np.sqrt(200)
    # the variance of 200 z-scores has a standard error of 0.1
    assert 0.7 < z.var() < 1.35


def test_the_estimate_is_unbiased_for_few_draws():
    """The mean of Ẑ itself, not of its logarithm, with two draws each."""
    C, lower, upper = problem(15, 0.15)
    box = Box.solve(C, lower, upper)
    rng = np.random.default_rng(6)
    truth, _ = estimate(box.propose(uniforms(rng, 15, 200_000)).log_weights)
    few = np.exp(box.propose(uniforms(rng, 15, 40_000)).log_weights - truth).reshape(-1, 2).mean(1)
    assert abs(few.mean() - 1.0) < 4 * few.std() / np.sqrt(few.size)


# --- the tilt ---------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.05, 0.4, 2.0])
def test_the_tilt_is_the_saddle_point(noise):
    """ψ written out as in the paper is stationary in x and in μ, and the bound is its value."""
    C, lower, upper = problem(12, noise)
    box = Box.solve(C, lower, upper, tol=1e-12)
    T = box.L / np.diag(box.L)[:, None] - np.eye(12)

    def psi(x, mu):
        c = T @ x
        lo, hi = box.lower - c - mu, box.upper - c - mu
        log_p = [np.log(stats.norm.cdf(b) - stats.norm.cdf(a)) for a, b in zip(lo, hi, strict=True)]
        return float(np.sum(0.5 * mu**2 - x * mu + log_p))

    mu = box.tilt
    x = mu + box.interval.slope
    assert box.converged
    assert box.bound == pytest.approx(psi(x, mu), abs=1e-8)
    for i in range(12):
        step = 1e-4 * (np.arange(12) == i)
        assert (psi(x + step, mu) - psi(x - step, mu)) / 2e-4 == pytest.approx(0.0, abs=1e-5)
        assert (psi(x, mu + step) - psi(x, mu - step)) / 2e-4 == pytest.approx(0.0, abs=1e-5)


def test_no_weight_exceeds_the_bound(rng):
    for noise in (0.05, 0.3, 1.0):
        C, lower, upper = problem(30, noise)
        box = Box.solve(C, lower, upper)
        assert box.propose(uniforms(rng, 30, 5000)).log_weights.max() <= box.bound + 1e-9


def test_the_tilt_and_the_order_pay(rng):
    """Without either the same proposals are worth less: the variance of the weights tells."""
    C, lower, upper = problem(150, 0.2)
    u = uniforms(rng, 150, 2000)
    best = estimate(Box.solve(C, lower, upper).propose(u).log_weights)[1]
    unordered = estimate(Box.solve(C, lower, upper, np.arange(150)).propose(u).log_weights)[1]
    box = Box.solve(C, lower, upper)
    plain = Box(*(getattr(box, k) for k in ("order", "L", "lower", "upper", "width")), *[None] * 3)
    plain.__dict__["tilt"] = np.zeros(150)
    assert best < 0.7 * unordered
    assert best < 0.5 * estimate(plain.propose(u).log_weights)[1]


def test_the_order_is_greedy():
    """Independent variables: by increasing probability."""
    upper = np.array([0.3, -2.0, 1.5, -0.4])
    order = greedy_order(np.eye(4), np.full(4, -np.inf), upper)
    assert order.tolist() == [1, 3, 0, 2]


def test_a_warm_start_saves_steps_and_changes_nothing(rng):
    C, lower, upper = problem(60, 0.2)
    cold = Box.solve(C, lower, upper)
    warm = Box.solve(1.01 * C, lower, upper, start=cold.start)
    again = Box.solve(1.01 * C, lower, upper)
    assert warm.iterations < again.iterations
    np.testing.assert_allclose(warm.shift, again.shift, atol=1e-6)
    assert Box.solve(C, lower, upper, start=cold.start).iterations == 0


# --- draws ------------------------------------------------------------------------------------


def test_accepted_draws_have_the_moments_of_rejection(rng):
    C = np.array([[1.2, 0.8, 0.3], [0.8, 1.1, 0.5], [0.3, 0.5, 1.4]])
    lower, upper = np.array([-0.5, 0.3, -np.inf]), np.array([0.9, np.inf, -0.1])
    z = rng.multivariate_normal(np.zeros(3), C, size=1_000_000)
    z = z[np.all((z > lower) & (z <= upper), axis=1)]
    box = Box.solve(C, lower, upper)
    proposals = box.propose(uniforms(rng, 3, 60_000))
    kept = proposals.x[:, box.accept(proposals.log_weights, rng)]
    found = box.values(kept).T
    assert np.all((found > lower) & (found <= upper))
    for a, b in ((z, found), (z**2, found**2), (z * z[:, [1, 2, 0]], found * found[:, [1, 2, 0]])):
        error = np.sqrt(a.var(0) / len(a) + b.var(0) / len(b))
        assert np.all(np.abs(a.mean(0) - b.mean(0)) < 4 * error)
    for i in range(3):  # distributions, not moments only
        assert stats.ks_2samp(z[:, i], found[:, i]).pvalue > 1e-3
    share = kept.shape[1] / 60_000
    expected = np.exp(estimate(proposals.log_weights)[0] - box.bound)
    assert share == pytest.approx(expected, abs=4 * np.sqrt(share / 60_000))


def test_values_and_alpha_belong_together(rng):
    C, lower, upper = problem(25, 0.3)
    box = Box.solve(C, lower, upper)
    x = box.propose(uniforms(rng, 25, 40)).x
    z = box.values(x)
    assert np.all((z >= lower[:, None]) & (z <= upper[:, None]))
    np.testing.assert_allclose(C @ box.alpha(x), z, atol=1e-10)


# --- gradient ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "noise"), [(5, 0.4), (70, 0.1), (70, 0.4), (130, 2.0)])
def test_gradient_is_that_of_finite_differences(n, noise, rng):
    """Of the estimate itself, the random numbers held fixed; 70 and 130 span two and three blocks."""
    C, lower, upper = problem(n, noise)
    order, u = greedy_order(C, lower, upper), uniforms(rng, n, 50)
    symmetric = rng.normal(size=(n, n))
    directions = 0.1 * noise**2 * (symmetric + symmetric.T), noise * rng.normal(size=(2, n))

    def value(t, which):
        moved = [C, lower, upper]
        moved[which] = moved[which] + t * (
            directions[0] if which == 0 else directions[1][which - 1]
        )
        return estimate(Box.solve(*moved, order, tol=1e-13).propose(u).log_weights)[0]

    box = Box.solve(C, lower, upper, order, tol=1e-13)
    gradient = box.gradient(box.propose(u))
    found = [
        (gradient.C * directions[0]).sum(),
        gradient.lower @ directions[1][0],
        gradient.upper @ directions[1][1],
    ]
    h = 1e-3
    for which in range(3):
        near = value(h, which) - value(-h, which)
        far = value(2 * h, which) - value(-2 * h, which)
        assert found[which] == pytest.approx((8 * near - far) / (12 * h), rel=1e-6, abs=1e-7)
    np.testing.assert_allclose(gradient.C, gradient.C.T)
    assert np.all(gradient.lower[np.isinf(lower)] == 0)
    assert np.all(gradient.upper[np.isinf(upper)] == 0)


def test_a_singular_covariance_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        Box.solve(-np.eye(2), np.zeros(2), np.ones(2), np.arange(2))
