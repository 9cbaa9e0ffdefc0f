"""Integrates the hyperparameters of a fit out: by a central composite design, or by weighted draws.

The log density of the unconstrained hyperparameters is the engine's log evidence plus their log prior. The engine runs
once at each point, warm from its earlier solutions; what is kept of each run is of order n.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from pmordinal import checks
from pmordinal.engines.base import Engine
from pmordinal.errors import ConvergenceWarning, warn
from pmordinal.linalg.threads import blas_threads
from pmordinal.posterior import LatentDraws
from pmordinal.posterior.mixture import shares
from pmordinal.results.curvature import JointDraws, Surface, gaussian_at, state_at
from pmordinal.results.design import (
    MOST_FACTORIAL,
    SplitNormal,
    composite_design,
    fitted_to,
    interpolated,
    log_student,
    split_normal,
    student_draws,
    tail_points,
)
from pmordinal.results.integral import Account, Integral, Member, integrated
from pmordinal.results.term_draws import Effects

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit

METHODS = ("psis", "ccd")
LARGEST_K = 0.7  # of Pareto: above it the weights cannot be trusted
FEWEST = 64  # draws of which a Pareto k can be estimated
HIGHER = 0.1  # nats above the optimum that are not for the optimiser's tolerance
NEAR = 3.0  # nats below the best, in which another optimum counts
ALONE = 0.5  # weight of one design point, above which the integral rests on it
MARGINAL = 1024  # draws for the hyperparameters' own distribution, for a design
FEW_HYPERPARAMETERS, DRAWS = 4, (512, 1024)  # up to so many, and of more


def integrate(fit: "OrdinalFit", method: str = "psis", *, draws=None, seed=None):
    """Return a fit with its hyperparameters integrated out; see `OrdinalFit.integrate`."""
    began = time.perf_counter()
    checks.one_of("method", method, METHODS)
    rng = checks.generator("seed", seed)
    surface, x = _surface(fit)
    if draws is None:
        draws = DRAWS[x.size > FEW_HYPERPARAMETERS]
    draws = checks.integer("draws", draws, minimum=FEWEST)
    mode = fit.posterior if fit.integral is None else fit.integral.mode
    surface.begin_from(mode.start)  # the same result for the same seed
    runs = _Runs(surface)
    with blas_threads(mode.y.size):
        gaussian = gaussian_at(surface.gradient, x)
        top = runs(x)
        if top is None:
            raise ValueError("the engine breaks down at the optimum: fit again, with other priors")
        q = split_normal(gaussian, runs.log_density, top.log_density)
        by_method = _by_draws if method == "psis" else _by_design
        records, log_weights, pareto_k = by_method(runs, q, top, draws, rng)
        weights = np.exp(log_weights - logsumexp(log_weights))
        described = _described(runs, q, method, records, weights)
    best = max(record.log_density for record in records)
    account = Account(
        method,
        len(records),
        1.0 / float((weights**2).sum()),
        float(logsumexp(log_weights)),
        _error(log_weights) if method == "psis" else None,
        pareto_k,
        gaussian.n_flat,
        max(best - top.log_density, q.rises, 0.0),
        runs.failures,
        runs.count + 2 * x.size,
        method == "psis" or x.size <= MOST_FACTORIAL,
    )
    _warn(account, weights, fit.status.objectives)
    status = replace(
        fit.status,
        seconds=fit.status.seconds + time.perf_counter() - began,
        evaluations=fit.status.evaluations + account.evaluations,
    )
    integral = Integral(account, fit.engine, mode, weights, tuple(records), *described)
    return integrated(fit, integral, status=status)


def _surface(fit: "OrdinalFit") -> tuple[Surface, np.ndarray]:
    """Return the log density and its optimum; refuse fits whose hyperparameters cannot be integrated."""
    if fit.optimum is None:
        raise ValueError(
            "integrate needs the model, which a fit from a file does not have: integrate before save, or fit again"
        )
    if hasattr(fit, "unlabeled_codes"):
        raise ValueError(
            "integrate: what a semi-supervised fit maximises is no density of the hyperparameters; integrate a "
            "supervised fit"
        )
    surface, x = fit.optimum
    check_integrable(surface.engine, fit.objective)
    if surface.discrete:
        raise ValueError(
            f"integrate needs continuous hyperparameters, and {surface.discrete[0]!r} is discrete: sample them "
            "with pm.sample(model=model)"
        )
    if not x.size:
        raise ValueError("integrate: all hyperparameters of the model are fixed")
    return surface, x


def check_integrable(engine: Engine, objective: str) -> None:
    """Raise if what a fit maximises is no density of the hyperparameters, or has errors of its own."""
    if engine.is_monte_carlo:
        raise ValueError(
            f"integrate: the evidence of engine={engine.name!r} is a Monte-Carlo estimate; sample its "
            "hyperparameters with pmo.sample_exact, or fit with engine='ep'"
        )
    if objective != "evidence":
        remedy = "objective='evidence'" if "evidence" in engine.objectives else "engine='ep'"
        raise ValueError(
            f"integrate: the fit maximises {objective!r}, which is no density of the hyperparameters; fit with {remedy}"
        )


class _Runs:
    """Runs of the engine at unconstrained hyperparameters."""

    def __init__(self, surface: Surface):
        self.surface, self.count, self.failures = surface, 0, 0
        self.known: list[tuple[np.ndarray, float]] = []  # log densities, where it did not

    def __call__(self, x: np.ndarray) -> Member | None:
        """Return what is kept of a run; None if the engine broke down."""
        self.count += 1
        found = state_at(self.surface, x)
        if found is None:
            self.failures += 1
            return None
        member = Member.of(self.surface.named_values(x), *found)
        self.known.append((x, member.log_density))
        return member

    def log_density(self, x: np.ndarray) -> float | None:
        """Return the log density alone."""
        self.count += 1
        found = state_at(self.surface, x)
        if found is None:
            return None
        self.known.append((x, found[0] + found[1].log_evidence))
        return self.known[-1][1]


def _by_design(runs: _Runs, q: SplitNormal, top: Member, draws, rng):
    """Return the members at the points of a design, their log weights, and no Pareto k."""
    z, under_normal = composite_design(q.below.size)
    points, log_volume = q.at(z)
    found = [top, *map(runs, points[1:])]
    # ∫ p(x) dx = E_z p(x(z)) |dx/dz| / N(z; 0, I)
    log_normal = -0.5 * (z * z).sum(1) - 0.5 * z.shape[1] * np.log(2 * np.pi)
    factors = np.log(under_normal) + log_volume - log_normal
    kept = [i for i, member in enumerate(found) if member is not None]
    records = [member for member in found if member is not None]
    log_weights = np.array([member.log_density for member in records]) + factors[kept]
    return records, log_weights, None


def _by_draws(runs: _Runs, q: SplitNormal, top: Member, draws: int, rng: np.random.Generator):
    """Return the members at draws, their log weights after Pareto smoothing, and the Pareto k.

    Half of the draws are around the mode. Their weighted mean and covariance make the proposal of the other half.
    """
    first = draws // 2
    x = q.at(student_draws(q, first, rng)[0])[0]
    found = [runs(point) for point in x]
    log_p = _log_densities(found)
    log_w = log_p - log_student(q, q.coordinates(x))
    proposals = [q]
    if np.isfinite(log_w).sum() >= FEWEST // 2:
        proposals.append(fitted_to(x, np.exp(log_w - logsumexp(log_w)), q))
    new = proposals[-1].at(student_draws(proposals[-1], draws - first, rng)[0])[0]
    found += [runs(point) for point in new]
    kept = [i for i, member in enumerate(found) if member is not None]
    if len(kept) < FEWEST:
        raise ValueError(
            f"the engine broke down at {draws - len(kept)} of {draws} draws of the hyperparameters: give them "
            "priors, or sample them with pm.sample(model=model)"
        )
    x = np.concatenate([x, new])[kept]
    # all draws together are from the mixture of both proposals
    log_q = logsumexp([log_student(one, one.coordinates(x)) for one in proposals], axis=0)
    records = [member for member in found if member is not None]
    ratios = _log_densities(records) - log_q + np.log(len(proposals))
    from arviz_stats.base import array_stats  # here: a fit does without ArviZ

    smoothed, k = array_stats.psislw(ratios.max() - ratios)  # ArviZ takes −log w
    smoothed = np.asarray(smoothed) - logsumexp(smoothed)
    # smoothing keeps the shape of the weights; their level is the evidence's, zero where the engine broke down
    level = logsumexp(ratios) - np.log(draws)
    return records, smoothed + level, float(k)


def _log_densities(members: Sequence[Member | None]) -> np.ndarray:
    return np.array([-np.inf if member is None else member.log_density for member in members])


def _error(log_weights: np.ndarray) -> float:
    """Return the standard error of the logarithm of a sum of weights, as if they were independent."""
    w = np.exp(log_weights - log_weights.max())
    return float(np.std(w) / np.mean(w) / np.sqrt(w.size))


def _described(runs: _Runs, q: SplitNormal, method: str, records, weights):
    """Return values of the hyperparameters and their weights, enough for quantiles."""
    if method == "psis":
        names = records[0].point
        return {name: np.stack([r.point[name] for r in records]) for name in names}, weights
    for point in tail_points(q.gaussian):
        runs.log_density(point)
    z, log_q = student_draws(q, MARGINAL, np.random.default_rng(0))
    points, known = q.at(z)[0], list(zip(*runs.known, strict=True))
    log_w = interpolated(q, np.array(known[0]), np.array(known[1]), z) - log_q
    values = [runs.surface.named_values(x) for x in points]
    w = np.exp(log_w - logsumexp(log_w))
    return {name: np.stack([value[name] for value in values]) for name in values[0]}, w


def _warn(account: Account, weights: np.ndarray, objectives: tuple[float, ...]) -> None:
    """Say where the integral may be wrong."""
    if account.pareto_k is not None and not account.pareto_k <= LARGEST_K:
        warn(
            f"the weighted draws may not stand for the hyperparameters: Pareto k is {account.pareto_k:.2f}, above "
            f"{LARGEST_K}; raise draws, give the hyperparameters priors, or sample them with pm.sample(model=model)",
            ConvergenceWarning,
        )
    if account.higher > HIGHER:
        warn(
            f"the density of the hyperparameters is higher away from its optimum, by {account.higher:.2f} nats: "
            "there is another mode. Fit with starts=5, or sample them with pm.sample(model=model)",
            ConvergenceWarning,
        )
    best = max(objectives)
    others = [best - value for value in objectives if HIGHER < best - value < NEAR]
    if others:
        warn(
            f"the fit found another optimum, {min(others):.2f} nats below the best, which the integral may leave "
            "out; sample the hyperparameters with pm.sample(model=model)",
            ConvergenceWarning,
        )
    if account.method == "ccd" and weights[1:].max() > ALONE:
        warn(
            f"one design point has {weights[1:].max():.0%} of the weight, so that the design misses the density; "
            "take method='psis', or sample the hyperparameters with pm.sample(model=model)",
            ConvergenceWarning,
        )


def integrated_draws(fit: "OrdinalFit", draws: int, rng: np.random.Generator) -> JointDraws:
    """Return draws of the members of an integrated fit by their weights, and of the latent function given each.

    The log densities are those of pairs: of the hyperparameters under the engine's evidence, up to a constant.
    """
    assert fit.integral is not None
    records, of_terms = fit.integral.records, Effects.of(fit.features, fit.model_terms)
    counts = shares(fit.integral.weights, draws)
    order = rng.permutation(draws)
    latents, effects, thresholds, noise = [], [], [], []
    with blas_threads(fit.posterior.y.size):
        posteriors = fit.posterior.members  # type: ignore[attr-defined]
        for i, count in enumerate(counts):
            if not count:
                continue
            posterior = posteriors[i]
            latents.append(posterior.draw(int(count), rng))
            effects.append(of_terms.draw(posterior, latents[-1], rng))
            thresholds += [posterior.likelihood.row_thresholds] * count
            noise += [posterior.likelihood.noise_at()] * count

    def each(value) -> np.ndarray:
        return np.repeat(np.stack([value(record) for record in records]), counts, axis=0)[order]

    densities = each(lambda record: record.log_density)
    log_prior = densities - each(lambda record: record.log_evidence)
    account = fit.integral.account
    attrs = {
        "flat_directions": account.flat_directions,
        "rejected_draws": account.rejected,
        "points": account.points,
        "effective_points": account.effective,
    }
    if account.pareto_k is not None:
        attrs["pareto_k"] = account.pareto_k
    return JointDraws(
        {name: each(lambda record, name=name: record.point[name]) for name in records[0].point},
        np.stack(thresholds)[order],
        np.array(noise)[order],
        LatentDraws(
            np.concatenate([one.f for one in latents])[order],
            np.concatenate([one.log_prior for one in latents])[order] + log_prior,
            np.concatenate([one.log_q for one in latents])[order] + densities,
            latents[0].source,
        ),
        each(lambda record: record.converged),
        attrs,
        np.concatenate(effects)[order],
    )
