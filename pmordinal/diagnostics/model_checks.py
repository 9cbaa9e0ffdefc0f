"""The numbers behind checks of an ordinal model, as tidy frames; `pmordinal.plots` draws them.

Calibration and residuals judge predictions P(Y_i = k) of rows whose label was left out: by the engine
for a fit, by importance sampling (``az.loo``) for a sampled tree. Calibration is the isotonic regression of
the events Y ≤ k on their predicted probabilities [CORP2021]; residuals are the surrogates of [LZ2018]: noise e with

    F(e) uniform on (P(Y < y), P(Y ≤ y)),

which has the distribution F of the link, if the model is right, whatever the classes.
"""

import logging
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr
from scipy.optimize import isotonic_regression

from pmordinal import checks
from pmordinal.diagnostics.loo import repeats, tree_weights
from pmordinal.diagnostics.predictive import (
    SAMPLE,
    class_names,
    grouping,
    n_classes,
    predictions,
    replicated,
    variable,
)
from pmordinal.links import Link, get_link
from pmordinal.results.effects import interval_tails
from pmordinal.results.fit import OrdinalFit
from pmordinal.words import guessing


def prior_categories(
    source: pm.Model | xr.DataTree,
    draws: int = 500,
    *,
    ci_prob: float | None = None,
    seed: int | None = None,
    random_seed: int | None = None,
) -> pd.DataFrame:
    """Return the class shares that the priors of a model imply, and those observed.

    Each draw from the priors makes one data set with the model's rows; its class shares are
    summarised over the draws.

    Parameters
    ----------
    source : pm.Model or DataTree
        A model whose labels are called ``y``, or draws of it by ``pm.sample_prior_predictive``.
    draws : int
        From the priors, if `source` is a model.
    ci_prob : float, optional
        Probability of the intervals; default is ArviZ's ``rcParams["stats.ci_prob"]``.
    seed, random_seed : int, optional

    Returns
    -------
    DataFrame
        ``class``, ``mean``, ``median``, ``low``, ``high``, ``observed``.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> model = pmo.gp_model([[0.0], [1.0], [2.0], [3.0]], [1, 1, 2, 3])
    >>> prior_categories(model, draws=50, seed=1)["observed"].tolist()
    [0.5, 0.25, 0.25]
    """
    seed = checks.one_seed(seed, random_seed)
    tails = interval_tails(ci_prob)
    tree = prior_draws(source, draws, seed)
    y = variable(tree, "prior_predictive", "y").stack(sample=SAMPLE).transpose("sample", ...)
    observed = variable(tree, "observed_data", "y").values
    names = class_names(tree, n_classes(tree, y.values, observed))
    shares = np.stack([(y.values == k).mean(1) for k in range(len(names))], 1)
    low, median, high = np.quantile(shares, [tails[0], 0.5, tails[1]], axis=0)
    return pd.DataFrame(
        {
            "class": _ordered(names, names),
            "mean": shares.mean(0),
            "median": median,
            "low": low,
            "high": high,
            "observed": np.bincount(observed, minlength=len(names)) / observed.size,
        }
    )


def prior_draws(
    source: pm.Model | xr.DataTree, draws: int = 500, seed: int | None = None
) -> xr.DataTree:
    """Return prior predictive draws of a model, with the names of its classes; a tree is taken as it is."""
    if isinstance(source, xr.DataTree):
        return source
    if not isinstance(source, pm.Model):
        raise TypeError(
            f"source must be a pm.Model, or a DataTree by pm.sample_prior_predictive, got {checks.got(source)}"
        )
    count = checks.integer("draws", draws, minimum=2)
    logger = logging.getLogger("pymc.sampling.forward")
    level = logger.level
    logger.setLevel(logging.WARNING)  # it would list the variables, which nobody asked for
    try:
        tree = pm.sample_prior_predictive(
            count,
            model=source,
            random_seed=checks.generator("seed", seed),
            compile_kwargs={"mode": "FAST_COMPILE"},  # for few draws compiling takes longer
        )
    finally:
        logger.setLevel(level)
    if "class" in source.coords:
        tree.attrs["classes"] = [str(name) for name in source.coords["class"]]
    return tree


def predictive_bars(
    source: OrdinalFit | xr.DataTree,
    by: Any = None,
    *,
    draws: int = 1000,
    ci_prob: float | None = None,
    seed: int | None = None,
    random_seed: int | None = None,
) -> pd.DataFrame:
    """Return observed class counts beside those of replicated data, group by group.

    Parameters
    ----------
    source : OrdinalFit or DataTree
        A tree needs ``posterior_predictive`` and ``observed_data``.
    by : str or array_like, shape (n,), optional
        A categorical column of the training table, or any grouping of the rows, none of them missing;
        default is one group.
    draws : int
        Replications, if `source` is a fit.
    ci_prob : float, optional
        Probability of the intervals; default is ArviZ's ``rcParams["stats.ci_prob"]``.
    seed, random_seed : int, optional

    Returns
    -------
    DataFrame
        ``group``, ``class``, ``observed``, ``mean``, ``low``, ``high``: counts.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> wine = pmo.datasets.wine()
    >>> fit = pmo.fit(pmo.gp_model(wine[["temperature"]], wine["rating"]), progressbar=False)
    >>> bars = predictive_bars(fit, "temperature", seed=0)
    >>> bars.groupby("group", observed=True)["observed"].sum().tolist()
    [36, 36]
    """
    seed = checks.one_seed(seed, random_seed)
    tails = interval_tails(ci_prob)
    tree = source.to_datatree(draws, seed=seed) if isinstance(source, OrdinalFit) else source
    observed = variable(tree, "observed_data", "y").values
    again = repeats(tree_weights(tree), observed.size)
    y = replicated(tree, checks.generator("seed", seed))
    names = class_names(tree, n_classes(tree, y, observed))
    group = grouping(source, tree, by, observed.size)[again]
    observed = observed[again]
    tables = []
    for level in group.categories:
        rows = np.asarray(group == level)
        counts = np.stack([(y[:, rows] == k).sum(1) for k in range(len(names))], 1)
        low, high = np.quantile(counts, tails, axis=0)
        tables.append(
            pd.DataFrame(
                {
                    "group": level,
                    "class": names,
                    "observed": np.bincount(observed[rows], minlength=len(names)),
                    "mean": counts.mean(0),
                    "low": low,
                    "high": high,
                }
            )
        )
    table = pd.concat(tables, ignore_index=True)
    table["group"] = pd.Categorical(table["group"], categories=group.categories)
    table["class"] = _ordered(table["class"], names)
    return table


@guessing
def calibration(
    source: OrdinalFit | xr.DataTree | Any,
    y: Any = None,
    *,
    leave_one_out: bool = True,
    replicates: int = 300,
    ci_prob: float | None = None,
    seed: int | None = None,
    random_seed: int | None = None,
) -> pd.DataFrame:
    """Return predicted against observed frequencies of Y ≤ k, threshold by threshold.

    The observed frequency at a predicted one is the isotonic regression of the events on the
    predictions [CORP2021]: no bins to choose. The band is where it would lie if the predictions were right,
    from labels drawn from them.

    Parameters
    ----------
    source : OrdinalFit, DataTree, or array_like of probabilities, shape (m, r)
    y : array_like, shape (m,), optional
        True labels; only with probabilities, such as ``fit.predict(Xtest)``.
    leave_one_out : bool
        Predict each row without its own label. False takes the posterior of all labels, which
        looks better calibrated than it is.
    replicates : int
        Draws of all labels, for the band.
    ci_prob : float, optional
        Pointwise probability of the band; default is ArviZ's ``rcParams["stats.ci_prob"]``.
    seed, random_seed : int, optional

    Returns
    -------
    DataFrame
        ``threshold``, ``predicted``, ``observed``, ``low``, ``high``, ``rows`` (how many have this
        prediction).

    Examples
    --------
    >>> probs = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]
    >>> calibration(probs, [1, 2, 2], seed=0)[["predicted", "observed"]].values.tolist()
    [[0.3, 0.0], [0.8, 0.0], [0.9, 1.0]]
    """
    seed = checks.one_seed(seed, random_seed)
    tails = interval_tails(ci_prob)
    replicates = checks.integer("replicates", replicates, minimum=2)
    p = predictions(source, y, leave_one_out)
    cdf = p.probs.cumsum(1)
    u = checks.generator("seed", seed).uniform(size=(replicates, len(cdf)))
    tables = []
    for k, name in enumerate(p.threshold_names):
        # rounded, so that rounding errors do not break ties
        ties = np.unique(cdf[:, k].round(12), return_inverse=True, return_counts=True)
        predicted, group, rows = ties
        replicated = np.stack([_isotonic(draw < cdf[:, k], group, rows) for draw in u])
        low, high = np.quantile(replicated, tails, axis=0)
        observed = _isotonic(p.codes <= k, group, rows)
        columns = {"predicted": predicted, "observed": observed, "low": low, "high": high}
        tables.append(pd.DataFrame({"threshold": name} | columns | {"rows": rows}))
    table = pd.concat(tables, ignore_index=True)
    table["threshold"] = _ordered(table["threshold"], p.threshold_names)
    return table


@guessing
def surrogate_residuals(
    source: OrdinalFit | xr.DataTree | Any,
    y: Any = None,
    *,
    link: str | Link | None = None,
    leave_one_out: bool = True,
    replicates: int = 1,
    seed: int | None = None,
    random_seed: int | None = None,
) -> pd.DataFrame:
    """Return continuous residuals of ordinal labels, distributed as the link's noise if the model is right.

    They are random, because a class leaves an interval of the noise open: look at several replicates.
    Plot them against attributes, fitted values, or the link's quantiles [LZ2018].

    Parameters
    ----------
    source : OrdinalFit, DataTree, or array_like of probabilities, shape (m, r)
    y : array_like, shape (m,), optional
        True labels; only with probabilities.
    link : {"probit", "logit", "cloglog"}, optional
        The link whose noise the residuals should follow; default is the model's (probit for probabilities).
    leave_one_out : bool
        Predict each row without its own label. False makes the residuals too small.
    replicates : int
        Sets of residuals.
    seed, random_seed : int, optional

    Returns
    -------
    DataFrame
        ``replicate``, ``obs``, ``class``, ``probability`` (F of the residual, uniform if the model
        is right), ``residual``; the link's name is in ``.attrs``. A label of predicted probability zero
        has an infinite residual.

    Examples
    --------
    >>> table = surrogate_residuals([[1.0, 0.0], [0.5, 0.5]], [1, 2], seed=0)
    >>> bool(table.loc[1, "residual"] > 0)
    True
    """
    seed = checks.one_seed(seed, random_seed)
    p = predictions(source, y, leave_one_out)
    noise = get_link(link if link is not None else p.link)
    replicates = checks.integer("replicates", replicates, minimum=1)
    n, r = p.probs.shape
    own = p.probs[np.arange(n), p.codes]
    below = np.where(np.arange(r) < p.codes[:, None], p.probs, 0.0).sum(1)
    above = np.where(np.arange(r) > p.codes[:, None], p.probs, 0.0).sum(1)
    u = checks.generator("seed", seed).uniform(size=(replicates, n))
    left, right = below + u * own, above + (1.0 - u) * own  # a uniform draw [LZ2018]
    # from the smaller tail, which is accurate
    residual = np.where(
        left < right,
        noise.quantile(np.minimum(left, 0.5)),
        noise.upper_quantile(np.minimum(right, 0.5)),
    )
    table = pd.DataFrame(
        {
            "replicate": np.repeat(np.arange(replicates), n),
            "obs": np.tile(p.rows, replicates),
            "class": _ordered(
                np.tile(np.array(p.names, dtype=object)[p.codes], replicates), p.names
            ),
            "probability": left.ravel(),
            "residual": residual.ravel(),
        }
    )
    table.attrs["link"] = noise.name
    return table


def _ordered(values: Any, names: list[str]) -> pd.Categorical:
    return pd.Categorical(values, categories=names, ordered=True)


def _isotonic(events: np.ndarray, group: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the isotonic regression of the events on the predictions; ties are pooled first."""
    return isotonic_regression(np.bincount(group, events) / rows, weights=rows).x
