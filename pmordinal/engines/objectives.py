"""Objectives for choosing hyperparameters: functions of a posterior that return a value and its gradient.

The variational lower bound 𝓕(θ) ≤ log P(y | θ) [CG2005, eqs. 13 and 27] is here to reproduce the paper. Its published
gradient [CG2005, eqs. 28–31] holds the posterior Q fixed, but Q is not the maximiser of the bound, so it **is not the
gradient of the bound**: it is off by under a per cent at noise 0.5 and by half, with wrong signs, at noise 0.1. Use the
evidence to choose hyperparameters.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pmordinal import linalg
from pmordinal.posterior import Gradient, Posterior, SitePosterior
from pmordinal.registry import Registry

Objective = Callable[[Any], tuple[float, Gradient]]

OBJECTIVES: Registry[Objective] = Registry("objective")

REACH = 9.0  # range of integration, in standard deviations
MOST = 500_000  # largest number of likelihood values at a time


@OBJECTIVES.register("evidence")
def evidence(posterior: Posterior) -> tuple[float, Gradient]:
    """Return the engine's approximation of log P(y | θ), and its exact gradient [CG2005, eq. 11 for Laplace]."""
    return posterior.log_evidence, posterior.evidence_gradient()


@OBJECTIVES.register("loo")
def loo(posterior: Posterior) -> tuple[float, Gradient]:
    """Return Σ log p(y_i | y without i) from the engine's cavities, and its exact gradient [Srijith2012, eq. 2]."""
    return posterior.loo, posterior.loo_gradient()


@OBJECTIVES.register("validation")
def validation(posterior: Posterior) -> tuple[float, Gradient]:
    """Return Σ log p(y_i | y_u) over the rows i outside the basis u, and its exact gradient."""
    unseen = posterior.leave_one_out.value[posterior.outside]
    return float(unseen.sum()), posterior.validation_gradient()


@OBJECTIVES.register("bound")
def bound(posterior: SitePosterior) -> tuple[float, Gradient]:
    """Return the bound 𝓕 at the engine's posterior, and its gradient with that posterior held fixed."""
    y, likelihood, alpha = posterior.y, posterior.likelihood, posterior.alpha
    value, (upper, lower, log_noise) = _expected_log_likelihood(posterior)
    value += -0.5 * linalg.log_det(posterior.factor) - 0.5 * posterior.B_inverse_diagonal.sum()
    value += 0.5 * (y.size - alpha @ posterior.mean)  # [CG2005, eq. 27]
    gradient = Gradient(
        posterior.gram.pullback(posterior.evidence_dK(0.5 * alpha)),  # [CG2005, eq. 28]
        likelihood.threshold_gradient(y, upper, lower),  # [CG2005, eqs. 30–31]
        likelihood.noise_gradient(log_noise),  # [CG2005, eq. 29]
    )
    return float(value), gradient


def _expected_log_likelihood(posterior: SitePosterior) -> tuple[float, list[np.ndarray]]:
    """Return E log P(y | f) under Q and, per datum, its derivatives by thresholds and log noise.

    The trapezoidal rule is exponentially accurate: the integrand is analytic in a strip as wide as
    the noise, and the step is a fraction of that.
    """
    sd, likelihood = np.sqrt(posterior.variance), posterior.likelihood
    step = min(0.5, 0.6 * float(np.min(likelihood.noise)) / float(sd.max()))
    u = np.arange(-REACH, REACH + step, step)
    weight = np.exp(-0.5 * u * u) * step / np.sqrt(2 * np.pi)
    rows = max(1, MOST // u.size)
    parts = []
    for i in range(0, sd.size, rows):
        part = slice(i, i + rows)
        f = posterior.mean[part, None] + sd[part, None] * u
        terms = likelihood.of_rows(part).log_prob(posterior.y[part, None], f)
        by = terms.value, terms.upper[0], terms.lower[0], terms.log_noise[0]
        parts.append([np.broadcast_to(b, f.shape) @ weight for b in by])
    values, *by_row = np.concatenate(parts, axis=1)
    if likelihood.weights is not None:
        values, by_row = likelihood.weights * values, [likelihood.weights * b for b in by_row]
    return float(values.sum()), by_row
