"""`GraphKernel`: any other covariance, computed from its PyTensor graph.

The graph runs in PyTensor's Python linker. Compiling it for the Numba or C linker takes tens of seconds,
for the Python linker a tenth of a second. It is then several times slower than the kernels in NumPy.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc.gp import cov
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.tensor.random.op import RNGConsumerOp
from pytensor.tensor.type import TensorType, discrete_dtypes
from pytensor.tensor.variable import TensorVariable

from pmordinal.gram.base import Array, Columns, Kernel, Pullback

# for graphs that are run once or seldom; PyTensor's other modes call a C compiler on a fresh machine
ONCE = Mode(linker="py", optimizer="fast_compile")


class GraphKernel(Kernel):
    """A covariance compiled from its PyTensor graph on first use.

    Its parameters are the variables that the graph starts from: random variables, shared variables, inputs.
    """

    def __init__(self, cov_func: cov.BaseCovariance) -> None:
        # PyMC broadcasts only axes known to have length one, so the number of columns must be known.
        self._columns: Columns | None = None
        n_columns = None
        if isinstance(cov_func, cov.Covariance):
            n_columns = max(cov_func.input_dim, int(np.max(cov_func.active_dims)) + 1)
            self._columns = Columns(range(n_columns))
        X, Z = (pt.tensor(name, dtype="float64", shape=(None, n_columns)) for name in "XZ")
        square = cov_func(X)
        try:
            diagonal = cov_func(X, diag=True)
        except NotImplementedError:
            diagonal = pt.diagonal(square)
        graphs = {
            "square": ([X], square),
            "cross": ([X, Z], cov_func(X, Z)),
            "diagonal": ([X], diagonal),
        }
        outputs = [pt.as_tensor_variable(output) for _, output in graphs.values()]
        self.parameters = tuple(_frontier(outputs, stop={X, Z}))
        # Shared variables cannot be inputs of a function, so all parameters are replaced by new inputs.
        self._inputs = [
            pt.tensor(
                name=f"parameter_{i}",
                dtype=p.dtype if p.dtype in discrete_dtypes else "float64",
                shape=p.type.shape,
            )
            for i, p in enumerate(self.parameters)
        ]
        replace: dict[Variable, Variable] = {
            p: pt.cast(x, p.dtype) for p, x in zip(self.parameters, self._inputs, strict=True)
        }
        self._graphs = {
            name: (rows, pt.as_tensor_variable(clone_replace(output, replace)))
            for (name, (rows, _)), output in zip(graphs.items(), outputs, strict=True)
        }
        self._compiled: dict[tuple[str, bool], Callable[..., Any]] = {}

    def _function(self, name: str, gradient: bool) -> Callable[..., Any]:
        if (name, gradient) not in self._compiled:
            rows, output = self._graphs[name]
            if gradient:
                cotangent = pt.tensor("d", dtype="float64", shape=(None,) * output.ndim)
                smooth = [x for x in self._inputs if x.dtype == "float64"]
                cost = pt.sum(output * cotangent)
                outputs = pytensor.grad(cost, smooth, disconnected_inputs="ignore")
                inputs = [cotangent, *rows, *self._inputs]
            else:
                outputs, inputs = output, [*rows, *self._inputs]
            self._compiled[name, gradient] = pytensor.function(
                inputs, outputs, mode=ONCE, on_unused_input="ignore"
            )
        return self._compiled[name, gradient]

    def _evaluate(
        self, name: str, values: Sequence[Array], rows: Sequence[Array]
    ) -> tuple[Array, Pullback]:
        given = [
            np.asarray(value, dtype=x.dtype) for value, x in zip(values, self._inputs, strict=True)
        ]
        if self._columns is not None:
            rows = [self._columns(X) for X in rows]
        K = np.array(self._function(name, False)(*rows, *given), dtype=np.float64, order="F")

        def pullback(dK: Array) -> list[Array]:
            if not given:
                return []
            smooth = iter(self._function(name, True)(dK, *rows, *given))
            return [
                np.asarray(next(smooth)) if x.dtype == "float64" else np.zeros(value.shape)
                for x, value in zip(self._inputs, given, strict=True)
            ]

        return K, pullback

    def matrix(
        self, values: Sequence[Array], X: Array, Z: Array | None = None
    ) -> tuple[Array, Pullback]:
        """Return K(X, Z) and its pullback."""
        if Z is not None:
            return self._evaluate("cross", values, [X, Z])
        K, pullback = self._evaluate("square", values, [X])
        gap = np.abs(K - K.T).max(initial=0.0)
        if gap > 1e-8 * np.abs(K).max(initial=0.0):
            raise ValueError(
                f"the covariance is not symmetric: K(X) and its transpose differ by up to {gap:.3g}"
            )
        if gap > 0.0:
            K = np.asfortranarray((K + K.T) / 2.0)
        return K, pullback

    def diagonal(self, values: Sequence[Array], X: Array) -> tuple[Array, Pullback]:
        """Return k(x, x) and its pullback."""
        return self._evaluate("diagonal", values, [X])


def _frontier(outputs: Iterable[Variable], stop: set[Variable]) -> list[TensorVariable]:
    """Return the variables that the graph starts from, found by walking back from the outputs."""
    found: list[TensorVariable] = []
    seen: set[Variable] = set(stop)
    pending = list(outputs)[::-1]
    while pending:
        variable = pending.pop()
        if variable in seen:
            continue
        seen.add(variable)
        node = variable.owner
        if node is not None and not isinstance(node.op, RNGConsumerOp):
            pending.extend(reversed(node.inputs))
        elif isinstance(variable.type, TensorType) and not isinstance(variable, Constant):
            found.append(variable)  # type: ignore[arg-type]
    return found
