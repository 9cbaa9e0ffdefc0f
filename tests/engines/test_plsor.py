"""PLSOR: closed forms against brute force, and what it reduces to."""

import numpy as np
import pymc as pm
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import pmordinal as pmo
from pmordinal.engines import PLSOR
from pmordinal.engines.objectives import OBJECTIVES
from pmordinal.gram import Gram, lower
from pmordinal.inference.landscape import Landscape
from pmordinal.inference.starting_points import starting_points
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.links import LINKS

COV = 1.3 * pm.gp.cov.ExpQuad(2, ls=[0.8, 1.5]) + pm.gp.cov.WhiteNoise(0.6)


def problem(n=14, r=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    z = np.sin(2 * X[:, 0]) + 0.4 * rng.normal(size=n)
    y = np.searchsorted(np.quantile(z, np.arange(1, r) / r), z)
    return X, y, OrdinalLikelihood(np.arange(1, r) - r / 2 + 0.1, 0.4)


def run(X, y, likelihood, cov=COV):
    kernel = lower(cov)
    return PLSOR()(Gram(kernel, X, [p.data for p in kernel.parameters]), y, likelihood)


def test_prediction_equals_quadrature():
    """[PLSOR, eq. 8]: the squashed Gaussian is the average of the test likelihood."""
    likelihood = OrdinalLikelihood([-0.7, 0.4], 0.3)
    probs = likelihood.probabilities(np.array([0.2]), np.array([0.5]))[0]
    for k, (low, high) in enumerate([(-np.inf, -0.7), (-0.7, 0.4), (0.4, np.inf)]):

        def integrand(f, low=low, high=high):
            return (norm.cdf((high - f) / 0.3) - norm.cdf((low - f) / 0.3)) * norm.pdf(
                f, 0.2, np.sqrt(0.5)
            )

        assert probs[k] == pytest.approx(quad(integrand, -6, 6, epsabs=1e-12)[0], abs=1e-10)


def test_leave_one_out_equals_refits():
    """Eqs. 12–13 with K + σ_n² I: removing each row and predicting it gives the same to 1e-8."""
    X, y, likelihood = problem()
    posterior = run(X, y, likelihood)
    mean, var = posterior.cavity
    for i in range(len(y)):
        keep = np.arange(len(y)) != i
        other = run(X[keep], y[keep], likelihood)
        m, v = other.latent(X[i : i + 1])
        assert m[0] == pytest.approx(mean[i], abs=1e-8)
        assert v[0] == pytest.approx(var[i], abs=1e-8)
        probability = likelihood.probabilities(m, v)[0, y[i]]
        assert np.log(probability) == pytest.approx(posterior.leave_one_out.value[i], abs=1e-8)


@pytest.mark.parametrize("link", LINKS)
def test_gradient(link):
    X, y, likelihood = problem(n=25)
    kernel = lower(COV)
    values = [np.asarray(p.data, dtype=float) for p in kernel.parameters]

    def value(values, b, log_s):
        lik = OrdinalLikelihood(b, np.exp(log_s), link)
        return OBJECTIVES["loo"](PLSOR()(Gram(kernel, X, values), y, lik))

    b, log_s = likelihood.thresholds, np.log(0.4)
    _, gradient = value(values, b, log_s)
    h = 1e-5
    for i, v in enumerate(values):
        for j in np.ndindex(v.shape):
            step = np.zeros_like(v)
            step[j] = h
            up = value([*values[:i], v + step, *values[i + 1 :]], b, log_s)[0]
            down = value([*values[:i], v - step, *values[i + 1 :]], b, log_s)[0]
            assert gradient.parameters[i][j] == pytest.approx(
                (up - down) / (2 * h), rel=1e-6, abs=1e-7
            )
    for j in range(b.size):
        step = h * np.eye(b.size)[j]
        fd = (value(values, b + step, log_s)[0] - value(values, b - step, log_s)[0]) / (2 * h)
        assert gradient.thresholds[j] == pytest.approx(fd, rel=1e-6, abs=1e-7)
    fd = (value(values, b, log_s + h)[0] - value(values, b, log_s - h)[0]) / (2 * h)
    assert gradient.log_noise == pytest.approx(fd, rel=1e-6, abs=1e-7)


def test_two_classes_are_least_squares_classification():
    """With r = 2, Φ((αμ + β)/√(1 + α²σ²)) of probabilistic least-squares classification."""
    X, _, _ = problem()
    y = (X[:, 0] > 0).astype(int)
    alpha, beta = 2.5, 0.3
    posterior = run(X, y, OrdinalLikelihood([-beta / alpha], 1 / alpha))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2 / np.array([0.8, 1.5]) ** 2).sum(-1)) * 1.3
    Q = np.linalg.inv(K + 0.36 * np.eye(len(y)))
    t = np.where(y == 1, 0.5, -0.5)
    mu, var = t - Q @ t / np.diag(Q), 1 / np.diag(Q)
    z = (alpha * mu + beta) / np.sqrt(1 + alpha**2 * var)
    expected = norm.logcdf(np.where(y == 1, z, -z))
    np.testing.assert_allclose(posterior.leave_one_out.value, expected, rtol=1e-9)


def test_posterior_at_the_rows():
    X, y, likelihood = problem()
    posterior = run(X, y, likelihood)
    mean, var = posterior.latent(X)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-10)
    np.testing.assert_allclose(posterior.variance, var, atol=1e-10)
    draws = posterior.draw(20_000, np.random.default_rng(0))
    assert np.abs((draws.f.mean(0) - mean) / np.sqrt(var)).max() < 0.035  # five standard errors
    assert np.abs(draws.f.var(0) / var - 1).max() < 0.06


def test_model_and_fit():
    X, y, _ = problem(n=60)
    model = pmo.gp_model(X, y, engine="plsor")
    names = [v.name for v in model.free_RVs]
    assert names == ["noise_fraction", "scales", "lengthscale", "thresholds"]
    fit = pmo.fit(model, progressbar=False)
    assert fit.status.converged
    assert fit.objective == "loo"
    assert np.all(np.diff(fit.thresholds) > 0)
    assert fit.status.evaluations <= 70
    landscape = Landscape(model)
    x = starting_points(landscape, 1, {}, np.random.default_rng(0))[0]
    _, gradient = landscape.value_and_gradient(x)
    h = 1e-5
    for j, e in enumerate(np.eye(len(x))):
        fd = (
            landscape.value_and_gradient(x + h * e)[0] - landscape.value_and_gradient(x - h * e)[0]
        ) / (2 * h)
        assert gradient[j] == pytest.approx(fd, rel=1e-6, abs=1e-6)
    accuracy = (fit.predict(X, "class") == y).mean()
    assert accuracy > 0.6
    tree = fit.to_datatree(draws=50, seed=0)
    assert np.isfinite(tree["log_likelihood"]["y"].values).all()
    assert np.isfinite(tree["sample_stats"]["log_q"].values).all()


@pytest.mark.slow
def test_any_covariance_and_ard():
    X, y, _ = problem(n=30)
    ard = pmo.fit(pmo.gp_model(X, y, engine="plsor", ard=True), progressbar=False)
    assert ard.point["lengthscale"].shape == (2,)
    mine = pm.gp.cov.Matern32(2, ls=1.0) + pm.gp.cov.Linear(2, c=0.0)
    assert pmo.fit(pmo.gp_model(X, y, mine, engine="plsor"), progressbar=False).status.converged


def test_errors():
    X, y, likelihood = problem()
    with pytest.raises(ValueError, match="noise_fraction belongs to engine='plsor'"):
        pmo.gp_model(X, y, "expquad", engine="laplace", noise_fraction=0.5)
    with pytest.raises(ValueError, match="objective"):
        pmo.gp_model(X, y, engine="plsor", objective="evidence")
    doubled = np.concatenate([X, X])
    with pytest.raises(np.linalg.LinAlgError, match="WhiteNoise"):
        run(doubled, np.concatenate([y, y]), likelihood, pm.gp.cov.ExpQuad(2, ls=1.0) + 0.0)
