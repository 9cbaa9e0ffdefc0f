"""PyTensor Ops of an engine's objective, and of prior draws of the latent function.

The objective is one Op: its first output is the value, the others are its gradients, so that both are computed
together, once. Second derivatives raise an error rather than count as zero.
"""

from math import isfinite

import numpy as np
import pytensor.tensor as pt

from pmordinal.gram import Gram
from pmordinal.likelihood import OutOfRange
from pmordinal.linalg import factor_psd
from pmordinal.model.memory import Chains
from pmordinal.model.ops.problem_op import ProblemOp, ValueWithGradient
from pmordinal.model.problem import Problem
from pmordinal.model.unsupported import refuse_pointwise_density, refuse_predictive_draws


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
        """Raise if the draws are for ``pm.sample_posterior_predictive``."""
        refuse_predictive_draws()
        super().prepare_node(node, storage_map, compute_map, impl)

    def infer_shape(self, node, shapes):
        """Give the output the shape of the noise."""
        return [shapes[0]]

    def perform(self, node, inputs, outputs):
        """Return R z; the covariance matrix may be singular."""
        z, *values = inputs
        R = factor_psd(Gram(self.problem.kernel, self.problem.X, values).matrix)
        outputs[0][0] = R @ z[: R.shape[1]]


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
        if not y.type.dtype.startswith("float"):  # `perform` checks floats
            y = pt.cast(y, "int64")
        outputs = [pt.scalar(dtype="float64"), *(x.type() for x in floats)]
        return self.node([*floats, y], outputs)

    def infer_shape(self, node, shapes):
        """Give each gradient its input's shape."""
        return [(), *shapes[: self.n_differentiable]]

    def prepare_node(self, node, storage_map, compute_map, impl):
        """Start with an empty memory, so that results do not depend on functions compiled before."""
        refuse_pointwise_density()
        super().prepare_node(node, storage_map, compute_map, impl)
        node.tag.chains = Chains()

    def perform(self, node, inputs, outputs):
        """Run the engine; if it fails, or a code is no class, the value is −∞, which samplers reject."""
        *values, thresholds, noise, y = inputs
        problem, results = self.problem, None
        if y.shape != (len(problem.X),):
            raise ValueError(
                f"the model has {len(problem.X)} labelled rows, got {y.size} class codes"
            )
        codes = _codes(y, thresholds.shape[-1] + 1)
        if codes is not None and _are_finite(values):
            try:
                with np.errstate(all="ignore"):  # overflow is checked below
                    memory = None if problem.is_optimised else node.tag.chains.mine()
                    value, gradient = problem.evaluate(values, thresholds, noise, codes, memory)
            except (np.linalg.LinAlgError, ArithmeticError, OutOfRange):  # overflow, or noise² = 0
                pass
            else:
                parts = [*gradient.parameters, gradient.thresholds, gradient.log_noise / noise]
                if _are_finite([value, *parts]):
                    results = parts
        outputs[0][0] = np.asarray(-np.inf if results is None else value, dtype=float)
        for k, x in enumerate(inputs[:-1]):
            part = np.zeros(x.shape) if results is None else results[k]
            # a copy, since PyTensor may write into it
            outputs[k + 1][0] = np.array(part, dtype=float).reshape(x.shape)


def _are_finite(arrays) -> bool:
    """Tell whether all numbers are finite; in plain Python, as there are few of them."""
    return all(all(map(isfinite, np.asarray(a).ravel().tolist())) for a in arrays)


def _codes(y: np.ndarray, n_classes: int) -> np.ndarray | None:
    """Return class codes as whole numbers; None if one of them is no class."""
    if not ((y >= 0) & (y < n_classes)).all():
        return None
    if y.dtype == np.int64:
        return y
    codes = y.astype(np.int64)
    return codes if np.array_equal(codes, y) else None
