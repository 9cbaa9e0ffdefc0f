"""`compare_engines`: fits several engines to the same data and compares them in one call."""

from collections.abc import Sequence
from inspect import signature
from time import perf_counter

import pymc as pm
import xarray as xr

from pmordinal import checks
from pmordinal.diagnostics.compare import Comparison, Result, compare
from pmordinal.engines import ENGINES, Engine, Exact, get_engine
from pmordinal.inference.fit import fit
from pmordinal.inference.progress import progress_bar
from pmordinal.links import get_link
from pmordinal.model.covariances import PAPERS
from pmordinal.model.factories import gp_model
from pmordinal.results.fit import OrdinalFit
from pmordinal.words import check_argument

FEASIBLE = 500  # rows up to which exact draws take seconds
BEST = ("ep", "laplace")  # the reference uses the hyperparameters of the first of these


def compare_engines(
    X,
    y,
    engines: str | Engine | Sequence[str | Engine] = ("laplace", "ep", "plsor"),
    reference: str | Engine | None = "auto",
    *,
    hyper: str = "own",
    test: tuple | None = None,
    starts: int = 1,
    draws: int = 1000,
    seed: int | None = 0,
    progressbar: bool = True,
    random_seed: int | None = None,
    **options,
) -> Comparison:
    """Fit engines to the same data and compare them with each other and with a reference.

    Parameters
    ----------
    X, y
        As for `gp_model`.
    engines : str, Engine, or a sequence of them
        Engines to fit.
    reference : str or Engine, optional
        The result that distances are measured from: ``"auto"``, which is ``"exact"`` for the probit link and
        at most 500 rows, and none otherwise; ``"exact"``, the exact posterior at the hyperparameters of the
        best approximation (EP, if it is among the engines), with Monte-Carlo errors; ``"nuts"``, a
        sample of latent function and hyperparameters together, which takes minutes; or one of `engines`.
    hyper : {"own", "shared"}
        ``"own"``: each engine at its own hyperparameters, as a user gets it. ``"shared"``: all at those of the
        best approximation, so that distances are those of the approximation alone; engines in other units, such as
        ``"plsor"``, keep their own.
    test : tuple of (X, y), optional
        Rows to score the predictions on.
    starts : int
        Starting points of each fit.
    draws : int
        Draws of each result that distributions are compared by.
    seed, random_seed : int, optional
    progressbar : bool
    **options
        For `gp_model`: ``cov_func``, by default ``"expquad"``, which every engine can take, ``ard``, ``link``,
        ``categories``, …

    Returns
    -------
    Comparison
        The table of `compare`; the fits are in its attribute ``results``.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> wine = pmo.datasets.wine()
    >>> X, y = wine[["temperature", "contact"]], wine["rating"]
    >>> table = pmo.compare_engines(X, y, ["laplace", "ep"], progressbar=False)
    >>> table.index.to_list()
    ['laplace', 'ep', 'exact']
    >>> bool(table.loc["ep", "tv_max"] < 0.02)
    True
    """
    own, others = signature(compare_engines).parameters, signature(gp_model).parameters
    known = [*own, *(name for name in others if name not in (*own, "engine"))]
    for name in options:
        check_argument("compare_engines", name, known)
    options = {"cov_func": PAPERS, **options}
    seed = checks.one_seed(seed, random_seed)
    checks.one_of("hyper", hyper, ("own", "shared"))
    several = [engines] if isinstance(engines, str | Engine) else engines
    chosen = {engine.name: engine for engine in map(get_engine, several)}
    if not chosen:
        raise ValueError("engines is empty: name at least one, such as 'ep'")
    if reference == "auto":
        reference = "exact" if _exact_is_feasible(X, chosen, options) else None
    wanted: str | Engine | None = reference
    if reference == "exact":
        wanted = Exact(resample=True)  # resamples weighted draws where exact ones are rare
    elif reference is not None and reference != "nuts":
        if isinstance(reference, str):
            checks.one_of("reference", reference, ("auto", "exact", "nuts", *ENGINES))
        wanted = get_engine(reference)
    goal = wanted.name if isinstance(wanted, Engine) else wanted
    fits: dict[str, OrdinalFit] = {}
    results: dict[str, Result] = {}
    with progress_bar(progressbar) as progress:
        task = progress.add_task("engines", total=len(chosen) + 1, info="")
        for name, engine in chosen.items():
            progress.update(task, info=name)
            model = gp_model(X, y, engine=engine, **options)
            fits[name] = fit(model, starts=starts, progressbar=False, seed=seed)
            progress.advance(task)
        alike = [name for name in fits if not chosen[name].in_label_units]
        best = next((name for name in (*BEST, *alike) if name in alike), None)
        if hyper == "shared":
            for name in alike:
                if best is not None and name != best:
                    fits[name] = _at(X, y, chosen[name], fits[best], options)
        results |= fits
        progress.update(task, info=goal)
        if goal == "nuts":
            results["nuts"] = _nuts(X, y, test, seed, options)
        elif isinstance(wanted, Engine) and goal not in fits:
            if best is None:
                raise ValueError(
                    f"reference: {goal!r} needs hyperparameters in its own units, which none of the engines "
                    f"{list(chosen)} has: add 'ep' or 'laplace'"
                )
            results[wanted.name] = _at(X, y, wanted, fits[best], options)
        progress.advance(task)
    return compare(results, goal, test=test, draws=draws, seed=seed)


def _exact_is_feasible(X, chosen: dict[str, Engine], options: dict) -> bool:
    in_units = any(not engine.in_label_units for engine in chosen.values())
    needs_more = options.get("weights") is not None
    return (
        in_units
        and not needs_more
        and get_link(options.get("link", "probit")).is_normal
        and len(X) <= FEASIBLE
    )


def _at(X, y, engine: Engine, best: OrdinalFit, options: dict) -> OrdinalFit:
    """Return the engine's posterior at the hyperparameters of another fit."""
    model = gp_model(X, y, engine=engine, **options)
    start = {rv.name: best.point[rv.name] for rv in model.free_RVs}
    return fit(model, start=start, optimize=False, progressbar=False)


def _nuts(X, y, test, seed, options: dict) -> xr.DataTree:
    """Return NUTS draws of the latent function and all hyperparameters."""
    from pmordinal.inference.sample_posterior import sample_posterior
    from pmordinal.model.latent.factory import latent_model

    model = latent_model(X, y, **options)
    began = perf_counter()
    tree = pm.sample(model=model, random_seed=seed, progressbar=False)
    seconds = perf_counter() - began
    rows = None if test is None else test[0]
    tree = sample_posterior(model, tree, rows, seed=seed, progressbar=False)
    tree["posterior"].attrs["sampling_time"] = seconds
    return tree
