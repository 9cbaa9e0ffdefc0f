"""Registers the JAX versions of our Ops when a graph is compiled for JAX, which is not imported before."""

from pytensor.compile.mode import optdb
from pytensor.graph.rewriting.basic import GraphRewriter

from pmordinal.model.ops.numpy_op import NumpyOp


class LoadJaxVersions(GraphRewriter):
    """A rewrite that leaves the graph unchanged, but imports the JAX versions of its Ops."""

    def apply(self, fgraph):
        """Import the JAX versions if one of our Ops is in the graph."""
        if any(isinstance(node.op, NumpyOp) for node in fgraph.apply_nodes):
            import pmordinal.model.ops.jax  # noqa: F401


optdb.register("pmordinal_jax_versions", LoadJaxVersions(), "jax", position=0)
