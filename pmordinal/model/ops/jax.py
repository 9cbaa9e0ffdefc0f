"""The ordinal log probability in JAX, for the samplers that PyMC compiles with it.

The formulas are those of `pmordinal.links`, up to first derivatives. The gradients are given to JAX
explicitly, since those that it would derive itself cancel in the tails. This module is imported only by
PyTensor's JAX mode, see `pmordinal.model.ops.jax_versions`.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import erfc
from pytensor.link.jax.dispatch import jax_funcify

from pmordinal.links.base import FAR
from pmordinal.links.cloglog import _D_MAX, _D_SMALL, _LARGEST
from pmordinal.links.probit import (
    _DROP,
    _LOG_SQRT_2PI,
    _MANY_WEIGHT,
    _MANY_X,
    _NARROW,
    _SQRT_HALF,
    _TAIL,
    _WIDEST,
)
from pmordinal.model.ops.interval import IntervalLogProb
from pmordinal.model.ops.numpy_op import NumpyOp

type Formulas = Callable[[Any, Any, Any], tuple[Any, Any, Any, Any, Any]]


def probit(lo, hi, width):
    """Return L, dL/dt, dL/dlo, dL/dhi and the derivative in log s, see `links.base.Interval`."""
    low = -lo  # points outwards, as hi does
    nearest = jnp.minimum(hi, low)
    is_far = (nearest < -_TAIL) | (width < _NARROW)

    # Mask the arguments, not the results: the gradient of the unused branch must be finite too.
    a, b = jnp.where(is_far, 1.0, hi), jnp.where(is_far, 1.0, low)
    beyond = 0.5 * erfc(a * _SQRT_HALF), 0.5 * erfc(b * _SQRT_HALF)
    L = jnp.log1p(-(beyond[0] + beyond[1]))
    P = 0.5 * erfc(-jnp.minimum(a, b) * _SQRT_HALF) - jnp.minimum(*beyond)
    r1 = jnp.exp(-0.5 * a * a - _LOG_SQRT_2PI) / P
    r2 = jnp.exp(-0.5 * b * b - _LOG_SQRT_2PI) / P
    m = r2 - r1
    wide = L, m, r1, r2, r1 * (a - m) + r2 * (b + m)

    near = jnp.where(is_far, -nearest, 0.0)
    w = jnp.where(is_far, jnp.minimum(width, _WIDEST), 1.0)
    T = jnp.minimum(w, 2.0 * _DROP / (near + jnp.sqrt(near * near + 2.0 * _DROP)))
    drop = (near * T)[..., None] + (0.5 * T * T)[..., None] * _MANY_X
    mass = _MANY_WEIGHT * jnp.exp(-_MANY_X * drop)
    total = mass.sum(-1)
    d_near = (mass * _MANY_X).sum(-1) / total * T
    total = total * T
    L = jnp.log(total) - 0.5 * near * near - _LOG_SQRT_2PI
    m = near + d_near
    r_near = 1.0 / total
    r_far = jnp.exp(-w * (near + 0.5 * w)) * r_near
    curvature = r_near * d_near + r_far * (w - d_near)
    is_up = hi < low
    ends = jnp.where(is_up, r_near, r_far), jnp.where(is_up, r_far, r_near)
    far = L, jnp.where(is_up, -m, m), *ends, curvature

    L, m, r1, r2, curvature = (jnp.where(is_far, x, y) for x, y in zip(far, wide, strict=True))
    return L, m, -r2, r1, m * m - curvature


def logit(lo, hi, width):
    """Return the same for logistic noise."""
    a, b = jax.nn.sigmoid(-hi), jax.nn.sigmoid(lo)
    gap = jnp.exp(-width) / -jnp.expm1(-width)
    L = jax.nn.log_sigmoid(hi) + jax.nn.log_sigmoid(-lo) + log1mexp(width)
    return L, b - a, -(b + gap), a + gap, -(hi * a - lo * b + width * gap)


def cloglog(lo, hi, width):
    """Return the same for extreme-value noise."""
    G = jnp.exp(jnp.minimum(lo, _LARGEST))
    share = -jnp.expm1(-width)
    D = jnp.minimum(jnp.exp(jnp.minimum(hi, _LARGEST)) * share, _D_MAX)
    is_small = D < _D_SMALL
    d, D = jnp.where(is_small, D, 0.0), jnp.where(is_small, _D_SMALL, D)
    d2 = d * d
    C = d / 2 + d2 / 12 * (1 - d2 / 60 * (1 - d2 / 42 * (1 - d2 / 40)))
    log_small = jnp.where(is_small, hi, 0.0) + log1mexp(width) - jnp.log1p(C)
    x = jnp.exp(-D)
    B = jnp.where(is_small, 1 - d + C, D / -jnp.expm1(-D) * x)
    L = jnp.where(is_small, log_small, jnp.log1p(-x)) - G
    j = jnp.exp(-width) / share
    return L, G - B, -(G + j * B), (1 + j) * B, lo * G - B * (hi + width * j)


def log1mexp(w):
    """Return log(1 − e^(−w)), see `links.base`."""
    is_wide = w > math.log(2)
    wide = jnp.log1p(-jnp.exp(-jnp.where(is_wide, w, 1.0)))
    return jnp.where(is_wide, wide, jnp.log(-jnp.expm1(-jnp.where(is_wide, 1.0, w))))


FORMULAS: dict[str, Formulas] = {"probit": probit, "logit": logit, "cloglog": cloglog}


def interval_log_prob(formulas: Formulas) -> Callable[..., tuple[Any, ...]]:
    """Return the JAX function of an `IntervalLogProb`: a value and its four derivatives."""

    def terms(eta, lower, upper, noise):
        below, above = jnp.isinf(lower), jnp.isinf(upper)
        lower, upper = jnp.where(below, eta, lower), jnp.where(above, eta, upper)
        lo = jnp.where(below, -FAR, jnp.maximum((lower - eta) / noise, -FAR))
        hi = jnp.where(above, FAR, jnp.minimum((upper - eta) / noise, FAR))
        width = jnp.where(below | above, FAR, jnp.minimum((upper - lower) / noise, FAR))
        L, *slopes = formulas(lo, hi, width)
        return L, *(d / noise for d in slopes)

    @jax.custom_jvp
    def value(*inputs):
        return terms(*inputs)[0]

    @value.defjvp
    def _(inputs, tangents):
        L, *slopes = terms(*inputs)
        return L, sum(d * t for d, t in zip(slopes, tangents, strict=True))

    return lambda *inputs: (value(*inputs), *terms(*inputs)[1:])


@jax_funcify.register(IntervalLogProb)
def _jax_interval_log_prob(op, **kwargs):
    formulas = FORMULAS.get(op.link.name)
    if formulas is None:
        raise NotImplementedError(
            f"the link {op.link.name!r} has no version for JAX (those that have one: "
            f"{', '.join(FORMULAS)}): sample with nuts_sampler='pymc' or 'nutpie'"
        )
    return interval_log_prob(formulas)


@jax_funcify.register(NumpyOp)
def _jax_numpy_op(op, **kwargs):
    raise NotImplementedError(
        f"{op} runs in NumPy, not in JAX: sample models with a Gaussian process with "
        "nuts_sampler='pymc' or 'nutpie'. JAX samplers are for pmo.linear_model and pmo.Ordinal"
    )
