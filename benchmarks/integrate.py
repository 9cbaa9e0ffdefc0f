"""Integrated hyperparameters beside NUTS over them: predictive probabilities, standard deviations, time.

    python benchmarks/integrate.py                 # six data sets
    python benchmarks/integrate.py wine ard --draws 500

For each set a point estimate, ``psis`` and ``ccd`` stand beside ``pm.sample(model=pmo.gp_model(…))`` with a dense
mass matrix. "TV" is the total variation between the predictive class probabilities, on average over the training rows
and as many rows around them; "sd" the largest relative deviation of the standard deviations of the unconstrained
hyperparameters; "loo" the leave-one-out log score. CPU seconds of the methods include the fit; those of NUTS do not
include its predictions.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pymc as pm
from scipy.special import logsumexp

import pmordinal as pmo


def sets():
    """Return models by name."""
    rng = np.random.default_rng(11)
    wine = pmo.datasets.wine()
    x = rng.uniform(-2.0, 2.0, size=(60, 1))
    X = rng.normal(size=(100, 3))
    Z = rng.normal(size=(40, 2))
    noise = rng.normal(size=(3, 100))
    sine = np.digitize(np.sin(1.5 * x[:, 0]) + 0.6 * noise[0, :60], [-0.5, 0.5])
    ard = np.digitize(X[:, 0] + np.sin(X[:, 1]) + 0.4 * noise[1], [-1.0, -0.2, 0.5, 1.2])
    few = np.digitize(Z[:, 0] * Z[:, 1] + 0.3 * noise[2, :40], [-0.4, 0.4])
    pair = wine[["temperature", "contact"]]
    return {
        "wine": lambda: pmo.gp_model(pair, wine["rating"], "expquad"),
        "wine, terms": lambda: pmo.formula_model("rating ~ temperature + contact", wine),
        "sine": lambda: pmo.gp_model(x, sine, "expquad"),
        "sine, logit": lambda: pmo.gp_model(x, sine, "expquad", link="logit"),
        "ard": lambda: pmo.gp_model(X, ard, ard=True),
        "few": lambda: pmo.gp_model(Z, few, "expquad"),
    }


def unconstrained(model, tree, thin):
    """Return every `thin`-th draw of the hyperparameters in the space of the optimiser."""
    free, posterior = model.free_RVs, tree["posterior"].to_dataset()
    moved = [model.rvs_to_transforms[v] for v in free]
    outputs = [
        v if t is None else t.forward(v, *v.owner.inputs) for v, t in zip(free, moved, strict=True)
    ]
    run = model.compile_fn(outputs, inputs=free, on_unused_input="ignore", point_fn=False)
    draws = posterior.isel(draw=slice(None, None, thin)).stack(sample=("chain", "draw"))
    return np.array(
        [
            np.concatenate([np.ravel(u) for u in run(*(draws[v.name].isel(sample=i).values for v in free))])
            for i in range(draws.sizes["sample"])
        ]
    )  # fmt: skip


def mixture(surface, points, weights, rows):
    """Return predictive probabilities and the leave-one-out score of weighted hyperparameters."""
    probs, loo = 0.0, []
    for w, x in zip(weights, points, strict=True):
        posterior = surface.posterior(x)
        probs = probs + w * posterior.probabilities(rows)
        loo.append(np.log(w) - posterior.leave_one_out.value)
    return probs, float(-logsumexp(loo, axis=0).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--tune", type=int, default=500)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        f"{'set':<14}{'p':>3} {'method':<8}{'TV':>8}{'TV max':>8}{'sd':>7}{'loo':>9}{'k':>6}{'CPU s':>8}"
    )
    for name, build in sets().items():
        if arguments.names and name not in arguments.names:
            continue
        model = build()
        began = time.process_time()
        fit = pmo.fit(model, progressbar=False)
        point_seconds = time.process_time() - began
        began = time.process_time()
        tree = pm.sample(
            model=model, draws=arguments.draws, tune=arguments.tune, chains=2, cores=1, random_seed=1,
            init="jitter+adapt_full", target_accept=0.65, progressbar=False, quiet=True, nuts_sampler="pymc",
        )  # fmt: skip
        nuts_seconds = time.process_time() - began
        surface, mode = fit.optimum
        sampled = unconstrained(model, tree, max(arguments.draws // 250, 1))
        X = fit.posterior.gram.X
        around = X + 0.3 * np.random.default_rng(1).normal(size=X.shape) * (len(np.unique(X)) > 10)
        rows = np.concatenate([X, around])
        equal = np.full(len(sampled), 1.0 / len(sampled))
        truth, loo = mixture(surface, sampled, equal, rows)
        sds = unconstrained(model, tree, 1).std(0)
        print(
            f"{name:<14}{mode.size:>3} {'nuts':<8}{'':>8}{'':>8}{'':>7}{loo:9.2f}{'':>6}{nuts_seconds:8.1f}"
        )
        for method in ("point", "ccd", "psis"):
            k, sd = "", ""
            began = time.process_time()
            if method == "point":
                found, seconds = fit, point_seconds
            else:
                found = fit.integrate(method, seed=0)
                seconds = point_seconds + time.process_time() - began
                account, integral = found.integral.account, found.integral
                k = "" if account.pareto_k is None else f"{account.pareto_k:.2f}"
                spread = _spread(model, integral)
                sd = f"{np.abs(spread / sds - 1.0).max():.2f}"
            probs = found.probabilities(rows, lambda member: member.population)
            tv = 0.5 * np.abs(probs - truth).sum(1)
            print(
                f"{'':<17} {method:<8}{tv.mean():8.4f}{tv.max():8.4f}{sd:>7}{found.posterior.loo:9.2f}{k:>6}"
                f"{seconds:8.1f}",
                flush=True,
            )


def _spread(model, integral):
    """Return standard deviations of the unconstrained hyperparameters of an integrated fit."""
    import xarray as xr

    data = {v.name: integral.draws[v.name] for v in model.free_RVs}
    posterior = xr.Dataset(
        {k: (["draw", *(f"{k}_{i}" for i in range(v.ndim - 1))], v) for k, v in data.items()}
    ).expand_dims("chain")
    x = unconstrained(model, {"posterior": _Group(posterior)}, 1)
    w = integral.draw_weights
    return np.sqrt(w @ (x - w @ x) ** 2)


class _Group:
    def __init__(self, data):
        self.data = data

    def to_dataset(self):
        return self.data


if __name__ == "__main__":
    main()
