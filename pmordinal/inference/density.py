"""The log density of a model as functions; all code that takes a model's graph apart is here.

One node of the graph runs the engine (or, in a `latent_model`, computes the latent function). Around it are the
hyperparameters, their priors and transforms: about a hundred operations on a few numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.blocking import DictToArrayBijection, RaveledVars
from pymc.logprob.basic import conditional_logp
from pymc.vartypes import discrete_types
from pytensor.compile.mode import Mode
from pytensor.graph import Apply
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors

from pmordinal.model.compile import NumpyLinker
from pmordinal.model.latent.hsgp_ops import BasisValues
from pmordinal.model.latent.process_ops import ProcessValues
from pmordinal.model.marginal import check_model
from pmordinal.model.observed import observed_labels
from pmordinal.model.ops.evidence import OrdinalEvidence
from pmordinal.model.problem import Problem
from pmordinal.results.datatree import Training

# Full rewriting of the graph takes longer than it saves in a hundred runs. PyTensor's own interpreter takes three
# milliseconds more for each call, which makes fits with several starts up to a half slower.
PLAIN = Mode(linker=NumpyLinker(), optimizer="merge")

WHITE = ("f_white",)  # white noise that becomes the latent function

type Function = Callable[..., Any]


class Density:
    """The log density of a model, and other functions of its unconstrained hyperparameters in one vector.

    Parameters
    ----------
    model : pm.Model
        A model with one `MarginalOrdinal` likelihood.
    priors : bool
        Whether the log prior counts, with the Jacobian of the transforms.

    Attributes
    ----------
    problem : Problem
        The problem of the model, with the labels that it observes.
    initial : dict
        The model's initial point, by the names of its unconstrained variables.
    discrete : list of str
        Names of the variables that are whole numbers.
    """

    def __init__(self, model: pm.Model, priors: bool = True):
        self.model = check_model(model)
        self._total = (
            model.logp(jacobian=True)
            if priors
            else model.logp(vars=model.observed_RVs, jacobian=False)
        )
        self._node = find_evidence(self._total)
        self.problem = find_problem(self._node)
        # without a C compiler, which PyTensor would call for this one graph on a fresh machine
        with pytensor.config.change_flags(cxx=""):
            self.initial = model.initial_point(random_seed=0)
        self.discrete = [v.name for v in model.value_vars if v.dtype in discrete_types]
        named = model.unobserved_value_vars
        self._names = [v.name for v in named]
        self._named = model.compile_fn(named, inputs=model.value_vars, mode=PLAIN, point_fn=False)

    def with_gradient(self, problem: Problem) -> Function:
        """Return a function that gives log density and gradient, with `problem` instead of the model's own."""
        node, values = self._node, self.model.value_vars
        labels = pt.constant(problem.y)  # the problem may have fewer rows than the model
        other = OrdinalEvidence(problem).make_node(*node.inputs[:-1], labels)
        total = graph_replace([self._total], {node.outputs[0]: other.outputs[0]})[0]
        parts = cast(list, pytensor.grad(total, values, disconnected_inputs="ignore"))
        # PyTensor would differentiate by integers as if they were continuous
        parts = [
            pt.zeros_like(g) if v.name in self.discrete else g
            for v, g in zip(values, parts, strict=True)
        ]
        run = self._function([total, *parts], PLAIN)

        def value_and_gradient(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            value, *found = run(x)
            # the optimiser needs float64, whatever floatX is
            gradient = [np.zeros(0), *(np.ravel(g) for g in found)]
            return value, np.concatenate(gradient, dtype=np.float64)

        return value_and_gradient

    def parts(self, mode: Mode = PLAIN) -> Function:
        """Return a function that gives log prior, parameters of the covariance, thresholds and noise."""
        nothing = pt.constant(0.0, dtype="float64")
        log_prior = graph_replace([self._total], [(self._node.outputs[0], nothing)])
        return self._function([*log_prior, *self._node.inputs[:-1]], mode)

    def _function(self, outputs: list, mode: Mode) -> Function:
        """Return a function of the vector; it is split outside the graph, which would take longer to build."""
        run = _function(self.model.value_vars, outputs, mode)
        return lambda x: run(*self._split(x))

    @cached_property
    def _places(self) -> tuple:
        """Where each variable is in the vector, with its shape and type."""
        return self.ravel(self.initial).point_map_info

    def _split(self, x: np.ndarray) -> list[np.ndarray]:
        # floatX may be single: what overflows is seen in the results
        with np.errstate(all="ignore"):
            point = DictToArrayBijection.rmap(RaveledVars(x, self._places))
        return [point[v.name] for v in self.model.value_vars]

    def unconstrained(self, rv, value: np.ndarray, point: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return a variable's value on its unconstrained scale, given the other variables at `point`."""
        moved = pt.as_tensor(value)
        transform = self.model.rvs_to_transforms[rv]
        if transform is not None:
            values = {v: pt.constant(point[v.name], dtype=v.dtype) for v in self.model.value_vars}
            inputs = self.model.replace_rvs_by_values(rv.owner.inputs)
            moved = transform.forward(moved, *graph_replace(inputs, values, strict=False))
        return moved.eval(mode=PLAIN)

    def ravel(self, point: Mapping[str, np.ndarray]) -> RaveledVars:
        """Return the unconstrained hyperparameters in one vector."""
        return DictToArrayBijection.map({v.name: point[v.name] for v in self.model.value_vars})

    def named_values(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return every unobserved variable of the model by name, in its own units."""
        values = self._named(*self._split(x))
        slots = {v.name for v in self.model.value_vars} - {v.name for v in self.model.free_RVs}
        return {
            k: np.asarray(v) for k, v in zip(self._names, values, strict=True) if k not in slots
        }


def _function(inputs: list, outputs: list, mode: Mode = PLAIN) -> Function:
    return pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore")


def of_variables(variables: Sequence, outputs: list) -> Callable[[Sequence], list[np.ndarray]]:
    """Return a function that gives expressions of a model, from values of some of its variables."""
    free = {v: v.type(v.name) for v in variables}
    run = _function(list(free.values()), graph_replace(outputs, free, strict=False))

    def at(point: Sequence) -> list[np.ndarray]:
        return run(*(np.asarray(x, dtype=v.dtype) for x, v in zip(point, free, strict=True)))

    return at


def log_priors(model: pm.Model, draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the log prior density of each free variable in its own units, with the first axes of its draws.

    The white noise of a `latent_model` is left out: it is the latent function, whose prior the others give.

    Parameters
    ----------
    model : pm.Model
    draws : mapping of str to ndarray, shape (chains, draws, …)
        Every free variable, by name.
    """
    values = {rv: rv.type(rv.name) for rv in model.free_RVs}
    densities = conditional_logp(values)
    chosen = [rv for rv in values if rv.name not in WHITE]
    if not chosen:
        return {}
    run = _function(list(values.values()), [densities[values[rv]] for rv in chosen])
    given = [np.asarray(draws[rv.name], dtype=rv.dtype) for rv in values]
    shape = given[0].shape[:2]
    found = zip(*(run(*(a[at] for a in given)) for at in np.ndindex(shape)), strict=True)
    stacked = (np.array(one) for one in found)
    return {
        rv.name: one.reshape(*shape, *one.shape[1:])
        for rv, one in zip(chosen, stacked, strict=True)
    }


def find_evidence(graph) -> Apply:
    """Return the node of the engine's Op in a model's log density."""
    nodes = _nodes(graph, OrdinalEvidence)
    if len(nodes) != 1:
        raise ValueError(
            f"the model has {len(nodes)} MarginalOrdinal likelihoods and fit needs one: build it with "
            "pmo.gp_model or pmo.MarginalOrdinal (a linear predictor: cov_func=pm.gp.cov.Linear), or use "
            "pm.sample or pm.find_MAP"
        )
    return nodes[0]


def find_problem(node: Apply) -> Problem:
    """Return the problem of an engine's Op, with the labels that the model observes."""
    problem: Problem = cast(OrdinalEvidence, node.op).problem
    return replace(problem, labels=observed_labels(problem.labels, node.inputs[-1]))


def training_data(model: pm.Model, problem: Problem) -> Training:
    """Return the data of a problem, with the row names of the model."""
    index = np.asarray(model.coords.get("obs", np.arange(len(problem.X))))
    data = (problem.X, problem.y, problem.labels, problem.features, problem.link)
    return Training(*data, index, problem.by_row)


def engine_parameters(model: pm.Model, problem: Problem) -> list:
    """Return the engine's parameters as expressions: those of the covariance, thresholds, noise."""
    for rv in model.observed_RVs:
        if _nodes(model.logp(vars=[rv]), OrdinalEvidence):
            return rv.owner.inputs[1 : len(problem.kernel.parameters) + 3]
    raise AssertionError("find_problem has found it")


def is_latent(model: pm.Model) -> bool:
    """Tell whether a model is a `latent_model`."""
    return bool(_latent_nodes(model))


def find_latent(model: pm.Model) -> Apply:
    """Return the node that computes the latent values of a `latent_model`."""
    if nodes := _latent_nodes(model):
        return nodes[0]
    raise ValueError("the model has no latent function in it: build it with pmo.latent_model")


def latent_parameters(model: pm.Model, further: Sequence = ()) -> tuple[list, list]:
    """Return thresholds, noise, what continues the function and `further`, and the free variables they come from."""
    node = find_latent(model)
    values = node.inputs[3].owner.inputs if isinstance(node.op, ProcessValues) else node.inputs
    outputs = [*model["y"].owner.inputs[2:4], *values, *further]
    above = set(ancestors(outputs))
    return outputs, [v for v in model.free_RVs if v in above]


def _latent_nodes(model: pm.Model) -> list[Apply]:
    return _nodes(model["f"], ProcessValues, BasisValues) if "f" in model.named_vars else []


def _nodes(graph, *ops: type) -> list[Apply]:
    """Return the nodes of some Ops in a graph."""
    owners = dict.fromkeys(v.owner for v in ancestors([graph]))
    return [node for node in owners if node is not None and isinstance(node.op, ops)]
