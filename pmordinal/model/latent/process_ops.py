"""A Gaussian process at the training rows, as PyTensor Ops.

The covariance matrix, its eigenvalues and their derivatives are computed inside Ops, so that no n × n graph is
compiled. Each Op has a `problem`, which can also draw the function at other rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_type

from pmordinal.data.by_row import ByRow
from pmordinal.data.features import Features
from pmordinal.data.labels import Labels
from pmordinal.gram import Gram, Kernel
from pmordinal.linalg import factor_psd
from pmordinal.linalg.threads import blas_threads
from pmordinal.links import Link
from pmordinal.model.latent.whitening import Derivatives, Whitening
from pmordinal.model.ops.problem_op import ProblemOp

KNOWN = 1e-6  # directions in which f varies less, relative to the largest, are ignored

type Continuation = Callable[[np.ndarray, Sequence[np.ndarray], np.random.Generator], np.ndarray]
"""Takes f at the training rows, the parameters of the Op and a generator; returns f at the other rows."""


@dataclass(frozen=True, eq=False)
class Process:
    """The data that Ops of latent values refer to."""

    kernel: Kernel
    X: np.ndarray
    features: Features
    labels: Labels
    link: Link
    by_row: ByRow = field(default_factory=ByRow)
    whitening: Whitening = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the whitened coordinates."""
        codes = self.labels.codes[self.labels.observed]
        whitening = Whitening(self.kernel, self.X, codes, self.labels.n_classes)
        object.__setattr__(self, "whitening", whitening)

    def continuation(self, X_star: np.ndarray) -> Continuation:
        """Return a function that draws f at other rows, jointly, given f at the training rows."""
        first = np.unique(self.whitening.inverse, return_index=True)[1]

        def draw(f, values, rng):
            gram = Gram(self.kernel, self.whitening.X, values)
            R = factor_psd(gram.matrix)
            # f = R z with z = R⁺ f, and Cov(z, f*) = R⁺ k*, also for singular K
            both = np.column_stack([f[first], gram.cross(X_star)])
            z, *A = np.linalg.lstsq(R, both, rcond=KNOWN)[0].T
            rest = self.kernel.matrix(gram.values, X_star)[0] - np.array(A) @ np.transpose(A)
            S = factor_psd(0.5 * (rest + rest.T))
            return np.array(A) @ z + S @ rng.standard_normal(S.shape[1])

        return draw


class Spectrum(ProblemOp):
    """Eigenvectors Q and roots s of the eigenvalues of K̃, from the kernel's parameters.

    Only functions of K̃ are differentiated, which Q and s represent. By convention the cotangent of Q is
    the derivative by K̃ in the basis Q, and s has none.
    """

    def make_node(self, *values):
        """Take the kernel's parameters."""
        values = [pt.cast(pt.as_tensor(x), "float64") for x in values]
        u = self.problem.whitening.size
        return self.node(values, [pt.tensor(dtype="float64", shape=k) for k in ((u, u), (u,))])

    def infer_shape(self, node, shapes):
        """Give the shapes, which are fixed."""
        u = pt.constant(self.problem.whitening.size)
        return [(u, u), (u,)]

    def perform(self, node, inputs, outputs):
        """Evaluate; NaN where the matrix is not finite."""
        u = self.problem.whitening.size
        try:
            with np.errstate(all="ignore"), blas_threads(u):
                Q, s = self.problem.whitening.spectrum(inputs)
        except np.linalg.LinAlgError:
            Q, s = np.full((u, u), np.nan), np.full(u, np.nan)
        outputs[0][0], outputs[1][0] = Q, s

    def pullback(self, inputs, outputs, cotangents):
        """Return the derivatives by the parameters."""
        return SpectrumPullback(self.problem).make_node(cotangents[0], outputs[0], *inputs).outputs


class SpectrumPullback(ProblemOp):
    """Derivatives by the kernel's parameters, given the derivative by K̃ in the basis Q."""

    def make_node(self, M, Q, *values):
        """Take that derivative, the basis and the parameters."""
        return self.node([M, Q, *values], [x.type() for x in values])

    def infer_shape(self, node, shapes):
        """Give each derivative its parameter's shape."""
        return shapes[2:]

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        M, Q, *values = inputs
        with np.errstate(all="ignore"), blas_threads(len(Q)):
            found = self.problem.whitening.spectrum_pullback(M, Q, values)
        for cell, part, x in zip(outputs, found, values, strict=True):
            cell[0] = np.asarray(part, dtype="float64").reshape(np.shape(x))


class FieldFunction(ProblemOp):
    """A function of the coordinates v, the classes' centres, the labels' precision w, and Q, s."""

    def __init__(self, problem: Process):
        super().__init__(problem)
        self.shape: tuple[int, ...] = ()

    def make_node(self, *inputs):
        """Take v, centres, w, Q and s."""
        inputs = [pt.cast(pt.as_tensor(x), "float64") for x in inputs]
        return self.node(inputs, [pt.tensor(dtype="float64", shape=self.shape)])

    def infer_shape(self, node, shapes):
        """Give the shape, which is fixed."""
        return [tuple(pt.constant(k) for k in self.shape)]

    def evaluate(self, *inputs) -> Any:
        """Return the value."""
        raise NotImplementedError

    def differentiate(self, cotangent, *inputs) -> Derivatives:
        """Return the derivatives by v, centres, w and, in the basis Q, by K̃."""
        raise NotImplementedError

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        with np.errstate(all="ignore"):
            outputs[0][0] = np.asarray(self.evaluate(*inputs), dtype="float64")

    def connection_pattern(self, node):
        """Leave s out, as Q carries the derivative by K̃."""
        return [[True], [True], [True], [True], [False]]

    def pullback(self, inputs, outputs, cotangents):
        """Return the derivatives."""
        derivatives = FieldPullback(self).make_node(cotangents[0], *inputs).outputs
        return [*derivatives, disconnected_type()]


class FieldPullback(ProblemOp):
    """Derivatives of a `FieldFunction`.

    Parameters
    ----------
    function : FieldFunction
    """

    __props__ = ("function",)

    def __init__(self, function: FieldFunction):
        super().__init__(function.problem)
        self.function = function

    def make_node(self, cotangent, *inputs):
        """Take the cotangent and the function's inputs."""
        return self.node([cotangent, *inputs], [x.type() for x in inputs[:4]])

    def infer_shape(self, node, shapes):
        """Give each derivative its input's shape."""
        return shapes[1:5]

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        with np.errstate(all="ignore"):
            found = self.function.differentiate(*inputs)
        for cell, part in zip(outputs, found, strict=True):
            cell[0] = np.asarray(part, dtype="float64")


class ProcessValues(FieldFunction):
    """f at the rows."""

    def __init__(self, problem: Process):
        super().__init__(problem)
        self.shape = (len(problem.X),)

    def evaluate(self, *inputs) -> np.ndarray:
        """Return f."""
        return self.problem.whitening.latent(*inputs)

    def differentiate(self, cotangent, *inputs) -> Derivatives:
        """Return its derivatives."""
        return self.problem.whitening.latent_pullback(cotangent, *inputs)


class ProcessDensity(FieldFunction):
    """The log density of the coordinates."""

    def evaluate(self, *inputs) -> float:
        """Return the log density; −∞ if there are no eigenvalues."""
        value = self.problem.whitening.log_density(*inputs)
        return value if np.isfinite(value) else -np.inf

    def differentiate(self, cotangent, *inputs) -> Derivatives:
        """Return its derivatives."""
        return self.problem.whitening.log_density_pullback(cotangent, *inputs)


class ProcessCoordinates(FieldFunction):
    """Coordinates v computed from white noise z, the first input: a draw from their prior."""

    def __init__(self, problem: Process):
        super().__init__(problem)
        self.shape = (problem.whitening.size,)

    def evaluate(self, *inputs) -> np.ndarray:
        """Return v."""
        return self.problem.whitening.coordinates(*inputs)
