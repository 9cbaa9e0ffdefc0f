"""Tells JAX about the Ops of a graph: JAX is imported by who uses it only."""

from pytensor.compile.mode import optdb
from pytensor.graph.rewriting.basic import GraphRewriter

from pmordinal.model.ops.numpy_op import NumpyOp


class LoadJaxVersions(GraphRewriter):
    """Changes nothing in a graph, but tells JAX about its Ops: JAX is imported by who uses it only."""

    def apply(self, fgraph):
        """Import the versions for JAX if there is an Op that has or lacks one."""
        if any(isinstance(node.op, NumpyOp) for node in fgraph.apply_nodes):
            import pmordinal.model.ops.jax  # noqa: F401


optdb.register("pmordinal_jax_versions", LoadJaxVersions(), "jax", position=0)
