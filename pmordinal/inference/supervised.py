"""Fits to labelled rows: maximises an engine's objective plus log prior from several starts."""

import time
from collections.abc import Callable

import numpy as np
import pymc as pm

from pmordinal import checks
from pmordinal.errors import ConvergenceWarning, warn
from pmordinal.inference.landscape import Landscape
from pmordinal.inference.optimise import Run, stay
from pmordinal.inference.progress import progress_bar
from pmordinal.inference.record import record
from pmordinal.inference.size import memory_for, warn_of_size
from pmordinal.inference.staging import climb_stages
from pmordinal.inference.starting_points import starting_points
from pmordinal.linalg.threads import blas_threads
from pmordinal.model.problem import Problem
from pmordinal.results.fit import OrdinalFit
from pmordinal.results.integrate import METHODS, check_integrable
from pmordinal.results.status import FitStatus


def fit_supervised(
    model: pm.Model,
    objective: str | None = None,
    starts: int = 1,
    progressbar: bool = True,
    *,
    priors: bool = True,
    start: dict | None = None,
    seed: int | np.random.Generator | None = None,
    max_evaluations: int = 500,
    optimize: bool = True,
    hyper: str = "point",
    adapt: Callable[[Problem], Problem] | None = None,
) -> OrdinalFit:
    """Return the fit at the best hyperparameters; see `fit`, and `Landscape` for `adapt`."""
    check_hyper(hyper, optimize)
    starts = checks.integer("starts", starts, minimum=1)
    max_evaluations = checks.integer("max_evaluations", max_evaluations, minimum=1)
    began = time.perf_counter()
    landscape = Landscape(model, objective, priors, adapt)
    if hyper != "point":
        check_integrable(landscape.problem.engine, landscape.problem.objective)
    points = starting_points(landscape, starts, start or {}, checks.generator("seed", seed))
    n = len(landscape.problem.X)
    warn_of_size(landscape.problem.engine, n)
    with (
        memory_for(landscape.problem.engine, n),
        blas_threads(n),
        progress_bar(progressbar) as progress,
    ):
        task = progress.add_task("fit", total=None, info="")

        def report(text: str) -> None:
            progress.update(task, info=text)

        runs: list[Run] = []
        for point in points:
            if optimize:
                runs.append(climb_stages(landscape, point, max_evaluations, report))
            else:
                runs.append(stay(landscape, point))
            if runs[-1].interrupted:
                break
    best = best_of(runs, landscape.problem.objective)
    message, interrupted = best.message, runs[-1].interrupted
    if interrupted and best is not runs[-1]:
        message = f"interrupted in start {len(runs)} of {starts}: the best of those before is kept"
    status = FitStatus(
        converged=best.converged and not interrupted,
        evaluations=sum(run.evaluations for run in runs),
        iterations=sum(run.iterations for run in runs),
        seconds=time.perf_counter() - began,
        message=message,
        objectives=tuple(run.value for run in runs),
        interrupted=interrupted,
        seed=checks.seed_number(seed),
        stages=best.stages,
    )
    if not status.converged:
        warn(f"fit did not converge: {message}", ConvergenceWarning)
    fit = record(landscape, best, status)
    if hyper == "point":
        return fit
    return fit.integrate(METHODS[0] if hyper == "integrate" else hyper, seed=seed)


def check_hyper(hyper: str, possible: bool) -> None:
    """Refuse an unknown name, and to integrate where that is not possible."""
    checks.one_of("hyper", hyper, ("point", "integrate", *METHODS))
    if hyper != "point" and not possible:
        raise ValueError(
            f"hyper={hyper!r} needs the optimum of a supervised fit: leave semisupervised and optimize as they are"
        )


def best_of(runs: list[Run], objective: str) -> Run:
    """Return the run with the largest objective; raise if none is finite."""
    best = max(runs, key=lambda run: run.value)
    if not np.isfinite(best.value):
        raise ValueError(
            f"the {objective} is not finite where the fit starts: give other values with start=, or check that the "
            "covariance is positive and of sensible size"
        )
    return best
