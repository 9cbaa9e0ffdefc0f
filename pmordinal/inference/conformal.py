"""`conformal`: fits a model to a part of its labelled rows, and calibrates prediction sets on the others."""

from dataclasses import replace
from typing import Any

import numpy as np
import pymc as pm

from pmordinal import checks
from pmordinal.inference.fit import fit as fit_model
from pmordinal.inference.supervised import fit_supervised
from pmordinal.likelihood import Rows
from pmordinal.model.problem import Problem
from pmordinal.results.conformal import Conformal
from pmordinal.results.fit import OrdinalFit

SHARE = 0.25


def conformal(
    source: pm.Model | OrdinalFit,
    calibration: Any = None,
    *,
    score: str = "window",
    by_class: bool = False,
    seed: int | np.random.Generator | None = None,
    random_seed: int | None = None,
    **options: Any,
) -> Conformal:
    """Return a fit that predicts sets of classes which hold the truth as often as you ask for.

    The sets are contiguous. Their coverage holds for any model, right or wrong, if calibration rows and new rows are
    exchangeable: drawn alike, in no particular order (split conformal prediction).

    Parameters
    ----------
    source : pm.Model or OrdinalFit
        A model, as `fit` takes it, or a fit.
    calibration : float or tuple of (X, y), optional
        Share of a model's labelled rows to hold out, 0.25 by default: the others are fitted. Or rows that the fit has
        not seen. Without them a fit is calibrated on its own labels, each of them left out: no row is lost, but
        coverage is approximate, since the hyperparameters have seen all labels.
    score : {"window", "rps"}
        Which sets there are to choose from. ``"window"``: the most probable class and, one by one, the likelier
        neighbour. ``"rps"``: the median class and others in the order of their ranked probability scores.
    by_class : bool
        Whether the coverage is to hold for the rows of each class, rather than for all together. Sets are larger then.
    seed, random_seed : int or Generator, optional
        For the choice of the held-out rows, and for the scattered starts of the fit.
    **options
        For `fit`: ``starts``, ``progressbar``, ….

    Returns
    -------
    Conformal
        Its ``predict(Xnew, coverage=0.9)`` gives the sets; ``fit`` is the fit.

    Notes
    -----
    Calibration rows that are held out have no part in the fit. Their attributes still had one when the model was
    built, in centring and scaling the columns; where coverage has to be exact, build the model without these rows
    and pass them as ``calibration=(X, y)``.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> wine = pmo.datasets.wine()
    >>> X, y = wine[["temperature", "contact"]], wine["rating"]
    >>> sets = pmo.conformal(pmo.gp_model(X, y), seed=1, progressbar=False).predict(X.iloc[[0, -1]])
    >>> list(sets), sets.attrs["n_calibration"]
    (['lower', 'upper', 'size', 'included'], 18)
    """
    seed = checks.one_seed(seed, random_seed)
    how = {"score": score, "by_class": by_class}
    if isinstance(source, OrdinalFit):
        if options or seed is not None:
            raise TypeError(
                f"{', '.join([*options, *['seed'] * (seed is not None)])}: a fit is not fitted again; pass the model"
            )
        if calibration is None:
            return Conformal.left_out(source, **how)
        if not isinstance(calibration, tuple):
            raise TypeError(
                f"calibration must be a tuple of rows and labels for a fit, got {checks.got(calibration)}; to hold "
                "rows out pass the model"
            )
        return Conformal.given(source, calibration, **how)
    if isinstance(calibration, tuple):
        return Conformal.given(fit_model(source, seed=seed, **options), calibration, **how)
    share = SHARE if calibration is None else checks.positive("calibration", calibration)
    if share >= 1.0:
        raise ValueError(
            f"calibration must be a share between 0 and 1, or rows and labels, got {share:g}"
        )
    if options.pop("semisupervised", False):
        raise ValueError(
            "a semi-supervised fit would know the held-out rows: pass calibration=(X, y) of other rows"
        )
    return _held_out(source, share, checks.generator("seed", seed), options, how)


class _HoldOut:
    """Takes labelled rows out of a problem at random, and remembers both."""

    def __init__(self, share: float, rng: np.random.Generator) -> None:
        self.share, self.rng = share, rng
        self.whole: Problem
        self.kept: np.ndarray

    def __call__(self, problem: Problem) -> Problem:
        """Return the problem of the rows that are kept."""
        if problem.by_row.weights is not None:
            raise ValueError(
                "the model has weights, and rows that stand for several are not exchangeable: repeat the rows, or pass "
                "calibration=(X, y) of rows that count once"
            )
        n = len(problem.X)
        if n < 2:
            raise ValueError(f"the model has {n} labelled row, and none can be held out")
        count = min(max(round(self.share * n), 1), n - 1)
        self.whole = problem
        self.kept = np.ones(n, dtype=bool)
        self.kept[self.rng.choice(n, count, replace=False)] = False
        return problem.take(self.kept)


def _held_out(
    model: pm.Model, share: float, rng: np.random.Generator, options: dict, how: dict
) -> Conformal:
    """Return the fit of some labelled rows, calibrated on the others."""
    hold_out = _HoldOut(share, rng)
    fit = fit_supervised(model, adapt=hold_out, seed=rng, **options)
    problem, kept = hold_out.whole, hold_out.kept
    index = np.asarray(model.coords.get("obs", np.arange(kept.size)))
    fit = replace(fit, index=index[kept])
    rows = Rows(*problem.by_row.take(~kept).codes())
    probs = fit.posterior.probabilities(problem.X[~kept], fit.posterior.likelihood.at_new(rows))
    return Conformal.of(fit, probs, problem.y[~kept], "held out", rows=index[~kept], **how)
