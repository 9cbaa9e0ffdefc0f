"""Rows that differ in their thresholds, their noise and their weight."""

import numpy as np
import pymc as pm
import pytest
from scipy.stats import multivariate_normal

from pmordinal.engines import ENGINES
from pmordinal.engines.ep import EP
from pmordinal.engines.exact import Exact
from pmordinal.engines.inducing import Inducing
from pmordinal.engines.laplace import Laplace
from pmordinal.engines.objectives import OBJECTIVES
from pmordinal.engines.plsor import PLSOR
from pmordinal.engines.sparse import SparseADF
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood, Rows

THRESHOLDS = np.array([[-0.8, 0.4], [-0.3, 1.1], [-1.2, 0.1]])
NOISE = np.array([0.6, 1.1])
WEIGHTS = np.array([1.0, 3.0, 2.0, 1.0, 5.0, 1.0, 2.0, 1.0])


def table(n=8, seed=3):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.normal(size=(n, 1)), axis=0)
    y = np.clip(np.round(X[:, 0] + 1 + 0.5 * rng.normal(size=n)), 0, 2).astype(int)
    return X, y, Rows(np.arange(n) % 3, np.arange(n) % 2)


def gram_of(X, white=False, ls=0.9, eta=1.3, sigma=0.7):
    cov = pm.gp.cov.ExpQuad(1, ls=ls) * eta**2
    if not white:
        return Gram(lower(cov), X, [*_numbers(lower(cov))])
    cov = cov + pm.gp.cov.WhiteNoise(sigma)
    return Gram(lower(cov), X, [*_numbers(lower(cov))])


def _numbers(kernel):
    return [p.eval() for p in kernel.parameters]


def moved(gram, k, step):
    values = [v.copy() for v in gram.values]
    values[k] = values[k] + step
    return Gram(gram.kernel, gram.X, values)


@pytest.mark.parametrize(
    "engine", [EP(), Laplace(), Exact(standard_error=2e-3)], ids=lambda e: e.name
)
def test_evidence_by_group_is_the_probability_of_a_rectangle(engine):
    X, y, rows = table(4)
    gram = gram_of(X)
    likelihood = OrdinalLikelihood(THRESHOLDS, NOISE, "probit", rows)
    found = engine(gram, y, likelihood).log_evidence
    C = gram.matrix + np.diag(NOISE[rows.noise] ** 2)
    edges = np.column_stack([np.full(3, -30.0), THRESHOLDS, np.full(3, 30.0)])
    low, high = edges[rows.thresholds, y], edges[rows.thresholds, y + 1]
    box = multivariate_normal(cov=C, maxpts=10**6, abseps=1e-9, releps=1e-9)
    truth = np.log(box.cdf(high, lower_limit=low))
    # what the approximations miss on four rows; the last is Monte-Carlo error
    assert found == pytest.approx(
        truth, abs={"ep": 0.005, "laplace": 0.15, "exact": 0.01}[engine.name]
    )


ALL = [
    (EP(tol=1e-11), "evidence", "probit", True),
    (EP(tol=1e-11), "loo", "probit", True),
    (EP(tol=1e-11), "loo", "logit", True),
    (EP(tol=1e-11), "evidence", "logit", True),
    (Laplace(tol=1e-11), "evidence", "probit", True),
    (Laplace(tol=1e-11), "loo", "cloglog", True),
    (Laplace(tol=1e-11), "evidence", "logit", True),
    (EP(tol=1e-11), "evidence", "probit", 0.4),
    (EP(tol=1e-11), "loo", "logit", 0.4),
    (Laplace(tol=1e-11), "loo", "logit", 0.4),
    (PLSOR(), "loo", "probit", True),
    (Exact(draws=300, standard_error=np.inf), "evidence", "probit", False),
    (SparseADF(basis=(1, 4, 6), refresh=1), "validation", "logit", False),
]


@pytest.mark.parametrize(("engine", "objective", "link", "weighted"), ALL)
def test_gradients_are_exact(engine, objective, link, weighted):
    X, y, rows = table()
    rows = Rows(rows.thresholds, rows.noise, weighted * WEIGHTS if weighted else None)
    gram = gram_of(X, white=engine.name == "plsor")
    likelihood = OrdinalLikelihood(THRESHOLDS, NOISE, link, rows)
    engine = engine.select(gram, y, likelihood)

    def value(gram, thresholds, noise):
        return OBJECTIVES[objective](
            engine(gram, y, OrdinalLikelihood(thresholds, noise, link, rows))
        )

    gradient = value(gram, THRESHOLDS, NOISE)[1]
    assert gradient.thresholds.shape == THRESHOLDS.shape
    assert np.shape(gradient.log_noise) == NOISE.shape
    h = 1e-5
    for at in np.ndindex(THRESHOLDS.shape):
        step = h * (np.arange(6).reshape(3, 2) == 2 * at[0] + at[1])
        up, down = (value(gram, THRESHOLDS + s * step, NOISE)[0] for s in (1, -1))
        assert gradient.thresholds[at] == pytest.approx((up - down) / (2 * h), rel=1e-5, abs=2e-7)
    for k in range(2):
        factor = np.exp(h * (np.arange(2) == k))
        up, down = (
            value(gram, THRESHOLDS, NOISE * factor)[0],
            value(gram, THRESHOLDS, NOISE / factor)[0],
        )
        assert gradient.log_noise[k] == pytest.approx((up - down) / (2 * h), rel=1e-5, abs=2e-7)
    for k, by in enumerate(gradient.parameters):
        up, down = (value(moved(gram, k, s * h), THRESHOLDS, NOISE)[0] for s in (1, -1))
        assert by.sum() == pytest.approx((up - down) / (2 * h), rel=1e-5, abs=2e-7)


REPEATED = [
    (EP(tol=1e-12), "probit", "evidence"),
    (EP(tol=1e-12), "logit", "loo"),
    (EP(tol=1e-12), "probit", "bound"),
    (Laplace(tol=1e-12), "probit", "evidence"),
    (Laplace(tol=1e-12), "cloglog", "loo"),
    (Inducing(tol=1e-12), "probit", "evidence"),
    (Inducing(sites="laplace", tol=1e-12), "logit", "evidence"),
    (PLSOR(), "probit", "loo"),
]


@pytest.mark.parametrize(("engine", "link", "objective"), REPEATED)
def test_whole_weights_are_repeated_rows(engine, link, objective):
    X, y, rows = table()
    again = np.repeat(np.arange(y.size), WEIGHTS.astype(int))
    first = np.searchsorted(again, np.arange(y.size))
    white = engine.name == "plsor"
    gram, repeated = gram_of(X, white), gram_of(X[again], white)
    weighted = OrdinalLikelihood(
        THRESHOLDS, NOISE, link, Rows(rows.thresholds, rows.noise, WEIGHTS)
    )
    plain = OrdinalLikelihood(THRESHOLDS, NOISE, link, rows.take(again))
    p, q = engine(gram, y, weighted), engine(repeated, y[again], plain)
    assert p.log_evidence == pytest.approx(q.log_evidence, abs=1e-8)
    assert p.loo == pytest.approx(q.loo, abs=1e-8)
    np.testing.assert_allclose(p.mean, q.mean[first], atol=1e-8)
    np.testing.assert_allclose(p.variance, q.variance[first], atol=1e-8)
    np.testing.assert_allclose(p.leave_one_out.value, q.leave_one_out.value[first], atol=1e-8)
    np.testing.assert_allclose(
        p.left_out_probabilities(), q.left_out_probabilities()[first], atol=1e-8
    )
    np.testing.assert_allclose(p.in_sample, q.in_sample[first], atol=1e-8)
    new = np.linspace(-2, 2, 5)[:, None]
    np.testing.assert_allclose(p.latent(new), q.latent(new), atol=1e-8)
    value, gradient = OBJECTIVES[objective](p)
    value_2, gradient_2 = OBJECTIVES[objective](q)
    assert value == pytest.approx(value_2, abs=1e-8)
    np.testing.assert_allclose(gradient.thresholds, gradient_2.thresholds, atol=1e-7)
    np.testing.assert_allclose(gradient.log_noise, gradient_2.log_noise, atol=1e-7)
    for a, b in zip(gradient.parameters, gradient_2.parameters, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)
    if p.log_evidence_correction is not None:
        assert p.log_evidence_correction == pytest.approx(q.log_evidence_correction, abs=1e-8)


@pytest.mark.parametrize("engine", [EP(tol=1e-12), Laplace(tol=1e-12)], ids=lambda e: e.name)
def test_pullback_of_predictions_knows_weights(engine):
    X, y, rows = table()
    again = np.repeat(np.arange(y.size), WEIGHTS.astype(int))
    weighted = OrdinalLikelihood(
        THRESHOLDS, NOISE, "logit", Rows(rows.thresholds, rows.noise, WEIGHTS)
    )
    p = engine(gram_of(X), y, weighted)
    q = engine(
        gram_of(X[again]), y[again], OrdinalLikelihood(THRESHOLDS, NOISE, "logit", rows.take(again))
    )
    new, cotangents = np.linspace(-2, 2, 5)[:, None], (np.arange(5.0) - 1, 0.5 * np.arange(5.0))
    a, b = (posterior.latent_with_pullback(new)[2](*cotangents) for posterior in (p, q))
    np.testing.assert_allclose(a.thresholds, b.thresholds, atol=1e-7)
    np.testing.assert_allclose(a.log_noise, b.log_noise, atol=1e-7)
    np.testing.assert_allclose(a.parameters[0], b.parameters[0], atol=1e-7)


@pytest.mark.parametrize("engine", [EP(), Laplace(), Inducing()], ids=lambda e: e.name)
def test_large_weights_and_warm_starts_converge(engine):
    X, y, rows = table(40, seed=5)
    w = np.random.default_rng(1).integers(1, 400, size=40).astype(float)
    likelihood = OrdinalLikelihood(
        THRESHOLDS, NOISE, "probit", Rows(rows.thresholds, rows.noise, w)
    )
    cold = engine(gram_of(X), y, likelihood)
    assert cold.status.converged
    warm = engine(gram_of(X), y, likelihood, cold.start)
    # inducing rows need one more pass, to carry the start over
    assert warm.status.iterations <= (3 if engine.name == "inducing" else 2)
    assert warm.log_evidence == pytest.approx(cold.log_evidence, abs=1e-8)


@pytest.mark.parametrize("engine", [EP(tol=1e-11), Laplace(tol=1e-11)], ids=lambda e: e.name)
def test_fractions_are_powers_of_the_likelihood(engine):
    """Where data are many the posterior is close to Gaussian, and all engines to the truth."""
    X, y, rows = table()
    gram, w = gram_of(X), WEIGHTS * 0.55
    likelihood = OrdinalLikelihood(
        THRESHOLDS, NOISE, "probit", Rows(rows.thresholds, rows.noise, w)
    )
    p = engine(gram, y, likelihood)
    assert p.status.converged
    # importance sampling from the approximation, with powers of the likelihood
    f = p.draw(200_000, np.random.default_rng(0))
    terms = likelihood.log_prob(y[:, None], f.f.T)
    log_weights = w @ terms.value + f.log_prior - f.log_q
    truth = np.log(np.mean(np.exp(log_weights - log_weights.max()))) + log_weights.max()
    assert p.log_evidence == pytest.approx(truth, abs={"ep": 0.02, "laplace": 0.1}[engine.name])
    assert np.all(np.isfinite(p.leave_one_out.value))


def test_a_fraction_of_one_row_is_exact_up_to_the_shape_of_its_posterior():
    """Expectation propagation matches moments of one row exactly, also of a power of a sharp likelihood."""
    y, rows = np.array([1]), Rows(weights=np.array([0.3]))
    u, h = np.linspace(-12, 12, 400_001, retstep=True)
    for noise in (0.9, 0.03):
        for link in ("probit", "logit"):
            likelihood = OrdinalLikelihood([-0.4, 0.2], noise, link, rows)
            gram = gram_of(np.zeros((1, 1)))
            p = EP(tol=1e-12)(gram, y, likelihood)
            f = 1.3 * u
            alike = OrdinalLikelihood([-0.4, 0.2], noise, link)
            density = np.exp(0.3 * alike.log_prob(np.ones(f.size, int), f).value - 0.5 * u * u)
            Z = density.sum() * h / np.sqrt(2 * np.pi)
            mean = (f * density).sum() / density.sum()
            assert p.log_evidence == pytest.approx(np.log(Z), abs=1e-7)
            assert p.mean[0] == pytest.approx(mean, abs=1e-7)
            spread = (f - mean) ** 2 * density
            assert p.variance[0] == pytest.approx(spread.sum() / density.sum(), abs=1e-7)


@pytest.mark.parametrize("name", [name for name in ENGINES if not ENGINES[name].has_weights])
def test_engines_without_weights_refuse_them(name):
    X, y, _ = table()
    likelihood = OrdinalLikelihood([-1.0, 1.0], 1.0, "probit", Rows(weights=WEIGHTS))
    with pytest.raises(ValueError, match="takes no weights=: use one of 'ep'"):
        ENGINES[name]()(gram_of(X), y, likelihood)


def test_plsor_refuses_weights_below_one():
    X, y, _ = table()
    likelihood = OrdinalLikelihood([-1.0, 1.0], 1.0, "probit", Rows(weights=0.5 * WEIGHTS))
    with pytest.raises(ValueError, match=r"got a weight of 0\.5"):
        PLSOR()(gram_of(X, white=True), y, likelihood)


@pytest.mark.parametrize("name", ENGINES)
def test_equal_groups_are_one(name):
    X, y, rows = table(20)
    gram, engine = gram_of(X, white=name == "plsor"), ENGINES[name]()
    alike = OrdinalLikelihood([-0.5, 0.7], 0.8)
    b = np.tile([-0.5, 0.7], (3, 1))
    groups = OrdinalLikelihood(b, np.array([0.8, 0.8]), "probit", rows)
    p, q = engine(gram, y, alike), engine(gram, y, groups)
    assert p.log_evidence == pytest.approx(q.log_evidence, abs=1e-10)
    np.testing.assert_allclose(p.mean, q.mean, atol=1e-10)
    np.testing.assert_allclose(p.leave_one_out.value, q.leave_one_out.value, atol=1e-10)
    new = np.linspace(-2, 2, 4)[:, None]
    others = groups.at_new(Rows(np.array([2, 0, 1, 1]), np.array([0, 1, 1, 0])))
    np.testing.assert_allclose(p.probabilities(new), q.probabilities(new, others), atol=1e-10)
