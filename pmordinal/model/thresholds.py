"""Priors of ordered thresholds, stated as a Dirichlet distribution of the category probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform

from pmordinal import checks
from pmordinal.links import Link, get_link
from pmordinal.model.laws import ByLaw, Law
from pmordinal.model.ops.interval import IntervalLogProb, LinkQuantile
from pmordinal.model.ordinal import positive_tensor
from pmordinal.words import guessing

KINDS = ("dirichlet", "padded")
LEAST_CONCENTRATION = 0.05  # with it a probability underflows once in 10¹⁵ draws


@guessing
def thresholds(
    name: str,
    n_classes: int | None = None,
    *,
    kind: str = "dirichlet",
    concentration=1.0,
    scale=1.0,
    unit=1.0,
    link: str | Link = "probit",
    first=None,
    gaps=None,
    values: Sequence[float] | None = None,
    dims: str | None = None,
    by: str | None = None,
):
    """Add an increasing vector of r − 1 thresholds to the current model, or one for each group.

    Parameters
    ----------
    name : str
        Name of the variable.
    n_classes : int
        Number r of classes, the declared but unobserved ones included.
    kind : {"dirichlet", "padded"}
        ``"dirichlet"``: the category probabilities F(b_{k+1}/scale) − F(b_k/scale) at a latent
        value of zero are Dirichlet(concentration) distributed. ``"padded"``: the papers' form b_1
        and Δ_l > 0, with priors `first` and `gaps`.
    concentration : float or array_like, shape (r,)
        Dirichlet parameters; one for all classes says that any category probabilities are equally
        plausible.
    scale : tensor_like
        Scale at which the probabilities are stated. With ``sqrt(1 + noise**2)`` they are those of a
        new row under a Gaussian process of amplitude one.
    unit : tensor_like
        Only for samplers: the scale in which the gaps between thresholds hardly depend on the other
        hyperparameters. The noise, where that is free.
    link : {"probit", "logit", "cloglog"}
        Distribution F.
    first, gaps : tensor_like, optional
        For ``kind="padded"``: b_1 (default Normal(0, 2)) and Δ_2, …, Δ_{r−1} (default
        LogNormal(log(2/r), 1)).
    values : sequence of float, optional
        Fixed thresholds; nothing is learned.
    dims : str, optional
        Name of the dimension that labels the thresholds.
    by : str, optional
        Dimension of the model with one coordinate for each group (rater, item): every group has
        thresholds of its own, partially pooled. The arguments above then describe those of the
        population, ``<name>_population``.

    Returns
    -------
    TensorVariable, shape (r − 1,), or (groups, r − 1) with `by`

    Notes
    -----
    With `by`, the thresholds of group j have the mean m + scale·shift_sd·z_j1 and the gaps Δ_l
    exp(gap_sd·z_jl), m and Δ being those of the population and z standard normal: the first moves a
    group's thresholds together (a severe rater), the second stretches and squeezes its classes (one who
    shuns the ends). ``<name>_shift_sd`` and ``<name>_gap_sd`` have HalfNormal(0.5) priors.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model():
    ...     b = thresholds("b", n_classes=4)
    >>> draw = pm.draw(b, random_seed=1)
    >>> bool(np.all(np.diff(draw) > 0))
    True
    >>> with pm.Model(coords={"rater": ["Ann", "Bob"]}):
    ...     b = thresholds("b", n_classes=4, by="rater")
    >>> b.type.shape
    (2, 3)
    """
    if by is not None and values is not None:
        raise ValueError("values= fixes the thresholds of all groups: leave by= out")
    if values is not None:
        fixed = checks.finite_array("values", values, ndim=1)
        if fixed.size < 1 or np.any(np.diff(fixed) <= 0):
            raise ValueError(f"values: fixed thresholds must increase, got {fixed}")
        if n_classes is not None and fixed.size != n_classes - 1:
            raise ValueError(
                f"values: {n_classes} classes have {n_classes - 1} thresholds, got {fixed.size}"
            )
        return pm.Deterministic(name, pt.as_tensor(fixed), dims=dims)
    if n_classes is None:
        raise ValueError("n_classes: say how many classes there are, or give fixed values=")
    r = checks.integer("n_classes", n_classes, minimum=2)
    if by is not None:
        if by not in pm.modelcontext(None).coords:
            raise ValueError(
                f"by: the model has no dimension {by!r}: name its groups with pm.Model(coords={{{by!r}: [...]}})"
            )
        options = {"kind": kind, "concentration": concentration, "first": first, "gaps": gaps}
        options |= {"scale": scale, "unit": unit, "link": link, "dims": dims}
        return _pooled(name, thresholds(f"{name}_population", r, **options), r - 1, scale, by, dims)
    checks.one_of("kind", kind, KINDS)
    if kind == "padded":
        return _padded(name, r, first, gaps, dims)
    if np.shape(concentration) not in ((), (r,)):
        raise ValueError(
            f"concentration must be one number or one for each of {r} classes, got shape "
            f"{np.shape(concentration)}"
        )
    a = np.broadcast_to(checks.finite_array("concentration", concentration), (r,))
    if np.any(a < LEAST_CONCENTRATION):
        raise ValueError(
            f"concentration must be at least {LEAST_CONCENTRATION:g}, got {concentration}: below, categories "
            "of probability zero would be drawn"
        )
    scale, unit = (
        pt.cast(positive_tensor(key, x), "float64") for key, x in (("scale", scale), ("unit", unit))
    )
    law = InducedDirichlet(get_link(link))
    return ByLaw(name, law, a[:-1], a[-1], scale, unit, transform=Gaps(), dims=dims)


def _padded(name, r, first, gaps, dims):
    """Return the thresholds of the papers, b_j = b_1 + Σ Δ_l [CG2005, section 2.2]."""
    if first is None:
        first = pm.Normal(f"{name}_first", 0.0, 2.0)
    if r == 2:
        return pm.Deterministic(name, pt.atleast_1d(first), dims=dims)
    if gaps is None:
        gaps = pm.LogNormal(f"{name}_gaps", np.log(2.0 / r), 1.0, shape=r - 2)
    padding = pt.concatenate([pt.zeros(1), pt.cumsum(gaps)])
    return pm.Deterministic(name, first + padding, dims=dims)


def _pooled(name, population, size, scale, by, dims):
    """Return thresholds by group that vary around those of the population, in mean and log gaps."""
    groups = pm.modelcontext(None).coords[by]
    names = (by, dims) if dims else None
    z = pm.Normal(f"{name}_z", shape=(len(groups), size), dims=names)
    shift_sd = pm.HalfNormal(f"{name}_shift_sd", 0.5)
    mean = pt.mean(population) + scale * shift_sd * z[:, :1]
    if size == 1:
        return pm.Deterministic(name, mean, dims=names)
    gaps = pt.diff(population) * pt.exp(pm.HalfNormal(f"{name}_gap_sd", 0.5) * z[:, 1:])
    above = pt.concatenate([pt.zeros_like(mean), pt.cumsum(gaps, axis=-1)], axis=-1)
    centred = above - pt.mean(above, axis=-1, keepdims=True)
    return pm.Deterministic(name, mean + centred, dims=names)


class Gaps(Transform):
    """Thresholds as their mean and the logarithms of the gaps between them, in a given unit such as the noise.

    The labels determine the gaps in units of the noise better than the noise or the gaps alone: in
    these coordinates the posterior of the hyperparameters has little correlation. The Jacobian is that
    of the logarithms of the gaps themselves, whatever the unit, so that modes are the same.
    """

    name = "ordered"
    ndim_supp = 1

    # Weighted sums give a graph, and a gradient, with a third of the nodes of slices and cumulative sums.

    @staticmethod
    def _parts(inputs):
        """Return the unit, and the weights of the mean and of the gaps in each threshold, shapes (k, k)."""
        _size, head, _last, _scale, unit, *_rng = inputs
        k = head.type.shape[-1]
        mean, gaps = np.zeros((k, k)), np.tri(k, k, 0)
        mean[:, 0], gaps[:, 0] = 1.0, 0.0
        return unit, mean, gaps - gaps.mean(axis=0)

    @staticmethod
    def _logarithms(value, mean):
        """Return the logarithms of the gaps, zero in place of the mean."""
        return value * (1.0 - mean[0])

    def backward(self, value, *inputs):
        """Return the thresholds."""
        unit, mean, gaps = self._parts(inputs)
        sizes = unit * pt.exp(self._logarithms(value, mean))
        sums = pt.sum(mean * value[..., None, :] + gaps * sizes[..., None, :], axis=-1)
        return pt.cast(sums, value.dtype)

    def forward(self, value, *inputs):
        """Return mean and logarithms of gaps."""
        gaps = pt.log(pt.diff(value, axis=-1) / self._parts(inputs)[0])
        both = pt.concatenate([pt.mean(value, axis=-1, keepdims=True), gaps], axis=-1)
        return pt.cast(both, value.dtype)

    def log_jac_det(self, value, *inputs):
        """Return Σ log gap."""
        unit, mean, _ = self._parts(inputs)
        return pt.sum(self._logarithms(value, mean), axis=-1) + (len(mean) - 1) * pt.log(unit)


@dataclass(frozen=True)
class InducedDirichlet(Law):
    """Prior of increasing thresholds whose category probabilities have a Dirichlet distribution.

    Its parameters are those of the Dirichlet (the last one apart from the others), the scale and the unit.
    """

    name = "InducedDirichlet"
    signature = "(j),(),(),()->(j)"
    link: Link

    def draw(self, head, last, scale, unit, size):
        """Draw category probabilities and return the thresholds that give them."""
        return scale * _quantiles(self.link, pm.Dirichlet.dist(_joined(head, last), size=size))

    def logp(self, value, head, last, scale, unit):
        """Return the log density, −∞ where the vector does not increase."""
        a = _joined(head, last)
        is_flat = _are_ones(head) and _are_ones(last)
        k = head.type.shape[-1]
        valid = pt.constant(np.True_)  # one threshold needs no check
        if k != 1:
            valid = pt.all(pt.gt(pt.diff(value, axis=-1), 0), axis=-1)
            if not is_flat:
                steps = pt.arange(value.shape[-1], dtype="float64")
                value = pt.switch(valid[..., None], value, steps)
        density = pt.gammaln(pt.sum(a, -1)) - pt.sum(pt.gammaln(a), -1)
        density += pt.sum(self.link.logpdf(value / scale, xp=pt), axis=-1) - k * pt.log(scale)
        if not is_flat:
            end = pt.full_like(value[..., :1], np.inf)
            lower = pt.concatenate([-end, value], axis=-1)
            upper = pt.concatenate([value, end], axis=-1)
            log_p = IntervalLogProb(self.link)(0.0, lower, upper, scale)[0]
            density += pt.sum((a - 1.0) * log_p, axis=-1)
        return pt.switch(valid, density, -np.inf)

    def support_point(self, rv, size, head, last, scale, unit):
        """Return the thresholds that give the mean category probabilities."""
        a = _joined(head, last)
        return scale * _quantiles(self.link, a / pt.sum(a))


def _joined(head, last):
    return pt.concatenate([head, pt.atleast_1d(last)], axis=-1)


def _are_ones(x) -> bool:
    return isinstance(x, pt.TensorConstant) and bool(np.all(x.data == 1.0))


def _quantiles(link: Link, p):
    """Return the thresholds between categories of probability `p`."""
    below = pt.cumsum(p, axis=-1)[..., :-1]
    above = pt.cumsum(p[..., ::-1], axis=-1)[..., -2::-1]
    return LinkQuantile(link)(below, above)
