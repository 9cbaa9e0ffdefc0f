"""Draws of the latent function for sampled hyperparameters, and the sampling of these."""

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from scipy.special import logsumexp

import pmordinal as pmo
from pmordinal.gram import Gram
from pmordinal.inference.density import find_evidence
from pmordinal.likelihood import OrdinalLikelihood
from tests.repeated import first_fast


def make_data(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    X.index = [f"row{i}" for i in range(n)]
    f = np.sin(2 * X["a"]) + 0.3 * rng.normal(size=n)
    y = pd.Categorical.from_codes(
        np.searchsorted([-0.4, 0.4], f), ["low", "mid", "high"], ordered=True
    )
    return X, y


def constant_tree(fit, draws, chains=1):
    """Return what a sampler would, had it not moved from the fit's point."""
    point = {
        k: np.broadcast_to(v, (chains, draws, *np.shape(v))).copy() for k, v in fit.point.items()
    }
    dims = {"thresholds": ["threshold"]}
    coords = {"threshold": fit.labels.threshold_names}
    return az.from_dict({"posterior": point}, dims=dims, coords=coords)


@pytest.fixture(
    scope="module",
    params=[
        *first_fast(["ep", "laplace", "plsor", "sparse"]),
    ],
)
def fitted(request):
    X, y = make_data()
    engine = request.param
    if engine == "sparse":  # the fit and the draws would each select a basis of their own
        engine = pmo.SparseADF(basis=range(0, 30, 2))
    model = pmo.gp_model(X, y, "expquad", engine=engine)
    return model, pmo.fit(model, progressbar=False), X


def test_draws_at_constant_hyperparameters_have_the_fit_s_moments(fitted):
    """Means and variances of f, of new rows too, and class frequencies of new rows."""
    model, fit, X = fitted
    new = X.iloc[:4] + 0.3
    draws = 3000
    tree = pmo.sample_posterior(model, constant_tree(fit, draws), new, seed=1, progressbar=False)
    f = tree["posterior"]["f"].values[0]
    reference = fit.posterior.draw(20_000, np.random.default_rng(2)).f
    sd = reference.std(0)
    # five standard errors of 3000 draws
    assert np.abs((f.mean(0) - reference.mean(0)) / sd).max() < 0.1
    assert np.abs(f.std(0) / sd - 1).max() < 0.08
    latent = fit.predict(new, kind="latent")
    f_new = tree["predictions"]["f"].values[0]
    assert np.abs((f_new.mean(0) - latent["mean"]) / latent["sd"]).max() < 0.1
    y_new = tree["predictions"]["y"].values[0]
    frequencies = np.stack([(y_new == k).mean(0) for k in range(3)], 1)
    assert np.abs(frequencies - fit.predict(new).values).max() < 0.05


def test_log_likelihood_is_that_of_the_drawn_f_and_the_drawn_parameters():
    X, y = make_data()
    model = pmo.gp_model(X, y, "expquad", link="logit")
    prior = pm.sample_prior_predictive(6, model=model, random_seed=4)
    given = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    tree = pmo.sample_posterior(model, given, seed=1, progressbar=False)
    posterior = tree["posterior"]
    for i in range(6):
        b, s = posterior["thresholds"].values[0, i], posterior["noise"].values[0, i]
        np.testing.assert_array_equal(b, given["posterior"]["thresholds"].values[0, i])
        likelihood = OrdinalLikelihood(b, s, "logit")
        expected = likelihood.log_prob(np.asarray(y.codes, int), posterior["f"].values[0, i]).value
        found = tree["log_likelihood"]["y"].values[0, i]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_names_labels_and_statistics_are_kept():
    X, y = make_data()
    model = pmo.gp_model(X, y, ard=True, engine="laplace")
    fit = pmo.fit(model, progressbar=False)
    given = constant_tree(fit, 10, chains=2)
    stats = {"diverging": (("chain", "draw"), np.arange(20).reshape(2, 10) % 3 == 0)}
    given["sample_stats"] = xr.DataTree(xr.Dataset(stats))
    tree = pmo.sample_posterior(model, given, X.iloc[:3], thin=2, seed=0, progressbar=False)
    posterior = tree["posterior"]
    assert posterior["f"].dims == ("chain", "draw", "obs")
    assert posterior["f"].shape == (2, 5, 30)
    assert posterior["obs"].values[:2].tolist() == ["row0", "row1"]
    assert posterior["threshold"].values.tolist() == ["low|mid", "mid|high"]
    np.testing.assert_array_equal(tree["observed_data"]["y"].values, y.codes)
    sampler = tree["sample_stats"]
    np.testing.assert_array_equal(sampler["diverging"].values, stats["diverging"][1][:, ::2])
    assert sampler["converged"].values.all()
    assert sampler["engine"].item() == "laplace"
    assert tree["predictions"]["obs"].values.tolist() == ["row0", "row1", "row2"]
    np.testing.assert_allclose(tree["predictions_constant_data"]["X"].values, X.iloc[:3])
    assert tree.attrs["hyper"] == "sampled"


def test_the_seed_decides():
    X, y = make_data(12)
    model = pmo.gp_model(X, y, "expquad")
    given = constant_tree(pmo.fit(model, progressbar=False), 4)
    a, b, c = (pmo.sample_posterior(model, given, X, seed=s, progressbar=False) for s in (1, 1, 2))
    for group, name in (("posterior", "f"), ("predictions", "y"), ("posterior_predictive", "y")):
        np.testing.assert_array_equal(a[group][name], b[group][name])
    assert not np.array_equal(a["posterior"]["f"], c["posterior"]["f"])


def test_errors_say_what_to_do():
    X, y = make_data(12)
    model = pmo.gp_model(X, y, "expquad")
    given = constant_tree(pmo.fit(model, progressbar=False), 4)
    with pytest.raises(ValueError, match=r"no posterior group: pass what pm\.sample"):
        pmo.sample_posterior(model, xr.DataTree())
    other = given.copy()
    other["posterior"] = xr.DataTree(given["posterior"].to_dataset().drop_vars("noise"))
    with pytest.raises(ValueError, match="no draws of 'noise'"):
        pmo.sample_posterior(model, other)
    with pytest.raises(ValueError, match="thin"):
        pmo.sample_posterior(model, given, thin=0)
    with pytest.raises(ValueError, match="MarginalOrdinal"):
        pmo.sample_posterior(pmo.linear_model(X, y), given)
    exact = pmo.gp_model(X, y, "expquad", engine="exact")
    with pytest.raises(ValueError, match="engine='ep'"):
        pmo.sample_posterior(exact, given, X)


def test_the_evidence_of_the_sampler_is_accurate_and_hardly_depends_on_the_last_call():
    """Value and gradient are those of a tighter fixed point from a cold start, along a wild path."""
    X, y = make_data(40)
    model = pmo.gp_model(X, y, ard=True)
    problem = find_evidence(model.logp()).op.problem
    rng = np.random.default_rng(3)
    tight = pmo.EP(tol=1e-10)
    for _ in range(40):
        ls, s = np.exp(rng.normal(size=2)), np.exp(rng.normal() - 1)
        b = np.array([-0.5, 0.4]) * np.exp(0.3 * rng.normal())
        value, gradient = problem.evaluate([ls], b, s, problem.y)
        gram = Gram(problem.kernel, problem.X, [ls])
        exact = tight(gram, problem.y, OrdinalLikelihood(b, s, problem.link))
        slope = exact.evidence_gradient()
        assert abs(value - exact.log_evidence) < 1e-8
        np.testing.assert_allclose(
            gradient.parameters[0], slope.parameters[0], atol=1e-6, rtol=1e-5
        )
        np.testing.assert_allclose(gradient.thresholds, slope.thresholds, atol=1e-6, rtol=1e-5)


@pytest.fixture(scope="module")
def sampled():
    """Return a model with two free hyperparameters, and what pm.sample says of it in two processes."""
    X, y = make_data()
    model = pmo.gp_model(X, y, "expquad", thresholds=[-0.4, 0.4])
    tree = pm.sample(
        800, tune=400, chains=2, cores=2, model=model, random_seed=5, progressbar=False
    )
    return model, tree


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:We recommend:UserWarning")
def test_nuts_over_hyperparameters_agrees_with_a_grid(sampled):
    model, tree = sampled
    target = model.compile_logp(mode="FAST_COMPILE")
    log_ls, log_s = np.linspace(-2.5, 3.5, 45), np.linspace(-6.0, 3.0, 45)
    logp = np.array(
        [[target({"lengthscale_log__": u, "noise_log__": v}) for v in log_s] for u in log_ls]
    )
    weights = np.exp(logp - logsumexp(logp))
    for name, grid, axis in (("lengthscale", log_ls, 1), ("noise", log_s, 0)):
        marginal = weights.sum(axis)
        mean = marginal @ grid
        sd = np.sqrt(marginal @ (grid - mean) ** 2)
        draws = np.log(tree["posterior"][name])
        ess = float(az.ess(draws.to_dataset(name=name))[name])
        # five standard errors of the mean; the deviation's error is larger in the tails
        assert abs(float(draws.mean()) - mean) < 5 * sd / np.sqrt(ess)
        assert float(draws.std()) / sd == pytest.approx(1.0, abs=0.15)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Estimated shape parameter:UserWarning")
def test_arviz_works_on_the_result(sampled):
    from matplotlib import pyplot as plt

    model, given = sampled
    tree = pmo.sample_posterior(model, given, thin=4, seed=1, progressbar=False)
    table = az.summary(tree)
    assert np.isfinite(table.loc["f[row0]", "mean"])
    part = az.loo_subsample(tree, observations=20, seed=1)
    assert part.elpd == pytest.approx(az.loo(tree).elpd, abs=3 * part.subsampling_se)
    assert (az.psense_summary(tree, var_names=["noise"])[["prior", "likelihood"]] > 0.01).all(
        axis=None
    )
    assert az.plot_ppc_pava(tree, data_type="ordinal") is not None
    plt.close("all")


def test_threads_may_share_the_problem():
    """Chains in threads: the values are those of one thread, whatever the others left as a start."""
    from concurrent.futures import ThreadPoolExecutor

    X, y = make_data(25)
    model = pmo.gp_model(X, y, "expquad")
    problem = find_evidence(model.logp()).op.problem
    rng = np.random.default_rng(0)
    points = [(np.exp(rng.normal()), np.exp(rng.normal() - 1)) for _ in range(60)]

    def value(point):
        return problem.evaluate([point[0]], [-0.5, 0.4], point[1], problem.y)[0]

    alone = [value(p) for p in points]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(value, points))
    np.testing.assert_allclose(together, alone, atol=1e-4)
