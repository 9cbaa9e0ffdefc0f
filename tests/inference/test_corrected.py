"""Draws corrected for the error of the engine: against integrals over a grid, and a warning where weights are poor."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from scipy.special import logsumexp

import pmordinal as pmo
from pmordinal.inference.density import find_evidence, find_problem
from pmordinal.inference.importance import exact_draw, resampled
from pmordinal.likelihood import OrdinalLikelihood
from tests.repeated import first_fast

X = np.array(
    [[0.0], [5.0], [10.0], [10.0]]
)  # three places far apart, so that integrals are in one dimension
Y = np.array([0, 2, 2, 1])
NEW = np.array([[0.0], [0.5]])
CENTRE, SPREAD, CUTS = -1.5, 0.7, [-0.8, 0.6]
QUIET = {"seed": 3, "progressbar": False}


def model_of(link, engine, X=X, Y=Y, **options):
    prior = {"noise": pm.LogNormal.dist(CENTRE, SPREAD), "lengthscale": 1.0, "thresholds": CUTS}
    how = {"standardize": False, "categories": [0, 1, 2], "link": link, "engine": engine}
    return pmo.gp_model(X, Y, "expquad", **prior, **how, **options)


def truth(link, grid):
    """Return the log evidence at each log noise and E[f] there, by the trapezoidal rule at each place."""
    f, log_z, means = np.linspace(-7.0, 7.0, 4001), [], []
    log_prior = stats.norm().logpdf(f) + np.log(f[1] - f[0])
    for log_noise in grid:
        likelihood = OrdinalLikelihood(CUTS, np.exp(log_noise), link)
        by_row = likelihood.log_prob(Y[:, None], np.tile(f, (4, 1))).value
        log_p = log_prior + np.array([by_row[0], by_row[1], by_row[2] + by_row[3]])
        log_z.append(logsumexp(log_p, axis=1))
        means.append((np.exp(log_p - log_z[-1][:, None]) @ f)[[0, 1, 2, 2]])
    return np.sum(log_z, axis=1), np.array(means)


def drawn_by(model, draws=400):
    """Return draws of the noise at the quantiles of its density by the model's engine: a perfect sampler."""
    target = model.compile_logp(mode="FAST_COMPILE")
    fine = np.linspace(-5.0, 3.0, 200)
    log_p = np.array([target({"noise_log__": v}) for v in fine])
    cdf = np.cumsum(np.exp(log_p - logsumexp(log_p)))
    values = np.exp(np.interp((np.arange(draws) + 0.5) / draws, cdf, fine))
    shuffled = np.random.default_rng(1).permutation(values).reshape(2, -1)
    return az.from_dict({"posterior": {"noise": shuffled}})


@pytest.mark.parametrize("link", first_fast(["probit", "logit"]))
def test_laplace_is_mended(link):
    """Single labels at some places: Laplace's noise is off, and so are its draws of f."""
    model = model_of(link, "laplace")
    given = drawn_by(model)
    plain = pmo.sample_posterior(model, given, NEW, **QUIET)
    found = pmo.sample_posterior(model, given, NEW, corrected=True, **QUIET)
    grid = np.linspace(-5.0, 2.0, 40)
    log_z, means = truth(link, grid)
    log_p = log_z + stats.norm(CENTRE, SPREAD).logpdf(grid)
    w = np.exp(log_p - logsumexp(log_p))
    mean, sd = w @ grid, np.sqrt(w @ (grid - w @ grid) ** 2)

    def off(tree):
        return abs(float(np.log(tree["posterior"]["noise"]).mean()) - mean) / sd

    assert off(plain) > 0.1 > off(found)
    assert found.attrs["pareto_k"] < 0.7 and found.attrs["effective_draws"] > 200
    f, known = found["posterior"]["f"], w @ means
    error = f.std(("chain", "draw")) / np.sqrt(found.attrs["effective_draws"])
    assert np.all(np.abs(f.mean(("chain", "draw")) - known) < 4 * error)
    if link == "probit":
        assert abs(
            float(plain["posterior"]["f"].mean(("chain", "draw"))[0]) - known[0]
        ) > 4 * float(error[0])
    # the latent function goes through its values, and on as the prior does
    new = found["predictions"]["f"]
    np.testing.assert_allclose(new[:, :, 0], f[:, :, 0], atol=1e-4)
    assert abs(float(new[:, :, 1].mean()) - np.exp(-0.125) * known[0]) < 4 * float(error.max())


def test_the_tree_is_complete_and_consistent():
    model = model_of("logit", "ep")
    given = drawn_by(model, 200)
    given["sample_stats"] = xr.DataTree(
        xr.Dataset({"diverging": (("chain", "draw"), np.zeros((2, 100), bool))})
    )
    tree = pmo.sample_posterior(model, given, NEW, thin=2, corrected=True, **QUIET)
    for group in (
        "posterior",
        "posterior_predictive",
        "log_likelihood",
        "sample_stats",
        "log_prior",
        "predictions",
    ):
        assert dict(tree[group].sizes)["chain"] == 2 and dict(tree[group].sizes)["draw"] == 50
    density, s = tree["sample_stats"], tree["posterior"]["noise"].values[..., None, None]
    assert "diverging" in density
    # every group was resampled alike
    likelihood = OrdinalLikelihood(CUTS, s[1, 7].item(), "logit")
    expected = likelihood.log_prob(Y, tree["posterior"]["f"].values[1, 7]).value
    np.testing.assert_allclose(tree["log_likelihood"]["y"].values[1, 7], expected)
    by_prior = stats.lognorm(SPREAD, scale=np.exp(CENTRE)).logpdf(s[..., 0, 0])
    np.testing.assert_allclose(tree["log_prior"]["noise"], by_prior)
    np.testing.assert_allclose(density["log_p"] - density["log_q"], density["log_evidence"])


def test_weights_stand_for_rows():
    """The estimated evidence of weighted rows is that of the rows repeated."""
    counts = np.array([2, 1, 3, 1])
    values = []
    for model in (
        model_of("logit", "ep", weights=counts),
        model_of("logit", "ep", np.repeat(X, counts, 0), np.repeat(Y, counts)),
    ):
        problem = find_problem(find_evidence(model.logp(jacobian=False)))
        posterior = problem.posterior([1.0], np.array(CUTS), 0.5, problem.y)
        found = [exact_draw(posterior, np.random.default_rng(i))[1] for i in range(20)]
        values.append((np.mean(found), np.std(found) / np.sqrt(20)))
    (a, a_error), (b, b_error) = values
    assert max(a_error, b_error) < 0.05
    assert a == pytest.approx(b, abs=4 * np.hypot(a_error, b_error))


def test_poor_weights_are_said():
    draws = np.random.default_rng(0).normal(size=(2, 200))
    tree = az.from_dict({"posterior": {"x": draws}})
    same = resampled(tree, 1e-6 * draws)
    np.testing.assert_array_equal(same["posterior"]["x"], draws)
    tilted = resampled(tree, draws)  # exp(x) moves N(0, 1) to N(1, 1)
    assert float(tilted["posterior"]["x"].mean()) == pytest.approx(1.0, abs=0.2)
    with pytest.warns(
        pmo.ConvergenceWarning, match="corrected draws may not stand for the posterior"
    ):
        resampled(tree, 4.0 * draws)


def test_what_cannot_be_corrected_is_refused():
    tree = drawn_by(model_of("probit", "ep"), 4)
    with pytest.raises(ValueError, match="engine='exact' and objective='evidence'"):
        pmo.sample_posterior(model_of("probit", "exact"), tree, corrected=True, **QUIET)
    with pytest.raises(ValueError, match="objective='loo'"):  # before anything is sampled
        pmo.sample(model_of("probit", "ep", objective="loo"), corrected=True, **QUIET)
    with pytest.raises(ValueError, match="exact already"):
        pmo.sample_posterior(pmo.latent_model(X, Y, "expquad"), tree, corrected=True, **QUIET)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")  # so few draws
def test_one_call():
    """`sample` corrects, and needs no warning of the engine's spread then."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, size=(30, 1))
    y = np.digitize(1.5 * np.sin(1.5 * x[:, 0]) + 0.3 * rng.logistic(size=30), [-0.7, 0.7])
    model = pmo.gp_model(x, y, "expquad", link="logit", engine="laplace", categories=[0, 1, 2])
    tree = pmo.sample(
        model, 200, x[:3], corrected=True, seed=1, tune=200, chains=2, cores=1,
        progressbar=False, quiet=True,
    )  # fmt: skip
    assert tree.attrs["pareto_k"] < 0.7
    stats_ = tree["sample_stats"]
    both = {"log_p": stats_["log_p"], "log_q": stats_["log_q"] + stats_["log_evidence"]}
    assert az.loo_approximate_posterior(tree, **both).elpd == pytest.approx(
        pmo.loo(tree).elpd,
        abs=0.01,  # the tail that is smoothed is not of the same length
    )
