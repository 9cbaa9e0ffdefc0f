"""An engine's objective plus the log prior, as a function of the unconstrained hyperparameters."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.blocking import DictToArrayBijection, RaveledVars
from pymc.pytensorf import join_nonshared_inputs
from pymc.vartypes import discrete_types
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from scipy.optimize import minimize

from pmordinal import checks
from pmordinal.engines import Engine
from pmordinal.errors import ConvergenceWarning
from pmordinal.fitted import FitStatus, OrdinalFit
from pmordinal.gp import check_model
from pmordinal.interpreter import SELDOM
from pmordinal.observed import observed_labels
from pmordinal.ops import OrdinalEvidence, Problem
from pmordinal.posterior import Posterior
from pmordinal.scales import gathered
from pmordinal.threads import blas_threads

ABNORMAL = 2  # status of a line search that found no descent
WALL = 1e10  # what the optimiser sees where the objective is not finite
DOUBTFUL = 30.0  # nats of estimated error, beyond which an evidence is not to be trusted
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
        self.model = check_model(model)
        total = (
            model.logp(jacobian=True)
            if priors
            else model.logp(vars=model.observed_RVs, jacobian=False)
        )
        node = find_evidence(total)
        others = graph_replace([total], {node.outputs[0]: pt.constant(0.0, dtype="float64")})[0]
        # a copy, so that what the engine selects here stays here
        self.problem: Problem = replace(find_problem(node), cache={})
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
        other = OrdinalEvidence(self.problem).make_node(*node.inputs)
        total = graph_replace([total], {node.outputs[0]: other.outputs[0]})[0]
        values = model.value_vars
        self.initial = model.initial_point(random_seed=0)
        self.discrete = [v.name for v in values if v.dtype in discrete_types]
        parts = cast(list, pytensor.grad(total, values, disconnected_inputs="ignore"))
        # PyTensor differentiates by whole numbers as if there were others between them
        parts = [
            pt.zeros_like(g) if v.name in self.discrete else g
            for v, g in zip(values, parts, strict=True)
        ]
        gradient = pt.concatenate([pt.zeros(0), *(pt.flatten(g) for g in parts)])
        gradient = pt.cast(gradient, "float64")  # for the optimiser, whatever floatX is
        outputs, joined = [total, gradient, others, *node.inputs[:-1]], pt.dvector()
        if values:  # there are none where everything is fixed
            outputs, joined = join_nonshared_inputs(
                point=self.initial, inputs=values, outputs=outputs, make_inputs_shared=False
            )
        self._objective = _interpreted(joined, outputs[:2])
        self._log_prior = _interpreted(joined, outputs[2])
        self._inputs = _interpreted(joined, outputs[3:])
        named = model.unobserved_value_vars
        self._names = [v.name for v in named]
        self._named = model.compile_fn(named, inputs=values, mode=SELDOM, point_fn=False)

    def starting_points(
        self, count: int, given: dict, rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Return the papers' start, moved to `given` values, and others scattered around it."""
        point = dict(self.initial)
        free = {rv.name: rv for rv in self.model.free_RVs}
        given = gathered(self.model, given, self.problem.start)
        unknown = [name for name in given if name not in free]
        if unknown:
            raise ValueError(f"start: no free variable {unknown[0]!r}; there are {', '.join(free)}")
        wanted = {name: v for name, v in self.problem.start.items() if name in free} | given
        for (
            name,
            rv,
        ) in free.items():  # in this order: a transform may depend on variables before it
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
            moved = pt.as_tensor(np.broadcast_to(np.asarray(value, dtype=float), shape))
            transform = self.model.rvs_to_transforms[rv]
            if transform is not None:
                moved = transform.forward(moved, *self._at(point, rv.owner.inputs))
            with np.errstate(divide="ignore", invalid="ignore"):  # checked here
                moved = moved.eval(mode=SELDOM)
            if slot in self.discrete and np.any(moved != np.round(moved)):
                raise ValueError(f"start: {name!r} is discrete and cannot be {value}")
            if np.all(np.isfinite(moved)):
                point[slot] = moved.astype(point[slot].dtype)
            elif name in given:
                raise ValueError(
                    f"start: {name!r} cannot be {value}: it is outside its prior's support"
                )
        x = DictToArrayBijection.map({v.name: point[v.name] for v in self.model.value_vars})
        self._map_info, first = x.point_map_info, x.data.astype(float)
        if self.discrete:
            held = ", ".join(
                f"{name!r} at {np.array2string(point[name])}" for name in self.discrete
            )
            warnings.warn(
                f"fit cannot optimise discrete variables and holds {held}: fit the model at each of their values "
                "with start= and compare, or use pm.sample",
                UserWarning,
                stacklevel=3,
            )
        sizes = [np.size(point[v.name]) for v in self.model.value_vars]
        moves = np.repeat([v.name not in self.discrete for v in self.model.value_vars], sizes)
        return [first, *(first + moves * rng.normal(size=moves.size) for _ in range(count - 1))]

    def _at(self, point: dict, variables: list) -> list:
        """Return expressions of the model's variables with the values that `point` gives these."""
        values = {v: pt.constant(point[v.name], dtype=v.dtype) for v in self.model.value_vars}
        return graph_replace(self.model.replace_rvs_by_values(variables), values, strict=False)

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
                best = replace(run, engine=self.problem.cache.get("engine"))
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
        value = float(self._objective(x)[0])
        return Run(
            x,
            value,
            True,
            1,
            0,
            "at the hyperparameters given",
            engine=self.problem.cache.get("engine"),
        )

    def select(self, x: np.ndarray, turn: int = 0, report: Report | None = None) -> None:
        """Let the engine choose at the hyperparameters `x` what it holds fixed."""
        *values, thresholds, noise = self._inputs(x)
        self.problem.select(values, thresholds, noise, self.problem.y, turn, report)

    def maximise(self, x0: np.ndarray, max_evaluations: int, show) -> Run:
        """Run L-BFGS from `x0`, with the objective scaled by 1/n."""
        n = len(self.problem.X)
        best, best_x = -np.inf, x0
        count = steps = 0

        def step(intermediate_result):
            nonlocal steps
            steps += 1

        def negative(x):
            nonlocal best, best_x, count
            value, gradient = self._objective(x)
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
            return Run(x0, float(self._objective(x0)[0]), True, 1, 0, "nothing to optimise")
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
        was_other = self.problem.cache.get("engine") == self.problem.engine != self.engine
        if was_other:
            self.problem.cache["engine"] = self.engine
            self.problem.begin_from(None)
        return was_other

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of the objective at `x`."""
        return self._objective(x)[1]

    def log_prior(self, x: np.ndarray) -> float:
        """Return what the objective adds to the engine's: the log prior of the unconstrained `x`."""
        return float(self._log_prior(x))

    def named_values(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return every unobserved variable of the model by name, in its own units."""
        point = DictToArrayBijection.rmap(RaveledVars(x, self._map_info))
        values = self._named(*(point[v.name] for v in self.model.value_vars))
        slots = {v.name for v in self.model.value_vars} - {v.name for v in self.model.free_RVs}
        return {
            k: np.asarray(v) for k, v in zip(self._names, values, strict=True) if k not in slots
        }

    def posterior(self, x: np.ndarray) -> Posterior:
        """Return the engine's posterior at the hyperparameters `x`."""
        *values, thresholds, noise = self._inputs(x)
        with blas_threads(len(self.problem.X)):
            return self.problem.posterior(values, thresholds, noise, self.problem.y)

    def result(self, run: Run, status: FitStatus) -> OrdinalFit:
        """Return the fit at the optimum of `run`."""
        exact = run.engine or self.problem.engine
        if exact == self.problem.engine:  # nothing was selected: back to the user's tolerance
            exact = self.engine
        self.problem.cache["engine"] = exact
        posterior = self.posterior(run.x)
        if not posterior.status.converged:
            warnings.warn(
                f"{self.problem.engine.name}: {posterior.status.message}",
                ConvergenceWarning,
                stacklevel=3,
            )
        missed = posterior.log_evidence_correction
        if missed is not None and abs(missed) > DOUBTFUL:
            warnings.warn(
                f"the evidence is doubtful at the hyperparameters found: {self.problem.engine.name} estimates its own "
                f"error at {missed:.0f} nats; compare with engine='ep', or give noise and length-scales tighter priors",
                ConvergenceWarning,
                stacklevel=3,
            )
        return OrdinalFit(
            posterior=posterior,
            point=self.named_values(run.x),
            dims=dict(self.model.named_vars_to_dims),
            objective=self.problem.objective,
            objective_value=run.value,
            status=replace(status, log_evidence_correction=missed),
            engine=self.problem.engine.name,
            labels=self.problem.labels,
            features=self.problem.features,
            unlabeled=self.problem.unlabeled,
            index=np.asarray(self.model.coords.get("obs", np.arange(posterior.y.size))),
            optimum=(self, run.x),
        )


def _interpreted(joined, outputs):
    options = {"on_unused_input": "ignore", "allow_input_downcast": True}  # floatX may be single
    return pytensor.function([joined], outputs, mode=SELDOM, **options)


def find_evidence(graph):
    """Return the node of the engine's Op in a model's log density."""
    nodes = {
        v.owner for v in ancestors([graph]) if v.owner and isinstance(v.owner.op, OrdinalEvidence)
    }
    if len(nodes) != 1:
        raise ValueError(
            f"the model has {len(nodes)} MarginalOrdinal likelihoods and fit needs one: build it with "
            "pmo.gp_model or pmo.MarginalOrdinal (a linear predictor: cov_func=pm.gp.cov.Linear), or use "
            "pm.sample or pm.find_MAP"
        )
    return nodes.pop()


def find_problem(node) -> Problem:
    """Return the problem of an engine's Op, with the labels that the model observes."""
    problem: Problem = node.op.problem
    return replace(problem, labels=observed_labels(problem.labels, node.inputs[-1]))
