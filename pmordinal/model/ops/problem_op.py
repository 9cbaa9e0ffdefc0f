"""Base classes of our PyTensor Ops: a value with its gradients, and Ops that refer to data.

PyTensor keeps every Op that was in a graph for as long as the process lasts. So an Op has only a weak reference to its
data. The nodes of graphs, and the functions compiled from them, own the data, which are freed with the last of these.
"""

import weakref
from typing import Any

from pytensor.gradient import DisconnectedType, disconnected_type, grad_not_implemented
from pytensor.graph import Apply

from pmordinal.model.ops.numpy_op import NumpyOp


class ValueWithGradient(NumpyOp):
    """Op whose outputs are a value and, after it, its derivative by each differentiable input."""

    n_differentiable: int

    def connection_pattern(self, node):
        """Connect every output with the differentiable inputs, also the gradients (see pullback)."""
        rows = [[True] * len(node.outputs)] * self.n_differentiable
        return rows + [[False] * len(node.outputs)] * (len(node.inputs) - self.n_differentiable)

    def pullback(self, inputs, outputs, cotangents):
        """Multiply the stored derivatives with the value's cotangent."""
        if any(not isinstance(c.type, DisconnectedType) for c in cotangents[1:]):
            message = f"second derivatives of {self} are not implemented"
            differentiable = enumerate(inputs[: self.n_differentiable])
            grads = [grad_not_implemented(self, i, x, message) for i, x in differentiable]
        else:
            grads = [cotangents[0] * out for out in outputs[1:]]
        return grads + [disconnected_type()] * (len(inputs) - len(grads))


class ProblemOp(NumpyOp):
    """Op that refers to a problem: data, and what is computed from them once.

    Parameters
    ----------
    problem : hashable
        Nodes made by `node` own it. A rewritten graph without such nodes can use it as long as the model exists.
    """

    __props__: tuple[str, ...] = ("known",)
    __str__ = NumpyOp.__str__

    def __init__(self, problem: Any):
        self.known = weakref.ref(problem)

    @property
    def problem(self) -> Any:
        """The data that the Op refers to."""
        problem = self.known()
        if problem is None:
            raise ReferenceError(f"{self}: the model is gone, and its data with it: keep the model")
        return problem

    def node(self, inputs, outputs) -> Apply:
        """Return a node of the Op that keeps the problem alive."""
        return hold(Apply(self, inputs, outputs), self.problem)

    def prepare_node(self, node, storage_map, compute_map, impl):
        """Make the compiled function keep the problem alive."""
        hold(node, self.problem)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle with the problem itself."""
        return self.__dict__ | {"known": self.problem}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Refer to the problem weakly again; the nodes are pickled too, and own it."""
        self.__dict__.update(state, known=weakref.ref(state["known"]))


def hold(node: Apply, problem: Any) -> Apply:
    """Make a node, and copies of it, keep a problem alive; return the node."""
    node.tag.problem = problem
    return node
