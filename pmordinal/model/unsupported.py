"""Refuses uses of PyMC's functions that would give wrong results with an integrated-out latent function.

To PyMC `y` is one observed vector, with draws from its prior and a single log probability. A variable is not told
what it is used for, so we look at the call stack.
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
    """Raise if ``pm.sample_posterior_predictive`` wants draws of the labels."""
    if _frame_of(sample_posterior_predictive.__code__):
        raise ValueError(DRAWS)


def refuse_pointwise_density() -> None:
    """Raise if the log density is for ``pm.compute_log_likelihood``, also if ``pm.sample`` will call it."""
    # pm.sample computes it after the draws, which would be lost: so it is refused before
    sampling = _frame_of(sample.__code__)
    options = (sampling and sampling.f_locals.get("idata_kwargs")) or {}
    if options.get("log_likelihood") is True or _frame_of(compute_log_likelihood.__code__):
        raise ValueError(POINTWISE)


def _frame_of(code: CodeType) -> FrameType | None:
    """Return the innermost running call of a function; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame
