"""The engine's log evidence, log P(y | θ), with its exact gradient [CG2005, eq. 11 for Laplace]."""

from pmordinal.objectives.base import OBJECTIVES
from pmordinal.posterior import Gradient, Posterior


@OBJECTIVES.register("evidence")
def evidence(posterior: Posterior) -> tuple[float, Gradient]:
    """Return log P(y | θ) as the engine approximates it, and its gradient."""
    return posterior.log_evidence, posterior.evidence_gradient()
