"""Posterior draws as an ArviZ ``DataTree``, with the groups that ArviZ's functions need."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from pmordinal import checks
from pmordinal.data.by_row import ByRow
from pmordinal.data.features import Features
from pmordinal.data.labels import Labels
from pmordinal.linalg.threads import blas_threads
from pmordinal.links import Link
from pmordinal.results.curvature import JointDraws, joint_draws, pareto_k
from pmordinal.results.integrate import METHODS, integrate, integrated_draws
from pmordinal.results.term_draws import Effects

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit

ENOUGH = 100  # fewest draws for a Pareto k
LAST_DIGIT = 1e-13  # relative: by so much draws of a fixed number differ


@dataclass(frozen=True, eq=False)
class Training:
    """The training data: rows in the units of the covariance, class codes, and their names."""

    X: np.ndarray
    y: np.ndarray
    labels: Labels
    features: Features
    link: Link
    index: np.ndarray
    by_row: ByRow = field(default_factory=ByRow)


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of the hyperparameters and of the latent function; the first dimensions are chain and draw.

    Attributes
    ----------
    point : mapping of str to ndarray, shape (chains, draws, …)
        Every hyperparameter.
    f : ndarray, shape (chains, draws, n)
        Without known shifts.
    thresholds, noise : ndarray, shape (chains, draws, r − 1) and (chains, draws)
        Of the likelihood; they join `point` if it has none of these names. Thresholds and noise by group,
        which `point` has, are given for every row, shapes (chains, draws, n, r − 1) and (chains, draws, n).
    log_prior : ndarray, shape (chains, draws)
        Log prior density of the latent function.
    stats : mapping of str to ndarray, shape (chains, draws)
        Further ``sample_stats``.
    dims : mapping
        Names of the dimensions of the hyperparameters.
    log_priors : mapping of str to ndarray, shape (chains, draws, …)
        Log prior densities of the hyperparameters; none where the model is not there.
    """

    point: Mapping[str, np.ndarray]
    f: np.ndarray
    thresholds: np.ndarray
    noise: np.ndarray
    log_prior: np.ndarray
    stats: Mapping[str, np.ndarray]
    dims: Mapping[str, Any]
    log_priors: Mapping[str, np.ndarray] = field(default_factory=dict)


def to_datatree(
    fit: "OrdinalFit", draws: int = 1000, hyper: str | None = None, seed=None
) -> xr.DataTree:
    """Return draws from the posterior of a fit; see `OrdinalFit.to_datatree`."""
    draws = checks.integer("draws", draws, minimum=1)
    if hyper is None:
        hyper = "point" if fit.integral is None else fit.integral.account.method
    checks.one_of("hyper", hyper, HYPER)
    rng = checks.generator("seed", seed)
    if hyper in METHODS and (fit.integral is None or fit.integral.account.method != hyper):
        fit = integrate(fit, hyper, seed=rng)
    elif hyper not in METHODS and fit.integral is not None:
        fit = replace(fit, posterior=fit.integral.mode, integral=None)
    posterior = fit.posterior
    joint = HYPER[hyper](fit, draws, rng)
    latent = joint.latent
    attrs: dict[str, Any] = {"hyper": hyper, "log_evidence": fit.log_evidence, **joint.attrs}
    if (number := checks.seed_number(seed)) is not None:
        attrs["seed"] = number
    if latent.source:
        attrs["draws"] = latent.source
    one_chain = Draws(
        {k: with_digits(v[None]) for k, v in joint.point.items()},
        latent.f[None],
        thresholds=joint.thresholds[None],
        noise=joint.noise[None],
        log_prior=latent.log_prior[None],
        stats={
            "log_q": latent.log_q[None],
            "converged": (joint.converged & fit.status.converged)[None],
        },
        dims=fit.dims,
        log_priors=_log_priors(fit, hyper, joint.point),
    )
    training = Training(
        posterior.gram.X,
        posterior.y,
        fit.labels,
        fit.features,
        posterior.likelihood.link,
        fit.index,
        fit.by_row,
    )
    tree = assemble(one_chain, training, rng, engine=fit.engine, attrs=attrs)
    Effects.of(fit.features, fit.model_terms).add_to(tree, joint.effects[None])
    if hyper == "gaussian" and draws >= ENOUGH:
        stats = tree["sample_stats"].to_dataset()
        tree.attrs["pareto_k"] = pareto_k(stats["log_p"].values, stats["log_q"].values)
    return tree


def _log_priors(fit: "OrdinalFit", hyper: str, point: Mapping[str, np.ndarray]) -> dict:
    """Return log prior densities of one chain; none for a fit from a file, which has no model."""
    if fit.optimum is None or not point:
        return {}
    surface, draws = fit.optimum[0], len(next(iter(point.values())))
    if hyper != "point":
        return surface.log_priors({name: values[None] for name, values in point.items()})
    once = surface.log_priors({name: values[None, :1] for name, values in point.items()})
    return {name: np.repeat(values, draws, axis=1) for name, values in once.items()}


def point_draws(fit: "OrdinalFit", draws: int, rng: np.random.Generator) -> JointDraws:
    """Return draws of the latent function with the hyperparameters at their estimate."""
    posterior, likelihood = fit.posterior, fit.posterior.likelihood
    with blas_threads(posterior.y.size):
        latent = posterior.draw(draws, rng)

    def repeated(value) -> np.ndarray:
        return np.broadcast_to(value, (draws, *np.shape(value))).copy()

    return JointDraws(
        {k: repeated(v) for k, v in fit.point.items()},
        repeated(likelihood.row_thresholds),
        repeated(likelihood.noise_at()),
        latent,
        repeated(posterior.status.converged),
        {},
        Effects.of(fit.features, fit.model_terms).draw(posterior, latent, rng),
    )


HYPER = {"point": point_draws, "gaussian": joint_draws} | dict.fromkeys(METHODS, integrated_draws)


def assemble(
    draws: Draws,
    training: Training,
    rng: np.random.Generator,
    *,
    engine: str,
    attrs: Mapping[str, Any],
) -> xr.DataTree:
    """Return a DataTree with all groups, from draws of hyperparameters and latent function.

    Parameters
    ----------
    draws : Draws
    training : Training
    rng : Generator
        For posterior predictive labels.
    engine : str
    attrs : mapping
        Further attributes.
    """
    f, thresholds, noise = draws.f, draws.thresholds, draws.noise
    y, labels, link = training.y, training.labels, training.link
    if (shift := training.features.shift(training.X)) is not None:
        f = f + shift
    point = dict(draws.point)
    if noise.ndim == 2:
        point = {"noise": with_digits(noise), **point}
    if thresholds.ndim == 3:
        point = {"thresholds": with_digits(thresholds), **point}
    by_row = thresholds if thresholds.ndim == 4 else thresholds[:, :, None]
    end = np.full((*by_row.shape[:3], 1), np.inf)
    edges = np.concatenate([-end, by_row, end], axis=-1)
    scale = noise[..., None] if noise.ndim == 2 else noise
    row = np.arange(y.size) if thresholds.ndim == 4 else 0
    lower, upper = edges[..., row, y], edges[..., row, y + 1]
    log_likelihood = link.log_interval(
        (lower - f) / scale, (upper - f) / scale, (upper - lower) / scale
    )
    noisy = f + scale * link.draw(rng, f.shape)
    again = sum((noisy > edges[..., k]).astype(int) for k in range(1, labels.n_classes))
    names = {k: [d for d in v if d] for k, v in draws.dims.items() if k in point}
    names |= {"f": ["obs"], "y": ["obs"], "X": ["obs", "feature"]}
    names |= {name: ["obs"] for name in training.by_row.arrays()}
    if thresholds.ndim == 3:
        names["thresholds"] = ["threshold"]
    constant = {"X": training.features.untransform(training.X), **training.by_row.arrays()}
    log_p, weights = log_likelihood.sum(-1), training.by_row.weights
    if weights is not None:
        log_p = log_likelihood @ weights
    import arviz as az  # here: a fit does without it, and it takes long to import

    tree = az.from_dict(
        {
            "posterior": {**point, "f": f},
            "posterior_predictive": {"y": again},
            "log_likelihood": {"y": log_likelihood},
            "sample_stats": {"log_p": draws.log_prior + log_p, **draws.stats},
            "observed_data": {"y": y},
            "constant_data": constant,
        },
        dims=names,
        check_conventions=False,  # which would ask whether two chains of one draw are meant
        coords={
            "obs": training.index,
            "feature": list(training.features.names),
            "threshold": labels.threshold_names,
            **training.by_row.coords,
        },
        attrs={
            "/": {
                "inference_library": "pmordinal",
                "engine": engine,
                "link": link.name,
                "classes": labels.class_names,
                **attrs,
            }
        },
    )
    tree["sample_stats"] = xr.DataTree(tree["sample_stats"].to_dataset().assign(engine=engine))
    if draws.log_priors:
        tree["log_prior"] = xr.DataTree(_prior_group(draws, tree["posterior"].to_dataset()))
    classes = xr.Dataset(
        {"label": ("class", labels.class_names)},
        coords={"class": np.arange(labels.n_classes)},
    )
    tree["constant_data"] = xr.DataTree(tree["constant_data"].to_dataset().merge(classes))
    return tree


def with_digits(values: np.ndarray) -> np.ndarray:
    """Return draws of which those of fixed numbers differ in the last digits; the first dimensions are chain and draw.

    ArviZ shows a mean to the precision of its Monte-Carlo error: where all draws are the same that is zero, a
    threshold of −0.227 is shown as −0, and diagnostics divide by zero.
    """
    if values.dtype.kind != "f":
        return values
    fixed = (values == values[:1, :1]).all(axis=(0, 1)) & np.isfinite(values[0, 0])
    if not fixed.any():
        return values
    z = np.random.default_rng(0).uniform(-1.0, 1.0, values.shape[:2])
    size = LAST_DIGIT * np.where(fixed, np.where(values == 0.0, 1.0, np.abs(values)), 0.0)
    return values + size * z.reshape(*z.shape, *(1,) * (values.ndim - 2))


def is_same(values: np.ndarray, others: np.ndarray) -> bool:
    """Return whether draws are the same but for the last digits."""
    return np.allclose(values, others, rtol=4 * LAST_DIGIT, atol=4 * LAST_DIGIT)


def _prior_group(draws: Draws, posterior: xr.Dataset) -> xr.Dataset:
    """Return the log prior densities as a group, with the dimensions of their variables where these are the same."""
    group = {}
    for name, values in draws.log_priors.items():
        like = posterior[name]
        dims = like.dims if like.shape == values.shape else _own_dims(name, values)
        group[name] = xr.DataArray(values, dims=dims)
    return xr.Dataset(group, {dim: posterior[dim] for dim in ("chain", "draw")})


def _own_dims(name: str, values: np.ndarray) -> tuple[str, ...]:
    return ("chain", "draw", *(f"{name}_part_{k}" for k in range(values.ndim - 2)))
