"""Terms along their columns, in the user's units: what a picture of a term shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pmordinal.data.coding import Column
from pmordinal.data.features import Features
from pmordinal.data.terms import Term
from pmordinal.gram import Kernel
from pmordinal.posterior.mixture import mixed, quantiles
from pmordinal.results.terms import effect_rows, parts, term_moments

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit

ROWS = 100  # training rows to average over, at most
COARSE = 9  # points at which the columns of a term of many are compared


@dataclass(frozen=True, eq=False)
class Shape:
    """A term at chosen values of its columns.

    Attributes
    ----------
    kind : {"curves", "surface", "points", "ordered"}
        Along a number, one curve or one for each level; over two numbers; at levels; or the levels
        of a group, sorted by their means.
    table : DataFrame
        The values, ``x`` and ``z`` (a second number, or the name of a curve), and ``mean``, ``low``, ``high``.
    x, z : str
        What these values are called; `z` may be empty.
    averaged : bool
        Whether the term has more columns, which are as in the data.
    """

    kind: str
    table: pd.DataFrame
    x: str
    z: str = ""
    averaged: bool = False


@dataclass(frozen=True, eq=False)
class Axis:
    """A column along which a term is shown.

    Attributes
    ----------
    column : Column
    where : slice
        Its columns in the matrix.
    values : list
        Numbers, or names of levels.
    codes : ndarray, shape (number of values, number of matrix columns)
        The values in the units of the matrix.
    """

    column: Column
    where: slice
    values: list[Any]
    codes: np.ndarray

    @property
    def is_number(self) -> bool:
        """Whether the column has no levels."""
        return self.column.levels is None


def shape(
    fit: "OrdinalFit",
    part: tuple[Term, Kernel, Sequence[np.ndarray]],
    n_grid: int,
    tails: tuple[float, float],
) -> Shape:
    """Return a term of a fit along its columns.

    Parameters
    ----------
    fit : OrdinalFit
    part : tuple of Term, Kernel and values
        One of `pmordinal.results.terms.parts`.
    n_grid : int
        Points along a number; over two numbers, half as many along each.
    tails : tuple of float
        Probabilities below the ends of the intervals.
    """
    term = part[0]
    place = [known.name for known, *_ in parts(fit)].index(term.name)
    moments = Moments(fit, place, tails)
    if term.kind == "group":
        return _ordered(fit, term, moments)
    axes = axes_of(fit, term, n_grid)
    numbers, factors = [a for a in axes if a.is_number], [a for a in axes if not a.is_number]
    if len(numbers) == 2 and not factors:
        return _surface(axes_of(fit, term, max(n_grid // 2, 2)), moments)
    if len(numbers) < 2 and len(axes) <= 2:
        first, *others = numbers + factors
        return Shape("curves" if numbers else "points", *_over(first, others, moments))
    if term.kind == "interaction":
        rows, levels, _ = effect_rows(fit.features, term)  # numbers are one sd above their means
        table = moments.at(rows)
        table.insert(0, "x", [level or "" for level in levels])
        names = ":".join(axis.column.name for axis in factors)
        at = f"one sd of {', '.join(axis.column.name for axis in numbers)}" if numbers else ""
        return Shape("points", table.assign(z=None), ", at ".join(filter(None, [names, at])))
    return _averaged(fit, axes, moments)


@dataclass(frozen=True, eq=False)
class Moments:
    """Means and intervals of one term, over the members of the fit.

    Attributes
    ----------
    fit : OrdinalFit
    place : int
        Of the term, among all of the fit.
    tails : tuple of float
        Probabilities below the ends of the intervals.
    """

    fit: "OrdinalFit"
    place: int
    tails: tuple[float, float]

    def at(self, rows: np.ndarray, unit: float = 1.0) -> pd.DataFrame:
        """Return those at rows, in the units of the matrix."""
        weights, found = term_moments(self.fit, {self.place: rows})
        return self._table(weights, *found[self.place], unit)

    def means(self, rows: np.ndarray) -> np.ndarray:
        """Return the means alone, which is faster."""
        total = np.zeros(len(rows))
        for weight, member in self.fit.members:
            posterior = member.posterior
            total += weight * (posterior.cross(rows, self.place).T @ posterior.alpha)
        return total

    def of_averages(self, averages: Sequence[np.ndarray]) -> pd.DataFrame:
        """Return those of the averages of the term over blocks of rows."""
        weights, means, variances = [], [], []
        for weight, member in self.fit.members:
            posterior = member.posterior
            kernel, values = posterior.term(self.place)
            k = np.stack([posterior.cross(rows, self.place).mean(axis=1) for rows in averages], 1)
            v = posterior.explain(k)
            prior = [kernel.matrix(values, rows, rows)[0].mean() for rows in averages]
            weights.append(weight)
            means.append(k.T @ posterior.alpha)
            variances.append(np.maximum(np.array(prior) - (v * v).sum(0), 0.0))
        return self._table(np.array(weights), np.stack(means), np.stack(variances))

    def _table(
        self, weights: np.ndarray, means: np.ndarray, variances: np.ndarray, unit: float = 1.0
    ) -> pd.DataFrame:
        mean, _ = mixed(weights, means, variances)
        low, high = quantiles(weights, means, variances, self.tails)
        return pd.DataFrame({"mean": mean / unit, "low": low / unit, "high": high / unit})


def axes_of(fit: "OrdinalFit", term: Term, n_grid: int) -> list[Axis]:
    """Return the columns of a term, in its order, with values to show it at."""
    features = fit.features
    seen = fit.posterior.gram.X
    found: dict[int, Axis] = {}
    places = {name: j for j, name in enumerate(features.names)}
    wanted = {places[name] for name in term.columns}
    start = 0
    for column in features.columns:
        where = slice(start, start + len(column.names))
        start = where.stop
        if wanted.isdisjoint(range(where.start, where.stop)):
            continue
        center, scale = features.center[where], features.scale[where]
        if column.levels is None:
            x = seen[:, where.start]
            codes = np.unique(np.linspace(x.min(), x.max(), n_grid))[:, None]
            values = (codes * scale + center)[:, 0].tolist()
        else:
            codes, values = (column.codes - center) / scale, list(column.levels)
        found[where.start] = Axis(column, where, values, codes)
    order = dict.fromkeys(_first(features, places[name]) for name in term.columns)
    return [found[j] for j in order]


def _first(features: Features, place: int) -> int:
    """Return the first matrix column of the user's column that a matrix column belongs to."""
    starts = np.cumsum([0, *(len(column.names) for column in features.columns)])
    return int(starts[np.searchsorted(starts, place, side="right") - 1])


def _rows(d: int, axes: Sequence[Axis]) -> tuple[np.ndarray, list[tuple]]:
    """Return rows with all combinations of values, the last axis running fastest, and these values."""
    places = list(product(*(range(len(axis.values)) for axis in axes)))
    rows = np.zeros((len(places), d))
    for axis, index in zip(axes, np.array(places).T, strict=True):
        rows[:, axis.where] = axis.codes[index]
    return rows, [
        tuple(axis.values[i] for axis, i in zip(axes, place, strict=True)) for place in places
    ]


def _over(first: Axis, others: Sequence[Axis], moments: Moments) -> tuple[pd.DataFrame, str, str]:
    rows, values = _rows(len(moments.fit.features.names), [first, *others])
    table = moments.at(rows)
    table.insert(0, "x", [value[0] for value in values])
    table.insert(1, "z", [value[1] if others else None for value in values])
    return table, first.column.name, others[0].column.name if others else ""


def _surface(axes: Sequence[Axis], moments: Moments) -> Shape:
    rows, values = _rows(len(moments.fit.features.names), axes)
    table = pd.DataFrame(values, columns=["x", "z"]).assign(mean=moments.means(rows))
    return Shape("surface", table, axes[0].column.name, axes[1].column.name)


def _ordered(fit: "OrdinalFit", term: Term, moments: Moments) -> Shape:
    rows, levels, unit = effect_rows(fit.features, term)
    table = moments.at(rows, unit)
    table.insert(0, "x", levels)
    columns = [fit.features.names.index(name) for name in term.columns]
    coded = [j for j in columns if fit.features.columns[j].levels is not None]
    if len(coded) > 1:  # of many combinations most may not be there
        there = {tuple(row) for row in fit.posterior.gram.X[:, coded].tolist()}
        table = table[[tuple(row) in there for row in rows[:, coded].tolist()]]
    slopes = [fit.features.names[j] for j in columns if j not in coded]
    per = f", for one unit of {':'.join(slopes)}" if slopes else ""
    table = table.sort_values("mean", ignore_index=True).assign(z=None)
    return Shape("ordered", table, term.name.split("|")[-1] + per)


def _averaged(fit: "OrdinalFit", axes: Sequence[Axis], moments: Moments) -> Shape:
    """Return the term along the column where its average over the data varies most."""
    X = fit.posterior.gram.X
    X = X[np.linspace(0, len(X) - 1, min(ROWS, len(X))).round().astype(int)]

    def blocks(axis: Axis, most: int | None = None) -> list[np.ndarray]:
        codes = axis.codes
        if most is not None and axis.is_number:
            codes = codes[np.linspace(0, len(codes) - 1, most).round().astype(int)]
        moved = np.repeat(X[None], len(codes), axis=0)
        moved[:, :, axis.where] = codes[:, None]
        return list(moved)

    def spread(axis: Axis) -> float:
        return float(np.std([moments.means(rows).mean() for rows in blocks(axis, COARSE)]))

    best = max(axes, key=spread)
    table = moments.of_averages(blocks(best))
    table.insert(0, "x", best.values)
    kind = "curves" if best.is_number else "points"
    return Shape(kind, table.assign(z=None), best.column.name, averaged=True)
