"""`sample_exact`: exact draws from the posterior, by a pseudo-marginal sampler of the hyperparameters θ.

The exact engine's estimate Ẑ(θ) of the evidence is unbiased. A Metropolis–Hastings chain that uses Ẑ in the
place of Z, and keeps the estimate of the state it is in, therefore has the exact posterior of θ as its stationary
distribution, whatever the number of draws in Ẑ [AR2009]. One of these draws of the latent function, picked by its
weight, comes from the exact joint posterior with θ [ADH2010].

Proposals come in turn from a Student-t distribution around the optimum and from a random walk. Their covariance is
first that of expectation propagation's evidence at its optimum, and after tuning that of the chain.
"""

import time
from dataclasses import dataclass, replace

import arviz as az
import numpy as np
import pymc as pm
import xarray as xr

from pmordinal import checks
from pmordinal.engines import EP, Exact
from pmordinal.engines.exact.posterior import ExactPosterior
from pmordinal.errors import ConvergenceWarning, warn
from pmordinal.gram import Gram
from pmordinal.inference.density import find_evidence, find_problem, training_data
from pmordinal.inference.landscape import Landscape
from pmordinal.inference.optimise import climb
from pmordinal.inference.progress import progress_bar
from pmordinal.inference.starting_points import starting_points
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.linalg.threads import blas_threads
from pmordinal.model.compile import OFTEN
from pmordinal.model.marginal import check_model
from pmordinal.model.problem import Problem
from pmordinal.posterior import LatentDraws
from pmordinal.results.datatree import Draws, assemble
from pmordinal.words import guessing

FREEDOM = 5.0  # degrees of freedom of the Student-t proposals: heavier tails than the posterior's
WANTED = 0.3  # target acceptance rate of the random walk
STEP = 1e-3  # step of the finite differences of the gradient
FLATTEST = 1.0 / 9.0  # smallest curvature: the priors have about unit scale
LARGEST_R_HAT = 1.05
TRIES = 100  # of random points to start from


@guessing
def sample_exact(
    model: pm.Model,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    *,
    proposals: int = 100,
    seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
    random_seed: int | None = None,
) -> xr.DataTree:
    """Return draws from the exact posterior of hyperparameters and latent function; probit link only.

    Parameters
    ----------
    model : pm.Model
        From `gp_model`, or any model with a `MarginalOrdinal` likelihood; its engine does not matter.
    draws, tune, chains : int
        Kept draws of each chain, and those before them that adapt the proposals.
    proposals : int
        Draws of the latent function in each estimate of the evidence. The posterior is exact for any number; with fewer
        the chain sticks more, with more a step costs more.
    seed, random_seed : int or Generator, optional
    progressbar : bool
        Show the progress.

    Returns
    -------
    DataTree
        As `OrdinalFit.to_datatree` makes it; ``sample_stats`` has the estimated ``log_evidence`` of each draw,
        its log density ``lp``, whether it was ``accepted``, and, if there are several chains, whether they have
        ``converged`` (R-hat at most 1.05; else there is a warning).

    Examples
    --------
    >>> import pmordinal as pmo
    >>> model = pmo.gp_model(np.linspace(0, 3, 8), [1, 1, 1, 2, 1, 2, 2, 2], noise=0.5)
    >>> options = {"draws": 20, "tune": 20, "chains": 1, "seed": 0, "progressbar": False}
    >>> tree = pmo.sample_exact(model, **options)
    >>> tree["posterior"]["f"].shape
    (1, 20, 8)
    """
    seed = checks.one_seed(seed, random_seed)
    draws = checks.integer("draws", draws, minimum=1)
    tune = checks.integer("tune", tune, minimum=0)
    chains = checks.integer("chains", chains, minimum=1)
    proposals = checks.integer("proposals", proposals, minimum=1)
    began = time.perf_counter()
    rng = checks.generator("seed", seed)
    density = _Density(model, proposals)
    with blas_threads(density.n), progress_bar(progressbar) as progress:
        task = progress.add_task("sample", total=chains * (tune + draws), info="")
        optimum = density.optimum()
        runs = []
        for number, stream in enumerate(rng.spawn(chains)):

            def advance(rate: float, number=number) -> None:
                info = f"chain {number + 1}, acceptance {rate:.2f}"
                progress.update(task, advance=1, info=info)

            runs.append(_chain(density, _Proposal(*optimum), draws, tune, stream, advance))
    tree = _tree(density, runs, rng, time.perf_counter() - began)
    if (given := checks.seed_number(seed)) is not None:
        tree.attrs["seed"] = given
    return _check(tree, [v.name for v in model.free_RVs]) if chains > 1 else tree


@dataclass(frozen=True, eq=False)
class _State:
    """A state of the chain: hyperparameters with their estimate of the evidence."""

    x: np.ndarray
    log_density: float
    posterior: ExactPosterior


@dataclass(frozen=True, eq=False)
class _Draw:
    """The draw of one iteration."""

    x: np.ndarray
    log_density: float
    log_evidence: float
    likelihood: OrdinalLikelihood
    latent: LatentDraws
    accepted: bool


class _Density:
    """Estimates of the log posterior density of the unconstrained hyperparameters."""

    def __init__(self, model: pm.Model, proposals: int):
        if not check_model(model).free_RVs:
            raise ValueError(
                "the model has no hyperparameters to sample: use pmo.fit(model).to_datatree()"
            )
        problem = find_problem(find_evidence(model.logp()))
        if problem.engine.in_label_units:
            raise ValueError(
                f"engine {problem.engine.name!r} regresses on the labels, which is another model: build this one with "
                "engine='exact' or engine='ep'"
            )
        if problem.whole is not None:
            raise ValueError(
                "the rows of this model are spread over Dask, and sample_exact needs all of them in memory: use "
                "pmo.fit, or pm.sample over the hyperparameters"
            )
        self.engine = Exact(draws=proposals, standard_error=np.inf)
        self.engine.check_link(problem.link)
        self.engine.check_weights(problem.by_row.weights)
        self.model, self.problem = model, problem
        self.n = len(problem.X)

        def surrogate(problem: Problem) -> Problem:
            return replace(problem, engine=EP(), objective="evidence")

        self.landscape = Landscape(model, adapt=surrogate)
        if discrete := self.landscape.discrete:
            raise ValueError(
                f"sample_exact moves continuous hyperparameters only, and {discrete[0]!r} is discrete: use "
                "pm.sample(model=model), or fix it with pm.do"
            )
        self._parts = self.landscape.density.parts(OFTEN)

    def _at(self, values, thresholds, noise) -> tuple[Gram, np.ndarray, OrdinalLikelihood]:
        likelihood = self.problem.likelihood(thresholds, noise)
        return Gram(self.problem.kernel, self.problem.X, values), self.problem.y, likelihood

    def _parameters(self, x: np.ndarray) -> tuple[float, list[np.ndarray], np.ndarray, np.ndarray]:
        """Return the log prior, and the parameters of the covariance and of the likelihood."""
        log_prior, *values, thresholds, noise = self._parts(x)
        return float(log_prior), values, thresholds, np.asarray(noise)

    def optimum(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the optimum of expectation propagation's log density, and a root of the covariance there.

        The order of the rows is chosen at the optimum and fixed.
        """
        start = starting_points(self.landscape, 1, {}, np.random.default_rng(0))[0]
        x = climb(self.landscape, start, 500, lambda text: None).x
        self.engine = self.engine.select(*self._at(*self._parameters(x)[1:]))
        H = np.empty((x.size, x.size))
        for i in range(x.size):
            step = STEP * (np.arange(x.size) == i)
            up, down = (self.landscape.gradient(x + sign * step) for sign in (1.0, -1.0))
            H[i] = (down - up) / (2.0 * STEP)
        curvature, axes = np.linalg.eigh(0.5 * (H + H.T))
        return x, axes / np.sqrt(np.maximum(curvature, FLATTEST))

    def __call__(
        self, x: np.ndarray, rng: np.random.Generator, last: _State | None = None
    ) -> _State | None:
        """Return the state at `x`, with a new random estimate of the evidence; None if the density is zero."""
        with np.errstate(all="ignore"):  # overflow is rejected
            log_prior, values, thresholds, noise = self._parameters(x)
            usable = np.isfinite(log_prior) and np.all(noise > 0.0)
            usable &= all(np.all(np.isfinite(a)) for a in (*values, thresholds, noise))
            if not usable or np.any(np.diff(thresholds) <= 0.0):
                return None
            engine = replace(self.engine, seed=int(rng.integers(2**63)))
            start = None if last is None else last.posterior.start
            try:
                posterior = engine(*self._at(values, thresholds, noise), start)
            except (np.linalg.LinAlgError, ArithmeticError):  # overflow, or noise² = 0
                return None
        value = log_prior + posterior.log_evidence
        return _State(x, value, posterior) if np.isfinite(value) else None


class _Proposal:
    """Moves of the chain: a Student-t distribution around `centre`, or a random walk, with the same axes."""

    def __init__(self, centre: np.ndarray, root: np.ndarray):
        self.centre, self.root, self.step = centre, root, 2.4 / np.sqrt(centre.size)

    def draw(self, x: np.ndarray, walk: bool, rng: np.random.Generator) -> tuple[np.ndarray, float]:
        """Return a proposed point, called there, and log q(x | there) − log q(there | x)."""
        e = rng.standard_normal(x.size)
        if walk:
            return x + self.step * (self.root @ e), 0.0
        there = self.centre + self.root @ (e / np.sqrt(rng.chisquare(FREEDOM) / FREEDOM))
        return there, self._log_student(x) - self._log_student(there)

    def _log_student(self, x: np.ndarray) -> float:
        e = np.linalg.solve(self.root, x - self.centre)
        return -0.5 * (FREEDOM + x.size) * float(np.log1p(e @ e / FREEDOM))

    def adapted(self, history: list[np.ndarray]) -> "_Proposal":
        """Return the proposal with mean and covariance of the chain so far, shrunk towards the old ones."""
        past = np.array(history)
        weight = len(past) / (len(past) + 10.0 * self.centre.size)
        spread = weight * np.cov(past.T).reshape(self.root.shape)
        spread += (1.0 - weight) * self.root @ self.root.T
        new = _Proposal(past.mean(0), np.linalg.cholesky(spread))
        new.step = self.step
        return new


def _chain(density: _Density, proposal: _Proposal, draws, tune, rng, advance) -> list[_Draw]:
    """Run one chain and return its draws; `proposal` is adapted during tuning, then fixed."""
    state = _begin(density, proposal, rng)
    kept: list[_Draw] = []
    history, moves = [], 0
    for i in range(-tune, draws):
        walk = bool(i % 2)
        x, log_ratio = proposal.draw(state.x, walk, rng)
        there = density(x, rng, state)
        gain = -np.inf if there is None else there.log_density - state.log_density + log_ratio
        accepted = bool(np.log(rng.random()) < gain)
        if accepted and there is not None:
            state = there
        moves += accepted
        if i < 0:
            history.append(state.x)
            if walk:
                surplus = np.exp(min(gain, 0.0)) - WANTED
                proposal.step *= np.exp(surplus / np.sqrt(i + tune + 1))
            if i in (-tune // 2, -1) and len(history) > 5 * state.x.size:
                proposal = proposal.adapted(history[len(history) // 3 :])
        else:
            p = state.posterior
            latent = p.pick(1, rng)
            kept.append(
                _Draw(state.x, state.log_density, p.log_evidence, p.likelihood, latent, accepted)
            )
        advance(moves / (i + tune + 1))
    return kept


def _begin(density: _Density, proposal: _Proposal, rng: np.random.Generator) -> _State:
    """Return a random state to start from."""
    for _ in range(TRIES):
        state = density(proposal.draw(proposal.centre, False, rng)[0], rng)
        if state is not None:
            return state
    raise ValueError(
        "the evidence is not finite anywhere around the optimum: give noise and length-scales proper priors"
    )


def _tree(density: _Density, runs: list[list[_Draw]], rng, seconds: float) -> xr.DataTree:
    def stack(value) -> np.ndarray:
        return np.array([[value(draw) for draw in run] for run in runs])

    named: dict[bytes, dict[str, np.ndarray]] = {}
    for run in runs:
        for draw in run:
            key = draw.x.tobytes()
            if key not in named:
                named[key] = density.landscape.named_values(draw.x)
    names = next(iter(named.values()))
    point = {name: stack(lambda d, name=name: named[d.x.tobytes()][name]) for name in names}
    sampled = Draws(
        point,
        stack(lambda d: d.latent.f[0]),
        thresholds=stack(lambda d: d.likelihood.row_thresholds),
        noise=stack(lambda d: d.likelihood.noise_at()),
        log_prior=stack(lambda d: d.latent.log_prior[0]),
        stats={
            "log_q": stack(lambda d: d.latent.log_q[0]),
            "lp": stack(lambda d: d.log_density),
            "log_evidence": stack(lambda d: d.log_evidence),
            "accepted": stack(lambda d: d.accepted),
        },
        dims=density.model.named_vars_to_dims,
        log_priors=density.landscape.log_priors(point),
    )
    training = training_data(density.model, density.problem)
    attrs = {"hyper": "sampled"}
    tree = assemble(sampled, training, rng, engine=density.engine.name, attrs=attrs)
    tree["posterior"].attrs["sampling_time"] = seconds
    return tree


def _check(tree: xr.DataTree, names: list[str]) -> xr.DataTree:
    """Add to ``sample_stats`` whether the chains agree, and warn if they do not."""
    worst = float(max(np.max(v) for v in az.rhat(tree, var_names=names).values()))
    converged = bool(worst <= LARGEST_R_HAT)
    if not converged:
        warn(
            f"the chains disagree (R-hat {worst:.2f}): raise tune and draws, or proposals if few are accepted",
            ConvergenceWarning,
        )
    stats = tree["sample_stats"].to_dataset()
    tree["sample_stats"] = xr.DataTree(
        stats.assign(converged=xr.full_like(stats["lp"], converged, bool))
    )
    return tree
