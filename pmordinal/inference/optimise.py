"""The maximum of an objective, by L-BFGS and in rounds."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from pmordinal.engines import Engine
from pmordinal.inference.landscape import Landscape

ABNORMAL = 2  # status of a line search that found no descent
FTOL = 1e-7  # a step that gains less for each row, relatively, is the last
WALL = 1e10  # what the optimiser sees where the objective is not finite
GAIN, PATIENCE = 1e-3, 2  # rounds end when so many have gained less than this for each row

type Report = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """One optimisation from one start."""

    x: np.ndarray
    value: float
    converged: bool
    evaluations: int
    iterations: int
    message: str
    interrupted: bool = False
    engine: Engine | None = None
    stages: tuple[str, ...] = ()


def climb(
    landscape: Landscape,
    x: np.ndarray,
    max_evaluations: int,
    report: Report,
    *,
    rounds: int | None = None,
    ftol: float = FTOL,
) -> Run:
    """Let the engine choose what it holds fixed and maximise, in rounds; return the best round.

    Parameters
    ----------
    landscape : Landscape
    x : ndarray
        Where to start.
    max_evaluations : int
    report : callable
        Called with lines of text about the progress.
    rounds : int, optional
        Largest number of rounds, instead of the engine's own.
    ftol : float
        A round ends when a step gains less than this for each row.
    """
    engine, n = landscape.problem.engine, landscape.problem.n_rows
    turns = engine.turns if rounds is None else min(rounds, engine.turns)
    best: Run | None = None
    evaluations = iterations = idle = 0
    head = ""

    def say(text: str) -> None:
        report(head + text)

    def show(count: int, value: float) -> None:
        say(f"{count} evaluations, {engine.describe(landscape.problem.objective, value, n)}")

    for turn in range(turns):
        head = f"round {turn + 1}, " if turns > 1 else ""
        try:
            landscape.select(x, turn, say)
            run = maximise(landscape, x, max_evaluations - evaluations, show, ftol)
        except KeyboardInterrupt:
            if best is None:
                raise
            message = f"interrupted in round {turn + 1}: the best round before it is kept"
            best = replace(best, converged=False, message=message, interrupted=True)
            break
        evaluations, iterations = evaluations + run.evaluations, iterations + run.iterations
        gain = run.value - (-np.inf if best is None else best.value)
        if best is None or gain > 0:
            best = replace(run, engine=landscape.problem.found.engine)
        elif run.interrupted:
            best = replace(best, converged=False, message=run.message, interrupted=True)
        idle = 0 if gain > GAIN * n else idle + 1
        if idle == PATIENCE or best.interrupted or evaluations >= max_evaluations:
            break
        x = run.x
    assert best is not None
    return replace(best, evaluations=evaluations, iterations=iterations)


def stay(landscape: Landscape, x: np.ndarray) -> Run:
    """Evaluate the objective at `x`, and nowhere else."""
    landscape.select(x)
    value = float(landscape.value_and_gradient(x)[0])
    message = "at the hyperparameters given"
    return Run(x, value, True, 1, 0, message, engine=landscape.problem.found.engine)


def maximise(
    landscape: Landscape, x0: np.ndarray, max_evaluations: int, show, ftol: float = FTOL
) -> Run:
    """Run L-BFGS from `x0`, with the objective scaled by 1/n."""
    n = landscape.problem.n_labels
    best, best_x = -np.inf, x0
    count = steps = 0

    def step(intermediate_result):
        nonlocal steps
        steps += 1

    def negative(x):
        nonlocal best, best_x, count
        value, gradient = landscape.value_and_gradient(x)
        count += 1
        if value > best:
            best, best_x = float(value), x.copy()
        show(count, best)
        if not np.isfinite(value):  # finite, so that the line search can step back
            return WALL, np.zeros_like(x)
        return -float(value) / n, -gradient / n

    limits = {"maxfun": max_evaluations, "maxiter": max_evaluations}
    options = {**limits, "ftol": ftol, "gtol": 1e-5}
    if x0.size == 0:
        value = float(landscape.value_and_gradient(x0)[0])
        return Run(x0, value, True, 1, 0, "nothing to optimise")
    search = {"jac": True, "method": "L-BFGS-B", "options": options, "callback": step}
    try:
        found = minimize(negative, x0, **search)
        # a line search may need the user's own tolerance
        if found.status == ABNORMAL and landscape.tighten() and count < max_evaluations:
            options["maxfun"] = max_evaluations - count
            found = minimize(negative, found.x, **search)
    except KeyboardInterrupt:
        if not np.isfinite(best):
            raise
        message = f"interrupted after {count} evaluations: the best so far is kept"
        return Run(best_x, best, False, count, steps, message, interrupted=True)
    message = found.message if isinstance(found.message, str) else found.message.decode()
    if found.fun >= WALL:  # it began on the wall, where the gradient is zero
        return Run(found.x, -np.inf, False, count, found.nit, message)
    return Run(found.x, -found.fun * n, bool(found.success), count, steps, message)
