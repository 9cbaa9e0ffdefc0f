"""The sparse engine: what it computes equals dense formulas, its cost is linear, its basis is the best."""

import os
import signal
import threading
import tracemalloc

import numpy as np
import pymc as pm
import pytest

import pmordinal as pmo
from pmordinal.engines.objectives import OBJECTIVES
from pmordinal.engines.sparse.filtering import Chain
from pmordinal.engines.sparse.greedy import Greedy
from pmordinal.errors import ConvergenceWarning
from pmordinal.gram import Gram, lower
from pmordinal.inference.density import PLAIN
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.links import LINKS
from tests.repeated import first_fast

each_link = pytest.mark.parametrize("link", LINKS)


def data(n, seed=0, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    latent = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    return X, np.searchsorted([-0.8, 0.1, 0.9], latent)


class Task:
    """Rows, labels and parameters, with white noise in the covariance."""

    def __init__(self, n=40, link="probit", seed=0, white=0.2, noise=0.4):
        self.X, self.y = data(n, seed)
        cov = pm.gp.cov.ExpQuad(2, ls=1.1)
        self.kernel = lower(cov + pm.gp.cov.WhiteNoise(white) if white else cov)
        self.values = [p.data.astype(float) for p in self.kernel.parameters]
        self.gram = Gram(self.kernel, self.X, self.values)
        self.likelihood = OrdinalLikelihood([-0.8, 0.1, 0.9], noise, link)

    @property
    def args(self):
        return self.gram, self.y, self.likelihood


def dense_filter(K, y, likelihood, order):
    """Filter labels one at a time with the whole covariance matrix [Srijith2012, eqs. 4-5]."""
    A, mean = K.copy(), np.zeros(len(K))
    p, m = np.zeros(len(K)), np.zeros(len(K))
    for i in order:
        one = slice(i, i + 1)
        terms = likelihood.tilted(y[one], mean[one], np.diagonal(A)[one].copy())
        gamma, nu = terms.d1[0], terms.curvature[0]
        p[i], m[i] = nu / (1 - A[i, i] * nu), mean[i] + gamma / nu
        A = K - K[:, p > 0] @ np.linalg.solve(
            K[np.ix_(p > 0, p > 0)] + np.diag(1 / p[p > 0]), K[p > 0]
        )
        mean = A @ (p * m)
    return mean, A


@each_link
def test_posterior_equals_the_dense_filter(link):
    task = Task(link=link)
    post = pmo.SparseADF(n_basis=9)(*task.args)
    # the definition, at O(n³) a step
    mean, A = dense_filter(task.gram.matrix, task.y, task.likelihood, post.support)
    np.testing.assert_allclose(post.mean, mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(post.variance, np.diag(A), rtol=1e-8)
    assert post.alpha.shape == post.precision.shape == (9,)
    assert post.factor.shape == (9, 9)


@each_link
@pytest.mark.parametrize("refresh", [0, 2])
def test_gradient_with_refreshed_sites(link, refresh):
    """Against central differences: h = 1e-4 leaves h² f'''/6 and 1e-12/h, both below 1e-7."""
    task = Task(n=25, link=link)
    engine = pmo.SparseADF(n_basis=7, refresh=refresh).select(*task.args)
    _, gradient = OBJECTIVES["validation"](engine(*task.args))

    def value(t, which, index=0):
        values = [v.copy() for v in task.values]
        b, s = task.likelihood.thresholds.copy(), task.likelihood.noise
        if which == "kernel":
            values[index] = values[index] + t
        elif which == "threshold":
            b[index] += t
        else:
            s *= np.exp(t)
        likelihood = OrdinalLikelihood(b, s, link)
        return OBJECTIVES["validation"](
            engine(Gram(task.kernel, task.X, values), task.y, likelihood)
        )[0]

    def slope(*where, h=1e-4):
        return (value(h, *where) - value(-h, *where)) / (2 * h)

    found = [*gradient.parameters, *gradient.thresholds, gradient.log_noise]
    expected = [slope("kernel", i) for i in range(len(task.values))]
    expected += [slope("threshold", j) for j in range(3)] + [slope("noise")]
    np.testing.assert_allclose(np.hstack(found), expected, rtol=1e-5, atol=1e-5)


def test_gradient_in_blocks_is_the_whole(monkeypatch):
    task = Task(n=60)
    engine = pmo.SparseADF(n_basis=8).select(*task.args)
    whole = engine(*task.args).validation_gradient()
    monkeypatch.setattr("pmordinal.engines.sparse.greedy.BLOCK", 56)  # seven rows
    parts = engine(*task.args)
    again = parts.validation_gradient()
    np.testing.assert_allclose(np.hstack(again.parameters), np.hstack(whole.parameters), rtol=1e-9)
    np.testing.assert_allclose(again.thresholds, whole.thresholds, rtol=1e-9)
    # asking twice gives the same: nothing is left over from the first pass
    np.testing.assert_array_equal(parts.validation_gradient().thresholds, again.thresholds)


def test_latent_pullback_is_that_of_finite_differences():
    task = Task(n=30, white=0.0)
    engine = pmo.SparseADF(n_basis=6).select(*task.args)
    X_star = np.random.default_rng(3).normal(size=(5, 2))
    by_mean, by_var = np.random.default_rng(4).normal(size=(2, 5))

    def value(ls):
        post = engine(Gram(task.kernel, task.X, [np.array(ls)]), task.y, task.likelihood)
        mean, var = post.latent(X_star)
        return by_mean @ mean + by_var @ var

    gradient = engine(*task.args).latent_with_pullback(X_star)[2](by_mean, by_var)
    expected = (value(1.1 + 1e-4) - value(1.1 - 1e-4)) / 2e-4
    assert gradient.parameters[0] == pytest.approx(expected, rel=1e-6)


@each_link
def test_each_inclusion_is_the_best_of_the_working_set(link):
    """Redo every step candidate by candidate with the dense filter: the definition [eq. 3]."""
    task = Task(n=14, link=link, white=0.1)
    n, s = 14, 4
    greedy = Greedy(*task.args, s)
    nlps = [nlp for _, nlp in greedy.grow(59, np.random.default_rng(0))]  # all rows are candidates
    u = []
    for step in range(s):
        scores = {}
        for j in set(range(n)) - set(u):
            mean, A = dense_filter(task.gram.matrix, task.y, task.likelihood, [*u, j])
            left = np.setdiff1d(np.arange(n), [*u, j])
            log_prob = task.likelihood.tilted(task.y[left], mean[left], np.diag(A)[left]).value
            scores[j] = -log_prob.mean()
        best = min(scores, key=scores.get)
        assert nlps[step] == pytest.approx(scores[best], abs=1e-9)
        assert scores[greedy.basis[step]] == pytest.approx(scores[best], abs=1e-9)
        u.append(int(greedy.basis[step]))
    post = pmo.SparseADF(basis=u)(*task.args)
    np.testing.assert_allclose(post.mean, greedy.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(post.variance, greedy.var, rtol=1e-7)
    value = OBJECTIVES["validation"](post)[0]
    assert -value / (n - s) == pytest.approx(nlps[-1], abs=1e-9)


@each_link
def test_rows_may_be_compared_by_some_of_the_others(link, monkeypatch):
    """The NLP of a step is that of the rows scored, by the dense filter; mean and variance are those of all rows."""
    task = Task(n=30, link=link, white=0.1)
    scored, scores = [], Greedy._scores
    monkeypatch.setattr(Greedy, "_scores", lambda *given: scored.append(given) or scores(*given))
    greedy = Greedy(*task.args, 4)
    nlps = [nlp for _, nlp in greedy.grow(5, np.random.default_rng(0), 12)]
    for step, (nlp, (_, J, _, rows, *_)) in enumerate(zip(nlps, scored, strict=True)):
        u = greedy.basis[: step + 1]
        assert 12 <= rows.size <= 17 and set(J) <= set(rows) and not set(u[:-1]) & set(rows)
        mean, A = dense_filter(task.gram.matrix, task.y, task.likelihood, u)
        left = np.setdiff1d(rows, u)
        log_prob = task.likelihood.tilted(task.y[left], mean[left], np.diag(A)[left]).value
        assert nlp == pytest.approx(-log_prob.mean(), abs=1e-9)
    assert len({rows.tobytes() for _, _, _, rows, *_ in scored}) == 4  # other rows in each step
    np.testing.assert_allclose(greedy.mean, mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(greedy.var, np.diag(A), rtol=1e-7)


def test_few_rows_are_compared_by_all_others():
    task = Task(n=30)
    all_rows = [
        pmo.SparseADF(n_basis=5, working_set=5, compared=k).select(*task.args).basis
        for k in (4000, None, 25)
    ]
    assert all_rows[0] == all_rows[1] == all_rows[2]


def test_full_refreshed_basis_is_expectation_propagation():
    """With many sweeps over nearly all rows the sites are those of EP on these rows."""
    task = Task(n=21, white=0.0, noise=0.8)
    u = list(range(20))
    post = pmo.SparseADF(basis=u, refresh=60)(*task.args)
    ep = pmo.EP(tol=1e-10)(
        Gram(task.kernel, task.X[:20], task.values), task.y[:20], task.likelihood
    )
    np.testing.assert_allclose(post.mean[:20], ep.mean, atol=1e-6)
    np.testing.assert_allclose(post.variance[:20], ep.variance, rtol=1e-6)
    np.testing.assert_allclose(post.precision, ep.precision, rtol=1e-5)
    assert post.log_evidence == pytest.approx(ep.log_evidence, abs=1e-7)
    mean, var = post.latent(task.X[20:])
    np.testing.assert_allclose((mean, var), ep.latent(task.X[20:]), rtol=1e-6)


def test_cavities_of_the_basis_are_divisions_and_the_others_predictions():
    task = Task(white=0.0)
    post = pmo.SparseADF(n_basis=8)(*task.args)
    mean, var = post.cavity
    u, left = post.support, post.outside
    assert np.intersect1d(u, left).size == 0
    assert u.size + left.size == 40
    np.testing.assert_array_equal(mean[left], post.mean[left])
    np.testing.assert_array_equal(var[left], post.variance[left])
    np.testing.assert_allclose(1 / var[u], 1 / post.variance[u] - post.precision, rtol=1e-8)
    # the last label that entered did so at its own cavity: filtering moved nothing afterwards
    before = pmo.SparseADF(basis=u[:-1])(*task.args)
    assert mean[u[-1]] == pytest.approx(before.mean[u[-1]], rel=1e-8)
    assert var[u[-1]] == pytest.approx(before.variance[u[-1]], rel=1e-8)


@pytest.mark.parametrize("noise", [1e-3, 10.0])
@each_link
def test_duplicates_and_extreme_noise_give_numbers(link, noise):
    """K of the basis is singular, and no jitter is added."""
    X = np.repeat([[0.0], [0.5], [2.0]], 6, axis=0)
    y = np.tile([0, 1, 2], 6)
    gram = Gram(lower(pm.gp.cov.ExpQuad(1, ls=1.0)), X, [1.0])
    post = pmo.SparseADF(n_basis=10)(gram, y, OrdinalLikelihood([-0.3, 0.4], noise, link))
    gradient = post.validation_gradient()
    assert np.all(np.isfinite(post.leave_one_out.value))
    assert np.all(np.isfinite([*gradient.parameters, *gradient.thresholds, gradient.log_noise]))
    np.testing.assert_allclose(post.mean[:6], post.mean[0], rtol=1e-5, atol=1e-7)


def test_no_square_matrix_is_formed():
    """N = 4000: an n × n matrix is 128 MB; all of it stays within 3 n s numbers and some blocks."""
    n, s = 4000, 40
    X, y = data(n)
    gram = Gram(lower(pm.gp.cov.Matern52(2, ls=1.0)), X, [1.0])
    likelihood = OrdinalLikelihood([-0.8, 0.1, 0.9], 0.4)
    pmo.SparseADF(n_basis=2)(Gram(gram.kernel, X[:50], [1.0]), y[:50], likelihood)  # compiles
    tracemalloc.start()
    try:
        post = pmo.SparseADF(n_basis=s, working_set=10)(gram, y, likelihood)
        post.validation_gradient()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * n * s * 8 + 25e6  # blocks of 400,000 numbers


def test_the_whole_fit_forms_no_square_matrix():
    """From the table to the prediction at 20,000 rows: a square matrix would be 3.2 GB."""
    X, y = data(20_000)
    engine = pmo.SparseADF(n_basis=5, working_set=3)
    tracemalloc.start()
    try:
        with pytest.warns(ConvergenceWarning):
            fit = pmo.fit(
                pmo.gp_model(X, y, "expquad", engine=engine), max_evaluations=2, progressbar=False
            )
        fit.predict(X[:10])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150e6


@pytest.mark.slow
def test_memory_at_a_hundred_thousand_rows():
    """Peak of selection, posterior and gradient within 3 n s numbers (n × n would be 80 GB)."""
    n, s = 100_000, 200
    X, y = data(n, d=4)
    gram = Gram(lower(pm.gp.cov.ExpQuad(4, ls=2.0)), X, [2.0])
    likelihood = OrdinalLikelihood([-0.8, 0.1, 0.9], 0.4)
    pmo.SparseADF(n_basis=2)(Gram(gram.kernel, X[:50], [2.0]), y[:50], likelihood)
    tracemalloc.start()
    try:
        post = pmo.SparseADF(n_basis=s)(gram, y, likelihood)
        post.validation_gradient()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * n * s * 8


@pytest.fixture(scope="module")
def fitted():
    X, y = data(150, seed=1)
    model = pmo.gp_model(X, y, "expquad", engine=pmo.SparseADF(n_basis=25, rounds=2))
    return pmo.fit(model, progressbar=False), X, y


def test_fit_has_the_face_of_every_fit(fitted, tmp_path):
    fit, X, y = fitted
    assert fit.posterior.support.size == 25
    assert fit.objective == "validation"
    probs = fit.predict(X).values
    np.testing.assert_allclose(probs.sum(1), 1.0)
    assert np.mean(probs.argmax(1) == y) > 0.55  # by guessing 0.3
    assert repr(fit).startswith("OrdinalFit: sparse")
    fit.save(tmp_path / "fit.nc")
    back = pmo.load(tmp_path / "fit.nc")
    np.testing.assert_allclose(back.predict(X), fit.predict(X), rtol=1e-12)
    np.testing.assert_array_equal(back.posterior.support, fit.posterior.support)
    np.testing.assert_allclose(back.posterior.variance, fit.posterior.variance, rtol=1e-10)
    assert repr(back) == repr(fit)


def test_the_posterior_is_that_of_the_best_round(fitted):
    fit, *_ = fitted
    value = OBJECTIVES["validation"](fit.posterior)[0]
    # the objective has the log prior on top, which is the same wherever it is computed
    model = pmo.gp_model(
        *data(150, seed=1), "expquad", engine=pmo.SparseADF(basis=fit.posterior.support)
    )
    again = pmo.fit(model, progressbar=False, start={k: fit.point[k] for k in fit.point})
    assert again.objective_value >= fit.objective_value - 1e-6
    assert fit.objective_value < value + 10  # log density of three weak priors


def test_sparse_predicts_nearly_as_well_as_all_rows(fitted):
    fit, X, y = fitted
    full = pmo.fit(pmo.gp_model(X, y, "expquad", engine="ep"), progressbar=False)
    X_new, y_new = data(2000, seed=9)

    def nlp(f):
        return -np.log(f.predict(X_new).values[np.arange(2000), y_new]).mean()

    assert nlp(fit) < nlp(full) + 0.15  # 25 of 150 labels


def test_draws_have_the_posterior_marginals(fitted):
    fit, *_ = fitted
    draws = fit.posterior.draw(20_000, np.random.default_rng(0))
    sd = np.sqrt(fit.posterior.variance)
    error = (draws.f.mean(0) - fit.posterior.mean) / sd * np.sqrt(20_000)
    assert np.abs(error).max() < 4.5  # of 150 standard normals
    np.testing.assert_allclose(draws.f.var(0) / sd**2, 1.0, atol=0.06)
    # q/prior is the sites: its mean under the prior is one; so is that of prior/q under q
    u, p = fit.posterior.support, fit.posterior.precision
    f, h = draws.f[:, u], fit.posterior.mean[u]
    A = fit.posterior.support_gram.matrix
    A = A - A @ np.linalg.solve(A + np.diag(1 / p), A)
    np.testing.assert_allclose(np.cov(f.T), A, atol=0.05)
    assert draws.log_q.shape == draws.log_prior.shape == (20_000,)
    kl = (draws.log_q - draws.log_prior).mean()
    K = fit.posterior.support_gram.matrix
    B = np.eye(u.size) + np.sqrt(p)[:, None] * K * np.sqrt(p)
    # KL(q(f_u) ‖ p(f_u)): trace(K⁻¹A) − s = −tr(P A)
    expected = 0.5 * (np.linalg.slogdet(B)[1] + fit.posterior.alpha @ h - np.trace(np.diag(p) @ A))
    assert kl == pytest.approx(expected, abs=0.15)


def test_datatree(fitted):
    fit, *_ = fitted
    tree = fit.to_datatree(draws=10, seed=0)
    assert tree["posterior"]["f"].shape == (1, 10, 150)
    assert np.all(np.isfinite(tree["sample_stats"]["log_q"]))


def assert_interrupted(model, said):
    with pytest.warns(ConvergenceWarning, match=said):
        fit = pmo.fit(model, progressbar=False)
    assert not fit.status.converged
    assert said in fit.status.message
    assert np.isfinite(fit.objective_value)
    assert fit.posterior.support.size == 10


def test_interrupt_keeps_the_best_evaluation(monkeypatch, request):
    """A real signal in the fifth evaluation."""
    # A parent may have had it ignored, as shells do for jobs in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    calls = []
    original = pmo.SparseADF.__call__

    def call(engine, *args, **kwargs):
        calls.append(1)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(1.0)  # the signal arrives in here
        return original(engine, *args, **kwargs)

    monkeypatch.setattr(pmo.SparseADF, "__call__", call)
    model = pmo.gp_model(*data(60, seed=2), "expquad", engine=pmo.SparseADF(n_basis=10))
    assert_interrupted(model, "interrupted after 4 evaluations: the best so far is kept")


def test_interrupt_of_a_later_selection_keeps_the_round_before(monkeypatch):
    rounds = []
    original = pmo.SparseADF.select

    def select(engine, *args, **kwargs):
        if engine.basis is None:
            rounds.append(1)
            if len(rounds) == 2:
                raise KeyboardInterrupt
        return original(engine, *args, **kwargs)

    monkeypatch.setattr(pmo.SparseADF, "select", select)
    model = pmo.gp_model(*data(60, seed=2), "expquad", engine=pmo.SparseADF(n_basis=10))
    assert_interrupted(model, "interrupted in round 2: the best round before it is kept")


def test_interrupt_before_anything_is_known_is_an_interrupt(monkeypatch):
    def select(engine, *args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(pmo.SparseADF, "select", select)
    with pytest.raises(KeyboardInterrupt):
        pmo.fit(pmo.gp_model(*data(30), "expquad", engine="sparse"), progressbar=False)


def test_progress_shows_the_nlp():
    task = Task(n=20)
    lines = []
    engine = pmo.SparseADF(n_basis=3).select(*task.args, report=lines.append)
    assert [line[:12] for line in lines] == ["basis 1 of 3", "basis 2 of 3", "basis 3 of 3"]
    nlp = -OBJECTIVES["validation"](engine(*task.args))[0] / 17
    assert lines[-1] == f"basis 3 of 3, NLP {nlp:.4f}"
    assert engine.describe("validation", -17 * nlp, 20) == f"NLP {nlp:.4f}"


def test_the_seed_and_the_turn_decide():
    task = Task(n=60)

    def chosen(seed, turn):
        return pmo.SparseADF(n_basis=5, working_set=5, seed=seed).select(*task.args, turn).basis

    assert chosen(0, 0) == chosen(0, 0)
    assert len({chosen(0, 0), chosen(0, 1), chosen(1, 0)}) == 3


def test_model_log_density_holds_the_first_basis_fixed():
    X, y = data(40)
    model = pmo.gp_model(X, y, "expquad", engine=pmo.SparseADF(n_basis=6, working_set=3))
    logp, dlogp = model.compile_logp(mode=PLAIN), model.compile_dlogp(mode=PLAIN)
    point = model.initial_point()
    assert logp(point) == logp(point)
    slope = dlogp(point)
    h = 1e-5
    ahead, behind = ({**point, "noise_log__": point["noise_log__"] + t} for t in (h, -h))
    assert slope[1] == pytest.approx((logp(ahead) - logp(behind)) / (2 * h), rel=1e-4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_basis": 0}, "n_basis must be an integer of at least 1"),
        ({"n_basis": 1.5}, "n_basis as a share must be between 0 and 1"),
        ({"working_set": 0}, "working_set"),
        ({"compared": 0}, "compared"),
        ({"refresh": -1}, "refresh"),
        ({"rounds": 0}, "rounds"),
        ({"basis": [1, 1]}, "none twice"),
        ({"basis": []}, "at least one row"),
    ],
)
def test_bad_options(options, said):
    with pytest.raises(ValueError, match=said):
        pmo.SparseADF(**options)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"n_basis": 10}, "below the number of rows, got 10 of 10"), ({"basis": [12]}, "rows 0 to 9")],
)
def test_bases_that_do_not_fit(options, said):
    with pytest.raises(ValueError, match=said):
        pmo.SparseADF(**options)(*Task(n=10).args)


def test_sizes():
    assert pmo.SparseADF().size(30) == 6
    assert pmo.SparseADF().size(5000) == 200
    assert pmo.SparseADF(n_basis=0.5).size(30) == 15
    assert pmo.SparseADF(n_basis=7).size(30) == 7


def test_log_tilted_is_the_value_of_tilted():
    rng = np.random.default_rng(0)
    y, mean = rng.integers(0, 4, (50, 1)), rng.normal(size=(50, 7)) * 5
    var = 10 ** rng.uniform(-6, 1, (50, 7))
    for link in LINKS:
        for noise in (1e-3, 0.5, 5.0):
            likelihood = OrdinalLikelihood([-1.0, -0.999, 2.0], noise, link)
            flat = np.broadcast_to(y, mean.shape).ravel()
            whole = likelihood.tilted(flat, mean.ravel(), var.ravel()).value
            found = likelihood.log_tilted(y, mean, var)
            np.testing.assert_allclose(found.ravel(), whole, rtol=1e-9, atol=1e-12)


@each_link
@pytest.mark.parametrize("noise", first_fast([0.05, 0.5, 5.0]))
def test_log_tilted_of_many_is_interpolated_well(link, noise):
    """Six digits tell candidates apart; exact beyond the table, where the tails are far."""
    rng = np.random.default_rng(0)
    likelihood = OrdinalLikelihood([-1.0, -0.3, 0.3, 1.0], noise, link)
    y, mean, var = rng.integers(0, 5, 2500), rng.normal(size=2500), 10 ** rng.uniform(-5, 0.5, 2500)
    found = likelihood.log_tilted(y, mean, var)
    few = rng.permutation(2500)[:100]
    exact = likelihood.tilted(y[few], mean[few], var[few]).value
    np.testing.assert_allclose(found[few], exact, rtol=1e-5, atol=2e-6)


def test_chain_is_exact_for_one_label():
    likelihood = OrdinalLikelihood([-0.5, 0.6], 0.7)
    chain = Chain(np.array([[1.3]]), np.array([1]), likelihood)
    terms = likelihood.tilted(np.array([1]), np.zeros(1), np.array([1.3]))
    assert chain.last.mean[0] == pytest.approx(1.3 * terms.d1[0])
    assert chain.last.variance[0] == pytest.approx(1.3 * terms.shrink[0])


@pytest.mark.slow
def test_time_grows_linearly():
    """One selection and one gradient, n = 10³ to 10⁴: slope in log-log at most 1.15."""
    import time

    seconds = []
    for n in (1000, 10_000):
        X, y = data(n, d=4)
        gram = Gram(lower(pm.gp.cov.ExpQuad(4, ls=2.0)), X, [2.0])
        began = time.process_time()
        likelihood = OrdinalLikelihood([-0.8, 0.1, 0.9], 0.4)
        pmo.SparseADF(n_basis=100)(gram, y, likelihood).validation_gradient()
        seconds.append(time.process_time() - began)
    assert np.log10(seconds[1] / seconds[0]) < 1.15
