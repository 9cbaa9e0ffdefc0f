"""Simulation-based calibration: parameters drawn from the prior rank uniformly among posterior draws.

Data are simulated from the model many times and NUTS samples each posterior [Talts2018]. The sampler is
PyMC's own, compiled once: the labels are a shared variable.
"""

import numpy as np
import pymc as pm
import pytensor
import pytest
from scipy import stats

import pmordinal as pmo
from pmordinal.inference.density import PLAIN, find_evidence

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

X = np.linspace(-1.5, 1.5, 14)[:, None]
CODES = np.arange(14) % 3  # stands for the labels until data are simulated
REPLICATIONS, TUNE, KEPT, THIN, BINS = 60, 100, 19, 4, 5
PRIOR = {"lengthscale": (0.0, 0.5), "noise": (-0.7, 0.5)}
NAMES = ("lengthscale", "noise", "thresholds")


def model_of(factory, *, noise=PRIOR["noise"][0], labels=CODES, **options):
    priors = {
        k: pm.LogNormal.dist(mu, sd) for k, (mu, sd) in (PRIOR | {"noise": (noise, 0.5)}).items()
    }
    return factory(X, labels, categories=[0, 1, 2], **priors, **options)


def simulated(model, seed):
    """Return parameters and labels drawn from a model, one row each."""
    tree = pm.sample_prior_predictive(
        REPLICATIONS, model=model, random_seed=seed, compile_kwargs={"mode": PLAIN}
    )
    prior = {k: v.values[0] for k, v in tree["prior"].data_vars.items()}
    return prior, tree["prior_predictive"]["y"].values[0]


class Sampler:
    """NUTS for a model whose labels can be exchanged."""

    def __init__(self, model, seed):
        self.model, self.y = model, pytensor.shared(CODES.astype("int64"))
        model.rvs_to_values[model["y"]] = self.y
        self.step = pm.NUTS(model=model, rng=seed, max_treedepth=7)
        names = [v.name for v in model.unobserved_value_vars]
        values = model.compile_fn(
            model.unobserved_value_vars, inputs=model.value_vars, mode=PLAIN, point_fn=False
        )
        self.named = lambda point: dict(
            zip(names, values(*(point[v.name] for v in model.value_vars)), strict=True)
        )
        self.start = model.initial_point(random_seed=0)

    def __call__(self, labels):
        """Return thinned draws of all variables given labels."""
        self.y.set_value(labels.astype("int64"))
        self.step.tune = True  # the metric goes on adapting from data set to data set
        self.step.step_adapt.reset()
        point, draws = self.start, []
        for i in range(TUNE + KEPT * THIN):
            if i == TUNE:
                self.step.stop_tuning()
            point, _ = self.step.step(point)
            if i >= TUNE and (i - TUNE) % THIN == THIN - 1:
                draws.append(self.named(point))
        return draws


def p_values(prior, y, sampler, latent=None):
    """Return the p-value of a χ² test of uniform ranks for each scalar quantity."""
    ranks = {}
    for i, labels in enumerate(y):
        draws = sampler(labels)
        truth = {k: np.atleast_1d(v[i]) for k, v in prior.items() if k in (*NAMES, "f")}
        for name, value in truth.items():
            if name == "f":
                value, found = value[[0, 7]], np.array([latent(d, labels)[[0, 7]] for d in draws])
            else:
                found = np.array([np.atleast_1d(d[name]) for d in draws])
            for j, v in enumerate(value):
                ranks.setdefault(f"{name}{j}", []).append(int((found[:, j] < v).sum()))
    counts = {
        k: np.bincount(np.array(r) * BINS // (KEPT + 1), minlength=BINS) for k, r in ranks.items()
    }
    return {k: float(stats.chisquare(c).pvalue) for k, c in counts.items()}


class Integrated:
    """Draws of a fit with its hyperparameters integrated out; `of` makes another fit of the point estimate."""

    def __init__(self, of):
        self.of = of

    def __call__(self, labels):
        """Return as many draws of all variables as the sampler keeps."""
        fit = self.of(pmo.fit(model_of(pmo.gp_model, labels=labels), progressbar=False))
        # more draws than are kept, since those of one member stand together
        tree = fit.to_datatree(20 * KEPT, seed=int(labels @ 3 ** np.arange(labels.size)))
        draws = tree["posterior"].to_dataset().isel(chain=0, draw=slice(None, None, 20))
        return [
            {name: draws[name].values[i] for name in (*NAMES, "f")}
            for i in range(draws.sizes["draw"])
        ]


def full_latent(draw, labels):
    return draw["f"]


def test_full_mcmc():
    model = model_of(pmo.latent_model)
    prior, y = simulated(model, 1)
    found = p_values(prior, y, Sampler(model, 2), full_latent)
    assert set(found) == {"lengthscale0", "noise0", "thresholds0", "thresholds1", "f0", "f1"}
    assert min(found.values()) > 0.01 / len(found), found


def test_hyperparameter_mcmc_with_ep():
    """Hyperparameters with the latent function integrated out, and the engine's draws of it."""
    model = model_of(pmo.gp_model)
    prior, y = simulated(model_of(pmo.latent_model), 3)  # the same prior, and it has f
    problem = find_evidence(model.logp()).op.problem
    rng = np.random.default_rng(4)

    def latent(draw, labels):
        post = problem.posterior([draw["lengthscale"]], draw["thresholds"], draw["noise"], labels)
        return post.draw(1, rng).f[0]

    found = p_values(prior, y, Sampler(model, 5), latent)
    assert len(found) == 6
    assert min(found.values()) > 0.01 / len(found), found


@pytest.mark.filterwarnings("ignore::pmordinal.ConvergenceWarning")
@pytest.mark.parametrize("method", ["psis", "ccd"])
def test_integrated_fits(method):
    """Hyperparameters and latent function of integrated fits; the draws of a point estimate do not rank like that."""
    prior, y = simulated(model_of(pmo.latent_model), 8)
    integrated = Integrated(lambda fit: fit.integrate(method, draws=128, seed=0))
    found = p_values(prior, y, integrated, full_latent)
    assert len(found) == 6
    assert min(found.values()) > 0.01 / len(found), found


def test_a_point_estimate_is_found():
    """The same check without integration: all draws of a hyperparameter are on one side of the truth."""
    prior, y = simulated(model_of(pmo.latent_model), 8)
    found = p_values(prior, y, Integrated(lambda fit: fit), full_latent)
    assert max(found["lengthscale0"], found["noise0"]) < 1e-6, found


def test_a_wrong_prior_is_found():
    """Data of a model with four times the noise: the ranks are far from uniform."""
    prior, y = simulated(model_of(pmo.latent_model, noise=PRIOR["noise"][0] + np.log(4.0)), 6)
    del prior["f"]
    found = p_values(prior, y, Sampler(model_of(pmo.gp_model, engine="laplace"), 7))
    assert found["noise0"] < 1e-6, found
