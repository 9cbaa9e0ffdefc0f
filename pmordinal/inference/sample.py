"""`sample`: NUTS over the hyperparameters, then latent function, labels and log likelihoods, in one call."""

import warnings
from inspect import signature
from typing import Any

import pymc as pm
import xarray as xr
from pymc.step_methods import STEP_METHODS

from pmordinal import checks
from pmordinal.errors import ConvergenceWarning, warn
from pmordinal.inference.density import find_evidence, find_latent, find_problem, is_latent
from pmordinal.inference.importance import covering
from pmordinal.inference.sample_posterior import new_rows, refuse_monte_carlo, sample_posterior
from pmordinal.model.marginal import check_model
from pmordinal.words import check_argument

# of a model whose latent function is integrated out: few hyperparameters, nearly Gaussian
SETTINGS = {"tune": 500, "init": "jitter+adapt_full", "target_accept": 0.65, "nuts_sampler": "pymc"}
WIDE = 0.2  # nats: a larger spread of the engine's error moves means by as many standard deviations


def sample(
    model: pm.Model,
    draws: int = 1000,
    Xnew=None,
    *,
    thin: int = 1,
    corrected: bool = False,
    seed: int | None = None,
    progressbar: bool = True,
    random_seed: int | None = None,
    **options: Any,
) -> xr.DataTree:
    """Return draws of hyperparameters, latent function, labels and log likelihoods.

    ``pm.sample`` with settings that suit the model, then `sample_posterior`.

    Parameters
    ----------
    model : pm.Model
        From `gp_model`, or any model with a `MarginalOrdinal` likelihood: a dense mass matrix, an
        acceptance of 0.65 and 500 draws of tuning. From `latent_model`: PyMC's own settings.
    draws : int
        Of each chain.
    Xnew : DataFrame or array_like, shape (m, d), optional
        New rows to predict.
    thin : int
        The latent function is drawn for every `thin`-th draw, and these alone are returned.
    corrected : bool
        Correct the draws for the error of the engine, which must be ``"ep"`` or ``"laplace"``; see `sample_posterior`.
    seed, random_seed : int, optional
    progressbar : bool
    **options
        For ``pm.sample``, in place of these settings: ``tune=``, ``chains=``, ``cores=`` and so on.

    Returns
    -------
    DataTree
        As of `sample_posterior`. In ``sample_stats``, `log_evidence_correction` is the engine's estimate of its
        error at each draw, if it has one. What it has in common over the draws cancels, its spread
        biases them: above 0.2 nats there is a warning, unless they are corrected.

    Examples
    --------
    >>> import numpy as np, pmordinal as pmo
    >>> model = pmo.gp_model(np.linspace(0, 3, 8), [1, 1, 2, 1, 2, 3, 3, 3])
    >>> tree = pmo.sample(model, 20, tune=20, chains=1, seed=1, progressbar=False, quiet=True)
    >>> tree["posterior"]["f"].shape
    (1, 20, 8)
    """
    seed = checks.one_seed(seed, random_seed)
    draws = checks.integer("draws", draws, minimum=1)
    known = _known()
    for name in options:
        check_argument("sample", name, known)
    taken = [name for name in ("model", "return_inferencedata") if name in options]
    if taken:
        raise TypeError(f"sample does not take {taken[0]!r}: it has model and seed of its own")
    latent = is_latent(check_model(model))
    if latent and corrected:
        raise ValueError("corrected: draws of a latent_model have no engine, and are exact already")
    # what raises does so before the work
    checks.integer("thin", thin, minimum=1)
    if latent:
        new_rows(find_latent(model).op.problem, Xnew)
    else:
        problem = find_problem(find_evidence(model.logp(jacobian=False)))
        if Xnew is not None:
            refuse_monte_carlo(problem)
        new_rows(problem, Xnew)
        if corrected:
            covering(problem)
    if not latent and (options.get("idata_kwargs") or {}).get("log_likelihood"):
        # PyMC would ask for it after sampling, and be refused
        raise TypeError(
            "idata_kwargs: sample adds the log likelihood of each row by itself: leave it out"
        )
    settings = {} if latent else SETTINGS
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "QuadPotentialFullAdapt is an experimental feature")
        tree = pm.sample(
            draws,
            model=model,
            random_seed=seed,
            progressbar=progressbar,
            **{**settings, **options},
        )
    result = sample_posterior(
        model, tree, Xnew, thin=thin, corrected=corrected, seed=seed, progressbar=progressbar
    )
    if not corrected:
        _judge(result)
    return result


def _known() -> list[str]:
    """Return the names that `sample` and ``pm.sample`` know, which itself ignores others in silence."""
    callables = (sample, pm.sample, pm.NUTS, *pm.NUTS.__bases__)
    names = {name for each in callables for name in signature(each).parameters}
    return sorted(names | {method.name for method in STEP_METHODS})


def _judge(tree: xr.DataTree) -> None:
    """Warn if the engine's error differs much between draws."""
    stats = tree["sample_stats"]
    if "log_evidence_correction" not in stats:
        return
    spread = float(stats["log_evidence_correction"].std())
    if spread > WIDE:
        warn(
            f"the error of {tree.attrs['engine']} differs between the draws, by {spread:.2f} nats (one standard "
            "deviation), so that they are biased: take corrected=True, engine='ep', pmo.sample_exact or "
            "pmo.latent_model",
            ConvergenceWarning,
        )
