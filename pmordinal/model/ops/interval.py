"""The ordinal log probability of one interval, and quantiles of the noise, as PyTensor Ops."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Apply

from pmordinal.likelihood.smoothing import interval_terms
from pmordinal.links import Link
from pmordinal.model.ops.numpy_op import NumpyOp
from pmordinal.model.ops.problem_op import ValueWithGradient


class IntervalLogProb(ValueWithGradient):
    """log P(lower < η + noise·e ≤ upper), elementwise, and its four first derivatives.

    Parameters
    ----------
    link : Link
        Distribution of e.
    """

    __props__ = ("link",)
    __str__ = NumpyOp.__str__
    n_differentiable = 4

    def __init__(self, link: Link):
        self.link = link

    def make_node(self, eta, lower, upper, noise):
        """Broadcast the four inputs against each other."""
        inputs = pt.broadcast_arrays(
            *(pt.cast(pt.as_tensor(x), "float64") for x in (eta, lower, upper, noise))
        )
        return Apply(self, inputs, [inputs[0].type() for _ in range(5)])

    def infer_shape(self, node, shapes):
        """Give every output the common shape."""
        return [shapes[0]] * 5

    def perform(self, node, inputs, outputs):
        """Evaluate the link's interval formulas."""
        eta, lower, upper, noise = inputs
        terms = interval_terms(self.link, lower, upper, eta, noise)
        results = (
            terms.value,
            terms.d1,
            terms.lower[0],
            terms.upper[0],
            terms.log_noise[0] / noise,
        )
        for cell, value in zip(outputs, results, strict=True):
            cell[0] = np.asarray(value, dtype="float64")


class LinkQuantile(NumpyOp):
    """F⁻¹(p), elementwise, from p and 1 − p, so that it is accurate in both tails.

    Parameters
    ----------
    link : Link
        Distribution F.
    """

    __props__ = ("link",)
    __str__ = NumpyOp.__str__

    def __init__(self, link: Link):
        self.link = link

    def make_node(self, p, upper):
        """Take the probabilities below and above."""
        p, upper = (pt.cast(pt.as_tensor(x), "float64") for x in (p, upper))
        return Apply(self, [p, upper], [p.type()])

    def infer_shape(self, node, shapes):
        """Give the output the shape of the input."""
        return [shapes[0]]

    def perform(self, node, inputs, outputs):
        """Evaluate the link's quantile function."""
        p, upper = inputs
        low = p < 0.5
        tails = (
            self.link.quantile(np.where(low, p, 0.5)),
            self.link.upper_quantile(np.where(low, 0.5, upper)),
        )
        outputs[0][0] = np.where(low, *tails).astype("float64")
