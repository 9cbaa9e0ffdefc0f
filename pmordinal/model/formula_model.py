"""`formula_model`: a whole PyMC model from a formula."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from scipy.linalg import qr

from pmordinal import checks
from pmordinal.data import by_row, term_columns
from pmordinal.data import design as design_of
from pmordinal.data.columns import is_polars
from pmordinal.data.design import Design
from pmordinal.data.foreign import as_pandas
from pmordinal.data.levels import show
from pmordinal.data.rows import check_paired
from pmordinal.data.spread import is_dask
from pmordinal.engines import Engine, engine_for
from pmordinal.errors import warn
from pmordinal.gram import lower
from pmordinal.links import Link, get_link
from pmordinal.model import formula as formulas
from pmordinal.model.compile import SmallModel
from pmordinal.model.factories import (
    grouped_noise,
    grouped_thresholds,
    observe_marginal,
    observe_rows,
)
from pmordinal.model.formula import Formula
from pmordinal.model.latent.factory import measurements, process_values
from pmordinal.model.latent.process_ops import Process
from pmordinal.model.marginal import MarginalOrdinal
from pmordinal.model.sums import added
from pmordinal.model.terms import Builder
from pmordinal.words import guess, guessing

NA = ("refuse", "drop")
SAMPLING = ("marginal", "full")
COLLINEAR = 1e-10  # what others leave of a column, relative to it
FAR = 2.0  # standard deviations of the noise that an average offset may be from zero
WEIGHTS = "weights of the rows"  # a column of its own, so that weights go with their rows


@guessing
def formula_model(
    formula: str,
    data,
    engine: str | Engine | None = None,
    link: str | Link = "probit",
    thresholds_by: str | None = None,
    noise_by: str | None = None,
    weights=None,
    priors: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    categories=None,
    thresholds=None,
    objective: str | None = None,
    na: str = "refuse",
    sampling: str = "marginal",
) -> pm.Model:
    """Return a PyMC model of ordinal labels from a formula; its terms are integrated out by an engine.

    Parameters
    ----------
    formula : str
        Such as ``"rating ~ temperature + gp(age, income) + (1 | judge)"``; see Notes.
    data : DataFrame
        The outcome and all columns that the formula names. Rows whose outcome is missing are
        marginalised.
    engine : str or Engine, optional
        How the terms are integrated out. Default is ``"ep"``, and ``"inducing"`` beyond 3000 rows.
    link : {"probit", "logit", "cloglog"}
        Distribution of the noise, whose scale is one: effects are in its units.
    thresholds_by, noise_by : str, optional
        Columns of `data` that say whose thresholds cut a row, and whose noise is on it, such as the
        rater: see `gp_model`. They may be in terms, too.
    weights : str or array_like, shape (n,), optional
        How many rows each row stands for: a column of `data`, or numbers; see `gp_model`.
    priors : mapping, optional
        By name of term, a mapping from hyperparameters to numbers, which fix them, or
        distributions: ``{"gp(age)": {"sd": pm.HalfNormal.dist(1), "lengthscale": 2.0}}``.
    categories : sequence, optional
        All labels in order, the unobserved ones included.
    thresholds : optional
        Numbers, a distribution or a variable instead of the default prior.
    objective : str, optional
        What stands for the log probability of the labels; default is the engine's evidence.
    na : {"refuse", "drop"}
        What to do with rows in which a predictor is missing.
    sampling : {"marginal", "full"}
        ``"marginal"``: an engine integrates the terms out, for `fit` and for ``pm.sample`` of the
        hyperparameters. ``"full"``: nothing is integrated out or approximated; ``f``, the sum of the
        terms at the labelled rows, is in the model, for ``pm.sample``.

    Returns
    -------
    pm.Model
        The model on the stack if there is one, else a new one.

    Notes
    -----
    Terms, and their hyperparameters for `priors`:

    - ``x``: a linear effect; ``f``: the levels of a factor; ``x:f``, ``x:z``: a product of these.
      ``sd``, by default a wide constant.
    - ``gp(x)``, ``gp(x, z, cov="matern52")``: a smooth function; ``gp(x, by=f)``: one for each level.
      ``sd`` and ``lengthscale``, one for each column.
    - ``(1 | g)``, ``(x | g)``: intercepts and slopes of groups. ``sd``.
    - ``anova(x, z, f, order=2)``: main effects and interactions of two columns, smooth in numbers, each
      with a variance of its own. ``main`` and ``pair``, the variances, and ``lengthscale``, of numbers.
    - ``offset(x)``: a known shift of the latent function, x as it is. It has no hyperparameters.

    There is no intercept: the thresholds are it. Numbers are in standard deviations of their column.
    A factor's levels have one standard deviation, seen or not, so that nothing is known of a new
    level but the prior.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> wine = pmo.datasets.wine()
    >>> model = formula_model("rating ~ temperature + contact + (1 | judge)", wine)
    >>> [v.name for v in model.free_RVs]
    ['1|judge_sd', 'thresholds']
    """
    checks.one_of("na", na, NA)
    checks.one_of("sampling", sampling, SAMPLING)
    if sampling == "full" and not (engine is None and objective is None):
        raise ValueError("engine and objective belong to sampling='marginal'")
    if is_dask(data):
        raise TypeError(
            "formulas are for tables in memory, and data is spread over Dask: pass data.compute() or some of its rows, "
            "or name columns: pmo.gp_model(data[[...]], data['y'], engine='inducing')"
        )
    written, table = _read(formula, data)
    table = _with_weights(table, weights)
    table, left_out = term_columns.without_missing(table, written.variables, na)
    if left_out:
        warn(left_out)
    given = None if weights is None else WEIGHTS
    every = by_row.read(table, thresholds_by, noise_by, given)[1]
    computed = [name for name in written.reads if name not in written.variables]
    groups = {name for term in written.terms for name in term.groups}
    columns = written.variables, computed, groups
    offsets = {term.name: term.columns[0] for term in written.offsets}
    features, _ = term_columns.learn(table, *columns, every.weights, offsets)
    design = design_of.read(
        table, table[written.outcome], categories, features=features, by_row=every
    )
    link, engine = (
        get_link(link),
        engine_for(engine if objective is None else engine or "ep", len(design.y)),
    )
    if engine.in_label_units:
        raise ValueError(
            f"engine {engine.name!r} regresses on the labels: formula_model has no such form"
        )
    priors = _checked_priors(priors, written)
    new = SmallModel if sampling == "marginal" else pm.Model
    model = pm.modelcontext(None) if pm.Model.get_context(error_if_none=False) else new()
    with model:
        model.add_coords(design.coords)
        present = frozenset(frozenset(t.columns) for t in written.terms if not (t.groups or t.call))
        builder = Builder(
            features,
            design.X,
            design.y,
            design.by_row.weights,
            link.noise_sd,
            priors,
            present | {frozenset()},
        )
        built = [builder.build(term) for term in written.terms]
        _check_collinear(written, design)
        if thresholds is None:
            _check_offset(design, link)
        whole = added(
            [term.cov for term in built],
            [term.variance for term in built],
            tuple(name for term in built for name in term.terms),
            design,
            link,
            {key: value for term in built for key, value in term.start.items()},
        )
        population, b = grouped_thresholds(thresholds, design, whole.total, link)
        one = pt.constant(np.float64(1.0))
        if sampling == "full":
            measured = measurements(design.labels, link, population, 1.0, whole.total)
            process = Process(
                lower(whole.cov), design.X, features, design.labels, link, design.by_row
            )
            f = process_values(process, *measured)
            if (shift := features.shift(design.X)) is not None:
                f = f + shift
            f = pm.Deterministic("f", f, dims="obs")
            observe_rows(f, b, grouped_noise(one, design), link, design)
            return model
        gp = MarginalOrdinal(whole.cov, engine, link)
        options = {"objective": objective, "start": whole.start, "terms": whole.terms}
        observe_marginal(gp, design, population, b, one, **options)
    return model


def _read(formula: str, data) -> tuple[Formula, pd.DataFrame]:
    """Return the formula and the table as a DataFrame with all its columns, groups as levels."""
    table = as_pandas(data, "data")
    if is_polars(table):
        table = table.to_pandas()
    if not isinstance(table, pd.DataFrame):
        raise TypeError(
            f"data must be a DataFrame, whose columns the formula names, got {checks.got(data)}"
        )
    written = formulas.read(formula)
    names = [str(name) for name in table.columns]
    lost = [name for name in (written.outcome, *written.variables) if name not in names]
    if lost:
        raise ValueError(
            f"formula: data has no column {show(lost)}; it has {show(names, 12)}{guess(lost[0], names)}"
        )
    table = table.set_axis(names, axis=1)
    if written.outcome in written.variables:
        raise ValueError(f"formula: the outcome {written.outcome!r} cannot be a predictor too")
    twice = [n for n in (written.outcome, *written.variables) if names.count(n) > 1]
    if twice:
        raise ValueError(f"data has more than one column named {twice[0]!r}: rename it")
    return written.with_levels(lambda name: _is_number(table[name])), table


def _with_weights(table: pd.DataFrame, weights) -> pd.DataFrame:
    """Return the table with the weights of the rows in a column."""
    if weights is None:
        return table
    if isinstance(weights, str):
        if weights not in table.columns:
            raise ValueError(
                f"weights: data has no column {weights!r}; it has {show(table.columns, 12)}"
                f"{guess(weights, table.columns)}"
            )
        weights = table[weights].to_numpy()
    check_paired(table, weights, "data", "weights")
    values = np.asarray(weights)
    if values.shape != (len(table),):
        raise ValueError(
            f"weights must be one for each of {len(table)} rows, got shape {values.shape}"
        )
    return table.assign(**{WEIGHTS: values})


def _is_number(column: pd.Series) -> bool:
    return (
        term_columns.levels_of(term_columns.column_values(column), str(column.name), "data") is None
    )


def _checked_priors(priors, written: Formula) -> Mapping[str, Mapping[str, Any]]:
    if priors is None:
        return {}
    if not isinstance(priors, Mapping):
        raise TypeError(f"priors must map names of terms to priors, got {checks.got(priors)}")
    for name in priors:
        checks.one_of("priors: term", name, [term.name for term in written.terms])
    return priors


def _check_offset(design: Design, link: Link) -> None:
    """Warn if known shifts lead to where the prior of the thresholds is not."""
    shift = design.features.shift(design.X)
    if shift is not None and abs(shift.mean()) > FAR * link.noise_sd:
        warn(
            f"formula: the offset is {shift.mean():.3g} on average, and the prior of the thresholds is around zero: "
            "subtract the average from the column, or give thresholds= a prior around it"
        )


def _check_collinear(written: Formula, design: Design) -> None:
    """Warn if one linear effect or factor can be said by others."""
    features, X = design.features, design.X
    basis, names = np.full((len(X), 1), len(X) ** -0.5), []  # orthonormal, of all before
    for term in written.terms:
        if term.groups or term.call or len(term.columns) > 1:
            continue
        j = features.names.index(term.columns[0])
        column = X[:, j]
        if features.columns[j].levels is not None:
            column = (column[:, None] == np.unique(column)[1:]).astype(float)
        block = column.reshape(len(X), -1)
        if len(X) <= basis.shape[1] + block.shape[1]:
            names.append(term.name)
            continue
        rest = block
        for _ in range(2):  # once more, for what rounding has left
            rest = rest - basis @ (basis.T @ rest)
        q, r, _ = qr(rest, mode="economic", pivoting=True)
        if np.abs(np.diagonal(r)).min() < COLLINEAR * np.sqrt((block**2).sum(axis=0).max()):
            warn(
                f"formula: {term.name} is a linear combination of {show(names)}: their effects cannot be told "
                "apart but for the prior; leave one of them out"
            )
            continue
        basis = np.concatenate([basis, q], axis=1)
        names.append(term.name)
