"""Priors of amplitude and noise for the engine PLSOR, in coordinates that suit a sampler.

Labels have white noise of variance σ_n² = amplitude² share, and their predictions are cut with noise of scale s.
The data determine the sum s² + σ_n² well, but hardly its two parts. So in log amplitude and log s the posterior is a
ridge that turns by a right angle where they are equal. In the logarithms of the total noise and of the ratio of its
parts it is straight.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.transforms import Transform

from pmordinal.model.laws import ByLaw, Law

NAME = "scales"
PARTS = ("amplitude", "noise")


def label_scales(means, widths, share, names: tuple[str, str] = PARTS):
    """Add an amplitude and a noise with independent LogNormal priors to the model on the stack.

    Parameters
    ----------
    means, widths : sequence of float, shape (2,)
        Means and standard deviations of the logarithms of amplitude and noise.
    share : TensorVariable
        Share of amplitude² that is white noise.
    names : tuple of two str
        What they are called.

    Returns
    -------
    amplitude, noise : TensorVariable
        The variable that is sampled, ``scales``, has both.

    Examples
    --------
    >>> with pm.Model() as model:
    ...     amplitude, noise = label_scales([0.0, -1.0], [0.5, 1.0], pm.Beta("share", 2, 2))
    >>> [v.name for v in model.free_RVs], [v.name for v in model.deterministics]
    (['share', 'scales'], ['amplitude', 'noise'])
    """
    parameters = (np.asarray(means, dtype=float), np.asarray(widths, dtype=float), share)
    both = ByLaw(NAME, ScalesLaw(), *parameters, transform=TotalNoise())
    return tuple(pm.Deterministic(name, both[k]) for k, name in enumerate(names))


@dataclass(frozen=True)
class ScalesLaw(Law):
    """The prior of the vector of amplitude and noise: independent LogNormal distributions."""

    name = "LabelScales"
    signature = "(k),(k),()->(k)"

    def draw(self, means, widths, share, size):
        """Draw both."""
        size = () if rv_size_is_none(size) else size
        return pm.LogNormal.dist(means, widths, size=(*size, len(PARTS)))

    def logp(self, value, means, widths, share):
        """Return the sum of their log densities."""
        # entry by entry: single numbers are fastest in `model.compile`
        parts = ((pt.log(value[..., k]), means[..., k], widths[..., k]) for k in range(2))
        return sum(
            -0.5 * ((log - mean) / width) ** 2 - log - pt.log(np.sqrt(2.0 * np.pi) * width)
            for log, mean, width in parts
        )

    def support_point(self, rv, size, means, widths, share):
        """Return their medians."""
        return pt.exp(means)


def gathered(model: pm.Model, values: dict, defaults: Mapping) -> dict:
    """Return values by variable; amplitude and noise are put into the vector ``scales`` that holds them."""
    for rv in model.free_RVs:
        if not isinstance(model.rvs_to_transforms[rv], TotalNoise):
            continue
        names = [rv.name.removesuffix(NAME) + part for part in PARTS]  # a model may have a name
        if f"{names[1]}_population" in model.named_vars:  # the noise itself is by group
            names[1] += "_population"
        if any(name in values for name in names):
            default = values.get(rv.name, defaults[NAME])
            both = [values.get(name, default[k]) for k, name in enumerate(names)]
            values = {k: v for k, v in values.items() if k not in names} | {rv.name: both}
    return values


class TotalNoise(Transform):
    """Amplitude and noise as log √(s² + σ_n²) and log s/σ_n.

    The Jacobian is that of log amplitude and log noise, so that modes are the same as in these.
    """

    name = "total"
    ndim_supp = 1

    def backward(self, value, *inputs):
        """Return amplitude and noise."""
        white = pt.exp(value[..., 0]) / pt.sqrt(1.0 + pt.exp(2.0 * value[..., 1]))
        noise = white * pt.exp(value[..., 1])
        both = pt.stack([white / pt.sqrt(_share(inputs)), noise], axis=-1)
        return pt.cast(both, value.dtype)

    def forward(self, value, *inputs):
        """Return the logarithms of the total noise and of the ratio."""
        white, noise = value[..., 0] * pt.sqrt(_share(inputs)), value[..., 1]
        total = 0.5 * pt.log(white**2 + noise**2)
        return pt.cast(pt.stack([total, pt.log(noise / white)], axis=-1), value.dtype)

    def log_jac_det(self, value, *inputs):
        """Return log amplitude + log noise."""
        total, ratio = value[..., 0], value[..., 1]
        return 2.0 * total + ratio - pt.softplus(2.0 * ratio) - 0.5 * pt.log(_share(inputs))


def _share(inputs):
    _size, _means, _widths, share, *_rng = inputs
    return share
