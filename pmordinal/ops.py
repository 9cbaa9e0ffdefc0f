"""PyTensor Ops around the numerical layers: an ordinal log probability, and an engine's objective.

Each is one multi-output Op whose later outputs are the gradients of the first, so that value and
gradient are computed together, once. Second derivatives are refused rather than taken as zero.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Self

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Apply

from pmordinal.engines import Engine
from pmordinal.features import Features
from pmordinal.gram import Gram, Kernel
from pmordinal.labels import Labels
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.linalg import factor_psd
from pmordinal.links import Link
from pmordinal.nodes import ProblemOp, ValueWithGradient
from pmordinal.numpy_ops import NumpyOp
from pmordinal.objectives import OBJECTIVES
from pmordinal.posterior import Gradient, Posterior, Start
from pmordinal.smoothing import interval_terms
from pmordinal.starts import Chains, Memory
from pmordinal.threads import blas_threads
from pmordinal.unsupported import refuse_pointwise_density, refuse_predictive_draws

SELECTING = threading.Lock()


class IntervalLogProb(ValueWithGradient):
    """log P(lower < η + noise·e ≤ upper), elementwise, and its four first derivatives.

    Parameters
    ----------
    link : Link
        Distribution of e.
    """

    __props__ = ("link",)
    __str__ = NumpyOp.__str__
    n_differentiable = 4

    def __init__(self, link: Link):
        self.link = link

    def make_node(self, eta, lower, upper, noise):
        """Broadcast the four inputs against each other."""
        inputs = pt.broadcast_arrays(
            *(pt.cast(pt.as_tensor(x), "float64") for x in (eta, lower, upper, noise))
        )
        return Apply(self, inputs, [inputs[0].type() for _ in range(5)])

    def infer_shape(self, node, shapes):
        """Give every output the common shape."""
        return [shapes[0]] * 5

    def perform(self, node, inputs, outputs):
        """Evaluate the link's interval formulas."""
        eta, lower, upper, noise = inputs
        terms = interval_terms(self.link, lower, upper, eta, noise)
        results = (
            terms.value,
            terms.d1,
            terms.lower[0],
            terms.upper[0],
            terms.log_noise[0] / noise,
        )
        for cell, value in zip(outputs, results, strict=True):
            cell[0] = np.asarray(value, dtype="float64")


class LinkQuantile(NumpyOp):
    """F⁻¹(p), elementwise, from both tails p and 1 − p so that neither loses its digits.

    Parameters
    ----------
    link : Link
        Distribution F.
    """

    __props__ = ("link",)
    __str__ = NumpyOp.__str__

    def __init__(self, link: Link):
        self.link = link

    def make_node(self, p, upper):
        """Take the probabilities below and above."""
        p, upper = (pt.cast(pt.as_tensor(x), "float64") for x in (p, upper))
        return Apply(self, [p, upper], [p.type()])

    def infer_shape(self, node, shapes):
        """Give the output the shape of the input."""
        return [shapes[0]]

    def perform(self, node, inputs, outputs):
        """Evaluate the link's quantile function."""
        p, upper = inputs
        low = p < 0.5
        tails = (
            self.link.quantile(np.where(low, p, 0.5)),
            self.link.upper_quantile(np.where(low, 0.5, upper)),
        )
        outputs[0][0] = np.where(low, *tails).astype("float64")


class PriorLatent(ProblemOp):
    """A draw f = R z of the Gaussian process at the training rows, R Rᵀ = K, from white noise z.

    Parameters
    ----------
    problem : Problem
    """

    def make_node(self, z, *values):
        """Take white noise and the kernel's parameters."""
        z, *values = (pt.cast(pt.as_tensor(x), "float64") for x in (z, *values))
        return self.node([z, *values], [z.type()])

    def prepare_node(self, node, storage_map, compute_map, impl):
        """Refuse what would need draws given the data."""
        refuse_predictive_draws()
        super().prepare_node(node, storage_map, compute_map, impl)

    def infer_shape(self, node, shapes):
        """Give the output the shape of the noise."""
        return [shapes[0]]

    def perform(self, node, inputs, outputs):
        """Factorise the covariance matrix, singular or not, and colour the noise."""
        z, *values = inputs
        R = factor_psd(Gram(self.problem.kernel, self.problem.X, values).matrix)
        outputs[0][0] = R @ z[: R.shape[1]]


@dataclass(frozen=True, eq=False)
class Problem:
    """All that an evidence needs besides the parameters: data, engine, objective, names.

    Attributes
    ----------
    kernel : Kernel
        Lowered covariance.
    X : ndarray, shape (n, d)
        Labelled rows, in the units of the kernel.
    labels : Labels
        The training labels and what they are called.
    features : Features
        How the user's table becomes rows.
    engine : Engine
    objective : str
    link : Link
    unlabeled : ndarray, shape (m, d)
        Rows without a label.
    scale_is_free : bool
        Whether amplitude, noise and thresholds can be multiplied together: only priors hold them.
    start : mapping of str to ndarray
        Where to start optimising, by the names of the model's variables.
    is_optimised : bool
        Whether it is an optimiser that asks for the objective, rather than a sampler.
    cache : dict
        Holds what was found, for warm starts, and the engine with what it has selected.
    """

    kernel: Kernel
    X: np.ndarray
    labels: Labels
    features: Features
    engine: Engine
    objective: str
    link: Link
    unlabeled: np.ndarray
    scale_is_free: bool = False
    start: Mapping[str, np.ndarray] = field(default_factory=dict)
    is_optimised: bool = False
    cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Take along what was selected; in another process nothing has been found yet."""
        kept = {key: value for key, value in self.cache.items() if key == "engine"}
        return self.__dict__ | {"cache": kept}

    @property
    def y(self) -> np.ndarray:
        """Class codes of the labelled rows, shape (n,)."""
        return self.labels.codes[self.labels.observed]

    def _at(self, values, thresholds, noise) -> tuple[Gram, OrdinalLikelihood]:
        # data may have changed since the model was built
        if len(thresholds) != self.labels.n_classes - 1:
            raise ValueError(
                f"there are {len(thresholds)} thresholds for {self.labels.n_classes} classes: give one for each "
                "border between two classes"
            )
        likelihood = OrdinalLikelihood(thresholds, float(noise), self.link)
        return Gram(self.kernel, self.X, values), likelihood

    def posterior(
        self, values, thresholds, noise, y, loosely: bool = False, memory: Memory | None = None
    ) -> Posterior:
        """Run the engine at the given parameters, from where earlier solutions say.

        Parameters
        ----------
        values, thresholds, noise, y
            The parameters of the kernel and of the likelihood, and the class codes.
        loosely : bool
            Whether the objective is all that is asked for, and by a sampler: the engine then is no more exact than
            that needs, once there are solutions enough to predict the next one.
        memory : Memory, optional
            What was found before; default is what anybody has found.
        """
        gram, likelihood = self._at(values, thresholds, noise)
        with SELECTING:  # chains that share the problem share what is selected
            if "engine" not in self.cache:
                self.cache["engine"] = self.engine.select(gram, y, likelihood)
        engine = self.cache["engine"]
        memory = self._memory(y) if memory is None else memory
        scales = np.concatenate([*map(np.ravel, gram.values), [likelihood.noise]])
        parameters = np.concatenate([np.arcsinh(1e3 * scales), thresholds])  # as good as logarithms
        start, is_predicted = memory.predict(parameters)
        if loosely and is_predicted:
            engine = engine.loosened(self.objective, sampled=True)
        posterior = engine(gram, y, likelihood, start)
        if start is not None and not posterior.status.converged:  # it may have been a bad one
            posterior = engine(gram, y, likelihood)
        if posterior.status.converged:
            missed = posterior.status.iterations > engine.fewest_iterations
            memory.add(parameters, posterior.start, missed)
        return posterior

    def _memory(self, y) -> Memory:
        """Return what anybody has found for these labels."""
        return self.cache.setdefault("memory", Memory()).of(y)

    def begin_from(self, start: Start | None) -> None:
        """Forget earlier solutions but for this one, so that what comes next does not depend on them."""
        self.cache["memory"] = Memory(start)

    def select(
        self,
        values,
        thresholds,
        noise,
        y,
        turn: int = 0,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Let the engine choose at the given parameters what it holds fixed from now on."""
        gram, likelihood = self._at(values, thresholds, noise)
        self.cache["engine"] = self.engine.select(gram, y, likelihood, turn, report)
        self._memory(y).results.clear()

    def loosened(self) -> Self:
        """Return the problem for an optimiser, its engine no more exact than the objective needs."""
        engine = self.engine.loosened(self.objective)
        return replace(self, engine=engine, is_optimised=True, cache={})

    def evaluate(
        self, values, thresholds, noise, y, memory: Memory | None = None
    ) -> tuple[float, Gradient]:
        """Return the objective and its gradient.

        A sampler starts each trajectory where it has been in the last one: results are kept for a while.
        """
        memory = self._memory(y) if memory is None else memory.of(y)
        key = b"".join(x.tobytes() for x in map(np.asarray, (*values, thresholds, noise)))
        known = memory.recall(key)
        if known is None:
            with blas_threads(len(self.X)):
                loosely = not self.is_optimised
                posterior = self.posterior(values, thresholds, noise, y, loosely, memory)
                known = OBJECTIVES[self.objective](posterior)
            if known[0] > 0.0 and not posterior.status.converged:
                raise ArithmeticError("a log probability above zero")
            memory.keep(key, known)
        return known


class OrdinalEvidence(ProblemOp, ValueWithGradient):
    """An engine's objective as a function of kernel parameters, thresholds and noise.

    Parameters
    ----------
    problem : Problem
        Data, covariance, engine and objective.
    """

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self.n_differentiable = len(problem.kernel.parameters) + 2

    def make_node(self, *inputs):
        """Take the kernel's parameters, the thresholds, the noise and the class codes."""
        *floats, y = inputs
        floats = [pt.cast(pt.as_tensor(x), "float64") for x in floats]
        y = pt.as_tensor(y)
        if not y.type.dtype.startswith("float"):  # of those `perform` sees whether they are whole
            y = pt.cast(y, "int64")
        outputs = [pt.scalar(dtype="float64"), *(x.type() for x in floats)]
        return self.node([*floats, y], outputs)

    def infer_shape(self, node, shapes):
        """Give each gradient its input's shape."""
        return [(), *shapes[: self.n_differentiable]]

    def prepare_node(self, node, storage_map, compute_map, impl):
        """Begin without memory: a function does not depend on those compiled before it."""
        refuse_pointwise_density()
        super().prepare_node(node, storage_map, compute_map, impl)
        node.tag.chains = Chains()

    def perform(self, node, inputs, outputs):
        """Run the engine; where it breaks down, or a code is no class, the value is −∞, which samplers reject."""
        *values, thresholds, noise, y = inputs
        problem, results = self.problem, None
        if y.shape != (len(problem.X),):
            raise ValueError(
                f"the model has {len(problem.X)} labelled rows, got {y.size} class codes"
            )
        codes = _codes(y, thresholds.size + 1)
        usable = noise > 0 and _usable(inputs[:-1]) and (thresholds[1:] > thresholds[:-1]).all()
        if usable and codes is not None:
            try:
                with np.errstate(all="ignore"):  # what overflows is found below, and rejected
                    memory = None if problem.is_optimised else node.tag.chains.mine()
                    value, gradient = problem.evaluate(values, thresholds, noise, codes, memory)
            except (np.linalg.LinAlgError, ArithmeticError):  # overflow, or noise² = 0
                pass
            else:
                parts = [*gradient.parameters, gradient.thresholds, gradient.log_noise / noise]
                if _usable([value, *parts]):
                    results = parts
        outputs[0][0] = np.asarray(-np.inf if results is None else value, dtype="float64")
        for k, x in enumerate(inputs[:-1]):
            part = np.zeros(x.shape) if results is None else results[k]
            outputs[k + 1][0] = np.array(part, dtype="float64").reshape(
                x.shape
            )  # others write into it


def _usable(arrays) -> bool:
    """Tell whether all numbers are finite; there are few of them."""
    return all(isfinite(x) for a in arrays for x in np.ravel(a).tolist())


def _codes(y: np.ndarray, n_classes: int) -> np.ndarray | None:
    """Return class codes as whole numbers; None if one of them is no class."""
    if not ((y >= 0) & (y < n_classes)).all():
        return None
    if y.dtype == np.int64:
        return y
    codes = y.astype(np.int64)
    return codes if np.array_equal(codes, y) else None
