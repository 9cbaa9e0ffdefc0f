"""What some PyTensor Ops here have in common: gradients beside their value, and data that they know.

PyTensor keeps every Op that it has met in a graph as long as the process lasts. So an Op does not hold its data: the
nodes of graphs do, and the functions compiled from them, and the data die with the last of these.
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
    """Op of a problem: data and what is computed from them once.

    Parameters
    ----------
    problem : hashable
        Nodes made by `node` hold it. A graph that lost all of these on its way still finds it as long as the model is
        there.
    """

    __props__: tuple[str, ...] = ("known",)
    __str__ = NumpyOp.__str__

    def __init__(self, problem: Any):
        self.known = weakref.ref(problem)

    @property
    def problem(self) -> Any:
        """What the Op knows."""
        problem = self.known()
        if problem is None:
            raise ReferenceError(f"{self}: the model is gone, and its data with it: keep the model")
        return problem

    def node(self, inputs, outputs) -> Apply:
        """Return a node of the Op that holds the problem."""
        return hold(Apply(self, inputs, outputs), self.problem)

    def prepare_node(self, node, storage_map, compute_map, impl):
        """Let the compiled function hold the problem."""
        hold(node, self.problem)

    def __getstate__(self) -> dict[str, Any]:
        """Take the problem along."""
        return self.__dict__ | {"known": self.problem}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Leave the problem to the nodes, which come along too."""
        self.__dict__.update(state, known=weakref.ref(state["known"]))


def hold(node: Apply, problem: Any) -> Apply:
    """Let a node, and what it is copied to, hold a problem; return the node."""
    node.tag.problem = problem
    return node
