"""The exact engine against quadrature, SciPy, rejection, long NUTS, and its own stated errors."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import integrate, stats

import pmordinal as pmo
from pmordinal.engines import EP, Exact
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood
from tests.repeated import first_fast

from .test_engine_contract import COVARIANCES, Case, assert_gradient, c, kernel_and_values, v

SMOOTH = Exact(draws=100, standard_error=np.inf)  # a fixed number of draws, as in a fit


def small(y, noise=0.5, ls=0.8, thresholds=(-0.5, 0.6), seed=2):
    """Return covariance, labels and likelihood of a few rows in one dimension."""
    X = np.sort(np.random.default_rng(seed).normal(size=(len(y), 1)), axis=0)
    gram = Gram(lower(c.ExpQuad(1, ls=v(ls))), X, [ls])
    return gram, np.array(y), OrdinalLikelihood(thresholds, noise)


def rectangle(gram, y, likelihood):
    """Return the evidence by SciPy's normal distribution function."""
    C = gram.matrix + likelihood.noise**2 * np.eye(y.size)
    lower, upper = np.clip(likelihood.bounds(y), -12, 12)
    normal = stats.multivariate_normal(
        np.zeros(y.size), C, maxpts=400_000, abseps=1e-11, releps=1e-5, seed=1
    )
    return normal.cdf(upper, lower_limit=lower)


# --- evidence ---------------------------------------------------------------------------------


@pytest.mark.parametrize("y", first_fast([[0, 2], [1, 1], [2, 0]]))
def test_evidence_equals_nested_quadrature(y):
    gram, y, likelihood = small(y, noise=0.3)
    post = Exact(standard_error=0.005)(gram, y, likelihood)
    density = stats.multivariate_normal(np.zeros(2), gram.matrix).pdf

    def integrand(b, a):
        value = likelihood.log_prob(y, np.array([a, b])).value.sum()
        return np.exp(value) * density([a, b])

    truth = integrate.dblquad(integrand, -5, 5, -5, 5, epsabs=1e-5, epsrel=1e-4)[0]
    assert post.log_evidence_error <= 0.005
    assert abs(post.log_evidence - np.log(truth)) < 4 * post.log_evidence_error + 1e-3


@pytest.mark.parametrize("noise", [0.1, 0.5, 2.0])
def test_evidence_equals_that_of_scipy(noise):
    gram, y, likelihood = small([0, 0, 1, 0, 1, 1, 1, 2, 2, 2], noise)
    post = Exact()(gram, y, likelihood)
    assert post.status.converged
    assert post.log_evidence_error <= 0.02
    truth = np.log(rectangle(gram, y, likelihood))
    assert abs(post.log_evidence - truth) < 4 * post.log_evidence_error + 1e-3


def test_standard_errors_of_the_engine_cover():
    gram, y, likelihood = small([0, 1, 2, 2, 1, 0, 0, 1], 0.2)
    truth = np.log(rectangle(gram, y, likelihood))
    runs = [
        Exact(draws=200, standard_error=np.inf, seed=i)(gram, y, likelihood) for i in range(200)
    ]
    z = np.array([(run.log_evidence - truth) / run.log_evidence_error for run in runs])
    assert abs(z.mean()) < 4 / np.sqrt(200)
    assert 0.7 < z.var() < 1.35  # 200 z-scores: their variance has a standard error of 0.1


def test_more_proposals_are_spent_until_the_error_is_as_wished():
    case = Case(np.random.default_rng(0), "probit", n=60, noise=0.2)
    few = case.run(Exact(draws=100, standard_error=np.inf))
    more = case.run(Exact(draws=100, standard_error=0.02))
    assert few.log_weights.size == 100
    assert few.log_evidence_error > 0.02 >= more.log_evidence_error
    np.testing.assert_array_equal(more.log_weights[:100], few.log_weights)
    assert more.status.converged
    poor = case.run(Exact(draws=100, standard_error=0.001, max_proposals=300))
    assert poor.log_weights.size == 300
    assert not poor.status.converged
    assert "raise max_proposals" in poor.status.message


def test_the_same_seed_gives_the_same_numbers():
    gram, y, likelihood = small([0, 1, 2, 2, 1])
    a, b, other = (Exact(seed=seed)(gram, y, likelihood) for seed in (3, 3, 4))
    assert a.log_evidence == b.log_evidence
    np.testing.assert_array_equal(a.alphas, b.alphas)
    assert a.log_evidence != other.log_evidence


# --- gradient ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cov", COVARIANCES)
def test_gradient_is_that_of_finite_differences(cov, rng):
    assert_gradient(SMOOTH, "evidence", Case(rng, "probit", cov))


@pytest.mark.parametrize("noise", [0.05, 3.0])
def test_gradient_with_little_and_much_noise(noise, rng):
    assert_gradient(SMOOTH, "evidence", Case(rng, "probit", noise=noise), rtol=1e-5)


def test_gradient_agrees_with_fishers_identity(rng):
    """∂ log Z = E[∂ log p(z)] over the posterior: another estimate of the same thing, from the draws alone."""
    case = Case(rng, "probit", "ard")
    post = case.run(Exact(draws=20_000, standard_error=np.inf))
    C = post.gram.matrix + case.noise**2 * np.eye(case.y.size)
    gradient = post.evidence_gradient()
    inverse = np.linalg.inv(C)
    h = 1e-5
    # dC by the log noise and by both length-scales
    moves = [2 * case.noise**2 * np.eye(case.y.size)]
    for i in range(2):
        ends = [
            Gram(case.kernel, case.X, [case.values[0] + s * h * (np.arange(2) == i)]).matrix
            for s in (1, -1)
        ]
        moves.append((ends[0] - ends[1]) / (2 * h))
    found = [gradient.log_noise, *gradient.parameters[0]]
    for move, value in zip(moves, found, strict=True):
        scores = 0.5 * np.einsum("id,ij,jd->d", post.alphas, move, post.alphas)
        scores -= 0.5 * np.sum(inverse * move)
        fisher = post.weights @ scores
        error = np.sqrt(post.weights**2 @ (scores - fisher) ** 2)
        assert error < 0.05
        assert abs(value - fisher) < 6 * error  # both have errors


# --- posterior --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three():
    """Return three rows, the engine's posterior, and a million prior draws that rejection has thinned."""
    gram, y, likelihood = small([0, 2, 2], noise=0.5)
    post = Exact(draws=20_000)(gram, y, likelihood)
    rng = np.random.default_rng(9)
    X_star = np.array([[0.2], [-1.5]])
    both = Gram(gram.kernel, np.concatenate([gram.X, X_star]), gram.values)
    R = np.linalg.cholesky(both.matrix + 1e-12 * np.eye(5))
    f = rng.normal(size=(2_000_000, 5)) @ R.T
    kept = np.all(likelihood.draw(f[:, :3], rng) == y, axis=1)
    return post, X_star, f[kept]


def test_moments_equal_those_of_rejection(three):
    post, X_star, f = three
    for prediction, draws in ((post.prediction(), f[:, :3]), (post.prediction(X_star), f[:, 3:])):
        centred = (draws - draws.mean(0)) ** 2
        for found, values in ((prediction.mean, draws), (prediction.variance, centred)):
            error = np.sqrt(found.standard_error**2 + values.var(0) / len(values))
            assert np.all(error < 0.02)
            assert np.all(np.abs(found.value - values.mean(0)) < 4 * error)
    mean, variance = post.latent(X_star)
    np.testing.assert_allclose(mean, post.prediction(X_star).mean.value)
    np.testing.assert_allclose(variance, post.prediction(X_star).variance.value)
    np.testing.assert_allclose(post.mean, post.prediction().mean.value, atol=1e-12)
    np.testing.assert_allclose(post.variance, post.prediction().variance.value)


def test_probabilities_are_those_of_the_mixture(three):
    post, X_star, f = three
    for rows, draws in ((None, f[:, :3]), (X_star, f[:, 3:])):
        found = post.prediction(rows).probabilities
        likelihood = post.likelihood
        for k in range(3):
            p = np.exp(likelihood.log_prob(np.full(draws.shape, k), draws).value)
            error = np.sqrt(found.standard_error[:, k] ** 2 + p.var(0) / len(p))
            assert np.all(np.abs(found.value[:, k] - p.mean(0)) < 4 * error)
        np.testing.assert_allclose(found.value.sum(1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(post.probabilities(rows), found.value)
    np.testing.assert_allclose(np.exp(post.in_sample), post.probabilities()[np.arange(3), post.y])


def test_draws_are_exact(three):
    """Accepted draws have the distribution of rejection's, and state their density."""
    post, _, f = three
    latent = post.draw(20_000, np.random.default_rng(1))
    assert "exact and independent" in latent.source
    for i in range(3):
        assert stats.ks_2samp(latent.f[:, i], f[:, i]).pvalue > 1e-3
    product = latent.f[:, 0] * latent.f[:, 2]
    other = f[:, 0] * f[:, 2]
    error = np.sqrt(product.var() / product.size + other.var() / other.size)
    assert abs(product.mean() - other.mean()) < 4 * error
    log_likelihood = post.likelihood.log_prob(post.y[:, None], latent.f.T).value.sum(0)
    np.testing.assert_allclose(
        latent.log_q, latent.log_prior + log_likelihood - post.log_evidence, rtol=1e-12
    )


def test_standard_errors_of_predictions_cover():
    gram, y, likelihood = small([0, 2, 1, 1, 2], noise=0.2)
    X_star = np.array([[0.3]])
    runs = [Exact(draws=300, seed=i)(gram, y, likelihood).prediction(X_star) for i in range(200)]
    reference = Exact(draws=60_000, seed=999)(gram, y, likelihood).prediction(X_star)
    for name in ("mean", "variance", "probabilities"):
        value, error = (
            np.array([getattr(getattr(run, name), part)[0] for run in runs])
            for part in ("value", "standard_error")
        )
        z = (value - getattr(reference, name).value[0]) / error
        assert np.all(np.abs(z.mean(0)) < 0.4)
        assert np.all((z.var(0) > 0.65) & (z.var(0) < 1.5))


def test_leave_one_out_is_the_ratio_of_evidences():
    gram, y, likelihood = small([0, 2, 1, 1, 0, 2], noise=0.3)
    loo = Exact(draws=10_000)(gram, y, likelihood).leave_one_out
    whole = rectangle(gram, y, likelihood)
    for i in range(y.size):
        rest = np.arange(y.size) != i
        others = Gram(gram.kernel, gram.X[rest], gram.values)
        truth = np.log(whole / rectangle(others, y[rest], likelihood))
        assert loo.standard_error[i] < 0.05
        assert abs(loo.value[i] - truth) < 4 * loo.standard_error[i] + 1e-3


def test_expectation_propagation_agrees_where_it_is_good(rng):
    case = Case(rng, "probit", n=60, noise=1.0)
    post, ep = case.run(Exact(draws=4000)), case.run(EP())
    assert post.log_evidence == pytest.approx(ep.log_evidence, abs=0.05)
    X_star = rng.normal(size=(8, 2))
    np.testing.assert_allclose(post.probabilities(X_star), ep.probabilities(X_star), atol=0.02)
    np.testing.assert_allclose(post.variance, ep.variance, rtol=0.15)


def test_too_few_acceptances_are_refused_or_resampled_on_request(rng):
    case = Case(rng, "probit", n=80, noise=0.05)
    post = case.run(Exact(max_proposals=2000))
    with pytest.raises(ValueError, match=r"effective sample size of .*") as caught:
        post.draw(1000, rng)
    assert "pmo.Exact(resample=True)" in str(caught.value)
    again = case.run(Exact(max_proposals=2000, resample=True))
    latent = again.draw(1000, rng)
    assert "resampled from 1000 weighted draws" in latent.source
    error = np.sqrt(again.variance / min(again.effective_draws, 1000))
    assert np.all(np.abs(latent.f.mean(0) - again.mean) < 6 * error)


def test_there_are_no_cavities(rng):
    with pytest.raises(TypeError, match="has no cavities"):
        _ = Case(rng, "probit").run(SMOOTH).cavity


@pytest.mark.parametrize("link", ["logit", "cloglog"])
def test_other_links_are_refused_with_the_alternatives(link, rng):
    with pytest.raises(ValueError, match=r"needs link='probit', got .*'ep'.*pmo.latent_model"):
        Case(rng, link).run(Exact())
    with pytest.raises(ValueError, match="needs link='probit'"):
        pmo.gp_model([[0.0], [1.0]], [0, 1], "expquad", engine="exact", link=link)


@pytest.mark.parametrize("noise", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("ls", [1e-3, 1.0, 1e3])
def test_extreme_parameters(noise, ls, rng):
    """Numbers everywhere, and convergence or a reason; warnings are errors."""
    for thresholds in ([0.0], [-0.8, 0.1, 0.9], np.linspace(-1, 1, 9), [5.0, 5.001, 40.0]):
        kernel, _ = kernel_and_values(c.ExpQuad(2, ls=v(1.0)))
        X = rng.normal(size=(12, 2))
        y = rng.integers(0, len(thresholds) + 1, 12)
        likelihood = OrdinalLikelihood(thresholds, noise)
        post = Exact(draws=200)(Gram(kernel, X, [ls]), y, likelihood)
        gradient = post.evidence_gradient()
        arrays = [post.log_evidence, post.mean, post.variance, post.leave_one_out.value]
        arrays += [gradient.thresholds, gradient.log_noise, *gradient.parameters]
        assert all(np.all(np.isfinite(a)) for a in arrays)
        assert post.log_evidence < 0
        assert post.status.converged or "no convergence" in post.status.message
        assert post.box.converged or noise < 0.1  # conflicts without noise: log evidences of −1e9
        if post.box.converged:
            assert post.log_weights.max() <= post.box.bound + 1e-6 - 1e-9 * post.log_evidence


def test_conflicting_duplicates_without_jitter():
    gram = Gram(lower(c.ExpQuad(1, ls=v(1.0))), np.repeat([[0.0], [0.5], [2.0]], 4, axis=0), [1.0])
    y = np.array([0, 1, 2, 2, 0, 0, 1, 1, 2, 2, 2, 0])
    post = Exact()(gram, y, OrdinalLikelihood([-0.3, 0.4], 0.5))
    assert post.status.converged
    np.testing.assert_allclose(post.mean[:4], post.mean[0], rtol=1e-6)
    ep = EP()(gram, y, OrdinalLikelihood([-0.3, 0.4], 0.5))
    assert post.log_evidence == pytest.approx(ep.log_evidence, abs=0.1)


# --- through the public face ------------------------------------------------------------------


@pytest.fixture(scope="module")
def fits():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 2))
    y = np.digitize(np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=40), [-0.4, 0.4])
    engines = {"ep": "ep", "exact": Exact(draws=500)}
    return {
        name: pmo.fit(pmo.gp_model(X, y, engine=engine, noise=0.5), progressbar=False)
        for name, engine in engines.items()
    }


def test_fit_finds_the_optimum_of_expectation_propagation_nearby(fits):
    exact, ep = fits["exact"], fits["ep"]
    assert exact.status.converged
    assert exact.point["lengthscale"] == pytest.approx(ep.point["lengthscale"], rel=0.1)
    np.testing.assert_allclose(exact.thresholds, ep.thresholds, atol=0.1)
    assert exact.log_evidence == pytest.approx(ep.log_evidence, abs=0.15)
    # the fit's own estimate and the final one use different numbers of draws
    assert exact.posterior.log_evidence_error <= 0.02
    assert "± 0.0" in repr(exact)


def test_the_fit_goes_where_other_fits_go(fits):
    exact, ep = fits["exact"], fits["ep"]
    table = pmo.compare(fits, reference="exact")
    assert table.loc["ep", "tv_max"] < 0.05
    assert pmo.loo(exact).elpd == pytest.approx(pmo.loo(ep).elpd, abs=0.5)
    tree = exact.to_datatree(draws=2000, seed=1)
    assert "exact and independent" in tree.attrs["draws"]
    f = tree["posterior"]["f"].values[0]
    error = np.sqrt(2 * exact.posterior.variance / 500)
    assert np.all(np.abs(f.mean(0) - exact.posterior.mean) < 5 * error)
    stats = tree["sample_stats"]
    difference = stats["log_p"].values - stats["log_q"].values
    np.testing.assert_allclose(difference, exact.log_evidence, atol=1e-8)
    again = exact.to_datatree(draws=2000, seed=1)
    np.testing.assert_array_equal(again["posterior"]["f"], tree["posterior"]["f"])


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_moments_equal_those_of_long_nuts():
    """Fifty rows, hyperparameters fixed: NUTS over the whitened latent function."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 2))
    kernel = lower(c.ExpQuad(2, ls=v(1.0)))
    gram = Gram(kernel, X, [1.0])
    likelihood = OrdinalLikelihood([-0.7, 0.0, 0.8], 0.3)
    R = np.linalg.cholesky(gram.matrix + 1e-8 * np.eye(50))
    y = likelihood.draw(R @ rng.normal(size=50), rng)
    post = Exact(draws=10_000)(gram, y, likelihood)
    with pm.Model():
        z = pm.Normal("z", shape=50)
        f = pm.Deterministic("f", pm.math.dot(R, z))
        pmo.Ordinal("y", f, thresholds=likelihood.thresholds, noise=0.3, observed=y)
        tree = pm.sample(
            1500, tune=1000, chains=2, cores=1, random_seed=5, progressbar=False, target_accept=0.9
        )
    draws = tree["posterior"]["f"]
    ess = az.ess(tree, var_names=["f"])["f"].values
    prediction = post.prediction()
    values = draws.values.reshape(-1, 50)
    error = np.sqrt(values.var(0) / ess + prediction.mean.standard_error**2)
    z_scores = (values.mean(0) - prediction.mean.value) / error
    assert np.max(np.abs(z_scores)) < 4.5
    square = (values - values.mean(0)) ** 2
    error = np.sqrt(square.var(0) / (0.3 * ess) + prediction.variance.standard_error**2)
    assert np.max(np.abs(square.mean(0) - prediction.variance.value) / error) < 4.5
    drawn = post.draw(4000, rng).f
    error = np.sqrt(post.variance / 4000 + values.var(0) / ess)
    assert np.max(np.abs(drawn.mean(0) - values.mean(0)) / error) < 4.5
