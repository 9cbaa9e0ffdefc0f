"""The likelihood under JAX: the same numbers, also in the tails; everything else says no."""

import subprocess
import sys

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pmordinal as pmo
from pmordinal.likelihood.smoothing import interval_terms
from pmordinal.links import LINKS
from pmordinal.links.probit import Probit
from pmordinal.model.ops.interval import IntervalLogProb


@pytest.fixture
def jax():
    return pytest.importorskip("jax", reason="JAX is not installed: pip install numpyro")


@pytest.fixture(scope="module")
def wine():
    data = pmo.datasets.wine()
    return data[["temperature", "contact"]], data["rating"]


@pytest.fixture
def cases(rng):
    """Return eta, lower, upper and noise: intervals narrow and wide, near and far, open and closed."""
    n = 2000
    eta = rng.normal(size=n) * 10 ** rng.uniform(-2, 2.5, n)
    lower = rng.normal(size=n) * 10 ** rng.uniform(-2, 1, n)
    upper = lower + 10 ** rng.uniform(-8, 2, n)
    lower[rng.random(n) < 0.2] = -np.inf
    upper[rng.random(n) < 0.2] = np.inf
    return eta, lower, upper, 10 ** rng.uniform(-1, 1, n)


@pytest.mark.slow
def test_jax_is_not_imported_without_need():
    code = (
        "import sys, pmordinal.model.factories, pmordinal.model.marginal, pmordinal.model.latent.factory; "
        "assert not {'jax', 'pmordinal.model.ops.jax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", LINKS)
def test_values_and_derivatives(jax, cases, name):
    inputs = [pt.dvector() for _ in range(4)]
    outputs = IntervalLogProb(LINKS[name]).make_node(*inputs).outputs
    with np.errstate(over="ignore"):  # e^700 under cloglog noise, divided by a small one
        ours = pytensor.function(inputs, outputs, mode="FAST_COMPILE")(*cases)
    theirs = pytensor.function(inputs, outputs, mode="JAX")(*cases)
    for mine, other in zip(ours, theirs, strict=True):
        # XLA has no numbers below 2.2e-308, and its erfc is good to 1e-12 next to them
        np.testing.assert_allclose(other, mine, rtol=2e-12, atol=1e-300)


@pytest.mark.parametrize("name", LINKS)
def test_gradients_taken_by_jax(jax, cases, name):
    from pmordinal.model.ops.jax import FORMULAS, interval_log_prob

    cases = [x[:300] for x in cases]
    assert set(FORMULAS) == set(LINKS)
    function = interval_log_prob(FORMULAS[name])
    eta, lower, upper, noise = cases
    with np.errstate(over="ignore"):
        terms = interval_terms(LINKS[name], lower, upper, eta, noise)
        expected = terms.d1, terms.lower[0], terms.upper[0], terms.log_noise[0] / noise
    gradient = jax.grad(lambda *x: function(*x)[0].sum(), argnums=(0, 1, 2, 3))(*cases)
    for other, mine in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(other, mine, rtol=2e-12, atol=1e-300)
    second = jax.vmap(jax.grad(jax.grad(lambda *x: function(*x)[0])))(*cases)
    assert np.isfinite(second).all()
    wide = (upper - lower) / noise > 1e-3  # a variance among means: it has lost digits elsewhere
    scale = np.abs(terms.curvature[wide]).max()
    np.testing.assert_allclose(-second[wide], terms.curvature[wide], rtol=1e-6, atol=1e-9 * scale)


def test_models_without_a_version_for_jax(jax, wine):
    from pymc.sampling.jax import get_jaxified_logp

    for model in (pmo.gp_model(*wine, "expquad"), pmo.latent_model(*wine, "expquad")):
        with pytest.raises(NotImplementedError, match=r"runs in NumPy, .*nuts_sampler='pymc'"):
            get_jaxified_logp(model)

    class Other(Probit):
        name = "other"

    with pm.Model() as model:
        pmo.Ordinal("y", pm.Normal("x"), [-1.0, 1.0], link=Other(), observed=1)
    with pytest.raises(
        NotImplementedError, match=r"'other' has no version for JAX .*probit, logit"
    ):
        get_jaxified_logp(model)


def test_log_density_of_a_model(jax, wine):
    from pymc.sampling.jax import get_jaxified_logp

    model = pmo.linear_model(*wine, link="logit")
    point = model.initial_point()
    logp = get_jaxified_logp(model, negative_logp=True)
    assert float(logp(list(point.values()))) == pytest.approx(
        model.compile_logp()(point), rel=1e-12
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # JAX, numpyro and PyMC have words for each other
def test_numpyro_finds_the_same_posterior():
    pytest.importorskip("numpyro", reason="numpyro is not installed")
    x = np.linspace(-2.0, 2.0, 40)
    y = np.digitize(x + 0.5 * np.sin(30 * x), [-1.0, 0.5])
    with pm.Model() as model:
        pmo.Ordinal("y", pm.Normal("slope", 1.0) * x, pmo.thresholds("b", 3), observed=y)
    options = {"draws": 1000, "tune": 500, "chains": 2, "cores": 1, "random_seed": 1}
    options |= {"progressbar": False, "model": model}
    ours, theirs = (
        pm.sample(nuts_sampler=name, **options)["posterior"] for name in ("pymc", "numpyro")
    )
    for name in ("slope", "b"):
        spread = ours[name].std(("chain", "draw"))
        gap = theirs[name].mean(("chain", "draw")) - ours[name].mean(("chain", "draw"))
        assert float(abs(gap / spread).max()) < 0.2  # four standard errors at 400 effective draws
