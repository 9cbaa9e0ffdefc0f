"""An engine's objective plus the log prior, as a function of the unconstrained hyperparameters."""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np
import pymc as pm

from pmordinal import checks
from pmordinal.engines import Engine
from pmordinal.inference.density import Density, log_priors
from pmordinal.linalg.threads import blas_threads
from pmordinal.model.memory import Found
from pmordinal.model.problem import Problem
from pmordinal.posterior import Posterior, Start


class Landscape:
    """The objective as a function of the raveled unconstrained hyperparameters.

    It knows nothing of who moves in it. A fit keeps it as its `pmordinal.results.curvature.Surface`.

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

    def of_rows(self, some: np.ndarray) -> Self:
        """Return the objective of some of the labelled rows in memory."""
        other = copy(self)
        other.engine, gathered = self.engine.gathered(), self.problem.engine.gathered()
        other.problem = replace(self.problem, some=some, engine=gathered, found=Found())
        other.value_and_gradient = self.density.with_gradient(other.problem)
        return other

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of the objective at `x`."""
        return self.value_and_gradient(x)[1]

    def log_prior(self, x: np.ndarray) -> float:
        """Return what the objective adds to the engine's: the log prior of the unconstrained `x`."""
        return float(self._parts(x)[0])

    def log_priors(self, draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the log prior density of each hyperparameter in its own units, for draws by name."""
        return log_priors(self.model, draws)

    def named_values(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return every unobserved variable of the model by name, in its own units."""
        return self.density.named_values(x)

    def posterior(self, x: np.ndarray) -> Posterior:
        """Return the engine's posterior at the hyperparameters `x`."""
        _, *values, thresholds, noise = self._parts(x)
        with blas_threads(len(self.problem.X)):
            return self.problem.posterior(values, thresholds, noise, self.problem.y)

    def select(
        self, x: np.ndarray, turn: int = 0, report: Callable[[str], None] | None = None
    ) -> None:
        """Let the engine choose at the hyperparameters `x` what it holds fixed."""
        _, *values, thresholds, noise = self._parts(x)
        self.problem.select(values, thresholds, noise, self.problem.y, turn, report)

    def hold(self, engine: Engine | None) -> None:
        """Take an engine with what it has selected, at the user's tolerance; None for one that selects nothing."""
        selected = engine or self.problem.engine
        is_other = selected != self.problem.engine
        self.problem.found.engine = selected.as_exact_as(self.engine) if is_other else self.engine

    def tighten(self) -> bool:
        """Go back to the user's tolerance; tell whether another one was in use."""
        was_other = self.problem.found.engine == self.problem.engine != self.engine
        if was_other:
            self.problem.found.engine = self.engine
            self.problem.found.begin_from(None)
        return was_other

    def begin_from(self, start: Start | None) -> None:
        """Forget earlier solutions but for this one, so that what comes next does not depend on them."""
        self.problem.found.begin_from(start)
