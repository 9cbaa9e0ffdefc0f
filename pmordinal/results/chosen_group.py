"""The likelihood of a group that the user chooses, where thresholds or noise differ by group."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pmordinal import checks
from pmordinal.data.groups import Groups
from pmordinal.likelihood import OrdinalLikelihood, Rows

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit


def chosen_likelihood(fit: "OrdinalFit", at: Any = None) -> OrdinalLikelihood:
    """Return the likelihood of one group, that of the population where `at` does not name one.

    Parameters
    ----------
    fit : OrdinalFit
    at : mapping, optional
        Values of columns; those that thresholds and noise are not by are ignored.
    """
    given = at if isinstance(at, Mapping) else {}
    likelihood, by = fit.posterior.likelihood, fit.by_row
    places = [_place(g, given) for g in (by.thresholds, by.noise)]
    if all(place is None for place in places):
        return fit.population
    b, s = likelihood.thresholds, likelihood.noise
    if by.thresholds is not None:
        b = fit.population.thresholds if places[0] is None else b[places[0]]
    if by.noise is not None:
        s = fit.population.noise if places[1] is None else s[places[1]]  # type: ignore[index]
    return OrdinalLikelihood(b, s, likelihood.link)


def _place(groups: Groups | None, given: Mapping[str, Any]) -> int | None:
    if groups is None or groups.name not in given:
        return None
    levels = list(groups.column.levels or ())
    return levels.index(checks.one_of(f"at: {groups.name}", str(given[groups.name]), levels))


def of_attributes(fit: "OrdinalFit", at: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `at` says of attributes, without columns that only thresholds or noise are by."""
    if not isinstance(at, Mapping):
        raise TypeError(f"at must map attributes to values, got {checks.got(at)}")
    attributes = {column.name for column in fit.features.given}
    groups = {column.name for column in fit.by_row.columns}
    return {k: v for k, v in at.items() if k in attributes or k not in groups}


def shifted(fit: "OrdinalFit", likelihood: OrdinalLikelihood, Z: np.ndarray) -> OrdinalLikelihood:
    """Return a likelihood for rows of the matrix, with their known shifts."""
    shift = fit.features.shift(Z)
    return likelihood if shift is None else replace(likelihood, rows=Rows(shift=shift))
