"""Ops that run in NumPy, also inside graphs that Numba compiles."""

import pickle
import weakref

import numba
from pytensor.graph import Op


class NumpyOp(Op):
    """Op that works in vectorised NumPy or BLAS: compiled graphs call its `perform`."""

    def __str__(self) -> str:
        """Return only the name of the class, without data, for graphs and error messages.

        PyTensor replaces this method in every class with `__props__` that does not define it again.
        """
        return type(self).__name__


class _Weak(weakref.ref):
    """A weak reference that tells Numba in its own words that it cannot be stored.

    Numba asks whether it can store a function, and some of its versions know one error only as a no.
    """

    def __reduce_ex__(self, protocol):
        raise pickle.PicklingError("a weak reference holds for one process")


def _numba_numpy_op(op, node, **kwargs):
    op.prepare_node(node, None, None, "py")
    signature = numba.types.Tuple([get_numba_type(out.type) for out in node.outputs])
    count = len(node.outputs)
    single = count == 1
    # Weak, since Numba keeps its last functions; the graph of PyTensor's function keeps the node alive.
    known = _Weak(node)

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
    # PyTensor can write compiled code to no folder. It says so when one compiles; a fit does not compile.
    pass
else:
    numba_funcify.register(NumpyOp)(_numba_numpy_op)
