"""`sample_posterior`: adds latent function, labels and log likelihoods to draws of the hyperparameters.

``pm.sample`` on a model whose latent function is integrated out gives draws of the hyperparameters
θ alone. For each of them the engine gives the posterior p(f | y, θ). One draw of f from each makes
joint draws of (θ, f), from which labels and log likelihoods follow.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from pmordinal import checks
from pmordinal.data.by_row import CODES
from pmordinal.data.rows import row_names
from pmordinal.errors import ConvergenceWarning, warn
from pmordinal.inference.density import (
    engine_parameters,
    find_evidence,
    find_latent,
    find_problem,
    is_latent,
    log_priors,
    of_variables,
    training_data,
)
from pmordinal.inference.importance import continued, covering, exact_draw, resampled
from pmordinal.inference.progress import progress_bar
from pmordinal.inference.sampled_latent import latent_draws, latent_given
from pmordinal.likelihood import OrdinalLikelihood, Rows
from pmordinal.linalg.threads import blas_threads
from pmordinal.model.marginal import check_model
from pmordinal.model.memory import Found
from pmordinal.model.observed import observed_labels
from pmordinal.model.problem import Problem
from pmordinal.results.datatree import Draws, Training, assemble, is_same
from pmordinal.results.term_draws import Effects, without_effects
from pmordinal.words import guessing


@guessing
def sample_posterior(
    model: pm.Model,
    tree: xr.DataTree,
    Xnew=None,
    *,
    thin: int = 1,
    corrected: bool = False,
    seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
    random_seed: int | None = None,
) -> xr.DataTree:
    """Return draws of the latent function, of labels and of log likelihoods for sampled hyperparameters.

    Parameters
    ----------
    model : pm.Model
        From `gp_model`, or any model with a `MarginalOrdinal` likelihood; or from `latent_model`.
    tree : DataTree
        What ``pm.sample(model=model)`` returned: its ``posterior`` has the hyperparameters, and for
        a `latent_model` the latent function too, which is kept.
    Xnew : DataFrame or array_like, shape (m, d), optional
        New rows to predict, in the units of the training table.
    thin : int
        Use every `thin`-th draw of each chain. The result holds draws × n numbers three times over.
    corrected : bool
        Weight the draws by the exact evidence over that of the engine, ``"ep"`` or ``"laplace"``, and resample
        them, so that they stand for the exact posterior of hyperparameters and latent function. The evidence is
        estimated by importance sampling at each draw. The tree's attributes `pareto_k`, with a warning above 0.7,
        and `effective_draws` say what the weights are worth. Some draws occur several times.
    seed, random_seed : int or Generator, optional
    progressbar : bool

    Returns
    -------
    DataTree
        The groups of `OrdinalFit.to_datatree`, the sampler's own ``sample_stats`` among them, and
        with `Xnew` the groups ``predictions`` (`f` and `y`; given the hyperparameters, rows are drawn
        independently, but jointly for a `latent_model`) and ``predictions_constant_data``. In
        ``sample_stats``, `log_p` and `log_q` are the log densities of the latent draw given the
        hyperparameters under the model and under the engine, `log_evidence` is the engine's, and
        `log_evidence_correction` is the engine's estimate of its error, if it has one, or for corrected draws that by
        importance sampling; a `latent_model` has no engine.

    Examples
    --------
    >>> import pmordinal as pmo, pymc as pm
    >>> model = pmo.gp_model(np.linspace(0, 3, 8), [1, 1, 2, 1, 2, 3, 3, 3])
    >>> hyper = pm.sample_prior_predictive(3, model=model, random_seed=1)
    >>> hyper = xr.DataTree.from_dict({"posterior": hyper["prior"].to_dataset()})  # a stand-in
    >>> tree = sample_posterior(model, hyper, Xnew=[[1.5]], seed=2, progressbar=False)
    >>> tree["posterior"]["f"].shape, tree["predictions"]["y"].shape
    ((1, 3, 8), (1, 3, 1))
    """
    seed = checks.one_seed(seed, random_seed)
    thin = checks.integer("thin", thin, minimum=1)
    rng = checks.generator("seed", seed)
    if is_latent(check_model(model)):
        if corrected:
            raise ValueError(
                "corrected: draws of a latent_model have no engine, and are exact already"
            )
        return _of_latent_model(model, tree, Xnew, thin, rng)
    problem = find_problem(find_evidence(model.logp(jacobian=False)))
    # keeps what the engine selected during pm.sample, but none of its solutions
    problem = replace(problem, found=Found(problem.found.engine))
    parameters = of_variables(model.free_RVs, engine_parameters(model, problem))
    if Xnew is not None:
        refuse_monte_carlo(problem)
    rows, known_at = new_rows(problem, Xnew)
    proposing = covering(problem) if corrected else problem
    given = _given(model, tree).isel(draw=slice(None, None, thin))
    chains, draws = given.sizes["chain"], given.sizes["draw"]
    n = len(problem.X)
    m = 0 if rows is None else len(rows)
    f, f_new = np.empty((chains, draws, n)), np.empty((chains, draws, m))
    y_new = np.empty((chains, draws, m), dtype=int)
    by_threshold, by_noise = problem.by_row.codes()
    noise = np.empty((chains, draws) if by_noise is None else (chains, draws, n))
    shape = () if by_threshold is None else (n,)
    thresholds = np.empty((chains, draws, *shape, problem.labels.n_classes - 1))
    log_prior, log_q, log_evidence = np.empty((3, chains, draws))
    converged = np.empty((chains, draws), dtype=bool)
    missed = np.full((chains, draws), np.nan)
    of_terms = Effects.of(problem.features, problem.terms)
    effects = np.empty((chains, draws, of_terms.size))
    hyper = [given[rv.name].values for rv in model.free_RVs]
    known = None  # parameters of the last `posterior`, as draws may repeat
    with blas_threads(n), progress_bar(progressbar, counted=True) as progress:
        task = progress.add_task("draw", total=chains * draws, info="")
        for at in np.ndindex(chains, draws):
            *values, b, s = found = parameters([v[at] for v in hyper])
            thresholds[at] = b if by_threshold is None else b[by_threshold]
            noise[at] = s if by_noise is None else s[by_noise]
            if known is None or not all(map(is_same, found, known)):
                known = found
                posterior = problem.posterior(values, b, s, problem.y)
            log_evidence[at] = by_engine = posterior.log_evidence
            if corrected:
                around = proposing.posterior(values, b, s, problem.y)
                latent, log_evidence[at] = exact_draw(around, rng)
            else:
                latent = posterior.draw(1, rng)
            f[at], log_prior[at], log_q[at] = latent.f[0], latent.log_prior[0], latent.log_q[0]
            effects[at] = of_terms.draw(posterior, latent, rng)[0]
            converged[at] = posterior.status.converged
            if corrected:
                missed[at] = log_evidence[at] - by_engine
            elif (correction := posterior.log_evidence_correction) is not None:
                missed[at] = correction
            if rows is not None and known_at is not None:
                mean, var = (
                    continued(posterior, f[at], rows) if corrected else posterior.latent(rows)
                )
                f_new[at] = mean + np.sqrt(var) * rng.standard_normal(m)
                likelihood: OrdinalLikelihood = posterior.likelihood.at_new(known_at)
                y_new[at] = likelihood.draw(f_new[at], rng)
                if known_at.shift is not None:
                    f_new[at] += known_at.shift
            progress.advance(task)
    if not converged.all():
        warn(
            f"{problem.engine.name} did not converge for {np.sum(~converged)} of {converged.size} draws; "
            "sample_stats['converged'] says which: give the noise and length-scales proper priors",
            ConvergenceWarning,
        )
    sampled = Draws(
        {str(name): values.values for name, values in given.data_vars.items()},
        f,
        thresholds=thresholds,
        noise=noise,
        log_prior=log_prior,
        stats={
            "log_q": log_q,
            "log_evidence": log_evidence,
            "converged": converged,
            **_error(missed),
        },
        dims={str(name): values.dims[2:] for name, values in given.data_vars.items()},
        log_priors=log_priors(model, {rv.name: given[rv.name].values for rv in model.free_RVs}),
    )
    attrs = {"hyper": "sampled", **_said(tree)}
    result = assemble(
        sampled, training_data(model, problem), rng, engine=problem.engine.name, attrs=attrs
    )
    _keep(result, given, tree, thin)
    of_terms.add_to(result, effects)
    if rows is not None:
        dims = ("chain", "draw", "obs")
        coords = {k: result["posterior"][k] for k in dims[:2]} | {"obs": row_names(Xnew, m)}
        predictions = xr.Dataset({"f": (dims, f_new), "y": (dims, y_new)}, coords=coords)
        _add_predictions(result, predictions, rows, problem, Xnew)
    return resampled(result, missed) if corrected else result


def refuse_monte_carlo(problem: Problem) -> None:
    """Raise if the engine cannot draw f at new rows."""
    if problem.engine.is_monte_carlo:
        raise ValueError(
            f"Xnew: given hyperparameters, predictions of engine={problem.engine.name!r} are not Gaussian; "
            "use a model with engine='ep'"
        )


def new_rows(problem: Any, Xnew: Any) -> tuple[np.ndarray | None, Rows | None]:
    """Return new rows as a matrix, and what the likelihood knows of each."""
    if Xnew is None:
        return None, None
    rows = problem.features.transform(Xnew, name="Xnew")
    thresholds, noise = problem.by_row.codes_at(Xnew)
    return rows, Rows(thresholds, noise, shift=problem.features.shift(rows))


def _error(missed: np.ndarray) -> dict[str, np.ndarray]:
    """Return the engine's estimates of its error at each draw as ``sample_stats``, if it has some."""
    return {} if np.isnan(missed).all() else {"log_evidence_correction": missed}


def _of_latent_model(
    model: pm.Model, tree: xr.DataTree, Xnew, thin: int, rng: np.random.Generator
) -> xr.DataTree:
    """Return a sampled `latent_model` with labels, log likelihoods and predictions."""
    problem = find_latent(model).op.problem
    labels = observed_labels(problem.labels, model.rvs_to_values[model["y"]])
    given = latent_given(model, tree).isel(draw=slice(None, None, thin))
    draws = latent_draws(model, given)
    point = {str(name): v.values for name, v in given.data_vars.items() if name != "f"}
    drawn = {rv.name: given[rv.name].values for rv in model.free_RVs if rv.name in given}
    sampled = Draws(
        point,
        draws.f,
        thresholds=draws.thresholds,
        noise=draws.noise,
        log_prior=np.zeros(draws.f.shape[:2]),
        stats={},
        dims={name: given[name].dims[2:] for name in point},
        # a tree may have f without the white noise that it is made of
        log_priors=log_priors(model, drawn) if len(drawn) == len(model.free_RVs) else {},
    )
    training = Training(
        problem.X,
        labels.codes[labels.observed],
        labels,
        problem.features,
        problem.link,
        np.asarray(model.coords["obs"]),
        problem.by_row,
    )
    attrs = {"hyper": "sampled", **_said(tree)}
    result = assemble(sampled, training, rng, engine="nuts", attrs=attrs)
    stats = result["sample_stats"].to_dataset().drop_vars("log_p")  # f has no own density
    result["sample_stats"] = xr.DataTree(stats)
    _keep(result, given, tree, thin)
    if Xnew is not None:
        rows = problem.features.transform(Xnew, name="Xnew")
        _add_predictions(result, draws.continued(Xnew, rng), rows, problem, Xnew)
    return result


def _said(tree: xr.DataTree) -> dict[str, Any]:
    return {str(name): value for name, value in tree["posterior"].attrs.items()}


def _add_predictions(
    result: xr.DataTree, predictions: xr.Dataset, rows: np.ndarray, problem: Any, Xnew: Any
) -> None:
    """Add the groups of predictions at new rows, with PyMC's names."""
    features = problem.features
    coords = {"obs": predictions["obs"], "feature": list(features.names)}
    table: dict[str, Any] = {"X": (("obs", "feature"), features.untransform(rows))}
    for name, codes in zip(CODES, problem.by_row.codes_at(Xnew), strict=True):
        if codes is not None:
            table[name] = "obs", codes
    result["predictions"] = xr.DataTree(predictions)
    result["predictions_constant_data"] = xr.DataTree(xr.Dataset(table, coords))


def _given(model: pm.Model, tree: xr.DataTree) -> xr.Dataset:
    """Return the draws of the hyperparameters; the first dimensions are chain and draw."""
    if not isinstance(tree, xr.DataTree):
        raise TypeError(
            f"tree must be what pm.sample(model=model) returned, got {checks.got(tree)}"
        )
    if "posterior" not in tree.children:
        raise ValueError("tree has no posterior group: pass what pm.sample(model=model) returned")
    given = without_effects(tree["posterior"].to_dataset())  # from an earlier call
    missing = [rv.name for rv in model.free_RVs if rv.name not in given]
    if missing:
        raise ValueError(
            f"tree has no draws of {missing[0]!r}: pass what pm.sample returned for this model"
        )
    given = given.drop_vars([name for name in ("f",) if name in given])  # from an earlier call
    return given.transpose("chain", "draw", ...)


def _keep(result: xr.DataTree, given: xr.Dataset, tree: xr.DataTree, thin: int) -> None:
    """Copy the sampler's ``sample_stats`` and the coordinates of its variables to the result."""
    used = {dim for values in given.data_vars.values() for dim in values.dims[2:]}
    posterior = result["posterior"].to_dataset()
    coords = {dim: given[dim].values for dim in used if dim in given.coords}
    result["posterior"] = xr.DataTree(posterior.assign_coords(coords))
    if "sample_stats" in tree.children:
        stats = tree["sample_stats"].to_dataset().isel(draw=slice(None, None, thin))
        ours = result["sample_stats"].to_dataset()
        stats = stats.drop_vars([name for name in stats.data_vars if name in ours])
        stats = stats.assign_coords(chain=ours["chain"], draw=ours["draw"])
        result["sample_stats"] = xr.DataTree(ours.merge(stats))
