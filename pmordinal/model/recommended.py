"""The recommended covariance: a linear function, a smooth one and a rough one of all columns, added up.

The linear term extrapolates, the smooth one bends, the rough one takes what neither can say, so that predictions are
not too sure of themselves. Each has a size of its own. The smooth term has a length-scale for each column of the user's
table, shrunk to a common one: ℓ_j = ℓ exp(0.5 z_j) with z_j ~ N(0, 1), so that a column may matter more than others
where the labels say so. How this sum was chosen is in the docs, under "The default".
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pmordinal.data.design import Design
from pmordinal.links import Link
from pmordinal.model.sums import Sum, columns_of, joined, log_normal

# LogNormal priors of the sizes of the terms, in units of the noise.
LINEAR, SMOOTH, ROUGH = (-0.5, 0.7), (0.5, 0.7), (1.0, 0.7)
SHRINKAGE = 0.5  # standard deviation of log ℓ_j around log ℓ


def recommended(design: Design, link: Link) -> Sum:
    """Return linear + smooth + rough functions of all columns.

    Variables: ``linear_amplitude``, ``amplitude``, ``rough_amplitude``, the standard deviations of the terms at a
    typical row; ``common_lengthscale``, ``lengthscale_ratio`` (z) and, made of these, ``lengthscale`` of the smooth;
    ``rough_lengthscale``.
    """
    names, unit = design.features.names, link.noise_sd
    d, model = len(names), pm.modelcontext(None)
    centre = 0.5 * np.log(d)
    sizes = {
        name: log_normal(name, prior, unit)
        for name, prior in {
            "linear_amplitude": LINEAR,
            "amplitude": SMOOTH,
            "rough_amplitude": ROUGH,
        }.items()
    }
    start = {name: unit for name in sizes}
    start["rough_amplitude"] = 0.3 * unit  # else it may take what the smooth term should, and stay
    common = pm.LogNormal("common_lengthscale", centre, 1.0)
    start["common_lengthscale"] = np.sqrt(d)
    groups = columns_of(design.features)
    ratio = np.zeros(d)
    if len(groups) > 1:
        model.add_coords({"column": [column.name for column in design.features.columns]})
        z = pm.Normal("lengthscale_ratio", 0.0, 1.0, dims="column")
        place = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        ratio, start["lengthscale_ratio"] = SHRINKAGE * z[place], 0.0
    scale = pm.Deterministic("lengthscale", common * pt.exp(ratio), dims="feature")
    rough_scale = pm.LogNormal("rough_lengthscale", centre, 1.0)
    start["rough_lengthscale"] = np.sqrt(d)
    linear, smooth, rough = (size**2 for size in sizes.values())
    parts = {
        "linear": linear / d * pm.gp.cov.Linear(d, c=0.0),
        "smooth": smooth * pm.gp.cov.ExpQuad(d, ls=scale),
        "rough": rough * pm.gp.cov.Matern12(d, ls=rough_scale),
    }
    return joined(parts, [linear, smooth, rough], design, link, start)
