"""Point estimates: the hyperparameters that maximise an engine's objective plus their log prior."""

import time
import warnings
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.blocking import DictToArrayBijection, RaveledVars
from pymc.pytensorf import join_nonshared_inputs
from pytensor.compile.mode import Mode
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from scipy.optimize import minimize

from pmordinal import checks
from pmordinal.errors import ConvergenceWarning
from pmordinal.fitted import FitStatus, OrdinalFit
from pmordinal.ops import OrdinalEvidence, Problem
from pmordinal.threads import blas_threads

# The graph is tiny (priors and transforms around one Op): interpreting it beats compiling it.
INTERPRET = Mode(linker="py", optimizer="merge")


def fit(
    model: pm.Model,
    objective: str | None = None,
    starts: int = 1,
    progressbar: bool = True,
    *,
    priors: bool = True,
    start: dict | None = None,
    seed: int | np.random.Generator | None = None,
    max_evaluations: int = 500,
) -> OrdinalFit:
    """Return the fit of an ordinal Gaussian process at its best hyperparameters.

    Parameters
    ----------
    model : pm.Model
        From `gp_model`, or any model with a `MarginalOrdinal` likelihood.
    objective : str, optional
        What to maximise instead of the model's own objective.
    starts : int
        Starting points. The first is the papers' (noise 1, κ = 1/d, b_1 = −1, Δ = 2/r); the others are scattered around
        it, and the best optimum wins.
    progressbar : bool
        Show the progress.
    priors : bool
        Maximise the posterior density of the unconstrained (log, ordered) hyperparameters: type-II maximum
        a posteriori. False leaves the priors out: evidence maximisation.
    start : dict, optional
        Values to start from, by variable name, in the variables' own units.
    seed : int or Generator, optional
        For the scattered starts.
    max_evaluations : int
        Evaluations of the objective, for each start.

    Returns
    -------
    OrdinalFit

    Examples
    --------
    >>> import pmordinal as pmo
    >>> X, y = np.linspace(0, 3, 12), [1, 1, 1, 1, 2, 2, 1, 2, 3, 3, 3, 3]
    >>> result = pmo.fit(pmo.gp_model(X, y), progressbar=False)
    >>> result.predict([[0.0], [3.0]], kind="class")
    array([1, 3])
    """
    starts = checks.integer("starts", starts, minimum=1)
    max_evaluations = checks.integer("max_evaluations", max_evaluations, minimum=1)
    began = time.perf_counter()
    target = Target(model, objective, priors)
    points = target.starting_points(starts, start or {}, np.random.default_rng(seed))
    n = len(target.problem.X)
    with blas_threads(n), _progress(progressbar) as progress:
        task = progress.add_task("fit", total=None, info="")

        def show(count: int, best: float) -> None:
            progress.update(
                task, info=f"{count} evaluations, {target.problem.objective} {best:.4f}"
            )

        runs = [target.maximise(point, max_evaluations, show) for point in points]
    best = max(runs, key=lambda run: run.value)
    status = FitStatus(
        converged=best.converged,
        evaluations=sum(run.evaluations for run in runs),
        iterations=sum(run.iterations for run in runs),
        seconds=time.perf_counter() - began,
        message=best.message,
        objectives=tuple(run.value for run in runs),
    )
    if not best.converged:
        warnings.warn(f"fit did not converge: {best.message}", ConvergenceWarning, stacklevel=2)
    return target.result(best, status)


@dataclass(frozen=True)
class Run:
    """One optimisation from one start."""

    x: np.ndarray
    value: float
    converged: bool
    evaluations: int
    iterations: int
    message: str


class Target:
    """The objective as a function of the raveled unconstrained hyperparameters.

    Parameters
    ----------
    model : pm.Model
    objective : str, optional
    priors : bool
    """

    def __init__(self, model: pm.Model, objective: str | None = None, priors: bool = True):
        self.model = model
        total = (
            model.logp(jacobian=True)
            if priors
            else model.logp(vars=model.observed_RVs, jacobian=False)
        )
        node = find_evidence(total)
        self.problem: Problem = node.op.problem
        if self.problem.scale_is_free and not priors:
            raise ValueError(
                "priors=False: amplitude, noise and thresholds are all free, so that only their priors fix "
                "the scale; fix the amplitude or the noise at 1"
            )
        if objective is not None and objective != self.problem.objective:
            checks.one_of("objective", objective, self.problem.engine.objectives)
            self.problem = replace(self.problem, objective=objective, cache={})
            other = OrdinalEvidence(self.problem).make_node(*node.inputs)
            total = graph_replace([total], {node.outputs[0]: other.outputs[0]})[0]
        values = model.value_vars
        self.initial = model.initial_point(random_seed=0)
        parts = cast(list, pytensor.grad(total, values, disconnected_inputs="ignore"))
        gradient = [pt.flatten(g) for g in parts]
        outputs, joined = join_nonshared_inputs(
            point=self.initial,
            inputs=values,
            outputs=[total, pt.concatenate(gradient), *node.inputs[:-1]],
            make_inputs_shared=False,
        )
        self._objective = pytensor.function([joined], outputs[:2], mode=INTERPRET)
        self._inputs = pytensor.function([joined], outputs[2:], mode=INTERPRET)
        self._named = model.compile_fn(
            model.unobserved_value_vars, inputs=values, mode=INTERPRET, point_fn=False
        )

    def starting_points(
        self, count: int, given: dict, rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Return the papers' start, moved to `given` values, and others scattered around it."""
        point = dict(self.initial)
        free = {rv.name: rv for rv in self.model.free_RVs}
        unknown = [name for name in given if name not in free]
        if unknown:
            raise ValueError(f"start: no free variable {unknown[0]!r}; there are {', '.join(free)}")
        wanted = {name: v for name, v in self.problem.start.items() if name in free} | given
        for name, value in wanted.items():
            rv = free[name]
            slot = self.model.rvs_to_values[rv].name
            shape = np.shape(point[slot])
            value = pt.as_tensor(np.broadcast_to(np.asarray(value, dtype=float), shape))
            transform = self.model.rvs_to_transforms[rv]
            if transform is not None:
                value = transform.forward(value, *rv.owner.inputs)
            point[slot] = value.eval(mode=INTERPRET)
        x = DictToArrayBijection.map({v.name: point[v.name] for v in self.model.value_vars})
        self._map_info = x.point_map_info
        return [x.data, *(x.data + rng.normal(size=x.data.shape) for _ in range(count - 1))]

    def maximise(self, x0: np.ndarray, max_evaluations: int, show) -> Run:
        """Run L-BFGS from `x0`, with the objective scaled by 1/n."""
        n = len(self.problem.X)
        best = -np.inf
        count = 0

        def negative(x):
            nonlocal best, count
            value, gradient = self._objective(x)
            count += 1
            best = max(best, float(value))
            show(count, best)
            if not np.isfinite(value):  # a wall: finite, so that the line search can step back
                return 1e10, np.zeros_like(x)
            return -float(value) / n, -gradient / n

        options = {
            "maxfun": max_evaluations,
            "maxiter": max_evaluations,
            "ftol": 1e-7,
            "gtol": 1e-5,
        }
        found = minimize(negative, x0, jac=True, method="L-BFGS-B", options=options)
        message = found.message if isinstance(found.message, str) else found.message.decode()
        return Run(found.x, -found.fun * n, bool(found.success), count, found.nit, message)

    def named_values(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return every unobserved variable of the model by name, in its own units."""
        point = DictToArrayBijection.rmap(RaveledVars(x, self._map_info))
        values = self._named(*(point[v.name] for v in self.model.value_vars))
        names = [v.name for v in self.model.unobserved_value_vars]
        slots = {v.name for v in self.model.value_vars} - {v.name for v in self.model.free_RVs}
        return {k: np.asarray(v) for k, v in zip(names, values, strict=True) if k not in slots}

    def result(self, run: Run, status: FitStatus) -> OrdinalFit:
        """Return the fit at the optimum of `run`."""
        *values, thresholds, noise = self._inputs(run.x)
        codes = self.problem.labels.codes[self.problem.labels.observed]
        with blas_threads(len(codes)):
            posterior = self.problem.posterior(values, thresholds, noise, codes)
        if not posterior.status.converged:
            warnings.warn(
                f"{self.problem.engine.name}: {posterior.status.message}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return OrdinalFit(
            posterior=posterior,
            point=self.named_values(run.x),
            dims=dict(self.model.named_vars_to_dims),
            objective=self.problem.objective,
            objective_value=run.value,
            status=status,
            engine=self.problem.engine.name,
            labels=self.problem.labels,
            features=self.problem.features,
            unlabeled=self.problem.unlabeled,
            index=np.asarray(self.model.coords.get("obs", np.arange(len(codes)))),
        )


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


def _progress(show: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[info]}"),
        TimeElapsedColumn(),
        transient=True,
        disable=not show,
    )
