"""The engine with inducing rows: against full engines on the covariance that it stands for."""

import joblib
import numpy as np
import pymc as pm
import pytest

import pmordinal as pmo
from pmordinal.engines import EP, Inducing, Laplace
from pmordinal.engines.inducing import blocks, correction
from pmordinal.engines.inducing.basis import choose
from pmordinal.engines.inducing.cavities import find_cavities
from pmordinal.engines.objectives import OBJECTIVES
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood, Rows
from tests.repeated import first_fast

FULL = {"ep": EP(tol=1e-11), "laplace": Laplace(tol=1e-11)}
each_sites = pytest.mark.parametrize("sites", FULL)


def table(n=60, d=2, noise=0.3, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = np.sin(2 * X[:, 0]) + X[:, 1:].sum(1) / np.sqrt(d)
    thresholds = np.quantile(f, np.arange(1, classes) / classes)
    return X, np.searchsorted(thresholds, f + noise * rng.normal(size=n)), thresholds


def gram_at(cov, X):
    kernel = lower(cov)
    return Gram(kernel, X, [p.eval() for p in kernel.parameters])


def dense(K):
    """Return the Gram of any covariance matrix."""
    return gram_at(pmo.Precomputed(K), np.arange(len(K), dtype=float)[:, None])


def fitc(gram, basis):
    """Return the covariance matrix that inducing rows stand for."""
    cross = gram.kernel.matrix(gram.values, gram.X, gram.X[basis])[0]
    K = cross @ np.linalg.solve(cross[basis], cross.T)
    K[np.diag_indices(gram.n)] = gram.diagonal
    return 0.5 * (K + K.T)


def assert_same(p, q, atol):
    assert p.log_evidence == pytest.approx(q.log_evidence, abs=atol)
    assert p.loo == pytest.approx(q.loo, abs=10 * atol)
    for name in ("mean", "variance", "precision", "cavity"):
        np.testing.assert_allclose(getattr(p, name), getattr(q, name), rtol=10 * atol, atol=atol)
    np.testing.assert_allclose(p.left_out_probabilities(), q.left_out_probabilities(), atol=atol)
    a, b = p.evidence_gradient(), q.evidence_gradient()
    np.testing.assert_allclose(a.thresholds, b.thresholds, atol=10 * atol)
    np.testing.assert_allclose(a.log_noise, b.log_noise, atol=10 * atol)


@pytest.mark.parametrize(("sites", "white"), [("ep", False), ("ep", True), ("laplace", False)])
@pytest.mark.parametrize("noise", [0.5, 0.1])
def test_all_rows_as_inducing_rows_are_the_full_engine(sites, noise, white):
    X, y, thresholds = table(noise=noise)
    cov = pm.gp.cov.ExpQuad(2, ls=[0.7, 1.2])
    gram = gram_at(cov + pm.gp.cov.WhiteNoise(0.3) if white else cov, X)
    likelihood = OrdinalLikelihood(thresholds, noise)
    p = Inducing(60, sites=sites)(gram, y, likelihood)
    q = FULL[sites](gram, y, likelihood)
    assert p.status.message == "converged"
    assert_same(p, q, 1e-6)
    assert p.log_evidence_correction == pytest.approx(q.log_evidence_correction, abs=1e-6)
    new = np.random.default_rng(1).normal(size=(7, 2))
    np.testing.assert_allclose(p.latent(new), q.latent(new), atol=1e-6)
    pairs = zip(p.evidence_gradient().parameters, q.evidence_gradient().parameters, strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_few_inducing_rows_are_full_ep_on_their_covariance(link):
    X, y, thresholds = table(40)
    gram = gram_at(pm.gp.cov.Matern32(2, ls=0.8) * 1.3, X)
    likelihood = OrdinalLikelihood(thresholds, 0.3, link)
    p = Inducing(6)(gram, y, likelihood)
    assert p.support.size == 6
    assert p.excess > 1.0
    K = dense(fitc(gram, p.support))
    q = EP(tol=1e-11)(K, y, likelihood)
    assert_same(p, q, 1e-7)
    assert p.log_evidence_correction == pytest.approx(q.log_evidence_correction, abs=1e-7)
    # Laplace's approximation is for the weights alone, residuals are averaged out exactly
    laplace, full = Inducing(6, sites="laplace")(gram, y, likelihood), Laplace()(K, y, likelihood)
    missed = abs(laplace.log_evidence - q.log_evidence)
    assert missed < 0.5 * abs(full.log_evidence - q.log_evidence)


@each_sites
def test_estimated_error_of_the_evidence_is_a_sum_over_pairs(sites, monkeypatch):
    X, y, thresholds = table(40)
    gram = gram_at(pm.gp.cov.ExpQuad(2, ls=0.5), X)
    likelihood = OrdinalLikelihood(thresholds, 0.5)
    p = Inducing(12, sites=sites)(gram, y, likelihood)
    K = dense(fitc(gram, p.support))
    exact = pmo.Exact(draws=4000, seed=0)(K, y, likelihood)
    left = abs(exact.log_evidence - p.log_evidence - p.log_evidence_correction)
    assert left < 0.5 * abs(exact.log_evidence - p.log_evidence)
    # in parts it is the same, and beyond a number of rows there is none
    monkeypatch.setattr(correction, "PAIRED", 7)
    again = Inducing(12, sites=sites)(gram, y, likelihood)
    assert again.log_evidence_correction == pytest.approx(p.log_evidence_correction, abs=1e-10)
    monkeypatch.setattr("pmordinal.engines.inducing.posterior.MOST_PAIRED", 39)
    assert Inducing(12, sites=sites)(gram, y, likelihood).log_evidence_correction is None


@each_sites
@pytest.mark.parametrize("weights", [None, 1.0, pytest.param(0.3, marks=pytest.mark.slow)])
def test_gradient_is_that_of_finite_differences(sites, weights):
    X, y, _ = table(30, classes=3)
    rows = Rows(np.arange(30) % 2, np.arange(30) % 3)
    if weights is not None:
        rows = Rows(rows.thresholds, rows.noise, weights * (1.0 + np.arange(30) % 4))
    b, s = np.array([[-0.5, 0.4], [-0.2, 0.7]]), np.array([0.3, 0.5, 0.9])
    cov = pm.gp.cov.ExpQuad(2, ls=[0.7, 1.2]) * 0.8 + pm.gp.cov.Linear(2, c=0.1)
    cov = cov + pm.gp.cov.WhiteNoise(0.1)
    gram = gram_at(cov, X)
    at = [np.array(v, dtype=float) for v in (*gram.values, b, np.log(s))]
    engine = Inducing(5, sites=sites, tol=1e-11).select(gram, y, OrdinalLikelihood(b, s, rows=rows))

    def posterior(theta, start=None):
        *values, thresholds, log_noise = theta
        likelihood = OrdinalLikelihood(thresholds, np.exp(log_noise), "probit", rows)
        return engine(Gram(gram.kernel, X, values), y, likelihood, start)

    first = posterior(at)
    gradient = OBJECTIVES["evidence"](first)[1]
    found = [*gradient.parameters, gradient.thresholds, gradient.log_noise]
    h = 1e-4
    for k, value in enumerate(at):
        for index in np.ndindex(value.shape):
            ends = []
            for step in (h, -h):
                theta = [v.copy() for v in at]
                theta[k][index] += step
                ends.append(posterior(theta, first.start).log_evidence)
            expected = (ends[0] - ends[1]) / (2 * h)
            assert found[k][index] == pytest.approx(expected, rel=2e-6, abs=2e-6)


def test_draws_are_of_the_posterior_and_know_their_densities():
    X, y, thresholds = table(25)
    likelihood = OrdinalLikelihood(thresholds, 0.4)
    p = Inducing(5)(gram_at(pm.gp.cov.ExpQuad(2, ls=0.8), X), y, likelihood)
    draws = p.draw(40_000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.f.mean(0), p.mean, atol=0.03)
    np.testing.assert_allclose(draws.f.var(0), p.variance, rtol=0.05)
    # importance sampling of the evidence
    log_p = likelihood.log_prob(y[:, None], draws.f.T).value.sum(0)
    log_weights = log_p + draws.log_prior - draws.log_q
    top = log_weights.max()
    assert np.log(np.exp(log_weights - top).mean()) + top == pytest.approx(p.log_evidence, abs=0.05)


def test_predictions_are_those_of_the_inducing_rows():
    X, y, thresholds = table(50)
    gram = gram_at(pm.gp.cov.ExpQuad(2, ls=0.8), X)
    p = Inducing(8)(gram, y, OrdinalLikelihood(thresholds, 0.3))
    new = np.random.default_rng(1).normal(size=(6, 2))
    mean, variance = p.latent(new)
    # as one more row without a label, under the covariance of the inducing rows
    K = fitc(gram_at(pm.gp.cov.ExpQuad(2, ls=0.8), np.vstack([X, new])), p.support)
    W = np.linalg.inv(K[:50, :50] + np.diag(1.0 / p.precision))
    site = p.mean + np.linalg.solve(K[:50, :50], p.mean) / p.precision
    np.testing.assert_allclose(mean, K[50:, :50] @ W @ site, atol=1e-6)
    explained = np.einsum("ij,jk,ik->i", K[50:, :50], W, K[50:, :50])
    np.testing.assert_allclose(variance, 1.0 - explained, atol=1e-6)


@each_sites
def test_results_do_not_depend_on_blocks_and_workers(sites, monkeypatch):
    X, y, thresholds = table(700)
    gram, likelihood = gram_at(pm.gp.cov.ExpQuad(2, ls=1.0), X), OrdinalLikelihood(thresholds, 0.3)
    engine = Inducing(20, sites=sites)
    whole = engine(gram, y, likelihood)
    monkeypatch.setattr(blocks, "ROWS", 111)
    parts = engine(gram, y, likelihood)
    assert_same(whole, parts, 1e-8)
    with joblib.parallel_config("threading", n_jobs=2):
        both = engine(gram, y, likelihood)
        gradient = both.evidence_gradient()
    assert both.log_evidence == parts.log_evidence
    np.testing.assert_array_equal(both.mean, parts.mean)
    again = parts.evidence_gradient().parameters[0]
    np.testing.assert_array_equal(gradient.parameters[0], again)


@pytest.mark.parametrize("start", first_fast([0, 1]))
@pytest.mark.parametrize(
    "case",
    [
        {"noise": 0.02},
        {"noise": 0.02, "classes": 30},
        {"noise": 0.3, "d": 20},
        {"noise": 0.005, "classes": 12},
    ],
    ids=str,
)
def test_hard_cases_converge(case, start):
    X, y, thresholds = table(300, **case)
    X[100:150] = X[50:100]  # the same rows with other labels
    gram = gram_at(pm.gp.cov.ExpQuad(X.shape[1], ls=0.7 * np.sqrt(X.shape[1])), X)
    easier = Inducing(30)(gram, y, OrdinalLikelihood(thresholds, 0.5)).start if start else None
    p = Inducing(30)(gram, y, OrdinalLikelihood(thresholds, case["noise"]), easier)
    assert p.status.converged, p.status
    assert np.isfinite(p.log_evidence) and np.isfinite(p.mean).all()
    assert np.isfinite(p.evidence_gradient().thresholds).all()


@each_sites
@pytest.mark.parametrize(("noise", "width"), [(0.5, 1e-6), (0.02, 1e-3), (1e-3, 1e-6)])
def test_narrow_classes_converge(sites, noise, width):
    X, y, _ = table(300, noise=noise)
    thresholds = 0.3 + width * np.arange(5)
    y = np.where(y > 1, 5, 0)
    y[:40] = np.arange(40) % 4 + 1  # in narrow classes, wherever their rows are
    X[40:60] = X[:20]  # and rows like them in others
    gram = gram_at(pm.gp.cov.ExpQuad(2, ls=0.7), X)
    p = Inducing(30, sites=sites)(gram, y, OrdinalLikelihood(thresholds, noise))
    assert p.status.converged, p.status
    assert np.isfinite(p.log_evidence) and np.isfinite(p.variance).all()
    gradient = p.evidence_gradient()
    assert np.isfinite([*gradient.thresholds, gradient.log_noise]).all()
    np.testing.assert_allclose(p.likelihood.probabilities(*p.latent(X[:9])).sum(1), 1.0, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.*inducing rows are few", "ignore:.*did not converge")
@pytest.mark.parametrize(
    "case",
    first_fast([{"noise": 0.02, "classes": 30}, {"noise": 0.02}, {"noise": 0.3, "d": 20}]),
    ids=str,
)
def test_whole_fits_of_hard_cases_converge_or_say_why(case):
    X, y, _ = table(200, **case)
    X[100:150] = X[50:100]  # the same rows with other labels
    fit = pmo.fit(pmo.gp_model(X, y, "expquad", engine=Inducing(30)), progressbar=False)
    assert fit.status.converged or fit.status.message
    assert np.isfinite(fit.log_evidence) and np.isfinite(fit.noise) and fit.noise > 0
    probs = np.asarray(fit.predict(X))
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(1), 1.0, rtol=1e-9)


def test_too_few_passes_are_said():
    X, y, thresholds = table(100, noise=0.05)
    gram = gram_at(pm.gp.cov.ExpQuad(2, ls=1.0), X)
    p = Inducing(10, max_passes=3)(gram, y, OrdinalLikelihood(thresholds, 0.05))
    assert not p.status.converged
    assert (
        "no convergence in 3 passes" in p.status.message and "raise max_passes" in p.status.message
    )
    assert np.isfinite(p.log_evidence)


@each_sites
def test_warm_starts_save_passes(sites):
    X, y, thresholds = table(400, noise=0.1)
    near, far = (gram_at(pm.gp.cov.ExpQuad(2, ls=ls), X) for ls in (1.0, 1.02))
    likelihood, engine = OrdinalLikelihood(thresholds, 0.1), Inducing(30, sites=sites)
    start = engine(near, y, likelihood).start
    # inducing rows are chosen anew
    cold, warm = engine(far, y, likelihood), engine(far, y, likelihood, start)
    assert warm.status.iterations < cold.status.iterations
    assert warm.log_evidence == pytest.approx(cold.log_evidence, abs=1e-8)


@pytest.mark.parametrize("link", ["probit", "logit"])
@pytest.mark.parametrize("noise", [0.5, 0.01])
def test_cavities_are_found_from_marginals(link, noise):
    rng = np.random.default_rng(0)
    n = 400
    likelihood = OrdinalLikelihood(np.linspace(-1, 1, 8), noise, link)
    y, lam = rng.integers(0, 9, n), np.exp(rng.uniform(-25, -2, n))
    c = np.exp(rng.normal(size=n) - 1)
    mu = np.linspace(-1.2, 1.2, 9)[y] + 1.5 * rng.normal(size=n) * np.sqrt(c)
    terms = likelihood.tilted(y, mu, c + lam)
    m, v = mu + c * terms.d1, c * (terms.shrink + lam * terms.curvature)

    def tilt_of(index):
        return likelihood.tilting(y if index is None else y[index])

    found = find_cavities(tilt_of, m, v, 3.0 * c, lam)
    np.testing.assert_allclose(found.c, c, rtol=1e-7)
    np.testing.assert_allclose(found.mu, mu, rtol=1e-7, atol=1e-7)
    assert found.error.max() < 1e-9
    # a marginal that no cavity belongs to
    wide = find_cavities(tilt_of, m, np.full(n, 2.0), np.full(n, 2.5), lam)
    assert np.isfinite(wide.precision).all() and (wide.c <= 2.5 * (1 + 1e-12)).all()


def test_inducing_rows_are_distinct_and_spread():
    x = np.repeat(np.linspace(0, 1, 40), 5)[:, None]
    rows = choose(gram_at(pm.gp.cov.Matern12(1, ls=0.2), x), 60, np.random.default_rng(0))
    assert np.unique(x[rows]).size == rows.size == 40
    rows = choose(gram_at(pm.gp.cov.ExpQuad(1, ls=2.0), x), 60, np.random.default_rng(0))
    assert rows.size < 15  # these explain all others
    rows = choose(gram_at(pm.gp.cov.Matern12(1, ls=0.2), x), 2, np.random.default_rng(0))
    assert abs(x[rows[0]] - x[rows[1]]) > 0.9


def test_length_scales_that_have_grown_are_no_problem():
    X, y, thresholds = table(200)
    short = gram_at(pm.gp.cov.ExpQuad(2, ls=0.5), X)
    likelihood = OrdinalLikelihood(thresholds, 0.3)
    engine = Inducing(50).select(short, y, likelihood)
    p = engine(gram_at(pm.gp.cov.ExpQuad(2, ls=50.0), X), y, likelihood)
    assert p.status.converged
    gradient = p.evidence_gradient()
    assert np.isfinite(gradient.parameters[0]).all()
    q = EP()(gram_at(pm.gp.cov.ExpQuad(2, ls=50.0), X), y, likelihood)
    assert p.log_evidence == pytest.approx(q.log_evidence, abs=1e-5)
    assert gradient.parameters[0] == pytest.approx(
        q.evidence_gradient().parameters[0], rel=1e-3, abs=1e-4
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_inducing": 0}, "n_inducing must be an integer of at least 1"),
        ({"sites": "vi"}, "sites must be one of 'ep', 'laplace'"),
        ({"basis": (1, 1)}, "basis must hold at least one row, and none twice"),
        ({"tol": 0}, "tol must be a finite number greater than 0"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Inducing(**options)


def test_a_basis_beyond_the_rows_is_refused():
    X, y, thresholds = table(20)
    gram = gram_at(pm.gp.cov.ExpQuad(2, ls=0.5), X)
    with pytest.raises(ValueError, match="basis must hold some of the rows 0 to 19"):
        Inducing(basis=(3, 20))(gram, y, OrdinalLikelihood(thresholds, 0.3))


def test_a_sampler_chooses_inducing_rows_once_and_starts_where_it_was(monkeypatch):
    X, y, _ = table(80)
    chosen, passes, run = [], [], Inducing.__call__

    def counted(self, *arguments):
        assert self.basis is not None
        posterior = run(self, *arguments)
        chosen.append(self.basis)
        passes.append(posterior.status.iterations)
        return posterior

    monkeypatch.setattr(Inducing, "__call__", counted)
    # all rows are inducing rows
    densities = []
    for engine in (Inducing(80), "ep"):
        model = pmo.gp_model(X, y, "expquad", engine=engine)
        value, point = model.compile_fn(model.logp()), model.initial_point()
        shifts = np.random.default_rng(0).normal(size=40).cumsum() * 0.02
        densities.append([value({k: v + by for k, v in point.items()}) for by in shifts])
    np.testing.assert_allclose(*densities, atol=1e-5)
    assert len(set(chosen)) == 1
    assert np.mean(passes[-20:]) < 0.6 * np.mean(passes[:10])


@pytest.mark.parametrize("sites", first_fast(FULL))
def test_a_fit_is_saved_and_loaded(sites, tmp_path):
    X, y, _ = table(80)
    model = pmo.gp_model(X, y, "expquad", engine=Inducing(40, sites=sites))
    fit = pmo.fit(model, progressbar=False)
    assert fit.status.converged
    fit.save(tmp_path / "fit.nc")
    again = pmo.load(tmp_path / "fit.nc")
    new = X[:5] + 0.1
    np.testing.assert_allclose(again.predict(new), fit.predict(new), rtol=1e-9)
    np.testing.assert_allclose(again.posterior.mean, fit.posterior.mean, atol=1e-9)
    np.testing.assert_allclose(again.posterior.cavity, fit.posterior.cavity, atol=1e-9)
    tree = again.to_datatree(draws=20, seed=1)
    assert tree["posterior"]["f"].shape == (1, 20, 80)
