"""`Ordinal`: the ordinal likelihood as a PyMC distribution, for any predictor."""

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.dist_math import check_parameters
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.graph import Variable

from pmordinal import checks
from pmordinal.links import Link, get_link
from pmordinal.model.laws import ByLaw, Law
from pmordinal.model.ops.interval import IntervalLogProb, LinkQuantile

LEAST_SCALE = 1e-50  # its fourth power must not underflow, since engines square variances


class Ordinal:
    r"""Ordered classes 0, …, r − 1 from a latent predictor cut at thresholds.

    .. math:: P(y = k) = F((b_{k+1} - \eta)/s) - F((b_k - \eta)/s)

    The log probability is computed for the observed class only, in log space, so that it and its
    gradient stay finite and right at any distance from the thresholds; no n × r table is made.

    Parameters
    ----------
    name : str
        Name of the variable.
    eta : tensor_like
        Predictor, of any shape: linear, spline, BART, Gaussian process.
    thresholds : tensor_like, shape (r − 1,) or (..., r − 1)
        Increasing; with leading dimensions, one row for each entry of `eta` (thresholds by rater,
        say).
    noise : tensor_like
        Scale s, one for all or one for each entry of `eta`.
    link : {"probit", "logit", "cloglog"}
        Distribution F of the standardised noise.
    weights : array_like, optional
        How many labels each entry stands for: its log probability counts so often. Draws are of one.
    **kwargs
        As for any PyMC distribution (`observed`, `dims`, `shape`, …).

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     slope = pm.Normal("slope")
    ...     y = Ordinal("y", slope * np.array([-40.0, 0.0, 40.0]), [-1.0, 1.0], observed=[0, 1, 2])
    >>> y.type.ndim
    1
    """

    def __new__(
        cls, name, eta, thresholds, noise=1.0, link: str | Link = "probit", weights=None, **kwargs
    ):
        """Add the variable to the model on the stack."""
        return ByLaw(name, *cls._law(eta, thresholds, noise, link, weights), **kwargs)

    @classmethod
    def dist(cls, eta, thresholds, noise=1.0, link: str | Link = "probit", weights=None, **kwargs):
        """Return the variable without a model."""
        return ByLaw.dist(*cls._law(eta, thresholds, noise, link, weights), **kwargs)

    @classmethod
    def _law(cls, eta, thresholds, noise, link, weights):
        params = cls._params(eta, thresholds, noise)
        if weights is None:
            return OrdinalLaw(get_link(link)), *params
        return WeightedLaw(get_link(link)), *params, positive_tensor("weights", weights)

    @staticmethod
    def _params(eta, thresholds, noise):
        b = increasing_tensor("thresholds", thresholds)
        if b.type.ndim < 1 or b.type.shape[-1] == 0:
            raise ValueError(f"thresholds must be a vector with one at least, got {thresholds}")
        params = (tensor("eta", eta), b, positive_tensor("noise", noise))
        shapes = [[d or 1 for d in x.type.shape] for x in (params[0], b[..., 0], params[2])]
        try:
            np.broadcast_shapes(*map(tuple, shapes))
        except ValueError as error:
            raise ValueError(
                f"eta, thresholds and noise do not fit together: their shapes are {shapes[0]}, {shapes[1]} (and one "
                f"row of thresholds each) and {shapes[2]}"
            ) from error
        return [pt.cast(x, "float64") for x in params]


@dataclass(frozen=True)
class OrdinalLaw(Law):
    """The distribution of `Ordinal`, given the predictor, the thresholds and the noise."""

    name = "Ordinal"
    signature = "(),(j),()->()"
    link: Link

    def draw(self, eta, thresholds, noise, size):
        """Cut noisy predictors at the thresholds."""
        if rv_size_is_none(size):
            size = pt.broadcast_shape(eta, noise, thresholds[..., 0])
        return classify(eta + noise * draw_noise(self.link, size), thresholds)

    def logp(self, value, eta, thresholds, noise):
        """Return the log probability of class codes."""
        return ordinal_logp(value, eta, thresholds, noise, self.link)


@dataclass(frozen=True)
class WeightedLaw(OrdinalLaw):
    """The law of `Ordinal` for entries that stand for several labels each."""

    name = "WeightedOrdinal"
    signature = "(),(j),(),()->()"

    def draw(self, eta, thresholds, noise, weights, size):
        """Draw one label for each entry."""
        return super().draw(eta, thresholds, noise, size)

    def logp(self, value, eta, thresholds, noise, weights):
        """Return the log probability of all labels that an entry stands for."""
        return weights * super().logp(value, eta, thresholds, noise)


def tensor(name: str, value):
    """Return numbers, which must be finite, as a tensor; a tensor is returned unchanged."""
    if isinstance(value, Variable):
        return pt.as_tensor(value)
    return pt.as_tensor(checks.finite_array(name, value))


def positive_tensor(name: str, value):
    """Return numbers, which must be positive, as a tensor; a tensor is returned unchanged."""
    value = tensor(name, value)
    if isinstance(value, pt.TensorConstant):
        if np.any(value.data <= 0):
            raise ValueError(f"{name} must be positive, got {value.data}")
        if np.any(value.data < LEAST_SCALE) or np.any(value.data > 1.0 / LEAST_SCALE):
            raise ValueError(
                f"{name} must be between {LEAST_SCALE:g} and {1 / LEAST_SCALE:g}, got {value.data}: rescale the data"
            )
    return value


def increasing_tensor(name: str, value):
    """Return numbers, which must increase along the last axis, as a tensor; a tensor is returned unchanged."""
    value = tensor(name, value)
    if isinstance(value, pt.TensorConstant):
        if np.any(np.diff(np.atleast_1d(value.data), axis=-1) <= 0):
            raise ValueError(f"{name} must increase, got {value.data}")
        if np.any(np.abs(value.data) > 1.0 / LEAST_SCALE):
            raise ValueError(
                f"{name} must be between {-1 / LEAST_SCALE:g} and {1 / LEAST_SCALE:g}, got {value.data}: rescale them"
            )
    return value


def draw_noise(link: Link, size):
    """Return a variable of that shape, distributed as the link's noise."""
    u = pm.Uniform.dist(0.0, 1.0, size=size)
    return LinkQuantile(link)(u, 1.0 - u)


def classify(z, thresholds):
    """Return the class code of each latent value: how many thresholds lie below it."""
    return pt.sum(pt.gt(z[..., None], thresholds), axis=-1)


def ordinal_logp(value, eta, thresholds, noise, link: Link):
    """Return log P(y = value) elementwise, −∞ for a code that is no class.

    Parameters
    ----------
    value : tensor of int
        Class codes.
    eta, thresholds, noise : tensor
        As in `Ordinal`.
    link : Link
    """
    n_classes = thresholds.shape[-1] + 1
    valid = pt.ge(value, 0) & pt.lt(value, n_classes) & pt.eq(value, pt.floor(value))
    code = pt.cast(pt.switch(valid, value, 0), "int64")
    end = pt.full_like(thresholds[..., :1], np.inf)
    edges = pt.concatenate([-end, thresholds, end], axis=-1)
    if edges.type.ndim == 1:
        lower, upper = edges[code], edges[code + 1]
    else:
        edges, picked = pt.broadcast_arrays(edges, code[..., None])
        lower = pt.take_along_axis(edges, picked[..., :1], axis=-1)[..., 0]
        upper = pt.take_along_axis(edges, picked[..., :1] + 1, axis=-1)[..., 0]
    log_prob = IntervalLogProb(link).make_node(eta, lower, upper, noise).outputs[0]
    log_prob = pt.switch(valid, log_prob, -np.inf)
    return check_parameters(
        log_prob,
        pt.all(pt.gt(pt.diff(thresholds, axis=-1), 0)),
        pt.all(pt.gt(noise, 0)),
        msg="thresholds must increase and noise must be positive",
    )
