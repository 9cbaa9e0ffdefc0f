"""Sums of terms for a whole table, by name: what `gp_model` and `latent_model` make of a string.

The noise is one, and the size of each term is in units of it. A term that the labels do not need shrinks.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pmordinal.data.design import Design
from pmordinal.data.features import Features
from pmordinal.data.terms import Term
from pmordinal.links import Link
from pmordinal.model.anova_terms import Arguments, anova_terms


@dataclass(frozen=True, eq=False)
class Sum:
    """A sum of terms in a model.

    Attributes
    ----------
    terms : tuple of Term
        In the order of the parts of the covariance.
    cov : pm.gp.cov covariance
    total : tensor
        Prior standard deviation of latent function plus noise at a typical row, in those of the noise.
    start : dict
        Where an optimiser starts, by name of variable.
    """

    terms: tuple[Term, ...]
    cov: Any
    total: Any
    start: dict[str, Any]


def linear(design: Design, link: Link) -> Sum:
    """Return a linear function of all columns."""
    d, unit = len(design.features.names), link.noise_sd
    size = log_normal("amplitude", (0.0, 1.0), unit)
    cov = size**2 / d * pm.gp.cov.Linear(d, c=0.0)
    return joined(
        {"linear": cov},
        [size**2],
        design,
        link,
        {"amplitude": unit},
    )


def anova(design: Design, link: Link) -> Sum:
    """Return a smooth function of each numeric column and of each pair of them, and a linear one of factors."""
    features, unit = design.features, link.noise_sd
    d = len(features.names)
    factors = [j for group in columns_of(features) if len(group) > 1 for j in group]
    rows = design.X
    active = [j for j in range(d) if j not in factors and np.ptp(rows[:, j]) > 0.0]
    parts, variances, start = {}, [], {}
    at = factors or list(range(d))
    if factors or not active:
        size = log_normal("amplitude", (0.0, 1.0), unit)
        start["amplitude"] = unit
        parts["factors"] = size**2 / len(at) * pm.gp.cov.Linear(d, c=0.0, active_dims=at)
        variances.append(size**2)
    terms: tuple[Term, ...] = ()
    if active:
        weights = design.by_row.weights
        arguments = Arguments(rows, design.y, weights, active, [features.names[j] for j in active])
        terms, cov, variance, begin = anova_terms(arguments, unit, lambda what: what, registered)
        parts["anova"] = cov
        variances.append(variance)
        start |= begin
    found = joined(parts, variances, design, link, start)
    before: tuple[Term, ...] = ()
    if "factors" in parts:
        before = (Term("factors", "slopes", tuple(features.names[j] for j in at)),)
    return Sum(before + terms, found.cov, found.total, found.start)


def registered(name: str, distribution: Any, dim: str) -> Any:
    """Return a distribution as a variable of the model on the stack."""
    return pm.modelcontext(None).register_rv(distribution, name, dims=(dim,))


def joined(
    parts: Mapping[str, Any], variances: list, design: Design, link: Link, start: Mapping[str, Any]
) -> Sum:
    """Return the sum of covariances by name, each of all columns and with a prior variance."""
    terms = tuple(
        Term(name, "slopes" if name == "linear" else "smooth", design.features.names)
        for name in parts
    )
    return added(list(parts.values()), variances, terms, design, link, start)


def added(
    covs: Sequence[Any],
    variances: Sequence[Any],
    terms: tuple[Term, ...],
    design: Design,
    link: Link,
    start: Mapping[str, Any],
) -> Sum:
    """Return the sum of covariances, each with a prior variance; `terms` names their parts."""
    total = pt.sqrt(1.0 + sum(variances) / link.noise_sd**2)
    b = first_thresholds(design, link)
    begin = {
        **start,
        "thresholds": b,
        "thresholds_population": b,
    }  # the latter where there are groups
    return Sum(terms, reduce(operator.add, covs), total, begin)


def log_normal(name: str, prior: tuple[float, float], unit: float, **options: Any) -> Any:
    """Return a variable whose logarithm is normal, in multiples of a unit."""
    return pm.LogNormal(name, prior[0] + np.log(unit), prior[1], **options)


def columns_of(features: Features) -> list[list[int]]:
    """Return the matrix columns that each column of the user's table became.

    Examples
    --------
    >>> import pandas as pd
    >>> from pmordinal.data import features
    >>> table = pd.DataFrame({"age": [20, 30], "colour": ["red", "blue"]})
    >>> columns_of(features.learn(table)[0])
    [[0], [1, 2]]
    """
    found, start = [], 0
    for column in features.columns:
        stop = start + len(column.names)
        found.append(list(range(start, stop)))
        start = stop
    return found


def first_thresholds(design: Design, link: Link) -> np.ndarray:
    """Return thresholds at which the classes are as frequent as they are, without any effects but offsets."""
    counts = np.bincount(design.y, design.by_row.weights, design.labels.n_classes) + 0.5
    shift = design.features.shift(design.X)
    return link.quantile(np.cumsum(counts / counts.sum())[:-1]) + (
        0.0 if shift is None else np.average(shift, weights=design.by_row.weights)
    )
