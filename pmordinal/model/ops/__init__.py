"""PyTensor Ops: the likelihood, an engine's objective, and base classes of Ops that run in NumPy."""

from pmordinal.model.ops import jax_versions  # noqa: F401 (PyTensor's JAX mode is told of it)
from pmordinal.model.ops.evidence import OrdinalEvidence, PriorLatent
from pmordinal.model.ops.interval import IntervalLogProb, LinkQuantile
from pmordinal.model.ops.numpy_op import NumpyOp
from pmordinal.model.ops.problem_op import ProblemOp, ValueWithGradient, hold

__all__ = [
    "IntervalLogProb",
    "LinkQuantile",
    "NumpyOp",
    "OrdinalEvidence",
    "PriorLatent",
    "ProblemOp",
    "ValueWithGradient",
    "hold",
]
