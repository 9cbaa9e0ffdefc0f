"""``floatX=float32``: variables are in single precision, engines compute in double, and everything runs."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import pmordinal as pmo

DATA = """
import json, logging, sys, warnings
import numpy as np, pymc as pm, pmordinal as pmo
warnings.simplefilter("ignore")  # so few draws tell nothing
logging.disable(logging.INFO)
rng = np.random.default_rng(0)
X = rng.normal(size=(12, 1))
y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=12), [-0.4, 0.4])
few = dict(draws=3, tune=3, chains=1, cores=1, random_seed=5, nuts_sampler="pymc")
few |= dict(progressbar=False, quiet=True, compute_convergence_checks=False)
"""
FIT = """
from pmordinal.inference.density import Density
found = {}
for engine in ("ep", "plsor"):
    model = pmo.gp_model(X, y, "expquad", engine=engine)
    assert {v.dtype for v in model.value_vars} == {"float32"}
    fit = pmo.fit(model, progressbar=False)
    density = Density(model)
    with warnings.catch_warnings(action="error"):  # what overflows is seen in the results
        log_prior = density.parts()(np.full(len(density.ravel(density.initial).data), 1e60))[0]
    assert not np.isfinite(log_prior)
    for hyper in ("point", "gaussian"):
        fit.to_datatree(draws=2, hyper=hyper, seed=1)
    found[engine] = [fit.objective_value, *map(float, fit.predict(X[:2]).values.ravel())]
    tree = pmo.sample_posterior(model, pm.sample(model=model, **few), X[:2], progressbar=False)
    assert np.isfinite(tree["predictions"]["f"]).all()
print(json.dumps(found))
"""
LATENT = """
for model in (
    pmo.latent_model(X, y), pmo.latent_model(X, y, approx="hsgp", m=4, c=2.0), pmo.linear_model(X, y)
):
    tree = pm.sample(model=model, **few)
    prior = pm.sample_prior_predictive(2, model=model)
    assert prior["prior_predictive"]["y"].dtype == int
    if "f" in model.named_vars:
        tree = pmo.sample_posterior(model, tree, X[:2], progressbar=False)
        assert np.isfinite(tree["predictions"]["f"]).all()
print("{}")
"""


def in_single_precision(code):
    environment = os.environ | {"PYTENSOR_FLAGS": "floatX=float32"}
    command = [sys.executable, "-c", DATA + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_fits_and_chains_over_hyperparameters():
    """The optimum is that of double precision, to the digits that single precision has."""
    found = in_single_precision(FIT)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 1))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=12), [-0.4, 0.4])
    for engine, (value, *probabilities) in found.items():
        fit = pmo.fit(pmo.gp_model(X, y, "expquad", engine=engine), progressbar=False)
        assert value == pytest.approx(fit.objective_value, abs=1e-3)
        np.testing.assert_allclose(probabilities, fit.predict(X[:2]).values.ravel(), atol=1e-2)


@pytest.mark.slow
def test_full_mcmc_and_linear_models():
    in_single_precision(LATENT)
