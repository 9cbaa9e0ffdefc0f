"""What PyMC's own functions would get wrong for a latent function that is integrated out.

They see one observed vector `y` that is drawn from its prior and has one log probability. Nothing tells the
variable what it is asked for, so that we look who asks.
"""

import sys
from types import CodeType, FrameType

from pymc.sampling.forward import sample_posterior_predictive
from pymc.sampling.mcmc import sample
from pymc.stats.log_density import compute_log_likelihood

DRAWS = (
    "pm.sample_posterior_predictive would draw the latent function from its prior, without the data: use "
    "pmo.sample_posterior(model, tree), which has the group posterior_predictive; for other variables of the model "
    "pass var_names= without the ordinal one"
)
POINTWISE = (
    "pm.compute_log_likelihood would give one number for all rows, since the latent function is integrated out: use "
    "pmo.sample_posterior(model, tree), which has the group log_likelihood with a value for each row; for other "
    "variables of the model pass var_names= without the ordinal one"
)


def refuse_predictive_draws() -> None:
    """Raise where ``pm.sample_posterior_predictive`` is what asks for draws of labels."""
    if _frame_of(sample_posterior_predictive.__code__):
        raise ValueError(DRAWS)


def refuse_pointwise_density() -> None:
    """Raise where the log density is for ``pm.compute_log_likelihood``, also as an option of ``pm.sample``."""
    # Refused before the draws, which would be lost after them.
    sampling = _frame_of(sample.__code__)
    options = (sampling and sampling.f_locals.get("idata_kwargs")) or {}
    if options.get("log_likelihood") is True or _frame_of(compute_log_likelihood.__code__):
        raise ValueError(POINTWISE)


def _frame_of(code: CodeType) -> FrameType | None:
    """Return the innermost call of a function that is under way."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame
