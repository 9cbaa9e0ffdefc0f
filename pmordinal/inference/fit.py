"""`fit`: point estimates of the hyperparameters, which maximise an engine's objective plus log prior."""

from collections.abc import Sequence

import numpy as np
import pymc as pm

from pmordinal import checks
from pmordinal.inference.semisupervised.fit import MAX_ROUNDS, WEIGHTS, fit_semisupervised
from pmordinal.inference.supervised import check_hyper, fit_supervised
from pmordinal.results.fit import OrdinalFit
from pmordinal.words import guessing


@guessing
def fit(
    model: pm.Model,
    objective: str | None = None,
    starts: int = 1,
    progressbar: bool = True,
    *,
    priors: bool = True,
    start: dict | None = None,
    seed: int | np.random.Generator | None = None,
    max_evaluations: int = 500,
    optimize: bool = True,
    hyper: str = "point",
    semisupervised: bool = False,
    proportions=None,
    weights: Sequence[float] | None = None,
    max_rounds: int | None = None,
    random_seed: int | None = None,
) -> OrdinalFit:
    """Return the fit of an ordinal Gaussian process at its best hyperparameters.

    Parameters
    ----------
    model : pm.Model
        From `gp_model`, or any model with a `MarginalOrdinal` likelihood.
    objective : str, optional
        The engine's objective to maximise, instead of the model's own.
    starts : int
        Starting points. The first is that of [CG2005] (noise 1, κ = 1/d, b_1 = −1, Δ = 2/r) or, for
        ``engine="plsor"``, one in label units: the amplitude is the labels' spread, half of its square is
        white noise, the thresholds lie halfway between labels, and the noise is 0.5. The others are
        scattered around it, and the best optimum wins.
    progressbar : bool
        Show the progress.
    priors : bool
        Maximise the posterior density of the unconstrained (log, ordered) hyperparameters: type-II
        maximum a posteriori. False leaves the priors out: evidence maximisation.
    start : dict, optional
        Values to start from, by variable name, in the variables' own units.
    seed, random_seed : int or Generator, optional
        For the scattered starts.
    max_evaluations : int
        Evaluations of the objective, for each start.
    optimize : bool
        False does not optimise: the posterior at the hyperparameters in `start`.
    hyper : {"point", "integrate", "psis", "ccd"}
        ``"integrate"`` integrates the hyperparameters out, so that predictions carry their
        uncertainty: ``"psis"``, which is the default, and ``"ccd"`` are methods of `OrdinalFit.integrate`.
    semisupervised : bool
        Learn from the rows without a label too, by matching their class proportions; see
        `fit_semisupervised`. Else they are marginalised, which leaves the fit as if they were not
        there.
    proportions : array_like, shape (r,), dict or Series, optional
        Class proportions of the unlabelled rows, in the order of the classes or by label; default is those
        of the labels. Only with `semisupervised`.
    weights : sequence of float, optional
        Weights of the unlabelled rows that the fit goes through, the last one being that of the result;
        default is 0.001 to 1 in seven steps. Only with `semisupervised`.
    max_rounds : int, optional
        How often hyperparameters and labels are improved in turn at one of the `weights`, at most; default 50. Only
        with `semisupervised`.

    Returns
    -------
    OrdinalFit
        A `SemiSupervisedFit` if `semisupervised`.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> X, y = np.linspace(0, 3, 12), [1, 1, 1, 1, 2, 2, 1, 2, 3, 3, 3, 3]
    >>> result = pmo.fit(pmo.gp_model(X, y), progressbar=False)
    >>> result.predict([[0.0], [3.0]], kind="class")
    array([1, 3])
    """
    seed = checks.one_seed(seed, random_seed)
    check_hyper(hyper, optimize and not semisupervised)
    if semisupervised:
        return fit_semisupervised(
            model,
            objective,
            starts,
            progressbar,
            priors=priors,
            start=start,
            seed=seed,
            max_evaluations=max_evaluations,
            proportions=proportions,
            weights=WEIGHTS if weights is None else weights,
            max_rounds=MAX_ROUNDS if max_rounds is None else max_rounds,
        )
    if proportions is not None:
        raise ValueError("proportions are those of the unlabelled rows: pass semisupervised=True")
    if weights is not None:
        raise ValueError(
            "weights are those of the unlabelled rows: pass semisupervised=True, or, for rows that stand for several, "
            "weights= of gp_model"
        )
    if max_rounds is not None:
        raise ValueError("max_rounds are those of a semi-supervised fit: pass semisupervised=True")
    return fit_supervised(
        model,
        objective,
        starts,
        progressbar,
        priors=priors,
        start=start,
        seed=seed,
        max_evaluations=max_evaluations,
        optimize=optimize,
        hyper=hyper,
    )
