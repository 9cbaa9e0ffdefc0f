"""Scores of probabilistic predictions of ordered classes, and statistical tests between methods."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import stats

from pmordinal import checks
from pmordinal.data.labels import Labels, encode
from pmordinal.data.ranked_probability_score import ranked_probability_score

HIGHER_IS_BETTER = ("kappa",)


def scores(y_true, probs, *, categories=None) -> pd.Series:
    """Return scores of predicted class probabilities: errors, log score, calibration and others.

    Parameters
    ----------
    y_true : array_like, shape (m,)
        True labels.
    probs : array_like or DataArray, shape (m, r)
        Predicted probabilities, columns in the order of the classes.
    categories : sequence, optional
        The labels of the columns; taken from the ``class`` coordinate of a DataArray, or from
        `y_true` where it has r of them.

    Returns
    -------
    Series
        ``zero_one`` and ``absolute``, the errors of the most probable class; ``macro_absolute``,
        the absolute error averaged over the classes; ``nlp``, minus the mean log probability of the
        truth; ``rps``, the ranked probability score Σ_k (P(y ≤ k) − [y_true ≤ k])², not divided by
        r − 1 as `pmordinal.modl.ranked_probability_score` is; ``kappa``, quadratic-weighted;
        ``calibration``, the mean gap between the predicted and the observed
        frequency of y ≤ k in ten bins of probability.

    Examples
    --------
    >>> scores([1, 2, 3], [[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.5, 0.5]]).round(3)["zero_one"].item()
    0.333
    """
    P, labels = aligned(y_true, probs, categories)
    return pd.Series(pointwise_means(P, labels.codes))


def pointwise(y_true, probs, *, categories=None) -> pd.DataFrame:
    """Return scores row by row, for standard errors and paired tests.

    Parameters and labels as in `scores`; columns ``zero_one``, ``absolute``, ``nlp``, ``rps``.
    """
    P, labels = aligned(y_true, probs, categories)
    return pd.DataFrame(_rows(P, labels.codes))


def _rows(P: np.ndarray, codes: np.ndarray) -> dict[str, np.ndarray]:
    guess = P.argmax(1)
    with np.errstate(divide="ignore"):  # an event of probability zero scores infinity
        nlp = -np.log(P[np.arange(codes.size), codes])
    return {
        "zero_one": (guess != codes).astype(float),
        "absolute": np.abs(guess - codes).astype(float),
        "nlp": nlp,
        "rps": ranked_probability_score(P, codes, normalize=False),
    }


def pointwise_means(P: np.ndarray, codes: np.ndarray) -> dict[str, float]:
    """Return every score of probabilities `P` for class codes."""
    rows = _rows(P, codes)
    means = {name: float(values.mean()) for name, values in rows.items()}
    present = np.unique(codes)
    means["macro_absolute"] = float(np.mean([rows["absolute"][codes == k].mean() for k in present]))
    means["kappa"] = _quadratic_kappa(codes, P.argmax(1), P.shape[1])
    means["calibration"] = _calibration_error(P, codes)
    return means


def _quadratic_kappa(truth: np.ndarray, guess: np.ndarray, r: int) -> float:
    observed = np.zeros((r, r))
    np.add.at(observed, (truth, guess), 1.0)
    weights = np.subtract.outer(np.arange(r), np.arange(r)) ** 2.0
    expected = np.outer(observed.sum(1), observed.sum(0)) / truth.size
    disagreement = (weights * expected).sum()
    # All true and predicted classes are the same one: agreement beyond chance is undefined.
    return 1.0 - float((weights * observed).sum() / disagreement) if disagreement > 0 else 1.0


def _calibration_error(P: np.ndarray, codes: np.ndarray, bins: int = 10) -> float:
    r = P.shape[1]
    forecast = P.cumsum(1)[:, :-1].ravel()
    happened = (codes[:, None] <= np.arange(r - 1)).ravel()
    where = np.minimum((forecast * bins).astype(int), bins - 1)
    count = np.bincount(where, minlength=bins)
    gap = np.abs(np.bincount(where, forecast - happened, bins))
    return float(gap.sum() / count.sum())


def aligned(y_true, probs, categories) -> tuple[np.ndarray, Labels]:
    """Return checked probabilities and the labels that belong to their columns; see `scores`."""
    if categories is None and hasattr(probs, "coords") and "class" in probs.coords:
        names = [str(name) for name in probs.coords["class"].values]
        levels = getattr(getattr(y_true, "dtype", None), "categories", None)
        if levels is None:
            levels = getattr(getattr(y_true, "cat", None), "categories", None)
        if levels is None:
            seen = {str(v): v for v in np.unique(np.asarray(y_true))}
            categories = [seen.get(name, name) for name in names]
    P = checks.finite_array("probs", np.asarray(probs), ndim=2)
    if P.size == 0:
        raise ValueError(f"probs must have a row and a column at least, got shape {P.shape}")
    if P.min() < 0 or not np.allclose(P.sum(1), 1.0, atol=1e-6):
        raise ValueError("probs: each row must be non-negative and sum to one")
    labels = encode(y_true, categories, name="y_true")
    if labels.n_classes != P.shape[1]:
        raise ValueError(
            f"probs has {P.shape[1]} columns and y_true {labels.n_classes} classes: "
            "pass categories= with all labels in order"
        )
    if labels.codes.size != len(P) or not labels.observed.all():
        raise ValueError(f"y_true: needs one label for each of the {len(P)} rows of probs")
    return P, labels


def compare_scores(
    y_true,
    probs: Mapping[str, object],
    reference: str | None = None,
    *,
    categories=None,
    resamples: int = 2000,
    level: float = 0.95,
    seed=0,
    random_seed: int | None = None,
) -> pd.DataFrame:
    """Return the scores of several predictions of the same rows, with bootstrap errors of their differences.

    Rows are resampled together for all methods, so that the errors of differences are paired: what is
    hard for all of them cancels.

    Parameters
    ----------
    y_true : array_like, shape (m,)
    probs : mapping of str to array_like, shape (m, r)
        Predicted probabilities of each method; labels as in `scores`.
    reference : str, optional
        The method that the others are compared with; default is the first.
    categories : sequence, optional
    resamples : int
    level : float
        Probability of the intervals.
    seed, random_seed : int or Generator, optional

    Returns
    -------
    DataFrame
        Indexed by method and score: ``value``, ``se``; and ``difference`` from the reference with
        ``difference_se`` and the interval from ``low`` to ``high``.

    Examples
    --------
    >>> sharp, flat = [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]], [[0.5, 0.5]] * 3
    >>> table = compare_scores([0, 1, 1], {"flat": flat, "sharp": sharp})
    >>> round(table.loc[("sharp", "nlp"), "difference"].item(), 3)
    -0.465
    """
    seed = checks.one_seed(seed, random_seed)
    resamples = checks.integer("resamples", resamples, minimum=2)
    if not 0.0 < checks.positive("level", level) < 1.0:
        raise ValueError(f"level: must be between 0 and 1, got {level}")
    if not probs:
        raise ValueError("probs is empty: pass a mapping of names to class probabilities")
    reference = next(iter(probs)) if reference is None else reference
    checks.one_of("reference", reference, list(probs))
    methods = {name: aligned(y_true, P, categories) for name, P in probs.items()}
    codes = methods[reference][1].codes
    rng = checks.generator("seed", seed)
    values = {name: pd.Series(pointwise_means(P, codes)) for name, (P, _) in methods.items()}
    again: dict[str, list] = {name: [] for name in methods}
    for _ in range(resamples):
        rows = rng.integers(codes.size, size=codes.size)
        for name, (P, _) in methods.items():
            again[name].append(pointwise_means(P[rows], codes[rows]))
    boots = {name: pd.DataFrame(rows) for name, rows in again.items()}
    tail = (1.0 - level) / 2.0
    tables = {}
    for name, boot in boots.items():
        gap = boot - boots[reference]
        tables[name] = pd.DataFrame(
            {
                "value": values[name],
                "se": boot.std(),
                "difference": values[name] - values[reference],
                "difference_se": gap.std(),
                "low": gap.quantile(tail),
                "high": gap.quantile(1.0 - tail),
            }
        )
    return pd.concat(tables, names=["method", "score"])


def rank_methods(table: pd.DataFrame | Mapping, *, higher_is_better: bool = False) -> pd.DataFrame:
    """Return average ranks of methods over data sets, with the Friedman test and paired t-tests.

    Parameters
    ----------
    table : DataFrame, shape (number of data sets, number of methods)
        One score for each data set (or partition) and method.
    higher_is_better : bool
        Whether a high score is good; default is an error.

    Returns
    -------
    DataFrame
        One row for each method, the best first: ``rank``, ``mean``, and ``t`` and ``p`` of the
        paired t-test against the best. The attributes ``friedman_chi2``, ``friedman_F`` (Iman and
        Davenport's, the papers' F_F) and ``p`` of that F are in ``.attrs``.

    Examples
    --------
    >>> errors = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0, 5.0]})
    >>> rank_methods(errors)["rank"].to_list()
    [1.0, 2.0]
    """
    if not isinstance(table, pd.DataFrame):
        if not isinstance(table, Mapping):
            table = checks.finite_array("table", table, ndim=2)
        table = pd.DataFrame(table)
    values = checks.finite_array("table", table.to_numpy(), ndim=2)
    n, k = values.shape
    if n < 2 or k < 2:
        raise ValueError(
            f"table: ranking needs two rows and two methods at least, got {values.shape}"
        )
    ranks = stats.rankdata(-values if higher_is_better else values, axis=1).mean(0)
    chi2 = 12 * n / (k * (k + 1)) * (np.sum(ranks**2) - k * (k + 1) ** 2 / 4)
    bottom = n * (k - 1) - chi2
    F = (n - 1) * chi2 / bottom if bottom > 0 else np.inf
    best = int(ranks.argmin())
    rows = []
    for j, name in enumerate(table.columns):
        gap = values[:, j] - values[:, best]
        t, p = (0.0, 1.0) if np.ptp(gap) == 0 and gap[0] == 0 else _paired(gap)
        rows.append({"method": name, "rank": ranks[j], "mean": values[:, j].mean(), "t": t, "p": p})
    out = pd.DataFrame(rows).set_index("method").sort_values("rank", kind="stable")
    out.attrs = {
        "friedman_chi2": float(chi2),
        "friedman_F": float(F),
        "p": float(stats.f.sf(F, k - 1, (k - 1) * (n - 1))),
    }
    return out


def _paired(gap: np.ndarray) -> tuple[float, float]:
    sd = gap.std(ddof=1)
    if sd == 0:  # all differences are equal
        return float(np.copysign(np.inf, gap[0])), 0.0
    t = gap.mean() / (sd / np.sqrt(gap.size))
    return float(t), float(2 * stats.t.sf(abs(t), gap.size - 1))
