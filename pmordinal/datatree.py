"""A fit as an ArviZ ``DataTree``: draws of the latent function with all that ArviZ asks for."""

import arviz as az
import numpy as np
import xarray as xr

from pmordinal import checks
from pmordinal.fitted import OrdinalFit
from pmordinal.threads import blas_threads


def to_datatree(fit: OrdinalFit, draws: int = 1000, hyper: str = "point", seed=None) -> xr.DataTree:
    """Return draws from the posterior of a fit; see `OrdinalFit.to_datatree`."""
    draws = checks.integer("draws", draws, minimum=1)
    checks.one_of("hyper", hyper, ("point",))
    rng = np.random.default_rng(seed)
    posterior, likelihood = fit.posterior, fit.posterior.likelihood
    with blas_threads(posterior.y.size):
        latent = posterior.draw(draws, rng)
    f = latent.f
    log_likelihood = likelihood.log_prob(np.tile(posterior.y, draws), f.ravel()).value
    log_likelihood = log_likelihood.reshape(draws, -1)
    constant = {
        k: np.broadcast_to(v, (1, draws, *np.shape(v))).copy() for k, v in fit.point.items()
    }
    constant.setdefault("thresholds", np.tile(likelihood.thresholds, (1, draws, 1)))
    constant.setdefault("noise", np.full((1, draws), likelihood.noise))
    dims = {k: [d for d in v if d] for k, v in fit.dims.items() if k in fit.point}
    dims |= {"thresholds": ["threshold"], "f": ["obs"], "y": ["obs"], "X": ["obs", "feature"]}
    tree = az.from_dict(
        {
            "posterior": {**constant, "f": f[None]},
            "posterior_predictive": {"y": likelihood.draw(f, rng)[None]},
            "log_likelihood": {"y": log_likelihood[None]},
            "sample_stats": {
                "log_p": (latent.log_prior + log_likelihood.sum(1))[None],
                "log_q": latent.log_q[None],
                "converged": np.full((1, draws), fit.status.converged),
            },
            "observed_data": {"y": posterior.y},
            "constant_data": {"X": fit.features.untransform(posterior.gram.X)},
        },
        dims=dims,
        coords={
            "obs": fit.index,
            "feature": list(fit.features.names),
            "threshold": fit.labels.threshold_names,
        },
        attrs={
            "/": {
                "inference_library": "pmordinal",
                "engine": fit.engine,
                "link": likelihood.link.name,
                "hyper": hyper,
                "log_evidence": fit.log_evidence,
                "classes": fit.labels.class_names,
            }
        },
    )
    stats = tree["sample_stats"].to_dataset().assign(engine=fit.engine)
    tree["sample_stats"] = xr.DataTree(stats)
    labels = xr.Dataset(
        {"label": ("class", fit.labels.class_names)},
        coords={"class": np.arange(fit.labels.n_classes)},
    )
    tree["constant_data"] = xr.DataTree(tree["constant_data"].to_dataset().merge(labels))
    return tree
