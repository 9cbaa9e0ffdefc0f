"""Exact draws from an engine's approximate ones, by importance sampling, for any link.

The sampler has seen the engine's evidence Z_q(θ). At each of its draws of the hyperparameters θ, f is drawn several
times from the Gaussian q(f) of expectation propagation, which covers the posterior better than Laplace's. The mean Ẑ of
the weights p(y | f) p(f) / q(f) is unbiased for the evidence, whatever their number [FilipponeGirolami2014]. So
Ẑ(θ) / Z_q(θ) are right weights of the draws of θ, and one of the f, picked by its weight, comes from the joint
posterior with θ.
"""

from dataclasses import replace

import numpy as np
import xarray as xr
from arviz_stats.base import array_stats
from scipy.special import logsumexp

from pmordinal import linalg
from pmordinal.engines import EP
from pmordinal.errors import ConvergenceWarning, warn
from pmordinal.model.memory import Found
from pmordinal.model.problem import Problem
from pmordinal.posterior import LatentDraws, Posterior
from pmordinal.posterior.mixture import shares

PROPOSALS = 128  # draws of f at each draw of the hyperparameters
LARGEST_K = 0.7  # of Pareto: above it the weights cannot be trusted
KNOWN = 1e-6  # directions in which f varies less, relative to the largest, are ignored
CORRECTED = ("ep", "laplace")  # engines whose evidence is an approximation with all rows


def covering(problem: Problem) -> Problem:
    """Return the problem with the engine that latent functions are drawn from; raise if it cannot be corrected."""
    engine = problem.engine
    if engine.name not in CORRECTED or problem.objective != "evidence":
        raise ValueError(
            f"corrected=True weights draws of the engines {' and '.join(CORRECTED)} by the evidence, and this model "
            f"has engine={engine.name!r} and objective={problem.objective!r}: build it with engine='ep'"
        )
    return problem if isinstance(engine, EP) else replace(problem, engine=EP(), found=Found())


def exact_draw(posterior: Posterior, rng: np.random.Generator) -> tuple[LatentDraws, float]:
    """Return a draw of f, picked by its weight from several, and the log of an unbiased estimate of the evidence.

    Its `log_q` is the log density under the exact posterior, with that estimate.
    """
    drawn, likelihood = posterior.draw(PROPOSALS, rng), posterior.likelihood
    by_row = likelihood.log_prob(posterior.y[:, None], drawn.f.T).value
    weights = likelihood.weights
    log_p = drawn.log_prior + (by_row.sum(0) if weights is None else weights @ by_row)
    log_w = log_p - drawn.log_q
    log_evidence = float(logsumexp(log_w) - np.log(PROPOSALS))
    one = rng.choice(PROPOSALS, p=np.exp(log_w - logsumexp(log_w)))
    picked = slice(one, one + 1)
    found = LatentDraws(drawn.f[picked], drawn.log_prior[picked], log_p[picked] - log_evidence)
    return found, log_evidence


def continued(
    posterior: Posterior, f: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances of the latent function at new rows, given its values at the training rows."""
    gram = posterior.gram
    R = linalg.factor_psd(gram.matrix)
    # f = R z with z = R⁺ f, and Cov(z, f*) = R⁺ k*, also for singular K
    both = np.column_stack([f, gram.cross(rows)])
    z, *A = np.linalg.lstsq(R, both, rcond=KNOWN)[0].T
    by_z = np.array(A)
    prior = gram.kernel.diagonal(gram.values, rows)[0]
    return by_z @ z, np.maximum(prior - (by_z * by_z).sum(1), 0.0)


def resampled(tree: xr.DataTree, log_weights: np.ndarray) -> xr.DataTree:
    """Return a tree with its draws resampled by weights of the shape (chains, draws); each keeps its place in time.

    Weights are Pareto-smoothed. The attributes `pareto_k` and `effective_draws` say what they are worth.
    """
    ravelled = log_weights.ravel()
    smoothed, k = array_stats.psislw(ravelled.max() - ravelled)  # ArviZ takes −log w
    w = np.exp(np.asarray(smoothed) - logsumexp(smoothed))
    effective = 1.0 / float((w * w).sum())
    if not k <= LARGEST_K:
        warn(
            f"the corrected draws may not stand for the posterior: Pareto k of their weights is {k:.2f}, above "
            f"{LARGEST_K}, and {w.size} draws are worth {effective:.0f}. Take engine='ep', which is nearer, or "
            "pmo.sample_exact or pmo.latent_model",
            ConvergenceWarning,
        )
    chosen = np.repeat(np.arange(w.size), shares(w, w.size)).reshape(log_weights.shape)
    axes = ("chain", "draw")
    at = {
        axis: xr.DataArray(numbers, dims=axes)
        for axis, numbers in zip(axes, np.unravel_index(chosen, chosen.shape), strict=True)
    }
    result = tree.copy()
    for name, group in tree.children.items():
        data = group.to_dataset()
        if set(axes) <= set(data.dims):
            moved = data.drop_vars(axes, errors="ignore").isel(at)
            result[name] = xr.DataTree(moved.assign_coords({axis: data[axis] for axis in axes}))
    result.attrs |= {"pareto_k": float(k), "effective_draws": effective}
    return result
