"""Ops that run in NumPy, also inside graphs that Numba compiles."""

import weakref

import numba
from pytensor.graph import Op


class NumpyOp(Op):
    """Op that works in vectorised NumPy or BLAS: compiled graphs call its `perform`."""

    def __str__(self) -> str:
        """Return the name alone: the data do not belong in graphs and error messages.

        PyTensor writes one of its own for every class with `__props__` that does not repeat this one.
        """
        return type(self).__name__


def _numba_numpy_op(op, node, **kwargs):
    op.prepare_node(node, None, None, "py")
    signature = numba.types.Tuple([get_numba_type(out.type) for out in node.outputs])
    count = len(node.outputs)
    single = count == 1
    # Numba keeps its last functions, and the graph of PyTensor's function holds the node.
    known = weakref.ref(node)

    def call(inputs):
        storage = [[None] for _ in range(count)]
        op.perform(known(), inputs, storage)
        return tuple(cell[0] for cell in storage)

    @numba_njit
    def perform(*inputs):
        with numba.objmode(ret=signature):
            ret = call(inputs)
        return ret[0] if single else ret

    return perform


try:
    from pytensor.link.numba.dispatch.basic import get_numba_type, numba_funcify, numba_njit
except OSError:
    # No folder for PyTensor's compiled code can be written. PyTensor says so to whoever compiles; a fit need not.
    pass
else:
    numba_funcify.register(NumpyOp)(_numba_numpy_op)
