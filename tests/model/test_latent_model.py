"""Full MCMC: the model of the latent function is the right density, differentiable, and samples."""

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from pymc.blocking import DictToArrayBijection as Bijection
from pytensor.compile.mode import Mode
from scipy import stats

import pmordinal as pmo
from pmordinal.gram import Gram, lower
from pmordinal.inference.density import find_latent
from pmordinal.model.latent.whitening import Whitening
from tests.repeated import first_fast

PYTHON = Mode(linker="py", optimizer="merge")
INPUTS = ("temperature", "contact", "judge")
FIXED = {"lengthscale": 1.1, "noise": 0.4, "thresholds": [-0.5, 0.6]}


@pytest.fixture
def table(rng):
    X = pd.DataFrame(
        {"dose": rng.normal(size=9), "age": rng.normal(size=9)}, index=list("abcdefghi")
    )
    X = pd.concat([X, X.iloc[:2].set_axis(["j", "k"])])  # two rows twice
    y = pd.Categorical.from_codes(
        [0, 1, 2, 0, 1, 2, 1, 1, 2, 1, 1], ["low", "mid", "high"], ordered=True
    )
    return X, y


def tree_of(**arrays):
    """Return a tree as pm.sample makes it, of arrays with chain and draw first."""
    dims = {"f": ["obs"], "thresholds": ["threshold"]}
    return az.from_dict({"posterior": arrays}, dims=dims)


def assert_dlogp(model, point=None, rtol=2e-6):
    f, df = model.compile_logp(mode=PYTHON), model.compile_dlogp(mode=PYTHON)
    point = point or model.initial_point(random_seed=0)
    flat = Bijection.map({v.name: point[v.name] for v in model.value_vars})
    move = np.random.default_rng(3).normal(size=flat.data.size) * 0.3
    x, h = flat.data + move, 1e-5

    def at(x):
        return Bijection.rmap(type(flat)(x, flat.point_map_info))

    gradient = df(at(x))
    for i, g in enumerate(gradient):
        step = h * (np.arange(x.size) == i)
        slope = (float(f(at(x + step))) - float(f(at(x - step)))) / (2 * h)
        assert g == pytest.approx(slope, rel=rtol, abs=1e-5)


def test_names_are_those_of_gp_model(table):
    X, y = table
    model, marginal = pmo.latent_model(X, y, ard=True), pmo.gp_model(X, y, ard=True)
    assert [v.name for v in model.free_RVs] == ["lengthscale", "noise", "thresholds", "f_white"]
    assert [v.name for v in model.observed_RVs] == ["y"]
    assert model.coords == marginal.coords
    assert model.named_vars_to_dims["f"] == ("obs",)
    assert model.named_vars_to_dims["lengthscale"] == ("feature",)
    point = {"lengthscale": np.array([0.7, 2.0]), "noise": 0.3, "thresholds": np.array([-0.2, 0.9])}
    for name, value in point.items():
        rvs = model[name], marginal[name]
        ours, theirs = (pm.logp(rv, value) for rv in rvs)
        assert ours.eval({model["noise"]: 0.3} if name == "thresholds" else {}, mode=PYTHON) == (
            pytest.approx(
                theirs.eval({marginal["noise"]: 0.3} if name == "thresholds" else {}, mode=PYTHON)
            )
        )


@pytest.mark.parametrize("link", first_fast(pmo.LINKS))
def test_dlogp(link, table):
    X, y = table
    assert_dlogp(pmo.latent_model(X, y, ard=True, link=link))


@pytest.mark.slow
def test_dlogp_of_other_covariances(table):
    X, y = table
    with pm.Model() as model:
        ls, eta, white = (pm.LogNormal(name) for name in ("ls", "eta", "white"))
        cov = eta**2 * pm.gp.cov.Matern32(2, ls=ls) + pm.gp.cov.WhiteNoise(white)
        pmo.latent_model(X, y, cov)
    assert_dlogp(model)
    assert_dlogp(pmo.latent_model(X, y, amplitude=pm.HalfNormal.dist(1), noise=1.0))
    assert_dlogp(pmo.latent_model(X, y, "expquad", approx="hsgp", m=5, c=2.0))
    index = np.arange(11)[:, None]
    assert_dlogp(pmo.latent_model(index, y, pmo.Precomputed(np.eye(11) + 1.0)))  # no parameters


def test_coordinates_have_the_stated_density(table, rng):
    """That z = ψ₁ v + ψ₂ m̃ is white means v ~ N(−w K̃^½ (I + wK̃)^−½ m̃, I + wK̃)."""
    X, y = table[0].to_numpy(), table[1].codes
    w, centres = 1.7, np.array([-1.0, 0.2, 1.3])
    whitening = Whitening(lower(pm.gp.cov.ExpQuad(2, ls=1.0)), X, y, 3)
    assert whitening.size == 9
    K = Gram(whitening.kernel, whitening.X, [0.9]).matrix
    count = np.bincount(whitening.inverse)
    K = K * np.sqrt(np.outer(count, count))
    m = np.bincount(whitening.inverse, centres[y]) / np.sqrt(count)
    lam, Q = np.linalg.eigh(K)
    lam = np.maximum(lam, 0.0)
    mean = -Q @ (w * np.sqrt(lam / (1 + w * lam)) * (Q.T @ m))
    v = rng.normal(size=9)
    expected = stats.multivariate_normal(mean, np.eye(9) + w * K).logpdf(v)
    at = whitening.spectrum([np.array(0.9)])
    assert whitening.log_density(v, centres, w, *at) == pytest.approx(expected, abs=1e-9)
    z = rng.normal(size=9)
    f = whitening.latent(whitening.coordinates(z, centres, w, *at), centres, w, *at)
    root = Q @ (np.sqrt(lam) * (Q.T @ z)) / np.sqrt(count)
    np.testing.assert_allclose(f, root[whitening.inverse], atol=1e-9)


@pytest.mark.slow
def test_integral_over_the_coordinates_is_the_evidence():
    """∫ p(y, v) dv is the rectangle probability that SciPy knows."""
    x, y, s = np.array([[0.0], [0.8]]), [0, 1], 0.5
    model = pmo.latent_model(
        x, y, standardize=False, lengthscale=1.0, noise=s, thresholds=[0.1], categories=[0, 1]
    )
    logp = model.compile_logp(mode=PYTHON)
    grid = np.linspace(-7.0, 7.0, 57)
    h = grid[1] - grid[0]
    total = sum(np.exp(logp({"f_white": np.array([a, b])})) for a in grid for b in grid) * h * h
    rho = np.exp(-0.5 * 0.8**2)
    cov = np.array([[1.0, -rho], [-rho, 1.0]]) + s**2 * np.eye(2)
    exactly = {"abseps": 1e-9, "releps": 1e-9}  # where SciPy draws for it
    truth = stats.multivariate_normal([0.0, 0.0], cov, **exactly).cdf([0.1, -0.1])
    assert total == pytest.approx(truth, rel=1e-6)  # the trapezium rule converges at once


@pytest.mark.slow
def test_prior_draws_have_the_covariance(table):
    X, y = table
    model = pmo.latent_model(X, y, "expquad", **FIXED)
    f = pm.draw(model["f"], draws=4000, random_seed=1, mode=PYTHON)
    K = Gram(lower(pm.gp.cov.ExpQuad(2, ls=1.0)), find_latent(model).op.problem.X, [1.1]).matrix
    assert np.abs(np.cov(f.T) - K).max() < 0.11  # five standard errors, √(2/4000) each
    np.testing.assert_allclose(f[:, :2], f[:, -2:], atol=1e-12)


@pytest.mark.parametrize("approx", ["full", "hsgp"])
def test_missing_labels_leave_the_rows_out(approx, table):
    X, y = table
    y = pd.Series(y, index=X.index)
    y.iloc[3] = None
    model = pmo.latent_model(X, y, "expquad", approx=approx)
    assert "d" not in model.coords["obs"]
    assert model["f"].eval(
        {v: np.zeros(v.type.shape) + 1 for v in []} or None, mode=PYTHON
    ).shape == (10,)


def test_singular_matrices_have_gradients(table):
    """A length-scale of 10⁴ makes all rows one; nothing is added to the diagonal."""
    X, y = table
    model = pmo.latent_model(X, y, "expquad")
    point = model.initial_point(random_seed=0)
    point["lengthscale_log__"] = np.array(np.log(1e4))
    value = model.compile_logp(mode=PYTHON)(point)
    assert np.isfinite(value)
    assert np.isfinite(model.compile_dlogp(mode=PYTHON)(point)).all()


def test_white_noise_tells_copies_apart(table):
    X, y = table
    cov = pm.gp.cov.ExpQuad(2, ls=1.0) + pm.gp.cov.WhiteNoise(0.3)
    model = pmo.latent_model(X, y, cov, noise=0.5)
    f = pm.draw(model["f"], random_seed=2, mode=PYTHON)
    assert np.abs(f[:2] - f[-2:]).min() > 1e-4


def test_unusable_parameters_have_zero_density(table):
    X, y = table
    model = pmo.latent_model(X, y, "expquad")
    point = model.initial_point(random_seed=0)
    point["lengthscale_log__"] = np.array(-800.0)
    assert not np.isfinite(model.compile_logp(mode=PYTHON)(point))


@pytest.mark.slow
@pytest.mark.parametrize("ls", [0.3, 1.0])
def test_hsgp_has_nearly_the_covariance(ls):
    x = np.linspace(-1.0, 1.0, 12)[:, None]
    fixed = {"standardize": False, "lengthscale": ls, "noise": 0.3, "thresholds": [-1.0, 1.0]}
    model = pmo.latent_model(x, np.arange(12) % 3, "expquad", approx="hsgp", **fixed)
    f = pm.draw(model["f"], draws=3000, random_seed=1, mode=PYTHON)
    K = np.exp(-0.5 * ((x - x.T) / ls) ** 2)
    assert np.abs(np.cov(f.T) - K).max() < 0.13  # five standard errors


def test_hsgp_density_is_that_of_the_weights(rng):
    """White weights β give v = Lᵀβ − L⁻¹x the density N(−L⁻¹x, LᵀL)."""
    x = np.linspace(-1.0, 1.0, 9)[:, None]
    fixed = {"lengthscale": 0.8, "noise": 0.5, "thresholds": [-0.4, 0.4]}
    model = pmo.latent_model(x, np.arange(9) % 3, "expquad", approx="hsgp", m=6, c=2.0, **fixed)
    shift, L = (v.eval(mode=PYTHON) for v in model["f_white"].owner.inputs[1:3])
    v = rng.normal(size=6)
    expected = stats.multivariate_normal(-np.linalg.solve(L, shift), L.T @ L).logpdf(v)
    found = pm.logp(model["f_white"], v).eval(mode=PYTHON)
    assert found == pytest.approx(expected, abs=1e-10)
    phi = find_latent(model).op.problem.phi
    root = np.sqrt(np.diag(L @ L.T - np.eye(6)) / np.diag(phi.T @ phi))  # √w D
    np.testing.assert_allclose(
        L @ L.T, np.eye(6) + root * (phi.T @ phi) * root[:, None], atol=1e-10
    )


def test_conditional_draws_are_those_of_the_gaussian(table, rng):
    X, y = table
    model = pmo.latent_model(X, y, "expquad", **FIXED)
    problem = find_latent(model).op.problem
    f = rng.normal(size=9)[problem.whitening.inverse]
    new = pd.DataFrame(
        {"dose": [0.1, X["dose"].iloc[0]], "age": [-0.3, X["age"].iloc[0]]}, index=["p", "q"]
    )
    tree = tree_of(f=np.tile(f, (2, 1000, 1)))
    result = pmo.sample_posterior(model, tree, new, seed=4)
    np.testing.assert_array_equal(result["posterior"]["f"], tree["posterior"]["f"])
    drawn = result["predictions"]
    assert drawn["obs"].values.tolist() == ["p", "q"]
    values = drawn["f"].values.reshape(-1, 2)
    U, x = problem.whitening.X, problem.features.transform(new)
    at = f[np.unique(problem.whitening.inverse, return_index=True)[1]]

    def k(a, b):
        return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1) / 1.1**2)

    A = np.linalg.solve(k(U, U), k(U, x[:1]))
    mean, var = (A.T @ at).item(), (1.0 - k(U, x[:1]).T @ A).item()
    assert abs(values[:, 0].mean() - mean) < 5 * np.sqrt(var / 2000)
    assert values[:, 0].var() == pytest.approx(var, rel=0.16)
    np.testing.assert_allclose(values[:, 1], f[0], atol=1e-5)  # a training row again
    frequency = (drawn["y"].values[..., 1] == 1).mean()
    likelihood = stats.norm.cdf((0.6 - f[0]) / 0.4) - stats.norm.cdf((-0.5 - f[0]) / 0.4)
    assert frequency == pytest.approx(likelihood, abs=0.05)


def test_conditional_of_the_basis_continues_the_function(rng):
    x = np.linspace(-1.0, 1.0, 12)[:, None]
    model = pmo.latent_model(x, np.arange(12) % 2, approx="hsgp", noise=0.5, lengthscale=0.7)
    b, v = np.array([0.1]), rng.normal(size=model["f_white"].type.shape)
    f = model["f"].eval({model["f_white"]: v, model["thresholds"]: b}, mode=PYTHON)
    tree = tree_of(f=f[None, None], f_white=v[None, None], thresholds=b[None, None])
    again = pmo.sample_posterior(model, tree, x, seed=0)["predictions"]["f"].values[0, 0]
    np.testing.assert_allclose(again, f, atol=1e-10)


def test_errors(table):
    X, y = table
    with pytest.raises(ValueError, match="approx"):
        pmo.latent_model(X, y, "expquad", approx="sparse")
    with pytest.raises(ValueError, match="m and c belong"):
        pmo.latent_model(X, y, "expquad", m=10)
    wide = np.random.default_rng(0).normal(size=(11, 4))
    with pytest.raises(ValueError, match="give m="):
        pmo.latent_model(wide, y, "expquad", approx="hsgp")
    for c, message in {1.0: "c must be 1.2 or more, got 1.0", -1.0: "c must be a finite"}.items():
        with pytest.raises(ValueError, match=message):
            pmo.latent_model(X, y, "expquad", approx="hsgp", m=5, c=c)
    with pytest.raises(ValueError, match="spectral density"):
        pmo.latent_model(X, y, pm.gp.cov.Linear(2, c=0.0), approx="hsgp")
    with pytest.raises(ValueError, match="build it with"):
        find_latent(pmo.gp_model(X, y, "expquad"))
    with pytest.raises(ValueError, match="no draws of 'lengthscale'"):
        pmo.sample_posterior(pmo.latent_model(X, y, "expquad"), tree_of(f=np.zeros((1, 1, 11))), X)
    with pytest.raises(ValueError, match="no posterior"):
        pmo.sample_posterior(pmo.latent_model(X, y, "expquad"), xr.DataTree(), X)


def test_a_basis_needs_attributes_that_vary():
    x, y = np.arange(6.0), [0, 0, 1, 1, 2, None]
    match = "'{}' is constant in the labelled rows: drop the column or the level"
    with pytest.raises(ValueError, match=match.format("still")):
        pmo.latent_model(pd.DataFrame({"x": x, "still": 1.0}), y, "expquad", approx="hsgp")
    late = pd.DataFrame({"x": x, "late": [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]})  # varies in no label
    with pytest.raises(ValueError, match=match.format("late")):
        pmo.latent_model(late, y, "expquad", approx="hsgp")
    column = pd.Categorical(list("ababab"), categories=["a", "b", "new"])
    with pytest.raises(ValueError, match=match.format("level=new")):
        pmo.latent_model(pd.DataFrame({"level": column}), y, "expquad", approx="hsgp")


def test_sample_posterior_completes_the_tree(table):
    X, y = table
    model = pmo.latent_model(X, y, ard=True, noise=pm.LogNormal.dist(0.0, 0.2))
    prior = pm.sample_prior_predictive(
        6, model=model, random_seed=1, compile_kwargs={"mode": PYTHON}
    )
    tree = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    result = pmo.sample_posterior(model, tree, X.iloc[:3], thin=2, seed=2)
    assert result["posterior"].sizes["draw"] == 3
    assert result["posterior"]["lengthscale"].dims == ("chain", "draw", "feature")
    assert result["posterior"]["threshold"].values.tolist() == ["low|mid", "mid|high"]
    assert result["predictions"]["obs"].values.tolist() == ["a", "b", "c"]
    f, b, s = (result["posterior"][v].values[0, 1] for v in ("f", "thresholds", "noise"))
    np.testing.assert_allclose(result["predictions"]["f"].values[0, 1], f[:3], atol=1e-4)
    edges = np.concatenate([[-np.inf], b, [np.inf]])
    at = edges[y.codes], edges[y.codes + 1]
    expected = np.log(stats.norm.cdf((at[1] - f) / s) - stats.norm.cdf((at[0] - f) / s))
    np.testing.assert_allclose(result["log_likelihood"]["y"].values[0, 1], expected, rtol=1e-9)


def sampled(model, **kwargs):
    return pm.sample(model=model, progressbar=False, random_seed=5, **kwargs)


def assert_converged(tree, names=("lengthscale", "noise", "thresholds", "f")):
    assert int(tree["sample_stats"]["diverging"].sum()) == 0
    assert max(float(v.max()) for v in az.rhat(tree, var_names=list(names)).values()) <= 1.01
    assert min(float(v.min()) for v in az.ess(tree, var_names=list(names)).values()) > 400


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore:Estimated shape parameter:UserWarning")  # of two rows' weights
def test_wine_converges_at_default_settings():
    """The README's data: PyMC's defaults, and all that ArviZ asks for."""
    wine = pmo.datasets.wine()
    model = pmo.latent_model(wine[list(INPUTS)], wine["rating"], "expquad")
    tree = sampled(model, nuts_sampler="pymc", chains=4, cores=2)
    assert_converged(tree)
    with model:
        pm.compute_log_likelihood(tree, progressbar=False)
        tree.update(pm.sample_posterior_predictive(tree, progressbar=False, random_seed=6))
        prior = pm.sample_prior_predictive(50, random_seed=7)
    assert set(np.unique(prior["prior_predictive"]["y"])) <= set(range(5))
    assert tree["posterior"]["threshold"].values.tolist() == ["1|2", "2|3", "3|4", "4|5"]
    assert az.loo(tree).good_k >= 0.7
    # the same posterior by a way that shares nothing with this one: importance weights on curvature
    fit = pmo.fit(pmo.gp_model(wine[list(INPUTS)], wine["rating"], "expquad"), progressbar=False)
    other = fit.to_datatree(draws=2000, hyper="gaussian", seed=8)
    log_w = (other["sample_stats"]["log_p"] - other["sample_stats"]["log_q"]).values[0]
    weights = np.exp(log_w - log_w.max())
    for name in ("noise", "thresholds", "f"):
        ours = tree["posterior"][name].values.reshape(4000, -1)
        theirs = np.average(other["posterior"][name].values[0].reshape(2000, -1), 0, weights)
        assert np.abs((ours.mean(0) - theirs) / ours.std(0)).max() < 0.2
    from matplotlib import pyplot as plt

    assert az.plot_ppc_pava(tree, data_type="ordinal") is not None
    plt.close("all")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nutpie_samples_it():
    pytest.importorskip("nutpie")
    rng = np.random.default_rng(8)
    x = np.linspace(-1.0, 1.0, 20)[:, None]
    y = np.digitize(x.ravel() + 0.5 * rng.normal(size=20), [-0.4, 0.3])
    tree = sampled(
        pmo.latent_model(x, y, "expquad"), nuts_sampler="nutpie", draws=200, tune=300, chains=2
    )
    assert tree["posterior"]["f"].shape == (2, 200, 20)
    assert int(tree["sample_stats"]["diverging"].sum()) < 10
    assert float(az.rhat(tree, var_names=["f"])["f"].max()) < 1.1
