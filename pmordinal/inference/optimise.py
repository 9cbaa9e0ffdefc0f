"""An engine's objective plus the log prior, as a function of the unconstrained hyperparameters."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pymc as pm
from scipy.optimize import minimize

from pmordinal import checks
from pmordinal.engines import Engine
from pmordinal.errors import warn
from pmordinal.inference.density import Density
from pmordinal.linalg.threads import blas_threads
from pmordinal.model.label_scales import gathered
from pmordinal.model.memory import Found
from pmordinal.model.problem import Problem
from pmordinal.posterior import Posterior, Start

ABNORMAL = 2  # status of a line search that found no descent
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


class Target:
    """The objective as a function of the raveled unconstrained hyperparameters.

    Parameters
    ----------
    model : pm.Model
    objective : str, optional
    priors : bool
    adapt : callable, optional
        Makes of the model's problem the one to solve.
    """

    def __init__(
        self,
        model: pm.Model,
        objective: str | None = None,
        priors: bool = True,
        adapt: Callable[[Problem], Problem] | None = None,
    ):
        self.density = Density(model, priors)
        self.model, self.discrete = self.density.model, self.density.discrete
        # a copy, so that what the engine selects here stays here
        self.problem: Problem = replace(self.density.problem, found=Found())
        if self.problem.scale_is_free and not priors:
            raise ValueError(
                "priors=False: amplitude, noise and thresholds are all free, so that only their priors fix "
                "the scale; fix the amplitude or the noise at 1"
            )
        if objective is not None and objective != self.problem.objective:
            checks.one_of("objective", objective, self.problem.engine.objectives)
            self.problem = replace(self.problem, objective=objective)
        if adapt is not None:
            self.problem = adapt(self.problem)
        self.engine = self.problem.engine
        self.problem = self.problem.loosened()
        self.value_and_gradient = self.density.with_gradient(self.problem)
        self._parts = self.density.parts()

    def starting_points(
        self, count: int, given: dict, rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Return the papers' start, moved to `given` values, and others scattered around it."""
        point = dict(self.density.initial)
        free = {rv.name: rv for rv in self.model.free_RVs}
        given = gathered(self.model, given, self.problem.start)
        unknown = [name for name in given if name not in free]
        if unknown:
            raise ValueError(f"start: no free variable {unknown[0]!r}; there are {', '.join(free)}")
        wanted = {name: v for name, v in self.problem.start.items() if name in free} | given
        # in this order: a transform may depend on variables before it
        for name, rv in free.items():
            if name not in wanted:
                continue
            value = wanted[name]
            if name in given:
                value = checks.finite_array(f"start: {name!r}", value)
            slot = self.model.rvs_to_values[rv].name
            shape = np.shape(point[slot])
            if np.shape(value) not in ((), shape):
                raise ValueError(
                    f"start: {name!r} has shape {shape}, got a value of shape {np.shape(value)}"
                )
            moved = np.broadcast_to(np.asarray(value, dtype=float), shape)
            moved = self.density.unconstrained(rv, moved, point)
            if slot in self.discrete and np.any(moved != np.round(moved)):
                raise ValueError(f"start: {name!r} is discrete and cannot be {value}")
            if np.all(np.isfinite(moved)):
                point[slot] = moved.astype(point[slot].dtype)
            elif name in given:
                raise ValueError(
                    f"start: {name!r} cannot be {value}: it is outside its prior's support"
                )
        first = self.density.ravel(point).data.astype(float)
        if self.discrete:
            held = ", ".join(
                f"{name!r} at {np.array2string(point[name])}" for name in self.discrete
            )
            warn(
                f"fit cannot optimise discrete variables and holds {held}: fit the model at each of their values "
                "with start= and compare, or use pm.sample",
            )
        sizes = [np.size(point[v.name]) for v in self.model.value_vars]
        moves = np.repeat([v.name not in self.discrete for v in self.model.value_vars], sizes)
        return [first, *(first + moves * rng.normal(size=moves.size) for _ in range(count - 1))]

    def climb(self, x: np.ndarray, max_evaluations: int, report: Report) -> Run:
        """Let the engine choose what it holds fixed and maximise, in rounds; return the best round."""
        engine, n = self.problem.engine, len(self.problem.X)
        best: Run | None = None
        evaluations = iterations = idle = 0
        head = ""

        def say(text: str) -> None:
            report(head + text)

        def show(count: int, value: float) -> None:
            say(f"{count} evaluations, {engine.describe(self.problem.objective, value, n)}")

        for turn in range(engine.turns):
            head = f"round {turn + 1}, " if engine.turns > 1 else ""
            try:
                self.select(x, turn, say)
                run = self.maximise(x, max_evaluations - evaluations, show)
            except KeyboardInterrupt:
                if best is None:
                    raise
                message = f"interrupted in round {turn + 1}: the best round before it is kept"
                best = replace(best, converged=False, message=message, interrupted=True)
                break
            evaluations, iterations = evaluations + run.evaluations, iterations + run.iterations
            gain = run.value - (-np.inf if best is None else best.value)
            if best is None or gain > 0:
                best = replace(run, engine=self.problem.found.engine)
            elif run.interrupted:
                best = replace(best, converged=False, message=run.message, interrupted=True)
            idle = 0 if gain > GAIN * n else idle + 1
            if idle == PATIENCE or best.interrupted or evaluations >= max_evaluations:
                break
            x = run.x
        assert best is not None
        return replace(best, evaluations=evaluations, iterations=iterations)

    def stay(self, x: np.ndarray) -> Run:
        """Evaluate the objective at `x`, and nowhere else."""
        self.select(x)
        value = float(self.value_and_gradient(x)[0])
        return Run(
            x,
            value,
            True,
            1,
            0,
            "at the hyperparameters given",
            engine=self.problem.found.engine,
        )

    def select(self, x: np.ndarray, turn: int = 0, report: Report | None = None) -> None:
        """Let the engine choose at the hyperparameters `x` what it holds fixed."""
        _, *values, thresholds, noise = self._parts(x)
        self.problem.select(values, thresholds, noise, self.problem.y, turn, report)

    def maximise(self, x0: np.ndarray, max_evaluations: int, show) -> Run:
        """Run L-BFGS from `x0`, with the objective scaled by 1/n."""
        n = self.problem.n_labels
        best, best_x = -np.inf, x0
        count = steps = 0

        def step(intermediate_result):
            nonlocal steps
            steps += 1

        def negative(x):
            nonlocal best, best_x, count
            value, gradient = self.value_and_gradient(x)
            count += 1
            if value > best:
                best, best_x = float(value), x.copy()
            show(count, best)
            if not np.isfinite(value):  # finite, so that the line search can step back
                return WALL, np.zeros_like(x)
            return -float(value) / n, -gradient / n

        limits = {"maxfun": max_evaluations, "maxiter": max_evaluations}
        options = {**limits, "ftol": 1e-7, "gtol": 1e-5}
        if x0.size == 0:
            return Run(x0, float(self.value_and_gradient(x0)[0]), True, 1, 0, "nothing to optimise")
        search = {"jac": True, "method": "L-BFGS-B", "options": options, "callback": step}
        try:
            found = minimize(negative, x0, **search)
            if found.status == ABNORMAL and self._tighten() and count < max_evaluations:
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

    def _tighten(self) -> bool:
        """Go back to the user's tolerance, which a line search may need; tell whether another one was in use."""
        was_other = self.problem.found.engine == self.problem.engine != self.engine
        if was_other:
            self.problem.found.engine = self.engine
            self.problem.found.begin_from(None)
        return was_other

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of the objective at `x`."""
        return self.value_and_gradient(x)[1]

    def log_prior(self, x: np.ndarray) -> float:
        """Return what the objective adds to the engine's: the log prior of the unconstrained `x`."""
        return float(self._parts(x)[0])

    def named_values(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return every unobserved variable of the model by name, in its own units."""
        return self.density.named_values(x)

    def begin_from(self, start: Start | None) -> None:
        """Forget earlier solutions but for this one, so that what comes next does not depend on them."""
        self.problem.found.begin_from(start)

    def hold(self, run: Run) -> None:
        """Take the engine with what it had selected in `run`, at the user's tolerance."""
        selected = run.engine or self.problem.engine
        self.problem.found.engine = self.engine if selected == self.problem.engine else selected

    def posterior(self, x: np.ndarray) -> Posterior:
        """Return the engine's posterior at the hyperparameters `x`."""
        _, *values, thresholds, noise = self._parts(x)
        with blas_threads(len(self.problem.X)):
            return self.problem.posterior(values, thresholds, noise, self.problem.y)
