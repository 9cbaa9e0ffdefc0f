"""The terms of a fitted model: the posterior of each on its own, and the effects that it stands for.

Terms compete for the same labels, so their posteriors depend on each other. That of one term is computed with all
others in the model: E f_t = k_t α, and its covariance is what is left of the prior's when the labels are known.
"""

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from pmordinal.data.features import Features
from pmordinal.data.rows import row_names
from pmordinal.data.terms import WITH_COEFFICIENTS, Term
from pmordinal.gram import Kernel
from pmordinal.posterior import Posterior
from pmordinal.posterior.mixture import mixed, quantiles
from pmordinal.results.effects import interval_tails

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit

MOST_ROWS = 1000  # training rows over which variances are taken: enough for two digits


def parts(fit: "OrdinalFit") -> list[tuple[Term, Kernel, Any]]:
    """Return the terms of a fit with their kernels and hyperparameters.

    A covariance that is a sum has terms too, named after their kind.
    """
    gram = fit.posterior.gram
    kernels = gram.kernel.parts(gram.values)
    terms = list(fit.model_terms)
    if not terms:
        kinds = [type(kernel).__name__.removesuffix("Kernel") for kernel, _ in kernels]
        names = [f"{kind} {i + 1}" for i, kind in enumerate(kinds)]
        terms = [Term(name, "smooth", fit.features.names) for name in names]
    return [(term, *part) for term, part in zip(terms, kernels, strict=True)]


def terms(fit: "OrdinalFit", Xnew: Any = None) -> xr.Dataset:
    """Return mean and standard deviation of each term; see `OrdinalFit.terms`."""
    if Xnew is None:
        rows, index = fit.posterior.gram.X, fit.index
    else:
        rows = fit.features.transform(Xnew, name="Xnew")
        index = row_names(Xnew, len(rows))
    found = parts(fit)
    offsets = fit.features.offsets
    weights, each = term_moments(fit, dict.fromkeys(range(len(found)), rows))
    moments = [mixed(weights, *each[place]) for place in range(len(found))]
    moments += [(rows[:, j], np.zeros(len(rows))) for j in offsets]
    means, variances = (np.stack(of_terms) for of_terms in zip(*moments, strict=True))
    data = {"mean": (("term", "obs"), means), "sd": (("term", "obs"), np.sqrt(variances))}
    names = [*(term.name for term, *_ in found), *(fit.features.names[j] for j in offsets)]
    return xr.Dataset(data, coords={"term": names, "obs": index})


def coefficients(fit: "OrdinalFit", ci_prob: float | None = None) -> pd.DataFrame:
    """Return the effects of linear, factor and group terms; see `OrdinalFit.coefficients`."""
    tails = interval_tails(ci_prob)
    shown = {}
    for place, (term, *_) in enumerate(parts(fit)):
        if term.kind in WITH_COEFFICIENTS:
            rows, levels, one = effect_rows(fit.features, term)
            shown[place] = ([term.name] * len(rows), levels, rows, np.full(len(rows), one))
        elif term.kind == "slopes":
            shown[place] = slope_rows(fit.features, term)
    weights, each = term_moments(fit, {place: rows for place, (_, _, rows, _) in shown.items()})
    tables = []
    for place, (names, levels, _, unit) in shown.items():
        mean, variance = mixed(weights, *each[place])
        lower, upper = quantiles(weights, *each[place], tails)
        table = {"term": names, "level": levels, "mean": mean / unit}
        table |= {"sd": np.sqrt(variance) / unit, "lower": lower / unit, "upper": upper / unit}
        tables.append(pd.DataFrame(table))
    if not tables:
        raise ValueError(
            "the model has no linear, factor or group terms: see fit.terms() and fit.effects(…), or say such terms "
            "in pmo.formula_model"
        )
    return pd.concat(tables, ignore_index=True)


def term_moments(
    fit: "OrdinalFit", rows: Mapping[int, np.ndarray]
) -> tuple[np.ndarray, dict[int, tuple[np.ndarray, np.ndarray]]]:
    """Return means and variances of terms at rows, for each member of a fit.

    Parameters
    ----------
    fit : OrdinalFit
    rows : mapping of int to ndarray
        For each term, by its place, the rows in the units of the matrix.

    Returns
    -------
    weights : ndarray, shape (K,)
        Of the members.
    moments : dict of int to tuple of ndarray, shape (K, m)
    """
    weights: list[float] = []
    found: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {place: [] for place in rows}
    for weight, member in fit.members:
        weights.append(weight)
        for place, where in rows.items():
            found[place].append(member.posterior.part(where, place))
    stacked = {
        place: (np.stack([mean for mean, _ in each]), np.stack([var for _, var in each]))
        for place, each in found.items()
    }
    return np.array(weights), stacked


def effect_rows(features: Features, term: Term) -> tuple[np.ndarray, list[str | None], float]:
    """Return rows at which a term has its effects, the levels there, and the unit of the effects.

    Columns of numbers are at one standard deviation, and the effect there, divided by the unit, is that of one unit of
    the user's. Columns of levels are at each level in turn.
    """
    places = [features.names.index(name) for name in term.columns]
    columns = {j: features.columns[j] for j in places}
    unit = float(np.prod([features.scale[j] for j, c in columns.items() if c.levels is None]))
    of_levels = {j: c.levels for j, c in columns.items() if c.levels is not None}
    combinations = list(product(*(range(len(levels)) for levels in of_levels.values())))
    rows = np.zeros((len(combinations), len(features.names)))
    rows[:, [j for j in places if j not in of_levels]] = 1.0
    for i, codes in enumerate(combinations):
        rows[i, list(of_levels)] = codes
    names: list[str | None] = [
        ":".join(levels[k] for levels, k in zip(of_levels.values(), codes, strict=True)) or None
        for codes in combinations
    ]
    return rows, names, unit


def slope_rows(
    features: Features, term: Term
) -> tuple[list[str], list[str | None], np.ndarray, np.ndarray]:
    """Return the column and level of each effect of a linear function, rows where it is the effect, and their units.

    A function without a constant is linear in rows: at the difference of two rows it has the difference of its values.
    """
    names: list[str] = []
    levels: list[str | None] = []
    found: list[Any]
    rows, units, start = [], [], 0
    for column in features.columns:
        where = slice(start, start + len(column.names))
        start = where.stop
        if column.names[0] not in term.columns:
            continue
        codes, found, unit = np.ones((1, 1)), [None], float(features.scale[where][0])
        if column.levels is not None:  # one 0/1 column a level: effects sum to zero
            codes = (column.codes - column.codes.mean(axis=0)) / features.scale[where]
            found, unit = list(column.levels), 1.0
        block = np.zeros((len(codes), len(features.names)))
        block[:, where] = codes
        rows.append(block)
        names += [column.name] * len(codes)
        levels += found
        units += [unit] * len(codes)
    return names, levels, np.concatenate(rows), np.array(units)


def variance_shares(fit: "OrdinalFit") -> pd.Series:
    """Return how much of the variance over the data is due to each term; see `OrdinalFit.variance_shares`."""
    X = fit.posterior.gram.X
    X = X[np.linspace(0, len(X) - 1, min(MOST_ROWS, len(X))).round().astype(int)]
    found = parts(fit)
    offsets = fit.features.offsets
    known = [float(X[:, j].var()) for j in offsets]
    names = [*(term.name for term, *_ in found), *(fit.features.names[j] for j in offsets)]
    variances = np.zeros(len(names) + 1)
    for weight, member in fit.members:
        posterior, likelihood = member.posterior, member.posterior.likelihood
        each = [_variance_over_rows(posterior, place, X) for place in range(len(found))]
        noise = float(np.mean(likelihood.noise**2)) * likelihood.link.noise_sd**2
        variances += weight * np.array([*each, *known, noise])
    # A term may be called noise too: the last one is that of the likelihood.
    shares = pd.Series(variances, [*names, "noise"], name="share")
    return shares / shares.sum()


def _variance_over_rows(posterior: Posterior, place: int, X: np.ndarray) -> float:
    """Return the posterior expectation of the variance of a term over rows."""
    mean, variance = posterior.part(X, place)
    v = posterior.explain(posterior.cross(X, place).mean(axis=1, keepdims=True))
    kernel, values = posterior.term(place)
    # Var of the average over the rows: what all rows share is no variance over them.
    shared = kernel.matrix(values, X, X)[0].mean() - float((v * v).sum())
    return float(mean.var() + variance.mean() - max(shared, 0.0))
