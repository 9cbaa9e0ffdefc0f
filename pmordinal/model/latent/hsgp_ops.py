"""A Hilbert-space approximation of a Gaussian process (HSGP), as PyTensor Ops.

f = Φ D β with m eigenfunctions Φ of the Laplacian, D the roots of the spectral density and white β [RiutortMayol2023].
As in `whitening`, β is sampled in coordinates that would be white if each label were a measurement of f in the centre
of its class with precision w: with A = I + w D ΦᵀΦ D = L Lᵀ and c the centres of the rows,

    β = L^−ᵀ v + A⁻¹ x,    x = w D Φᵀ c,

and the prior gives v the density of β over |L|. The derivative through L is that of [Murray2016].
"""

from dataclasses import dataclass, field

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph import Apply
from scipy.linalg import lapack

from pmordinal.data.by_row import ByRow
from pmordinal.data.features import Features
from pmordinal.data.labels import Labels
from pmordinal.gram.graph import ONCE
from pmordinal.linalg import half_solve
from pmordinal.linalg.threads import blas_threads
from pmordinal.links import Link
from pmordinal.model.latent.process_ops import Continuation
from pmordinal.model.ops.numpy_op import NumpyOp
from pmordinal.model.ops.problem_op import ProblemOp


@dataclass(frozen=True, eq=False)
class Basis:
    """The basis: eigenfunctions whose weighted sum approximates the process.

    Attributes
    ----------
    gp : pm.gp.HSGP
    phi : ndarray, shape (n, m)
        The functions at the rows.
    X : ndarray, shape (n, d)
    features, labels, link
        What the rows and classes are called, and the noise's distribution.
    by_row : ByRow
        Groups and weights of the rows.
    gram : ndarray, shape (m, m)
        ΦᵀΦ.
    """

    gp: pm.gp.HSGP
    phi: np.ndarray
    X: np.ndarray
    features: Features
    labels: Labels
    link: Link
    by_row: ByRow = field(default_factory=ByRow)
    gram: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the products of the functions."""
        object.__setattr__(self, "gram", self.phi.T @ self.phi)

    @property
    def tally(self) -> np.ndarray:
        """Sums of the functions over the rows of each class, shape (m, r)."""
        codes = self.labels.codes[self.labels.observed]
        return self.phi.T @ np.eye(self.labels.n_classes)[codes]

    def continuation(self, X_star: np.ndarray) -> Continuation:
        """Return a function that gives f at other rows, which the weights determine."""
        phi = eigenfunctions(self.gp, X_star)[0]
        return lambda f, values, rng: phi @ values[0]


class BasisFactor(ProblemOp):
    """L with L Lᵀ = I + w D ΦᵀΦ D, lower triangular.

    Parameters
    ----------
    problem : Basis
    """

    def make_node(self, w, root):
        """Take the labels' precision and the diagonal of D."""
        inputs = [pt.cast(pt.as_tensor(x), "float64") for x in (w, root)]
        return self.node(inputs, [pt.tensor(dtype="float64", shape=self.problem.gram.shape)])

    def infer_shape(self, node, shapes):
        """Give the shape, which is fixed."""
        return [tuple(pt.constant(k) for k in self.problem.gram.shape)]

    def perform(self, node, inputs, outputs):
        """Factorise; NaN where that fails."""
        w, D = inputs
        G = self.problem.gram
        with np.errstate(all="ignore"), blas_threads(len(G)):
            A = np.asfortranarray(w * D * G * D[:, None])
            A.flat[:: len(G) + 1] += 1.0
            L, info = lapack.dpotrf(A, lower=1, overwrite_a=1)
        outputs[0][0] = np.full(G.shape, np.nan) if info else np.ascontiguousarray(L)

    def pullback(self, inputs, outputs, cotangents):
        """Return the derivatives by w and D."""
        return BasisFactorPullback(self.problem).make_node(cotangents[0], *outputs, *inputs).outputs


class BasisFactorPullback(ProblemOp):
    """Derivatives of `BasisFactor`.

    Parameters
    ----------
    problem : Basis
    """

    def make_node(self, dL, L, w, root):
        """Take the cotangent, the factor and its inputs."""
        return self.node([dL, L, w, root], [w.type(), root.type()])

    def infer_shape(self, node, shapes):
        """Give each derivative its input's shape."""
        return shapes[2:]

    def perform(self, node, inputs, outputs):
        """Evaluate dA = L^−ᵀ Φ(Lᵀ dL) L⁻¹, Φ the lower triangle with half its diagonal [Murray2016]."""
        dL, L, w, D = inputs
        G = self.problem.gram
        with np.errstate(all="ignore"), blas_threads(len(G)):
            P = np.tril(L.T @ np.tril(dL))
            P.flat[:: len(G) + 1] *= 0.5
            dA = lapack.dtrtrs(L, P, lower=1, trans=1)[0]
            dA = lapack.dtrtrs(L, dA.T, lower=1, trans=1)[0]
            dA = 0.5 * (dA + dA.T) * G
        outputs[0][0] = np.asarray(D @ dA @ D)
        outputs[1][0] = 2.0 * w * (dA @ D)


class BasisWeights(NumpyOp):
    """β = L^−ᵀ v + A⁻¹ x."""

    __props__ = ()

    def make_node(self, v, x, L):
        """Take the coordinates, x and the factor."""
        inputs = [pt.cast(pt.as_tensor(y), "float64") for y in (v, x, L)]
        return Apply(self, inputs, [inputs[0].type()])

    def infer_shape(self, node, shapes):
        """Give β the shape of v."""
        return [shapes[0]]

    def perform(self, node, inputs, outputs):
        """Solve."""
        v, x, L = inputs
        outputs[0][0] = lapack.dtrtrs(L, v + half_solve(L, x), lower=1, trans=1)[0]

    def pullback(self, inputs, outputs, cotangents):
        """Return the derivatives."""
        return BasisWeightsPullback().make_node(cotangents[0], *inputs, *outputs).outputs


class BasisWeightsPullback(NumpyOp):
    """Derivatives of `BasisWeights`."""

    __props__ = ()

    def make_node(self, db, v, x, L, b):
        """Take the cotangent, the inputs and β."""
        return Apply(self, [db, v, x, L, b], [v.type(), x.type(), L.type()])

    def infer_shape(self, node, shapes):
        """Give each derivative its input's shape."""
        return shapes[1:4]

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        db, _, x, L, b = inputs
        dv = half_solve(L, db)
        dx = lapack.dtrtrs(L, dv, lower=1, trans=1)[0]
        dL = np.multiply.outer(-b, dv)
        dL -= np.multiply.outer(dx, half_solve(L, x))
        outputs[0][0], outputs[1][0], outputs[2][0] = dv, dx, np.tril(dL)


class BasisCoordinates(NumpyOp):
    """The coordinates v = Lᵀ β − L⁻¹ x of weights β; a draw from their prior if β is white."""

    __props__ = ()

    def make_node(self, weights, x, L):
        """Take β, x and the factor."""
        inputs = [pt.cast(pt.as_tensor(y), "float64") for y in (weights, x, L)]
        return Apply(self, inputs, [inputs[0].type()])

    def infer_shape(self, node, shapes):
        """Give v the shape of β."""
        return [shapes[0]]

    def perform(self, node, inputs, outputs):
        """Multiply and solve."""
        weights, x, L = inputs
        outputs[0][0] = L.T @ weights - half_solve(L, x)


class BasisValues(ProblemOp):
    """f = Φ weights at the rows.

    Parameters
    ----------
    problem : Basis
    transposed : bool
        Multiply with Φᵀ instead.
    """

    __props__ = ("known", "transposed")
    __str__ = NumpyOp.__str__

    def __init__(self, problem: Basis, transposed: bool = False):
        super().__init__(problem)
        self.transposed = transposed

    def _matrix(self) -> np.ndarray:
        return self.problem.phi.T if self.transposed else self.problem.phi

    def make_node(self, x):
        """Take a vector."""
        x = pt.cast(pt.as_tensor(x), "float64")
        return self.node([x], [pt.tensor(dtype="float64", shape=(self._matrix().shape[0],))])

    def infer_shape(self, node, shapes):
        """Give the output the number of rows."""
        return [(pt.constant(self._matrix().shape[0]),)]

    def perform(self, node, inputs, outputs):
        """Multiply."""
        outputs[0][0] = self._matrix() @ inputs[0]

    def pullback(self, inputs, outputs, cotangents):
        """Multiply with the transpose."""
        return [BasisValues(self.problem, not self.transposed)(cotangents[0])]


def eigenfunctions(gp: pm.gp.HSGP, X: np.ndarray):
    """Return the eigenfunctions at rows as an array, and the roots of the spectral density."""
    phi, root = gp.prior_linearized(X)
    return phi.eval(mode=ONCE), root
