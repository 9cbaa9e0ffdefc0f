"""The terms of an ANOVA in a model: a function of each column and of each pair of them, with their priors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pmordinal.data.terms import Term
from pmordinal.gram import Anova
from pmordinal.model.strongest_pairs import promising_pairs

MAIN, PAIR, LENGTHSCALE = (0.0, 1.5), (-1.5, 2.0), (0.7, 0.7)  # LogNormal priors


@dataclass(frozen=True, eq=False)
class Arguments:
    """The columns of an ANOVA.

    Attributes
    ----------
    rows : ndarray, shape (n, d)
        The labelled rows, with all columns of the matrix.
    y : ndarray of int, shape (n,)
        Their class codes.
    weights : ndarray, shape (n,), optional
        How many rows each stands for.
    places : list of int
        Columns of the matrix that are arguments.
    names : sequence of str
        Of the arguments.
    levels : tuple of int
        Arguments that hold codes of levels, counted among `places`.
    """

    rows: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    places: list[int]
    names: Sequence[str]
    levels: tuple[int, ...] = ()


def anova_terms(
    arguments: Arguments,
    noise_sd: float,
    called: Callable[[str], str],
    make: Callable[[str, Any, str], Any],
    order: int = 2,
    base: str = "expquad",
) -> tuple[tuple[Term, ...], Anova, Any, dict[str, Any]]:
    """Return the terms, their covariance, its variance at a typical row, and where an optimiser starts.

    Parameters
    ----------
    arguments : Arguments
    noise_sd : float
        Standard deviation of the noise, the unit of the terms.
    called : callable
        Takes ``"lengthscale"``, ``"main"``, ``"pair"``, or a dimension, and returns its name in the model.
    make : callable
        Takes the first of these, a distribution and the name of its dimension; returns the variable.
    order : {2, 1}
        With 1 there are no pairs.
    base : str
        Covariance of one column of numbers.
    """
    rows, places, names, levels = (
        arguments.rows,
        arguments.places,
        arguments.names,
        arguments.levels,
    )
    d, k = rows.shape[1], len(places)
    pairs = promising_pairs(rows[:, places], arguments.y, names, levels) if order == 2 else []
    mains: list[tuple[str, ...]] = [(name,) for name in names]
    read = mains + [(names[i], names[j]) for i, j in pairs]
    model = pm.modelcontext(None)
    start: dict[str, Any] = {}
    numbers = [i for i in range(k) if i not in levels]
    scale: Any = np.ones(k)
    if numbers:
        model.add_coord(called("column"), [names[i] for i in numbers])
        default = pm.LogNormal.dist(*LENGTHSCALE, shape=len(numbers))
        scale = pt.broadcast_to(make("lengthscale", default, called("column")), (len(numbers),))
        start[called("lengthscale")] = np.full(len(numbers), np.sqrt(len(numbers)))
        if levels:
            of_number = {i: scale[at] for at, i in enumerate(numbers)}
            scale = pt.stack([of_number.get(i, pt.constant(1.0)) for i in range(k)])
    parts = []
    for what, (centre, width), own in (("main", MAIN, mains), ("pair", PAIR, read[k:])):
        if not own:
            continue
        dim, centre = called(f"{what}_term"), centre + 2.0 * np.log(noise_sd)
        model.add_coord(dim, [term_name(columns) for columns in own])
        value = make(what, pm.LogNormal.dist(centre, width, shape=len(own)), dim)
        parts.append(pt.broadcast_to(value, (len(own),)))
        start[called(what)] = np.full(len(own), np.exp(centre))
    variances = parts[0] if len(parts) == 1 else pt.concatenate(parts)
    cov = Anova(
        d,
        variances,
        scale,
        rows,
        order=2 if pairs else 1,
        pairs=pairs,
        base=base,
        active_dims=places,
        levels=levels,
        weights=arguments.weights,
    )
    terms = tuple(Term(term_name(columns), "smooth", columns) for columns in read)
    return terms, cov, pt.sum(variances), start


def term_name(columns: tuple[str, ...]) -> str:
    """Return the name of a term of an ANOVA, as formulas have it.

    Examples
    --------
    >>> term_name(("age", "income"))
    'anova(age, income)'
    """
    return f"anova({', '.join(columns)})"
