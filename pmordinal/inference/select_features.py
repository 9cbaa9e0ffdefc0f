"""Backward elimination of attributes by their relevance [CG2005, section 6.4]."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pymc as pm
from rich.progress import track

from pmordinal import checks
from pmordinal.data import features as feature_table
from pmordinal.data import target
from pmordinal.engines import Engine
from pmordinal.errors import ConvergenceWarning, warn
from pmordinal.gram import LinearARD
from pmordinal.inference.fit import fit
from pmordinal.links import Link
from pmordinal.model.factories import gp_model
from pmordinal.results.fit import OrdinalFit
from pmordinal.words import guessing


@guessing
def select_features(
    X,
    y,
    *,
    keep: float = 0.5,
    smallest: int = 1,
    engine: str | Engine = "ep",
    link: str | Link = "probit",
    categories=None,
    progressbar: bool = True,
) -> pd.DataFrame:
    """Return smaller and smaller sets of attributes; each step removes the least relevant ones.

    At each step a Gaussian process with the linear ARD covariance Σ κ_j x_j z_j is fitted, the
    share `keep` of the attributes with the largest κ_j is kept, and those are judged by a linear
    covariance without ARD, as in the paper.

    Parameters
    ----------
    X : DataFrame or array_like, shape (n, d)
    y : array_like, shape (n,)
    keep : float
        Share of the attributes that survives a step.
    smallest : int
        How many to stop at.
    engine, link, categories
        As in `gp_model`.
    progressbar : bool

    Returns
    -------
    DataFrame
        One row for each set, from all attributes to the fewest: ``n_features``, ``log_evidence``
        and ``loo`` of the linear model, and ``features``, their names with the most relevant first.

    Notes
    -----
    The attributes are chosen with all the labels, so that ``loo`` is too good: to measure how well
    the choice generalises, select inside each fold of a cross-validation.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 6))
    >>> table = pmo.select_features(X, (X[:, 2] > 0).astype(int), progressbar=False)
    >>> table["features"].iloc[-1]
    ['x2']
    """
    if not 0 < checks.positive("keep", keep) < 1:
        raise ValueError(f"keep must be between 0 and 1, got {keep}")
    smallest = checks.integer("smallest", smallest, minimum=1)
    X, y = target.split(X, y)
    table, Z = feature_table.learn(X, standardize=True)
    frame = pd.DataFrame(Z, columns=list(table.names))
    options = {"engine": engine, "link": link, "categories": categories}
    sizes = list(_sizes(frame.shape[1], keep, smallest))
    rows: list[dict] = []
    for i, size in enumerate(track(sizes, "eliminating", transient=True, disable=not progressbar)):
        try:
            ranked = _whole(_fit_ard(frame, y, options)).relevance()
            frame = frame[ranked.index.tolist()]
            rows.append(_judge(frame, y, options))
        except KeyboardInterrupt:
            if not rows:
                raise
            message = f"interrupted: the {len(rows)} of {len(sizes)} sets that are done are kept"
            warn(message, ConvergenceWarning)
            break
        if i + 1 < len(sizes):
            frame = frame.iloc[:, : sizes[i + 1]]
        assert len(ranked) == size
    return pd.DataFrame(rows)


def _sizes(d: int, keep: float, smallest: int) -> Iterator[int]:
    while True:
        yield d
        if d <= smallest:
            return
        d = max(smallest, min(int(d * keep), d - 1))


def _fit_ard(frame: pd.DataFrame, y, options: dict) -> OrdinalFit:
    d = frame.shape[1]
    with pm.Model() as model:
        weights = pm.LogNormal("weights", -np.log(d), 2.0, shape=d)
        gp_model(frame, y, LinearARD(d, weights), **options)
    return fit(model, progressbar=False, start={"weights": 1.0 / d})


def _whole(result: OrdinalFit) -> OrdinalFit:
    """Return the fit if it was completed; if it was interrupted, raise to end the elimination."""
    if result.status.interrupted:
        raise KeyboardInterrupt
    return result


def _judge(frame: pd.DataFrame, y, options: dict) -> dict:
    d = frame.shape[1]
    with pm.Model() as model:
        weight = pm.LogNormal("weight", -np.log(d), 2.0)
        gp_model(frame, y, weight * pm.gp.cov.Linear(d, c=0.0), **options)
    result = _whole(fit(model, progressbar=False, start={"weight": 1.0 / d}))
    return {
        "n_features": d,
        "log_evidence": result.log_evidence,
        "loo": result.posterior.loo,
        "features": frame.columns.tolist(),
    }
