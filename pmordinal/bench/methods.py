"""The methods of the benchmark by name: Gaussian processes, a stack of them, and baselines.

A Gaussian process is named ``engine[:objective]`` and then, each behind a hyphen, ``matern52``, ``matern12``, … for
another covariance than the squared exponential, ``ard`` for one length-scale an attribute, ``flat`` for no priors,
``starts4`` for the best of four starting points, ``basis40`` for a sparse basis of 40 % of the rows.
``linear`` is EP with a linear predictor: a cumulative probit model whose ridge is chosen by the evidence.
``recommended`` is EP with the sum of a linear, a smooth and a rough covariance, ``cov_func="recommended"``.

``best`` is `pmordinal.stack` of four EP fits: squared exponential, exponential, squared
exponential with ARD, linear. Its weights come from the leave-one-out predictions of the training labels.
"""

import importlib.util
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm

from pmordinal import checks
from pmordinal.bench import baselines
from pmordinal.bench.base import Clock, Prediction, Split
from pmordinal.bench.support_vectors import support_vectors
from pmordinal.engines import ENGINES, Engine
from pmordinal.engines.objectives import OBJECTIVES
from pmordinal.engines.sparse.engine import SparseADF
from pmordinal.errors import ConvergenceWarning
from pmordinal.inference.fit import fit
from pmordinal.model.covariances import COVARIANCES, PAPERS
from pmordinal.model.factories import gp_model
from pmordinal.results.fit import OrdinalFit
from pmordinal.results.semisupervised import SemiSupervisedFit
from pmordinal.results.stacking import stack

KERNELS = tuple(name for name in COVARIANCES if name != PAPERS)
CANDIDATES = ("ep", "ep-matern12", "ep-ard", "linear")
# one task of `best` gives a line of results for each of these
ABLATION = (*CANDIDATES, "ep-chosen", "ep-average", "best")
_COUNTED = re.compile(r"(starts|basis)(\d+)")

Method = Callable[[Split], list[Prediction]]


def method(name: str) -> Method:
    """Return the method of that name; raise if there is none."""
    if name == "best":
        return _best
    if name in BASELINES:
        return BASELINES[name]
    if name in SEMISUPERVISED:
        return lambda split: _semisupervised(name, split)
    _parsed(name)
    return lambda split: [_predict(name, split)]


def lines(name: str) -> tuple[str, ...]:
    """Return the names of the lines of results that one task of a method gives."""
    if name == "best":
        return ABLATION
    if name in SEMISUPERVISED:
        return f"{name}-supervised", f"{name}-labels", name
    return (name,)


def missing_package(name: str) -> str | None:
    """Return the package that a method needs if it is not installed, else None."""
    needed = {"mord": "mord", "gpflow": "gpflow"}.get(name)
    if name in ("gpr", "svm", "sklearn-gpc"):
        needed = "sklearn"
    return needed if needed and importlib.util.find_spec(needed) is None else None


@dataclass(frozen=True)
class _Process:
    """A Gaussian process of the benchmark, as its name says.

    Attributes
    ----------
    engine : str or Engine
    objective : str, optional
    options : dict
        Of the model.
    priors : bool
    starts : int
        Starting points, of which the one with the best objective wins.
    """

    engine: str | Engine
    objective: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    priors: bool = True
    starts: int = 1


def _parsed(name: str) -> _Process:
    """Return what a method's name says; raise if it says nothing."""
    if name == "linear":
        return _Process("ep")
    if name == "recommended":
        return _Process("ep", options={"cov_func": name})
    head, *flags = name.split("-")
    named, _, objective = head.partition(":")
    counted = [found for flag in flags if (found := _COUNTED.fullmatch(flag))]
    counts = {found[1]: int(found[2]) for found in counted}
    words = {flag for flag in flags if not _COUNTED.fullmatch(flag)}
    if named not in ENGINES or words - {*KERNELS, "ard", "flat"}:
        known = [*ENGINES, "recommended", "best", "linear", *BASELINES, *SEMISUPERVISED]
        raise ValueError(
            f"there is no method {name!r}: choose from {', '.join(known)}; engines take :objective and then "
            f"-{', -'.join((*KERNELS, 'ard', 'flat', 'starts4', 'basis40'))}"
        )
    if objective:
        checks.one_of("objective", objective, list(OBJECTIVES))
    engine: str | Engine = named
    if "basis" in counts:
        if named != SparseADF.name:
            raise ValueError(f"{name}: only sparse has a basis")
        engine = SparseADF(n_basis=counts["basis"] / 100.0)
    kernels = [flag for flag in flags if flag in KERNELS]
    options = {"cov_func": kernels[0] if kernels else PAPERS, "ard": "ard" in flags}
    starts = checks.integer("starts", counts.get("starts", 1), minimum=1)
    return _Process(engine, objective or None, options, "flat" not in flags, starts)


def with_starts(name: str, starts: int) -> str:
    """Return the name of the same method with so many starting points; its own if it always has one.

    Examples
    --------
    >>> with_starts("ep:loo", 4), with_starts("gpr", 4), with_starts("ep", 1)
    ('ep:loo-starts4', 'gpr', 'ep')
    """
    always_one = {*BASELINES, *SEMISUPERVISED, "best", "linear", "recommended"}
    has_one = starts == 1 or name in always_one or name.startswith("modl-")
    return name if has_one else f"{name}-starts{starts}"


def _fit(name: str, split: Split, start: dict | None = None) -> OrdinalFit:
    """Return the fit of a Gaussian process to the training rows."""
    process = _parsed(name)
    options = _linear_predictor(split.X.shape[1]) if name == "linear" else process.options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the results have a column for it
        model = gp_model(
            split.X,
            split.y,
            engine=process.engine,
            objective=process.objective,
            categories=range(split.n_classes),
            **options,
        )
        fitted = fit(
            model,
            starts=process.starts,
            progressbar=False,
            priors=process.priors,
            start=start,
            seed=split.seed,
        )
        return _finished(fitted)


def _finished(fitted: OrdinalFit) -> OrdinalFit:
    """Return the fit if it was completed; raise if Ctrl-C has ended it early."""
    if fitted.status.interrupted:
        raise KeyboardInterrupt
    return fitted


def _linear_predictor(d: int) -> dict:
    """Return the options of a model with a linear predictor and unit noise: coefficients ~ N(0, amplitude²)."""
    return {
        "cov_func": pm.gp.cov.Linear(d, c=0.0),
        "amplitude": pm.LogNormal.dist(-0.5 * np.log(d), 1.0),
        "noise": 1.0,
        "standardize": True,
    }


def _from_isotropic(point: dict[str, np.ndarray], d: int) -> dict[str, np.ndarray]:
    """Return the start of an ARD fit: all length-scales at that of the isotropic fit."""
    return point | {"lengthscale": np.full(d, point["lengthscale"])}


def _predict(name: str, split: Split) -> Prediction:
    clock, evaluations, start = Clock(), 0, None
    with clock.running():
        if "-ard" in name:
            common = _fit(name.replace("-ard", ""), split)
            evaluations, start = (
                common.status.evaluations,
                _from_isotropic(common.point, split.X.shape[1]),
            )
        fitted = _fit(name, split, start)
        probs = fitted.predict(split.Xnew).to_numpy()
    evaluations += fitted.status.evaluations
    return Prediction(name, probs, clock, evaluations, fitted.status.converged)


def _best(split: Split) -> list[Prediction]:
    """Return predictions of every candidate, of the best one, of their mean, and of their stacked mixture."""
    d = split.X.shape[1]
    fits: dict[str, OrdinalFit] = {}
    singles: list[Prediction] = []
    total = Clock()
    with total.running():
        for name in CANDIDATES:
            clock = Clock()
            with clock.running():
                start = _from_isotropic(fits["ep"].point, d) if "-ard" in name else None
                fits[name] = _fit(name, split, start)
                probs = fits[name].predict(split.Xnew).to_numpy()
            status = fits[name].status
            singles.append(Prediction(name, probs, clock, status.evaluations, status.converged))
        weights = stack(fits).weights
        probs = np.tensordot(weights, [p.probs for p in singles], 1)
    mean = np.mean([p.probs for p in singles], axis=0)
    scores = {name: fit.posterior.leave_one_out.value.sum() for name, fit in fits.items()}
    top = max(scores, key=lambda name: scores[name])
    evaluations = sum(p.evaluations or 0 for p in singles)
    converged = all(p.converged for p in singles)
    shown = " ".join(f"{name} {weight:.3f}" for name, weight in weights.items())
    of_top = singles[CANDIDATES.index(top)].probs
    return [
        *singles,
        Prediction("ep-chosen", of_top, total, evaluations, converged, top),
        Prediction("ep-average", mean, total, evaluations, converged),
        Prediction("best", probs, total, evaluations, converged, shown),
    ]


def _semisupervised(name: str, split: Split) -> list[Prediction]:
    """Return predictions of one model without and with learning from unlabelled rows, and its labels of new rows."""
    flags = name.split("-")[1:]
    objective = "bound" if "bound" in flags else None
    pool = split.Xnew if split.pool is None else split.pool
    labels = np.concatenate([split.y.astype(float), np.full(len(pool), np.nan)])
    rows = np.concatenate([split.X, pool])
    found: list[Prediction] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "no row is labelled", UserWarning)
        model = gp_model(rows, labels, PAPERS, categories=range(split.n_classes))
        told: dict[str, Any] = {"proportions": split.proportions} if "gamma" in flags else {}
        ways: dict[str, dict[str, Any]] = {
            f"{name}-supervised": {},
            name: {"semisupervised": True, **told},
        }
        if not len(pool):  # all rows are labelled
            ways[name] = {}
        for line, options in ways.items():
            clock = Clock()
            with clock.running():
                fitted = _finished(
                    fit(model, objective, priors="flat" not in flags, progressbar=False, **options)
                )
                probs = fitted.predict(split.Xnew).to_numpy()
            end: dict[str, Any] = {
                "evaluations": fitted.status.evaluations,
                "converged": fitted.status.converged,
            }
            if isinstance(fitted, SemiSupervisedFit) and split.pool is None:
                hard = np.eye(split.n_classes)[fitted.unlabeled_codes]
                found.append(Prediction(f"{name}-labels", hard, clock, **end, is_hard=True))
            found.append(Prediction(line, probs, clock, **end))
    return found


SEMISUPERVISED = (
    "ssgpor",
    "ssgpor-gamma",
    "ssgpor-flat",
    "ssgpor-flat-bound",
    "ssgpor-flat-bound-gamma",
)
BASELINES: dict[str, Method] = {
    "gpr": baselines.regression,
    "svm": support_vectors,
    "sklearn-gpc": baselines.classification,
    "mord": baselines.mord,
    "gpflow": baselines.gpflow,
}
