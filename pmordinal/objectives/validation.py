"""Log predictive probability of the labels that the posterior has not seen [Srijith2012, eq. 3]."""

from pmordinal.objectives.base import OBJECTIVES
from pmordinal.posterior import Gradient, Posterior


@OBJECTIVES.register("validation")
def validation(posterior: Posterior) -> tuple[float, Gradient]:
    """Return Σ log p(y_i | y_u) over the rows outside the basis u, −|uᶜ| NLP, and its exact gradient."""
    unseen = posterior.leave_one_out.value[posterior.outside]
    return float(unseen.sum()), posterior.validation_gradient()
