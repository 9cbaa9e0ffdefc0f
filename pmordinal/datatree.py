"""A fit as an ArviZ ``DataTree``: draws of the latent function with all that ArviZ asks for."""

import arviz as az
import numpy as np
import xarray as xr

from pmordinal import checks, linalg
from pmordinal.fitted import OrdinalFit
from pmordinal.posterior import Posterior
from pmordinal.threads import blas_threads


def to_datatree(fit: OrdinalFit, draws: int = 1000, hyper: str = "point", seed=None) -> xr.DataTree:
    """Return draws from the posterior of a fit; see `OrdinalFit.to_datatree`."""
    draws = checks.integer("draws", draws, minimum=1)
    checks.one_of("hyper", hyper, ("point",))
    rng = np.random.default_rng(seed)
    posterior, likelihood = fit.posterior, fit.posterior.likelihood
    with blas_threads(posterior.y.size):
        f, log_p, log_q, log_likelihood = draw_latent(posterior, draws, rng)
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
                "log_p": log_p[None],
                "log_q": log_q[None],
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


def draw_latent(posterior: Posterior, draws: int, rng: np.random.Generator):
    """Return draws of f with their log densities.

    The draws are f = f₀ − K S B⁻¹ (S f₀ + e) + h with f₀ ~ N(0, K) and e ~ N(0, I), which never inverts K.
    Densities are with respect to white noise z, f = R z and R Rᵀ = K, so that they exist for singular K.

    Returns
    -------
    f : ndarray, shape (draws, n)
    log_p : ndarray, shape (draws,)
        log p(y, f) at the hyperparameters.
    log_q : ndarray, shape (draws,)
        Log density of the Gaussian approximation, normalised.
    log_likelihood : ndarray, shape (draws, n)
    """
    K, S, W = posterior.gram.matrix, posterior.root_precision, posterior.precision
    R = linalg.factor_psd(K)
    z0 = rng.standard_normal((R.shape[1], draws))
    f0 = R @ z0
    e = rng.standard_normal(f0.shape)
    c = posterior.alpha[:, None] - S[:, None] * linalg.solve(posterior.factor, S[:, None] * f0 + e)
    z = z0 + R.T @ c
    f = f0 + K @ c
    log_prior = -0.5 * (z * z).sum(0) - 0.5 * R.shape[1] * np.log(2 * np.pi)
    y = np.tile(posterior.y, draws)
    terms = posterior.likelihood.log_prob(y, f.T.ravel())
    log_likelihood = terms.value.reshape(draws, -1)
    # q(f) = N(f; 0, K) Π exp(ν f − ½ W f²) / Z, ν = α + W h
    nu = posterior.alpha + W * posterior.mean
    log_sites = nu @ f - 0.5 * W @ (f * f)
    log_Z = 0.5 * nu @ posterior.mean - 0.5 * linalg.log_det(posterior.factor)
    return f.T, log_prior + log_likelihood.sum(1), log_prior + log_sites - log_Z, log_likelihood
