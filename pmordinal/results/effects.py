"""How predictions change along attributes: averages over the training rows, with intervals.

An effect is a weighted average of predictions, Σ_i w_i g(f(z_i)), at rows z_i that have the value in question;
a difference of two effects is one too, with weights of both signs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pmordinal import checks
from pmordinal.data.coding import Column
from pmordinal.data.features import Features
from pmordinal.posterior.mixture import shares
from pmordinal.results.averages import Effect, Sampled, summarise
from pmordinal.results.chosen_group import chosen_likelihood, of_attributes
from pmordinal.words import guessing

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit

MOST_ROWS = 100  # training rows to average over: enough for a picture, cheap for a large fit
MOST_MEMBERS = 64  # of an integrated fit: each costs some milliseconds at each value
MANY_ROWS = 10_000  # that stand for weighted ones where a median is taken
KINDS = ("probs", "exceedance", "rank", "latent")
COLUMNS = ("kind", "class", "mean", "sd", "low", "high")


@dataclass(frozen=True)
class Attribute:
    """An attribute of the user's table: its columns in the matrix, and the values to predict at.

    Attributes
    ----------
    where : slice
        Its columns in the matrix.
    labels : tuple
        The values in the user's table: levels, or numbers.
    codes : ndarray, shape (number of values, number of columns)
        The values in the matrix: one-hot levels, or numbers.
    numeric : bool
    """

    where: slice
    labels: tuple[Any, ...]
    codes: np.ndarray
    numeric: bool


@guessing
def effects(
    fit: "OrdinalFit",
    feature: str | Sequence[str],
    kind: str | Sequence[str] = KINDS,
    *,
    at: Mapping[str, Any] | str | None = None,
    versus: Any = None,
    n_grid: int = 60,
    rows: int = MOST_ROWS,
    draws: int = 500,
    ci_prob: float | None = None,
    seed: int | np.random.Generator | None = 0,
    random_seed: int | None = None,
) -> pd.DataFrame:
    """Return average predictions along one attribute, or over the combinations of several.

    Each training row (or an even selection of them, by their weights) is given every value in turn,
    its other attributes as they are, and the predictions are averaged. Thresholds and noise by group are
    those of the population, unless `at` names a group.

    Parameters
    ----------
    fit : OrdinalFit
    feature : str or sequence of str
        A column of the training table, or several categorical ones to combine.
    kind : str or sequence of str
        Some of ``"probs"``, P(Y = k); ``"exceedance"``, P(Y ≥ k) for all classes but the lowest;
        ``"rank"``, the expected class position, counted from zero; ``"latent"``, the latent function.
    at : mapping or "typical", optional
        Values of other attributes to hold fixed, and groups whose thresholds or noise to take, such
        as ``{"rater": "Ann"}``; ``"typical"`` fixes all other attributes at their median or their
        most frequent level.
    versus : optional
        A value of the attribute (a tuple of them for several attributes): differences from the
        prediction there are returned instead of the predictions.
    n_grid : int
        Points along a numeric attribute, between its smallest and largest value.
    rows : int
        Training rows to average over, at most.
    draws : int
        Draws of the latent function for the intervals. Of an integrated fit with more than 64 points, 64 stand for
        all.
    ci_prob : float, optional
        Probability of the intervals; default is ArviZ's ``rcParams["stats.ci_prob"]``.
    seed, random_seed : int or Generator, optional
        For the draws.

    Returns
    -------
    DataFrame
        A column for each attribute, then ``kind``, ``class`` (ordered; missing for ``"rank"`` and
        ``"latent"``), ``mean``, ``sd``, ``low``, ``high``.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> wine = pmo.datasets.wine()
    >>> fit = pmo.fit(pmo.gp_model(wine[["temperature"]], wine["rating"], "expquad"), progressbar=False)
    >>> effects(fit, "temperature", "rank").round(1)[["temperature", "mean"]].values.tolist()
    [['cold', 1.4], ['warm', 2.5]]
    """
    seed = checks.one_seed(seed, random_seed)
    names, kinds = checks.names("feature", feature), checks.names("kind", kind)
    for each in kinds:
        checks.one_of("kind", each, KINDS)
    clash = [name for name in names if name in COLUMNS]
    if clash:
        raise ValueError(
            f"feature: the column {clash[0]!r} would clash with the result's: rename it"
        )
    draws = checks.integer("draws", draws, minimum=2)
    tails = interval_tails(ci_prob)
    X = training_rows(fit, at, names, checks.integer("rows", rows, minimum=1))
    attributes = [attribute(fit, name, n_grid) for name in names]
    if len(names) > 1 and any(a.numeric for a in attributes):
        raise ValueError("feature: only categorical attributes can be combined")
    base = None if versus is None else moved(X, _values_of(fit, names, versus))
    rng = checks.generator("seed", seed)
    places = list(product(*(range(len(a.labels)) for a in attributes)))
    found: list[list[Sampled]] = [[] for _ in places]
    weights = _few([1.0] if fit.integral is None else fit.integral.weights)
    for weight, count, (_, member) in zip(
        weights, shares(weights, draws), fit.members, strict=True
    ):
        if not weight:
            continue
        likelihood = chosen_likelihood(member, at)
        alphas = member.posterior.components(count, rng)
        noise = rng.standard_normal((count, len(X) if base is None else 2 * len(X)))
        for place, sampled in zip(places, found, strict=True):
            changes = [(a.where, a.codes[i]) for a, i in zip(attributes, place, strict=True)]
            effect = Effect.of(member, likelihood, alphas, moved(X, changes), base)
            sampled.append(effect.sample(weight, noise))
    tables = []
    for place, sampled in zip(places, found, strict=True):
        table = summarise(sampled, fit.labels.class_names, kinds, tails)
        for i, (name, a) in enumerate(zip(names, attributes, strict=True)):
            table.insert(i, name, a.labels[place[i]])
        tables.append(table)
    result = pd.concat(tables, ignore_index=True)
    for name, a in zip(names, attributes, strict=True):
        if not a.numeric:
            result[name] = pd.Categorical(result[name], categories=a.labels)
    result["class"] = pd.Categorical(result["class"], fit.labels.class_names, ordered=True)
    return result


def _few(weights: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the weights of members; of very many, whole shares of some, which are those of all on average.

    Examples
    --------
    >>> _few([0.7, 0.3]).tolist(), int((_few(np.full(1000, 1e-3)) > 0).sum())
    ([0.7, 0.3], 64)
    """
    if len(weights) <= MOST_MEMBERS:
        return np.asarray(weights)
    return shares(weights, MOST_MEMBERS) / MOST_MEMBERS


def interval_tails(ci_prob: float | None) -> tuple[float, float]:
    """Return the probabilities below the ends of an equal-tailed interval.

    Examples
    --------
    >>> interval_tails(0.5)
    (0.25, 0.75)
    """
    if ci_prob is not None and not 0.0 < checks.positive("ci_prob", ci_prob) < 1.0:
        raise ValueError(f"ci_prob must be between 0 and 1, got {ci_prob}: 0.9, say")
    from arviz_base.validate import validate_ci_prob  # here: a fit does without ArviZ

    outside = (1.0 - validate_ci_prob(ci_prob)) / 2.0
    return outside, 1.0 - outside


def attribute(fit: "OrdinalFit", name: str, n_grid: int) -> Attribute:
    """Return where an attribute stands and the values it takes: its levels, or a grid of numbers."""
    where, column = locate(fit.features, name)
    if column.levels is not None:
        return Attribute(where, column.levels, column.codes, numeric=False)
    seen = fit.features.untransform(fit.posterior.gram.X)[:, where.start]
    if fit.features.counts_levels(name):
        levels = np.unique(
            [float(f"{x:.15g}") for x in seen]
        )  # without the rounding of their units
        names = [int(x) if x.is_integer() else x for x in levels.tolist()]
        return Attribute(where, tuple(names), levels[:, None], numeric=False)
    grid = np.linspace(seen.min(), seen.max(), checks.integer("n_grid", n_grid, minimum=2))
    grid = np.unique(grid)  # one value if the column is constant
    return Attribute(where, tuple(grid.tolist()), grid[:, None], numeric=True)


def locate(features: Features, name: str) -> tuple[slice, Column]:
    """Return the matrix columns of an attribute, and the attribute."""
    checks.one_of("feature", name, [column.name for column in features.given])
    start = 0
    for column in features.columns:
        where = slice(start, start + len(column.names))
        if column.name == name:
            break
        start = where.stop
    return where, column


def moved(X: np.ndarray, changes: Sequence[tuple[slice, np.ndarray]]) -> np.ndarray:
    """Return a copy of the rows with some columns replaced."""
    X = X.copy()
    for where, code in changes:
        X[:, where] = code
    return X


def training_rows(fit: "OrdinalFit", at, free: Sequence[str], rows: int) -> np.ndarray:
    """Return at most `rows` training rows, in the user's units, with the attributes in `at` held fixed."""
    if isinstance(at, str):
        checks.one_of("at", at, ("typical",))
        return typical_row(fit)
    if at is not None and not isinstance(at, Mapping):
        raise TypeError(f"at must map attributes to values, or be 'typical', got {checks.got(at)}")
    X = fit.features.untransform(fit.posterior.gram.X)
    return moved(X[even_rows(fit, rows)], fixed(fit.features, of_attributes(fit, at or {}), free))


def even_rows(fit: "OrdinalFit", most: int) -> np.ndarray:
    """Return the positions of at most so many training rows, evenly chosen: of those that they stand for."""
    weights, n = fit.by_row.weights, len(fit.posterior.gram.X)
    if weights is None:
        return np.linspace(0, n - 1, min(most, n)).round().astype(int)
    ends = np.cumsum(weights)
    count = min(most, max(round(ends[-1]), 1))
    return np.searchsorted(ends, (np.arange(count) + 0.5) * ends[-1] / count)


def fixed(
    features: Features, at: Mapping[str, Any], free: Sequence[str]
) -> list[tuple[slice, np.ndarray]]:
    """Return the column changes that hold attributes at given values; refuse those in `free`."""
    if not isinstance(at, Mapping):
        raise TypeError(f"at must map attributes to values, got {checks.got(at)}")
    for name in at:
        if name in free:
            raise ValueError(f"at: {name!r} is an attribute that varies, it cannot be held fixed")
    return [_code(features, name, value, "at") for name, value in at.items()]


def typical_row(fit: "OrdinalFit") -> np.ndarray:
    """Return a row of medians and most frequent levels, shape (1, d), in the user's units."""
    X = fit.features.untransform(fit.posterior.gram.X)
    if fit.by_row.weights is not None:
        X = X[even_rows(fit, MANY_ROWS)]
    row = np.median(X, axis=0)
    for column in fit.features.given:
        where, _ = locate(fit.features, column.name)
        if fit.features.counts_levels(column.name):
            row[where] = median_level(X[:, where])
        if column.levels is not None:
            match = (X[:, where][:, None] == column.codes).all(axis=-1)
            row[where] = column.codes[match.sum(axis=0).argmax()]
    return row[None]


def median_level(values: np.ndarray) -> float:
    """Return the median of numbers, or the next smaller one that is there."""
    return float(np.quantile(values, 0.5, method="inverted_cdf"))


def _values_of(fit: "OrdinalFit", names: Sequence[str], versus) -> list[tuple[slice, np.ndarray]]:
    values = versus if isinstance(versus, tuple) else (versus,)
    if len(values) != len(names):
        raise ValueError(f"versus must have one value for each of {names}, got {versus!r}")
    return [_code(fit.features, n, v, "versus") for n, v in zip(names, values, strict=True)]


def _code(features: Features, name: str, value, argument: str) -> tuple[slice, np.ndarray]:
    where, column = locate(features, name)
    what = f"{argument}: {name}"
    if column.levels is None:
        return where, checks.finite_array(what, [value], ndim=1)
    return where, column.codes[column.levels.index(checks.one_of(what, str(value), column.levels))]
