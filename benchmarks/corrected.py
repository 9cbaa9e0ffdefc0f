"""Hyperparameters sampled with the evidence of expectation propagation and Laplace, plain and corrected.

    python benchmarks/corrected.py                 # 30 rows, links logit and probit
    python benchmarks/corrected.py logit --noise 0.3

Four attributes, of which two matter, and little noise are hard for Laplace. The reference with the probit link is
`pmo.sample_exact`, with another one NUTS over a `pmo.latent_model`. "off" is by how many standard deviations of the
reference the mean of the logarithm of a hyperparameter differs from its, "sd" the ratio of the standard deviations.
CPU seconds of the corrected lines are those of the correction alone.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pymc as pm

import pmordinal as pmo
from pmordinal.inference.sample import SETTINGS

NAMES = ("lengthscale", "noise")
QUIET = {"progressbar": False, "quiet": True}


def labels(link, noise, seed):
    """Return thirty rows of four attributes and their three classes."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, size=(30, 4))
    e = {"logit": rng.logistic, "probit": rng.normal}[link](size=30)
    z = 1.5 * np.sin(1.5 * x[:, 0]) + 0.7 * x[:, 1] + noise * e
    return x, np.digitize(z, np.quantile(z, [1 / 3, 2 / 3]))


def moments(tree):
    """Return means and standard deviations of the logarithms."""
    logs = [np.log(tree["posterior"][name].values) for name in NAMES]
    return np.array([z.mean() for z in logs]), np.array([z.std() for z in logs])


def timed(call):
    """Return a result and the CPU seconds that it took."""
    began = time.process_time()
    found = call()
    return found, time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("links", nargs="*", default=["logit", "probit"])
    parser.add_argument("--noise", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=1000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "link,method,off: length-scale,off: noise,sd: length-scale,sd: noise,spread,pareto k,effective,CPU s"
    )
    run = {"draws": arguments.draws, "chains": 2, "cores": 1, "random_seed": 1, **QUIET}
    for link in arguments.links:
        X, y = labels(link, arguments.noise, arguments.seed)
        common = {"cov_func": "expquad", "link": link, "categories": [0, 1, 2]}
        if link == "probit":
            model = pmo.gp_model(X, y, **common)
            reference, seconds = timed(
                lambda model=model: pmo.sample_exact(
                    model, arguments.draws, chains=4, seed=1, progressbar=False
                )
            )
        else:
            model = pmo.latent_model(X, y, **common)
            reference, seconds = timed(lambda model=model: pm.sample(model=model, **run))
        mean, sd = moments(reference)
        show(link, "reference", mean, sd, mean, sd, "", "", "", seconds)
        for engine in ("ep", "laplace"):
            model = pmo.gp_model(X, y, engine=engine, **common)
            tree, seconds = timed(lambda model=model: pm.sample(model=model, **{**SETTINGS, **run}))
            for corrected in (False, True):
                found, spent = timed(
                    lambda model=model, tree=tree, corrected=corrected: pmo.sample_posterior(
                        model, tree, corrected=corrected, seed=0, progressbar=False
                    )
                )
                spread = float(found["sample_stats"]["log_evidence_correction"].std())
                k, worth = found.attrs.get("pareto_k", ""), found.attrs.get("effective_draws", "")
                name = f"{engine}, corrected" if corrected else engine
                show(
                    link,
                    name,
                    *moments(found),
                    mean,
                    sd,
                    spread,
                    k,
                    worth,
                    spent if corrected else seconds,
                )


def show(link, name, mean, sd, true_mean, true_sd, *others):
    """Print a line."""
    cells = [*((mean - true_mean) / true_sd), *(sd / true_sd), *others]
    print(
        link,
        name.replace(",", ";"),
        *(f"{c:.2f}" if c != "" else "" for c in cells),
        sep=",",
        flush=True,
    )


if __name__ == "__main__":
    main()
