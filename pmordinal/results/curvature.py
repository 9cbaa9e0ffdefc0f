"""Hyperparameter uncertainty from the curvature of the objective at its optimum.

In the unconstrained space, where the fit optimises, the hyperparameters are drawn from N(θ̂, H⁻¹), H being minus the
second derivative of the objective with its log prior, by central differences of the exact gradient; the engine then
gives the latent function at each draw. The density of a pair (θ, f) under the model and under this approximation is
known, so that importance weights judge it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pmordinal.errors import ConvergenceWarning, warn
from pmordinal.linalg.threads import blas_threads
from pmordinal.posterior import LatentDraws, Posterior, Start
from pmordinal.results.term_draws import Effects

if TYPE_CHECKING:
    from pmordinal.engines.base import Engine
    from pmordinal.results.fit import OrdinalFit

# Step of the finite differences: their error grows with its square, the engine's error is divided by it.
STEP = 1e-3
FLATTEST = 1e-2  # smallest curvature: a standard deviation of ten


class Surface(Protocol):
    """What a fit keeps of its model: the objective as a function of the unconstrained hyperparameters x."""

    discrete: list[str]
    engine: "Engine"

    def begin_from(self, start: Start | None) -> None:
        """Forget all earlier solutions except this one, so that later results do not depend on them."""

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of the objective plus log prior."""

    def log_prior(self, x: np.ndarray) -> float:
        """Return the log prior of x."""

    def log_priors(self, draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the log prior density of each hyperparameter in its own units, for draws by name."""

    def posterior(self, x: np.ndarray) -> Posterior:
        """Return the engine's posterior."""

    def named_values(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return every unobserved variable of the model by name, in its own units."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(mode, root rootᵀ); `n_flat` directions were too flat for their curvature to be used."""

    mode: np.ndarray
    root: np.ndarray
    log_det: float
    n_flat: int

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, float]:
        """Return a point and its log density."""
        e = rng.standard_normal(self.mode.size)
        log_q = -0.5 * (e @ e + e.size * np.log(2 * np.pi)) - self.log_det
        return self.mode + self.root @ e, float(log_q)


@dataclass(frozen=True, eq=False)
class JointDraws:
    """Draws of hyperparameters and latent function together.

    Attributes
    ----------
    point : dict of str to ndarray, shape (draws, …)
        Every hyperparameter.
    thresholds, noise : ndarray, shape (draws, r − 1) and (draws,)
        Those of each row where they differ by group: shapes (draws, n, r − 1) and (draws, n).
    latent : LatentDraws
        Its log densities are those of the pairs.
    converged : ndarray of bool, shape (draws,)
        Whether the engine did.
    attrs : dict
        How the approximation was made.
    effects : ndarray, shape (draws, number of effects)
        Effects of terms, see `pmordinal.results.term_draws`.
    """

    point: dict[str, np.ndarray]
    thresholds: np.ndarray
    noise: np.ndarray
    latent: LatentDraws
    converged: np.ndarray
    attrs: dict[str, Any]
    effects: np.ndarray


def hessian(gradient: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Return the symmetric matrix of second derivatives at `x`, from 2p gradients.

    Examples
    --------
    >>> hessian(lambda x: np.array([x[0] * x[1], 0.5 * x[0] ** 2]), np.array([2.0, 3.0])).round(6)
    array([[3., 2.],
           [2., 0.]])
    """
    H = np.empty((x.size, x.size))
    for i, step in enumerate(STEP * np.eye(x.size)):
        H[i] = (gradient(x + step) - gradient(x - step)) / (2.0 * STEP)
    return 0.5 * (H + H.T)


def gaussian_at(gradient: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> Gaussian:
    """Return the Gaussian with the curvature of the log density at `x`; warn about flat directions."""
    H = hessian(gradient, x)
    if not np.all(np.isfinite(H)):
        raise ValueError(
            "the objective is not finite around its optimum, so that it has no curvature there: give the "
            "hyperparameters tighter priors, or use hyper='point'"
        )
    curvature, axes = np.linalg.eigh(-H)
    flat = curvature < FLATTEST
    if flat.any():
        warn(
            f"the objective is flat or rises in {flat.sum()} of {x.size} directions at its optimum (least curvature "
            f"{curvature[0]:.2g}); a standard deviation of {FLATTEST**-0.5:g} is taken there. Give the hyperparameters "
            "priors, or sample them: pm.sample(model=model)",
            ConvergenceWarning,
        )
    sd = np.where(flat, FLATTEST, curvature) ** -0.5
    return Gaussian(x, axes * sd, float(np.log(sd).sum()), int(flat.sum()))


def joint_draws(fit: "OrdinalFit", draws: int, rng: np.random.Generator) -> JointDraws:
    """Return Gaussian draws of the hyperparameters, and a draw of the latent function given each.

    Parameters
    ----------
    fit : OrdinalFit
    draws : int
        The engine runs once for each.
    rng : Generator
    """
    if fit.optimum is None:
        raise ValueError(
            "hyper='gaussian' needs the model, which a fit from a file does not have: call to_datatree before "
            "save, or fit again"
        )
    surface, x = fit.optimum
    if surface.discrete:
        raise ValueError(
            f"hyper='gaussian' needs continuous hyperparameters, and {surface.discrete[0]!r} is discrete: use "
            "hyper='point', or sample them with pm.sample(model=model)"
        )
    surface.begin_from(fit.posterior.start)  # the same draws for the same seed
    with blas_threads(fit.posterior.y.size):
        q = gaussian_at(surface.gradient, x)
        points: list[dict[str, np.ndarray]] = []
        likelihoods, converged, latents, shifts, effects = [], [], [], [], []
        of_terms = Effects.of(fit.features, fit.model_terms)
        tries = 0
        while len(points) < draws:
            tries += 1
            if tries > 2 * draws + 100:
                raise ValueError(
                    f"the engine broke down at {tries - len(points)} of {tries} draws of the hyperparameters: the "
                    "objective is too flat for a Gaussian. Give the hyperparameters priors, or sample them with "
                    "pm.sample(model=model)"
                )
            there, log_q = q.draw(rng)
            state = state_at(surface, there)
            if state is None:
                continue
            log_prior, posterior = state
            points.append(surface.named_values(there))
            likelihoods.append(posterior.likelihood)
            converged.append(posterior.status.converged)
            latents.append(posterior.draw(1, rng))
            effects.append(of_terms.draw(posterior, latents[-1], rng))
            shifts.append((log_prior, log_q))
    by_prior, by_q = np.transpose(shifts)
    latent = LatentDraws(
        np.concatenate([one.f for one in latents]),
        np.concatenate([one.log_prior for one in latents]) + by_prior,
        np.concatenate([one.log_q for one in latents]) + by_q,
        latents[0].source,
    )
    return JointDraws(
        {name: np.stack([point[name] for point in points]) for name in points[0]},
        np.stack([likelihood.row_thresholds for likelihood in likelihoods]),
        np.array([likelihood.noise_at() for likelihood in likelihoods]),
        latent,
        np.array(converged),
        {"flat_directions": q.n_flat, "rejected_draws": tries - draws},
        np.concatenate(effects),
    )


def state_at(surface: Surface, x: np.ndarray) -> tuple[float, Posterior] | None:
    """Return log prior and posterior at the hyperparameters `x`; None if the engine fails."""
    try:
        with np.errstate(all="ignore"):  # overflow is checked below
            log_prior, posterior = surface.log_prior(x), surface.posterior(x)
    except (np.linalg.LinAlgError, ArithmeticError, ValueError):  # also equal thresholds
        return None
    usable = np.isfinite(log_prior) and np.isfinite(posterior.log_evidence)
    return (log_prior, posterior) if usable else None


def pareto_k(log_p: np.ndarray, log_q: np.ndarray) -> float:
    """Return the Pareto k-hat of importance weights: below 0.7 the approximation can be corrected."""
    from arviz_stats.base import (
        array_stats,  # here: a fit does without ArviZ, which takes long to import
    )

    log_weights = np.ravel(log_p - log_q)
    return float(array_stats.psislw(log_weights.max() - log_weights)[1])  # ArviZ expects −log w
