"""The pseudo-marginal sampler: against a grid over one hyperparameter, and full NUTS."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pmordinal as pmo
from pmordinal.errors import ConvergenceWarning

X = np.array([[-1.2], [-0.4], [0.1], [0.9], [1.5]])
Y = np.array([0, 1, 0, 2, 2])
FIXED = {"standardize": False, "lengthscale": 1.0, "thresholds": [-0.5, 0.6]}
QUIET = {"progressbar": False}


def narrow_model():
    """Return a model of two hyperparameters whose priors say most: short chains agree."""
    priors = {"noise": pm.LogNormal.dist(-1.0, 0.3), "lengthscale": pm.LogNormal.dist(0.0, 0.3)}
    return pmo.gp_model(X, Y, "expquad", thresholds=[-0.5, 0.6], **priors)


def truth_on_a_grid(m=100):
    """Return log noise, its posterior weights, and E[f] for each: by SciPy's rectangle probabilities."""
    K = np.exp(-0.5 * (X - X.T) ** 2)
    edges = np.array([-12.0, -0.5, 0.6, 12.0])
    grid = np.linspace(-6.0, 4.0, m)
    log_p = stats.norm(-1.0, 1.5).logpdf(grid)
    for i, log_noise in enumerate(grid):
        C = K + np.exp(2 * log_noise) * np.eye(5)
        normal = stats.multivariate_normal(np.zeros(5), C, maxpts=20_000, abseps=1e-9, seed=1)
        log_p[i] += np.log(normal.cdf(edges[Y + 1], lower_limit=edges[Y]))
    p = np.exp(log_p - log_p.max())
    return grid, p / p.sum()


@pytest.mark.slow
@pytest.mark.parametrize("proposals", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_the_posterior_of_the_noise_is_that_of_a_grid(proposals):
    """For any number of proposals: with two the evidence is a rough estimate, and the answer still exact."""
    grid, p = truth_on_a_grid()
    mean = p @ grid
    sd = np.sqrt(p @ (grid - mean) ** 2)
    model = pmo.gp_model(X, Y, "expquad", **FIXED)
    tree = pmo.sample_exact(
        model, draws=700, tune=100, chains=2, proposals=proposals, seed=3, **QUIET
    )
    draws = np.log(tree["posterior"]["noise"])
    ess = float(az.ess(draws.to_dataset(name="x"))["x"])
    assert ess > 200
    assert abs(float(draws.mean()) - mean) < 4 * sd / np.sqrt(ess)
    assert float(draws.std()) == pytest.approx(sd, rel=0.15)
    # the whole distribution, thinned to independence
    thin = draws.values.ravel()[:: max(1, int(2 * draws.size / ess))]
    cdf = np.cumsum(p) - 0.5 * p
    assert stats.kstest(thin, lambda x: np.interp(x, grid, cdf)).pvalue > 1e-3


@pytest.mark.slow
def test_the_latent_function_comes_from_the_joint_posterior():
    """E[f] over the chain is the average of the exact engine's means over the same hyperparameters."""
    model = pmo.gp_model(X, Y, "expquad", **FIXED)
    tree = pmo.sample_exact(model, draws=2000, tune=300, chains=2, proposals=5, seed=4, **QUIET)
    grid, p = truth_on_a_grid(40)
    expected = np.zeros(5)
    for log_noise, weight in zip(grid, p, strict=True):
        if weight > 1e-5:
            at = pmo.gp_model(X, Y, noise=np.exp(log_noise), engine="exact", **FIXED)
            expected += weight * pmo.fit(at, **QUIET).posterior.mean
    f = tree["posterior"]["f"]
    ess = az.ess(tree, var_names=["f"])["f"].values
    error = f.std(("chain", "draw")).values / np.sqrt(ess)
    assert np.all(np.abs(f.mean(("chain", "draw")).values - expected) < 4 * error + 0.01)


@pytest.fixture(scope="module")
def tree():
    return pmo.sample_exact(narrow_model(), draws=300, tune=100, chains=2, seed=1, **QUIET)


def test_the_tree_has_what_arviz_asks_for(tree):
    assert set(tree["posterior"].data_vars) == {"lengthscale", "noise", "thresholds", "f"}
    assert tree["posterior"]["thresholds"].dims == ("chain", "draw", "threshold")
    stats = tree["sample_stats"].to_dataset()
    assert {"log_p", "log_q", "lp", "log_evidence", "accepted", "converged"} <= set(stats)
    assert 0.1 < float(stats["accepted"].mean()) < 0.9
    np.testing.assert_allclose(stats["log_p"] - stats["log_q"], stats["log_evidence"])
    y = tree["posterior_predictive"]["y"]
    assert set(np.unique(y)) <= {0, 1, 2}
    assert np.all(np.diff(tree["posterior"]["thresholds"], axis=-1) > 0)
    assert len(az.summary(tree, var_names=["lengthscale", "noise", "f"])) == 1 + 1 + 5
    assert tree.attrs["engine"] == "exact"
    assert tree["posterior"].attrs["sampling_time"] > 0


def test_the_log_density_is_that_of_the_model(tree):
    """Lp less the estimated evidence is the log prior."""
    model = narrow_model()
    log_prior = model.compile_logp(vars=model.free_RVs, mode="FAST_COMPILE")
    for draw in (0, 150):
        here = tree["posterior"].to_dataset().isel(chain=0, draw=draw)
        point = {}
        for rv in model.free_RVs:
            transform, slot = model.rvs_to_transforms[rv], model.rvs_to_values[rv]
            value = transform.forward(here[rv.name].values, *rv.owner.inputs)
            point[slot.name] = np.asarray(value.eval(mode="FAST_COMPILE"))
        stats = tree["sample_stats"].to_dataset().isel(chain=0, draw=draw)
        assert float(stats["lp"] - stats["log_evidence"]) == pytest.approx(
            float(log_prior(point)), rel=1e-6
        )


def test_the_same_seed_gives_the_same_chain():
    model = pmo.gp_model(X, Y, "expquad", **FIXED)
    runs = [
        pmo.sample_exact(model, draws=30, tune=20, chains=1, seed=seed, **QUIET)["posterior"]
        for seed in (5, 5, 6)
    ]
    np.testing.assert_array_equal(runs[0]["noise"], runs[1]["noise"])
    np.testing.assert_array_equal(runs[0]["f"], runs[1]["f"])
    assert np.any(runs[0]["noise"] != runs[2]["noise"])


def test_chains_that_disagree_are_reported():
    model = pmo.gp_model(X, Y, "expquad")
    with pytest.warns(ConvergenceWarning, match=r"the chains disagree .*raise tune and draws"):
        tree = pmo.sample_exact(model, draws=4, tune=0, chains=3, seed=0, **QUIET)
    assert not tree["sample_stats"]["converged"].values.any()


def test_what_cannot_be_sampled_is_refused():
    with pytest.raises(ValueError, match=r"needs link='probit', got 'logit'.*pmo.latent_model"):
        pmo.sample_exact(pmo.gp_model(X, Y, "expquad", link="logit"), **QUIET)
    with pytest.raises(ValueError, match="build this one with engine='exact'"):
        pmo.sample_exact(pmo.gp_model(X, Y, engine="plsor"), **QUIET)
    with pytest.raises(ValueError, match=r"no hyperparameters to sample: use pmo.fit"):
        pmo.sample_exact(pmo.gp_model(X, Y, noise=0.5, **FIXED), **QUIET)
    with pytest.raises(ValueError, match="draws must be an integer of at least 1"):
        pmo.sample_exact(pmo.gp_model(X, Y, "expquad"), draws=0, **QUIET)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_means_equal_those_of_full_nuts():
    """Twenty rows; NUTS over length-scale, noise, thresholds and the whitened latent function."""
    rng = np.random.default_rng(8)
    rows = np.sort(rng.normal(size=(20, 1)), axis=0)
    y = np.digitize(np.sin(1.5 * rows[:, 0]) + 0.3 * rng.normal(size=20), [-0.3, 0.5])
    options = {"noise": pm.LogNormal.dist(-1.0, 0.7), "lengthscale": pm.LogNormal.dist(0.0, 0.5)}
    model = pmo.gp_model(rows, y, "expquad", standardize=False, **options)
    exact = pmo.sample_exact(model, draws=1500, tune=500, chains=2, seed=2, **QUIET)
    with pm.Model():
        ls = pm.LogNormal("lengthscale", 0.0, 0.5)
        noise = pm.LogNormal("noise", -1.0, 0.7)
        b = pmo.thresholds("thresholds", 3, scale=pm.math.sqrt(1.0 + noise**2))
        K = pm.math.exp(-0.5 * ((rows - rows.T) / ls) ** 2) + 1e-7 * np.eye(20)
        z = pm.Normal("z", shape=20)
        f = pm.Deterministic("f", pm.math.dot(pm.math.cholesky(K), z))
        pmo.Ordinal("y", f, thresholds=b, noise=noise, observed=y)
        nuts = pm.sample(
            1500, tune=1000, chains=2, cores=1, random_seed=5, progressbar=False, target_accept=0.95
        )
    for name in ("lengthscale", "noise", "thresholds", "f"):
        means, errors = [], []
        for tree in (exact, nuts):
            draws = tree["posterior"][name]
            draws = np.log(draws) if name in ("lengthscale", "noise") else draws
            ess = az.ess(draws.to_dataset(name="x"))["x"].values
            means.append(draws.mean(("chain", "draw")).values)
            errors.append(draws.std(("chain", "draw")).values / np.sqrt(ess))
        z_scores = (means[0] - means[1]) / np.hypot(*errors)
        assert np.max(np.abs(z_scores)) < 4.5, (name, z_scores)
