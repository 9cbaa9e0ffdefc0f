"""Hyperparameter uncertainty by curvature: the right Gaussian, the right densities, and its judge."""

import pickle
from dataclasses import replace

import arviz as az
import numpy as np
import pymc as pm
import pytest
from arviz_stats.base import array_stats

import pmordinal as pmo
from pmordinal.inference import optimise
from pmordinal.results.curvature import Surface, gaussian_at, hessian


@pytest.fixture(scope="module")
def data():
    """Return 60 rows with much noise, so that the hyperparameters are few and well determined."""
    rng = np.random.default_rng(11)
    x = rng.uniform(-2.0, 2.0, size=(60, 1))
    return x, np.digitize(np.sin(1.5 * x[:, 0]) + 0.6 * rng.normal(size=60), [-0.5, 0.5])


@pytest.fixture(scope="module")
def round_fit(data):
    """Return a fit of one hyperparameter, the logarithm of the noise, nearly Gaussian."""
    model = pmo.gp_model(*data, lengthscale=1.0, thresholds=[-0.5, 0.5], engine="laplace")
    return pmo.fit(model, progressbar=False)


def ratios(tree):
    stats = tree["sample_stats"].to_dataset()
    return (stats["log_p"] - stats["log_q"]).values.ravel()


def k_hat(tree):
    return float(array_stats.psislw(-ratios(tree))[1])  # ArviZ takes −log w


def is_of(module, thing):
    """Tell whether a function or a class is defined in a module."""
    return callable(thing) and getattr(thing, "__module__", None) == module.__name__


def test_hessian_of_a_known_function(rng):
    A = rng.normal(size=(4, 4))
    A = A @ A.T
    x = rng.normal(size=4)
    np.testing.assert_allclose(
        hessian(lambda x: A @ x + np.cos(x), x), A - np.diag(np.sin(x)), atol=1e-5
    )


def test_gaussian_density_and_spread(rng):
    H = np.array([[4.0, 1.0], [1.0, 2.0]])
    q = gaussian_at(lambda x: -H @ x, np.zeros(2))
    from scipy.stats import multivariate_normal

    truth = multivariate_normal(np.zeros(2), np.linalg.inv(H))
    draws = [q.draw(rng) for _ in range(3)]
    for x, log_q in draws:
        assert log_q == pytest.approx(truth.logpdf(x), abs=1e-6)


def test_flat_directions_are_said(rng):
    with pytest.warns(pmo.ConvergenceWarning, match=r"flat or rises in 1 of 2 .* pm.sample"):
        q = gaussian_at(lambda x: np.array([-x[0], 1e-4 * x[1]]), np.zeros(2))
    assert q.n_flat == 1
    np.testing.assert_allclose(np.sort((q.root**2).sum(1)), [1.0, 100.0], rtol=1e-6)
    with pytest.raises(ValueError, match="not finite around its optimum"):
        gaussian_at(lambda x: np.full(2, np.nan), np.zeros(2))


@pytest.mark.slow
def test_tree_contract(data):
    model = pmo.gp_model(*data, ard=True)
    fit = pmo.fit(model, progressbar=False)
    tree = fit.to_datatree(draws=120, hyper="gaussian", seed=1)
    posterior = tree["posterior"]
    assert {"lengthscale", "noise", "thresholds", "f"} <= set(posterior.data_vars)
    assert posterior["f"].shape == (1, 120, 60)
    assert posterior["thresholds"].dims == ("chain", "draw", "threshold")
    assert posterior["lengthscale"].dims == ("chain", "draw", "feature")
    assert np.all(np.diff(posterior["thresholds"].values) > 0)
    assert posterior["noise"].std() > 0.01
    assert tree.attrs["hyper"] == "gaussian"
    assert tree.attrs["flat_directions"] == tree.attrs["rejected_draws"] == 0
    assert tree.attrs["pareto_k"] == pytest.approx(k_hat(tree))
    assert tree["sample_stats"]["converged"].values.all()
    link = fit.posterior.likelihood.link
    f, b, s = (posterior[v].values[0, 7] for v in ("f", "thresholds", "noise"))
    edges = np.concatenate([[-np.inf], b, [np.inf]])
    y = tree["observed_data"]["y"].values
    lo, hi = (edges[y] - f) / s, (edges[y + 1] - f) / s
    expected = link.interval(lo, hi, hi - lo).log_prob
    np.testing.assert_allclose(tree["log_likelihood"]["y"].values[0, 7], expected, atol=1e-9)
    again = fit.to_datatree(draws=120, hyper="gaussian", seed=1)
    np.testing.assert_array_equal(again["posterior"]["f"], posterior["f"])
    assert az.summary(tree, var_names=["noise"]).loc["noise", "ess_bulk"] > 50


@pytest.mark.slow
def test_densities_recover_the_marginal_likelihood(round_fit):
    """E_q p(y, f, θ)/q(f, θ) is p(y); the one-dimensional integral over θ of the engine's evidence is too."""
    tree = round_fit.to_datatree(draws=1000, hyper="gaussian", seed=2)
    r = ratios(tree)
    estimate = r.max() + np.log(np.mean(np.exp(r - r.max())))
    error = np.std(np.exp(r - r.max())) / np.mean(np.exp(r - r.max())) / np.sqrt(r.size)
    surface, x = round_fit.optimum
    grid = x[0] + np.linspace(-3.0, 3.0, 61)
    values = np.array([float(surface.value_and_gradient(np.array([u]))[0]) for u in grid])
    truth = values.max() + np.log(np.trapezoid(np.exp(values - values.max()), grid))
    assert abs(estimate - truth) < 0.3 + 5 * error  # 0.3: Laplace's own error for f


@pytest.mark.slow
def test_k_hat_judges(round_fit):
    good = round_fit.to_datatree(draws=800, hyper="gaussian", seed=3)
    assert good.attrs["pareto_k"] < 0.7
    with pm.Model() as model:  # one label tells next to nothing, and the prior's tails are heavy
        noise = pm.Deterministic("noise", pm.math.exp(pm.StudentT("u", nu=0.3, sigma=1.0)))
        fixed = {"thresholds": [0.0], "lengthscale": 1.0, "categories": [0, 1]}
        pmo.gp_model(np.zeros((1, 1)), [0], noise=noise, **fixed)
    bad = pmo.fit(model, progressbar=False).to_datatree(draws=2000, hyper="gaussian", seed=3)
    assert bad.attrs["pareto_k"] > 0.7


@pytest.mark.slow
def test_agrees_with_the_density_on_a_grid(round_fit):
    surface, x = round_fit.optimum
    grid = x[0] + np.linspace(-2.5, 2.5, 101)
    values = np.array([float(surface.value_and_gradient(np.array([u]))[0]) for u in grid])
    p = np.exp(values - values.max())
    p /= p.sum()
    mean = p @ grid
    sd = np.sqrt(p @ (grid - mean) ** 2)
    draws = np.log(
        round_fit.to_datatree(draws=800, hyper="gaussian", seed=4)["posterior"]["noise"].values
    )
    # the mode is not quite the mean of the density, and its curvature not quite its spread
    assert abs(draws.mean() - mean) < 0.3 * sd
    assert draws.std() == pytest.approx(sd, rel=0.2)


@pytest.mark.slow
def test_agrees_with_nuts(data):
    """Two hyperparameters on the log scale, informative priors: nearly Gaussian."""
    model = pmo.gp_model(
        *data,
        lengthscale=pm.LogNormal.dist(0.0, 0.1),
        noise=pm.LogNormal.dist(-0.5, 0.3),
        thresholds=[-0.5, 0.5],
    )
    tree = pmo.fit(model, progressbar=False).to_datatree(draws=2000, hyper="gaussian", seed=5)
    nuts = pm.sample(
        model=model, draws=1000, chains=2, progressbar=False, random_seed=6, nuts_sampler="pymc"
    )
    for name in ("lengthscale", "noise"):
        ours, theirs = (np.log(t["posterior"][name].values).ravel() for t in (tree, nuts))
        assert abs(ours.mean() - theirs.mean()) < 0.2 * theirs.std()
        assert ours.std() == pytest.approx(theirs.std(), rel=0.15)


def test_a_flat_optimum_warns_and_is_recorded():
    """Without priors, perfectly separated labels leave the objective flat or rising."""
    model = pmo.gp_model(
        [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], thresholds=[0.0], lengthscale=1.0
    )
    fit = pmo.fit(model, progressbar=False, priors=False)
    with pytest.warns(pmo.ConvergenceWarning, match="flat or rises"):
        tree = fit.to_datatree(draws=10, hyper="gaussian", seed=0)
    assert tree.attrs["flat_directions"] == 1


def test_a_fit_keeps_its_objective_and_not_the_optimiser(round_fit):
    surface, x = round_fit.optimum
    assert isinstance(x, np.ndarray)
    own = [thing for thing in vars(optimise).values() if is_of(optimise, thing)]
    assert {thing.__name__ for thing in own} >= {"climb", "maximise", "stay", "Run"}
    for kept in (surface, *vars(surface).values()):
        assert not is_of(optimise, kept) and not is_of(optimise, type(kept))
    assert not {thing.__name__ for thing in own} & set(dir(surface))


def test_a_fit_goes_on_with_nothing_but_the_surface(round_fit):
    """What `Surface` does not name is not used."""
    surface, x = round_fit.optimum

    class Bare:
        def __getattr__(self, name):
            assert name in {*vars(Surface), *Surface.__annotations__}, name
            return getattr(surface, name)

    trees = [
        fit.to_datatree(draws=20, hyper="gaussian", seed=7)
        for fit in (round_fit, replace(round_fit, optimum=(Bare(), x)))
    ]
    assert trees[0]["posterior"]["noise"].std() > 0.0
    for name in ("f", "noise"):
        np.testing.assert_array_equal(*(tree["posterior"][name] for tree in trees))


def test_fits_without_a_model_refuse(round_fit, tmp_path):
    round_fit.save(tmp_path / "fit.nc")
    for fit in (
        pmo.load(tmp_path / "fit.nc"),
        pickle.loads(pickle.dumps(round_fit)),
        replace(round_fit, optimum=None),
    ):
        assert fit.to_datatree(draws=3, seed=0)["posterior"].sizes["draw"] == 3
        with pytest.raises(ValueError, match="needs the model"):
            fit.to_datatree(draws=3, hyper="gaussian")
