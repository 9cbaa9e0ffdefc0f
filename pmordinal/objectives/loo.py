"""Leave-one-out log predictive probability, Σ log p(y_i | X, y without i, θ) [Srijith2012, eq. 2]."""

from pmordinal.objectives.base import OBJECTIVES
from pmordinal.posterior import Gradient, Posterior


@OBJECTIVES.register("loo")
def loo(posterior: Posterior) -> tuple[float, Gradient]:
    """Return Σ log p(y_i | y without i) from the engine's cavities, and its exact gradient."""
    return float(posterior.leave_one_out.value.sum()), posterior.loo_gradient()
