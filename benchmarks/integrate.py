"""Integrated hyperparameters beside NUTS over them and beside the exact posterior.

    python benchmarks/integrate.py                 # nine data sets
    python benchmarks/integrate.py wine ard --draws 500 --csv found.csv

For each set a point estimate, ``ccd`` and ``psis`` stand beside NUTS with the settings of `pmo.sample`: four chains of
1000 draws after 500 of tuning, one after the other. With the probit link `pmo.sample_exact` is there too, with four
chains of 1000 draws after 500. "TV" is the total variation between the predictive class probabilities, on average
over the training rows and as many rows around them; "sd" the largest relative deviation of the standard deviations of
the unconstrained hyperparameters. Both are from NUTS, and from `pmo.sample_exact`. The row "halves" has how far the
first two chains are from the other two: what is no larger is Monte-Carlo error. "loo" is the leave-one-out log score.
CPU seconds of the methods include the fit; those of the samplers do not include predictions. Each method runs once
with each link before anything is timed.
"""

import argparse
import csv
import os
import sys
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from dataclasses import replace

import numpy as np
import pymc as pm
import xarray as xr
from figures import made
from scipy.special import logsumexp

import pmordinal as pmo
from pmordinal.inference.landscape import Landscape
from pmordinal.inference.sample import SETTINGS

COLUMNS = ("set", "rows", "hyperparameters", "method", "tv", "tv_max", "sd", "tv_exact", "sd_exact")
COLUMNS += ("loo", "pareto_k", "effective", "seconds")
CHAINS = 4
MIXED = {"nuts": 1000, "exact": 500}  # draws whose predictions are averaged
PROPOSALS = 200  # of the exact posterior at each of them


def sets():
    """Return models by name; the last three had no part in choosing the constants of ``ccd`` and ``psis``."""
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
    other = np.random.default_rng(12)
    U, e = other.normal(size=(80, 2)), other.normal(size=80)
    two = (U[:, 0] + U[:, 1] ** 2 + e > 1.0).astype(int)
    quiet = np.digitize(np.sin(2.0 * U[:, 0]) + 0.1 * e, [-0.6, 0.0, 0.6])
    return {
        "wine": lambda: pmo.gp_model(pair, wine["rating"], "expquad"),
        "wine, terms": lambda: pmo.formula_model("rating ~ temperature + contact", wine),
        "sine": lambda: pmo.gp_model(x, sine, "expquad"),
        "sine, logit": lambda: pmo.gp_model(x, sine, "expquad", link="logit"),
        "ard": lambda: pmo.gp_model(X, ard, ard=True),
        "few": lambda: pmo.gp_model(Z, few, "expquad"),
        "two classes": lambda: pmo.gp_model(U, two, "matern52"),
        "little noise": lambda: pmo.gp_model(U[:, :1], quiet, "expquad"),
        "default": lambda: pmo.gp_model(U, np.digitize(U[:, 0] * U[:, 1] + 0.5 * e, [-0.5, 0.5])),
    }


def unconstrained(model, posterior):
    """Return draws of the hyperparameters in the space of the optimiser; one after the other in each chain."""
    free = model.free_RVs
    moved = [model.rvs_to_transforms[v] for v in free]
    outputs = [
        v if t is None else t.forward(v, *v.owner.inputs) for v, t in zip(free, moved, strict=True)
    ]
    run = model.compile_fn(outputs, inputs=free, on_unused_input="ignore", point_fn=False)
    draws = posterior.stack(sample=("chain", "draw"))
    values = [np.moveaxis(draws[v.name].values, -1, 0) for v in free]
    return np.array(
        [np.concatenate([np.ravel(u) for u in run(*row)]) for row in zip(*values, strict=True)]
    )


def mixture(surface, points, weights, rows):
    """Return predictive probabilities and the leave-one-out scores of weighted hyperparameters."""
    probs, loo = 0.0, []
    for w, x in zip(weights, points, strict=True):
        posterior = surface.posterior(x)
        probs = probs + w * posterior.probabilities(rows)
        loo.append(np.log(w) - posterior.leave_one_out.value)
    return probs, -logsumexp(loo, axis=0)


class Sampled:
    """What draws of the hyperparameters say: standard deviations, predictions and scores, in halves and whole."""

    def __init__(self, model, tree, surface, rows, seconds, mixed):
        self.x, self.seconds = unconstrained(model, tree["posterior"].to_dataset()), seconds
        half = len(self.x) // 2
        step = max(len(self.x) // mixed, 1)
        parts = [x[step // 2 :: step] for x in (self.x[:half], self.x[half:])]
        found = [mixture(surface, x, np.full(len(x), 1.0 / len(x)), rows) for x in parts]
        self.parts = [probs for probs, _ in found]
        self.probs = 0.5 * (self.parts[0] + self.parts[1])
        self.loo = float((np.log(2.0) - np.logaddexp(*(-scores for _, scores in found))).sum())
        self.sds = self.x.std(0)
        self.sd_halves = np.abs(self.x[:half].std(0) / self.x[half:].std(0) - 1.0).max()

    def distance(self, probs):
        """Return mean and maximum of the total variation from other probabilities."""
        tv = 0.5 * np.abs(probs - self.probs).sum(1)
        return tv.mean(), tv.max()

    def halves(self):
        """Return the total variation between the halves."""
        return 0.5 * np.abs(self.parts[0] - self.parts[1]).sum(1).mean()


def spread(model, integral):
    """Return standard deviations of the unconstrained hyperparameters of an integrated fit."""
    data = {v.name: integral.draws[v.name] for v in model.free_RVs}
    posterior = xr.Dataset(
        {k: (["draw", *(f"{k}_{i}" for i in range(v.ndim - 1))], v) for k, v in data.items()}
    ).expand_dims("chain")
    x, w = unconstrained(model, posterior), integral.draw_weights
    return np.sqrt(w @ (x - w @ x) ** 2)


def nuts(model, draws, tune, chains=CHAINS):
    """Return a tree of draws, by the settings of `pmo.sample`."""
    return pm.sample(
        model=model, draws=draws, chains=chains, cores=1, random_seed=1, progressbar=False, quiet=True,
        **{**SETTINGS, "tune": tune},
    )  # fmt: skip


def timed(call):
    """Return a result and the CPU seconds that it took."""
    began = time.process_time()
    found = call()
    return found, time.process_time() - began


def warm(link):
    """Run everything once, so that nothing is compiled or imported in what is timed."""
    x = np.linspace(-1.0, 1.0, 20)[:, None]
    model = pmo.gp_model(x, (np.sin(9.0 * x[:, 0]) > 0.0).astype(int), "expquad", link=link)
    fit = pmo.fit(model, progressbar=False)
    fit.integrate("ccd"), fit.integrate("psis", draws=64, seed=0)
    nuts(model, 10, 10, chains=1)
    if link == "probit":
        pmo.sample_exact(model, 5, 5, chains=1, seed=0, progressbar=False)


def exact_of(problem):
    """Return the problem with the exact engine."""
    engine = pmo.Exact(draws=PROPOSALS, standard_error=np.inf)
    return replace(problem, engine=engine, objective="evidence")


def compare(name, build, draws, tune):
    """Yield a row of the table for each method."""
    model = build()
    fit, fit_seconds = timed(lambda: pmo.fit(model, progressbar=False))
    surface, mode = fit.optimum
    X = fit.posterior.gram.X
    around = X + 0.3 * np.random.default_rng(1).normal(size=X.shape) * (len(np.unique(X)) > 10)
    rows = np.concatenate([X, around])
    of_set = {"set": name, "rows": len(X), "hyperparameters": mode.size}
    tree, seconds = timed(lambda: nuts(model, draws, tune))
    sampled = Sampled(model, tree, surface, rows, seconds, MIXED["nuts"])
    yield of_set | {"method": "nuts", "loo": sampled.loo, "seconds": seconds}
    yield of_set | {"method": "halves", "tv": sampled.halves(), "sd": sampled.sd_halves}
    exact = None
    if fit.posterior.likelihood.link.name == "probit":
        tree, seconds = timed(
            lambda: pmo.sample_exact(model, draws, tune, CHAINS, seed=1, progressbar=False)
        )
        by_exact = Landscape(model, adapt=exact_of)
        exact = Sampled(model, tree, by_exact, rows, seconds, MIXED["exact"])
        tv, tv_max = sampled.distance(exact.probs)
        yield of_set | {
            "method": "exact", "tv": tv, "tv_max": tv_max, "sd": deviation(exact.sds, sampled.sds),
            "tv_exact": exact.halves(), "sd_exact": exact.sd_halves, "loo": exact.loo, "seconds": seconds,
        }  # fmt: skip
    for method in ("point", "ccd", "psis"):
        row = of_set | {"method": method, "seconds": fit_seconds}
        found = fit
        if method != "point":
            found, seconds = timed(lambda method=method: fit.integrate(method, seed=0))
            integral = found.integral
            row["seconds"] += seconds
            row["pareto_k"], row["effective"] = (
                integral.account.pareto_k,
                integral.account.effective,
            )
            sds = spread(model, integral)
            row["sd"] = deviation(sds, sampled.sds)
            if exact is not None:
                row["sd_exact"] = deviation(sds, exact.sds)
        probs = found.probabilities(rows, lambda member: member.population)
        row["tv"], row["tv_max"] = sampled.distance(probs)
        if exact is not None:
            row["tv_exact"] = exact.distance(probs)[0]
        yield row | {"loo": found.posterior.loo}


def deviation(sds, reference):
    """Return the largest relative deviation."""
    return np.abs(sds / reference - 1.0).max()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--tune", type=int, default=500)
    parser.add_argument("--csv", help="a file to write the table to")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    known = sets()
    for name in arguments.names:
        if name not in known:
            parser.error(f"there is no set {name!r}, only {', '.join(map(repr, known))}")
    chosen = {name: known[name] for name in arguments.names or known}
    for link in ("probit", "logit"):
        warm(link)
    print(*COLUMNS, sep=",", flush=True)
    table = []
    for name, build in chosen.items():
        for row in compare(name, build, arguments.draws, arguments.tune):
            table.append({k: said(row.get(k)) for k in COLUMNS})
            print(*table[-1].values(), sep=",", flush=True)
    if arguments.csv:
        with open(arguments.csv, "w", newline="") as file:
            file.write(made(" ".join(sys.argv[1:]), "integrate"))
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


def said(value):
    """Return a number in four digits."""
    return (
        f"{value:.4g}"
        if isinstance(value, float)
        else ""
        if value is None
        else str(value).replace(",", ";")
    )


if __name__ == "__main__":
    main()
