"""Priors: ordered thresholds that can be drawn from, stated as category probabilities."""

from collections.abc import Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import ordered

from pmordinal import checks
from pmordinal.links import Link, get_link
from pmordinal.ops import IntervalLogProb, LinkQuantile

KINDS = ("dirichlet", "padded")


def thresholds(
    name: str,
    n_classes: int | None = None,
    *,
    kind: str = "dirichlet",
    concentration=1.0,
    scale=1.0,
    link: str | Link = "probit",
    first=None,
    gaps=None,
    values: Sequence[float] | None = None,
    dims: str | None = None,
):
    """Add an increasing vector of r − 1 thresholds to the model on the stack.

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
    link : {"probit", "logit", "cloglog"}
        Distribution F.
    first, gaps : tensor_like, optional
        For ``kind="padded"``: b_1 (default Normal(0, 2)) and Δ_2, …, Δ_{r−1} (default
        LogNormal(log(2/r), 1)).
    values : sequence of float, optional
        Fixed thresholds; nothing is learned.
    dims : str, optional
        Name of the dimension that labels the thresholds.

    Returns
    -------
    TensorVariable, shape (r − 1,)

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model():
    ...     b = thresholds("b", n_classes=4)
    >>> draw = pm.draw(b, random_seed=1)
    >>> bool(np.all(np.diff(draw) > 0))
    True
    """
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
    checks.one_of("kind", kind, KINDS)
    if kind == "padded":
        return _padded(name, r, first, gaps, dims)
    if np.shape(concentration) not in ((), (r,)):
        raise ValueError(
            f"concentration must be one number or one for each of {r} classes, got shape "
            f"{np.shape(concentration)}"
        )
    a = np.broadcast_to(np.asarray(concentration, dtype=float), (r,))
    if np.any(~np.isfinite(a)) or np.any(a <= 0):
        raise ValueError(f"concentration must be positive, got {concentration}")
    return InducedDirichlet(name, a, scale, get_link(link), dims=dims)


def _padded(name, r, first, gaps, dims):
    """b_j = b_1 + Σ Δ_l [CG2005, section 2.2]."""
    if first is None:
        first = pm.Normal(f"{name}_first", 0.0, 2.0)
    if r == 2:
        return pm.Deterministic(name, pt.atleast_1d(first), dims=dims)
    if gaps is None:
        gaps = pm.LogNormal(f"{name}_gaps", np.log(2.0 / r), 1.0, shape=r - 2)
    padding = pt.concatenate([pt.zeros(1), pt.cumsum(gaps)])
    return pm.Deterministic(name, first + padding, dims=dims)


class InducedDirichlet:
    """Increasing vector whose category probabilities are Dirichlet distributed.

    Parameters
    ----------
    name : str
    a : ndarray, shape (r,)
        Dirichlet parameters.
    scale : tensor_like
    link : Link
    """

    def __new__(cls, name, a, scale, link: Link, **kwargs):
        """Add the variable to the model on the stack."""
        params = (a[:-1], a[-1], pt.cast(pt.as_tensor(scale), "float64"))
        return pm.CustomDist(name, *params, transform=ordered, **cls._functions(link), **kwargs)

    @staticmethod
    def _functions(link: Link) -> dict:
        def dist(head, last, scale, size):
            a = pt.concatenate([head, pt.atleast_1d(last)], axis=-1)
            return scale * _quantiles(link, pm.Dirichlet.dist(a, size=size))

        def logp(value, head, last, scale):
            a = pt.concatenate([head, pt.atleast_1d(last)], axis=-1)
            valid = pt.all(pt.gt(pt.diff(value, axis=-1), 0), axis=-1)
            value = pt.switch(valid[..., None], value, pt.arange(value.shape[-1], dtype="float64"))
            end = pt.full_like(value[..., :1], np.inf)
            lower = pt.concatenate([-end, value], axis=-1)
            upper = pt.concatenate([value, end], axis=-1)
            log_p = IntervalLogProb(link)(0.0, lower, upper, scale)[0]
            jacobian = pt.sum(link.logpdf(value / scale, xp=pt) - pt.log(scale), axis=-1)
            norm = pt.gammaln(pt.sum(a, -1)) - pt.sum(pt.gammaln(a), -1)
            return pt.switch(valid, norm + pt.sum((a - 1.0) * log_p, axis=-1) + jacobian, -np.inf)

        def support_point(rv, size, head, last, scale):
            a = pt.concatenate([head, pt.atleast_1d(last)], axis=-1)
            return scale * _quantiles(link, a / pt.sum(a))

        return {
            "dist": dist,
            "logp": logp,
            "support_point": support_point,
            "signature": "(j),(),()->(j)",
        }


def _quantiles(link: Link, p):
    """Thresholds that cut the line into categories of probability `p`."""
    below = pt.cumsum(p, axis=-1)[..., :-1]
    above = pt.cumsum(p[..., ::-1], axis=-1)[..., -2::-1]
    return LinkQuantile(link)(below, above)
