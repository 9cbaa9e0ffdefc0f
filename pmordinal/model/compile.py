"""Runs PyTensor graphs of a few numbers in NumPy, without compilation.

Hyperparameters, their priors and their transforms are a graph of about a hundred operations on numbers and short
vectors. Compiling it takes seconds. PyTensor's own interpreter takes a millisecond for each run; calling NumPy's
functions one after the other takes less than a tenth of that.
"""

import operator
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
import pymc as pm
from pytensor import config
from pytensor.compile.mode import Mode
from pytensor.graph import Apply, Constant
from pytensor.graph.op import _NoPythonOp
from pytensor.link.basic import JITLinker
from pytensor.link.utils import fgraph_to_python
from pytensor.scalar.math import Softplus
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.subtensor import IncSubtensor, Subtensor, unflatten_index_variables
from pytensor.tensor.type import TensorType
from pytensor.tensor.utils import import_func_from_string

DEFAULT = ("Mode", "auto")  # PyTensor's mode and linker if users have not chosen any

type Function = Callable[..., Any]

# On numbers these take a tenth of the time of NumPy's functions; on arrays they do the same.
OPERATORS: dict[str, Function] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "true_divide": operator.truediv,
    "negative": operator.neg,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "less": operator.lt,
    "less_equal": operator.le,
    "square": lambda x: x * x,
    "softplus": lambda x: np.logaddexp(0.0, x),  # our own name
}
# Ops for which PyTensor gives no NumPy function: our name for it, number of inputs and of outputs.
NAMED = {Softplus: ("softplus", 1, 1)}


class NumpyLinker(JITLinker):
    """Turns a graph into a Python function that calls NumPy.

    Inside it, an array known to have one entry is a plain number, whatever its number of axes.
    """

    incompatible_rewrites = ("cxx_only", "BlasOpt", "fusion", "inplace")

    def fgraph_convert(self, fgraph, order, storage_map, **_):
        """Return the function; it gives no warnings of overflow, as the results show it."""
        if not fgraph.outputs:
            return lambda *_: None
        run = fgraph_to_python(
            fgraph, _convert, type_conversion_fn=_stored, order=order, storage_map=storage_map
        )
        enter, leave = _converter(_inside, fgraph.inputs), _converter(_outside, fgraph.outputs)

        def quietly(*inputs):
            with np.errstate(all="ignore"):
                return leave(run(*enter(inputs)))

        return quietly

    def create_thunk_inputs(self, storage_map):
        """Return the storage cells of the inputs."""
        return [storage_map[v] for v in self.fgraph.inputs]

    def jit_compile(self, fn):
        """Return the function unchanged."""
        return fn


OFTEN = Mode(linker=NumpyLinker(), optimizer="fast_run")


class SmallModel(pm.Model):
    """A model whose log density is a small graph of numbers around one large operation.

    Its functions run in NumPy unless another mode is set, by an argument or in PyTensor's configuration. So the
    first draw of a sampler need not wait for a compiler.
    """

    def compile_fn(self, outs, *, mode=None, **kwargs):
        """Return a function of the model's variables; see `pm.Model`."""
        return super().compile_fn(outs, mode=_or_interpreted(mode), **kwargs)

    def logp_dlogp_function(self, *args, mode=None, **kwargs):
        """Return the log density with its gradient; see `pm.Model`."""
        return super().logp_dlogp_function(*args, mode=_or_interpreted(mode), **kwargs)


def _or_interpreted(mode):
    chosen = mode is not None or (config.mode, config.linker) != DEFAULT
    return mode if chosen else OFTEN


def _is_number(kind) -> bool:
    return isinstance(kind, TensorType) and all(length == 1 for length in kind.shape)


def _inside(kind) -> Function | None:
    """Return how to convert an input of this type: an array of one entry to a number, others not (None)."""
    return operator.itemgetter((0,) * kind.ndim) if _is_number(kind) else None


def _outside(kind) -> Function | None:
    """Return how to convert a result to an array of this type; None if it is one already."""
    if not _is_number(kind):
        return None  # it is an array already
    dtype, ndim = kind.dtype, kind.ndim
    return lambda x: np.array(x, dtype, ndmin=ndim)  # faster than np.full


def _converter(how: Callable[[Any], Function | None], variables) -> Callable[[Any], list]:
    """Return a function that converts the values of these variables."""
    changed = [(k, f) for k, v in enumerate(variables) if (f := how(v.type)) is not None]

    def convert(values):
        values = list(values)
        for k, f in changed:
            values[k] = f(values[k])
        return values

    return convert


def _stored(value, variable=None, **_):
    """Return the converted value of a constant or of a shared variable."""
    convert = None if variable is None or value is None else _inside(variable.type)
    return value if convert is None else convert(value)


def _convert(op, node: Apply, **_) -> Function:
    return _numpy(op, node) or _perform(op, node)


def _perform(op, node: Apply) -> Function:
    """Return a function that runs the Op's own Python code."""
    leave, enter = _converter(_outside, node.inputs), _converter(_inside, node.outputs)
    count = len(node.outputs)
    if isinstance(op, _NoPythonOp):  # such as ifelse
        perform = _thunk(op)
    else:
        op.prepare_node(node, None, None, "py")
        perform = op.perform

    def run(*inputs):
        cells: list[list[Any]] = [[None] for _ in range(count)]
        perform(node, leave(inputs), cells)
        results = enter(cell[0] for cell in cells)
        return results[0] if count == 1 else results

    return run


def _thunk(op) -> Function:
    """Return a replacement for `perform`, for an Op that has only a thunk."""

    def perform(node, inputs, cells):
        storage = {v: [x] for v, x in zip(node.inputs, inputs, strict=True)}
        storage |= dict(zip(node.outputs, cells, strict=True))
        computed = {v: [v not in node.outputs] for v in storage}
        op.make_thunk(node, storage, computed, [], "py")()

    return perform


@singledispatch
def _numpy(op, node: Apply) -> Function | None:
    """Return a NumPy function that does the same as the Op; None if there is no simple one."""
    return None


@_numpy.register
def _(op: Elemwise, node: Apply) -> Function | None:
    specification = op.nfunc_spec or NAMED.get(type(op.scalar_op))
    # NumPy might broadcast arrays of unknown lengths where PyTensor would raise.
    if specification is None or any(None in v.type.shape for v in node.inputs):
        return None
    name, arity, _ = specification
    if name == "where":
        return _choice(node)
    function = OPERATORS.get(name) or import_func_from_string(name)
    if function is None:
        return None
    if len(node.inputs) != arity:
        if not getattr(op.scalar_op, "associative", False):
            return None
        function = _repeated(function)
    with np.errstate(all="ignore"):
        example = function(*(np.ones((), v.type.dtype)[()] for v in node.inputs))
    return function if np.asarray(example).dtype == node.outputs[0].type.dtype else None


def _repeated(binary: Function) -> Function:
    """Return a function of several values that applies a function of two values repeatedly."""

    def join(first, second, *others):
        first = binary(first, second)
        for other in others:
            first = binary(first, other)
        return first

    return join


def _choice(node: Apply) -> Function | None:
    """Return a function that chooses one of two values by a single condition."""
    condition, *values = node.inputs
    out = node.outputs[0].type
    if not _is_number(condition.type):
        return None
    fixed = []
    for v in values:
        if isinstance(v, Constant):
            fixed.append(_stored(np.full(out.shape, v.data, out.dtype), node.outputs[0]))
        elif (v.type.dtype, v.type.shape) == (out.dtype, out.shape):
            fixed.append(None)
        else:
            return None
    first, second = fixed

    def choose(condition, yes, no):
        if condition:
            return yes if first is None else first
        return no if second is None else second

    # A result must not share memory with the inputs.
    return choose if _is_number(out) else lambda *inputs: choose(*inputs).copy()


@_numpy.register
def _(op: DimShuffle, node: Apply) -> Function | None:
    if _is_number(node.inputs[0].type):
        return lambda x: x
    if any(node.inputs[0].type.shape[axis] != 1 for axis in op.drop):
        return None  # PyTensor would raise
    order = [*op.shuffle, *op.drop]
    kept = (None if axis == "x" else slice(None) for axis in op.new_order)
    index = (*kept, *(0 for _ in op.drop))
    if order == sorted(order):
        return lambda x: x[index]
    return lambda x: x.transpose(order)[index]


@_numpy.register
def _(op: CAReduce, node: Apply) -> Function | None:
    kind = node.outputs[0].type
    is_plain = not _is_number(node.inputs[0].type) and _is_number(kind) == (kind.ndim == 0)
    if not is_plain or op.acc_dtype not in (None, kind.dtype):
        return None
    reducer, axis, dtype = op.ufunc.reduce, op.axis, kind.dtype
    return lambda x: reducer(x, axis, dtype)


@_numpy.register
def _(op: Subtensor, node: Apply) -> Function | None:
    x, *indices = node.inputs
    index = _fixed_index(op, x, indices)
    if index is None:
        return None
    if _is_number(node.outputs[0].type):
        if node.outputs[0].type.ndim == 0:
            return lambda x, *_: x[index]
        return lambda x, *_: x[index].reshape(())[()]
    return lambda x, *_: x[index]


@_numpy.register
def _(op: IncSubtensor, node: Apply) -> Function | None:
    x, _, *indices = node.inputs
    index, sets = _fixed_index(op, x, indices), op.set_instead_of_inc
    if index is None:
        return None

    def increase(x, y, *_):
        x = x.copy()
        x[index] = y if sets else x[index] + y
        return x

    return increase


def _fixed_index(op: Subtensor | IncSubtensor, x, indices) -> tuple | None:
    """Return the index into an array; None if it is not constant, or if the array is a number."""
    if not all(isinstance(v, Constant) for v in indices) or _is_number(x.type):
        return None
    return tuple(unflatten_index_variables([v.data.item() for v in indices], op.idx_list))


@_numpy.register
def _(op: Alloc, node: Apply) -> Function | None:
    out = node.outputs[0].type
    if None in (*out.shape, *node.inputs[0].type.shape) or _is_number(out):
        return None
    return lambda value, *_: np.full(out.shape, value, out.dtype)


@_numpy.register
def _(op: Join, node: Apply) -> Function | None:
    """Copy vectors of known lengths into one."""
    out = node.outputs[0].type
    shapes = [v.type.shape for v in node.inputs]
    if any(len(shape) != 1 or None in shape for shape in shapes):
        return None
    places, end = [], 0
    for (length,) in shapes:
        places.append(slice(end, end + length))
        end += length

    def join(*values):
        joined = np.empty(end, out.dtype)
        for place, value in zip(places, values, strict=True):
            joined[place] = value
        return joined

    return join
