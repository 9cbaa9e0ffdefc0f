"""Learning from unlabelled rows by matching their class proportions [SSGPOR, Algorithm 1].

The unlabelled rows get labels q whose class counts are prescribed, and the hyperparameters are to make
these labels probable too. For fixed q they maximise

    log evidence + log prior + λ (n_l / n_u) Σ_i log p(q_i | x_i, labelled data)

which is −n_l times [SSGPOR, eq. 7]: KL(q_i ‖ p_i) = −log p(q_i), since q_i puts all its mass on one class. For fixed
hyperparameters q is improved by label switching [SSGPOR, eq. 8]. λ grows from 10⁻³ to 1.

Deviations from the paper, all of them deliberate:

- Eq. 7 subtracts λ/n_u ΣKL from the bound, in its first line; the second line, eq. 6 and the aim say that it is
  **added**, and so it is here. The second line also loses the factor 1/n_l of all terms of the bound but the first.
- The evidence is the default instead of the bound, which `objective="bound"` restores.
- The priors of the hyperparameters count, as in every other fit; ``priors=False`` leaves them out.
"""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr

from pmordinal import checks, transport
from pmordinal.errors import ConvergenceWarning
from pmordinal.fitted import FitStatus, OrdinalFit
from pmordinal.fitting import best_of
from pmordinal.fitting import fit as fit_supervised
from pmordinal.labels import Labels
from pmordinal.objectives import OBJECTIVES
from pmordinal.ops import Problem
from pmordinal.posterior import Gradient, Posterior
from pmordinal.progress import progress_bar
from pmordinal.target import Run, Target
from pmordinal.threads import blas_threads

WEIGHTS = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)  # λ [SSGPOR, Algorithm 1, line 4]
MAX_ROUNDS = 50  # alternations for one λ before giving up (and saying so)
PATH = ("weight", "objective", "log_evidence", "match", "switches", "rounds", "evaluations")


@dataclass(frozen=True, eq=False, repr=False)
class SemiSupervisedFit(OrdinalFit):
    """A fit that has learned from unlabelled rows too.

    Attributes
    ----------
    proportions : ndarray, shape (r,)
        Class proportions that the unlabelled rows were held to.
    unlabeled_codes : ndarray of int, shape (m,)
        Final class codes of the unlabelled rows; `unlabeled_labels` are the labels.
    path : DataFrame
        One row for each annealing step: ``weight`` λ; ``objective``, what was maximised (log prior included);
        ``log_evidence``; ``match``, the mean log probability of the labels given to the unlabelled rows; ``switches``,
        pairs of labels that were switched; ``rounds``, alternations; ``evaluations`` of the objective.
    """

    proportions: np.ndarray = field(kw_only=True, repr=False)
    unlabeled_codes: np.ndarray = field(kw_only=True, repr=False)
    path: pd.DataFrame = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, fit: OrdinalFit, **extra: Any) -> Self:
        """Return `fit` with what was learned from the unlabelled rows."""
        return cls(**{f.name: getattr(fit, f.name) for f in fields(OrdinalFit)}, **extra)

    @property
    def unlabeled_labels(self) -> Any:
        """Final labels of the unlabelled rows, of the kind you gave: their counts are prescribed.

        First the rows of `X` without a label, then those of ``unlabeled=``.
        """
        return self.labels.decode(self.unlabeled_codes)

    def predict_unlabeled(self, kind: str = "probs", *, rule="mode"):
        """Return predictions for the unlabelled rows (transduction), in the order of `unlabeled_labels`.

        Parameters
        ----------
        kind, rule
            See `OrdinalFit.predict`.
        """
        return self._predict(self.unlabeled, {"obs": np.arange(len(self.unlabeled))}, kind, rule)

    def to_dataset(self) -> xr.Dataset:
        """Return what this fit has besides an `OrdinalFit`, for files."""
        data = {
            "proportions": ("class", self.proportions),
            "unlabeled_codes": ("extra", self.unlabeled_codes),
        }
        return xr.Dataset(data | {f"path_{k}": ("step", self.path[k].to_numpy()) for k in PATH})

    @classmethod
    def from_dataset(cls, fit: OrdinalFit, data: xr.Dataset) -> Self:
        """Return `fit` with what `to_dataset` gave."""
        return cls.of(
            fit,
            proportions=data["proportions"].values,
            unlabeled_codes=data["unlabeled_codes"].values,
            path=pd.DataFrame({k: data[f"path_{k}"].values for k in PATH}),
        )


@dataclass(eq=False)
class Matching:
    """Labels of the unlabelled rows and their weight: what changes between two θ steps.

    Attributes
    ----------
    rows : ndarray, shape (m, d)
    codes : ndarray of int, shape (m,)
    weight : float
        λ; at zero the rows do not count.
    """

    rows: np.ndarray
    codes: np.ndarray
    weight: float = 0.0

    def term(self, posterior: Posterior) -> tuple[float, Gradient]:
        """Return λ (n_l/n_u) Σ log p(q_i | x_i) [SSGPOR, eqs. 5 and 7], and its exact gradient."""
        likelihood = posterior.likelihood
        mean, var, pullback = posterior.latent_with_pullback(self.rows)
        terms = likelihood.tilted(self.codes, mean, var)
        scale = self.weight * posterior.y.size / len(self.rows)
        by_var = 0.5 * (terms.d1**2 - terms.curvature)
        moved = pullback(scale * terms.d1, scale * by_var)
        direct = Gradient(
            [np.zeros_like(g) for g in moved.parameters],
            scale * likelihood.threshold_gradient(self.codes, terms.upper[0], terms.lower[0]),
            scale * float(terms.log_noise[0].sum()),
        )
        return scale * float(terms.value.sum()), direct + moved


@dataclass(frozen=True, eq=False)
class MatchedProblem(Problem):
    """A problem whose objective counts the labels of its unlabelled rows."""

    matching: Matching = field(kw_only=True)

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return `problem` with unlabelled rows that do not count yet."""
        known = {f.name: getattr(problem, f.name) for f in fields(Problem)}
        known |= {"is_optimised": True, "cache": {}}
        codes = np.zeros(len(problem.unlabeled), dtype=np.int64)
        return cls(**known, matching=Matching(problem.unlabeled, codes))

    def loosened(self) -> Self:
        """Return the problem as it is: predictions are not stationary in the sites."""
        return self

    def evaluate(self, values, thresholds, noise, y, memory=None) -> tuple[float, Gradient]:
        """Return the objective with the matching term, and its gradient."""
        if self.matching.weight == 0.0:
            return super().evaluate(values, thresholds, noise, y, memory)
        with blas_threads(len(self.X)):
            posterior = self.posterior(values, thresholds, noise, y)
            term, slope = self.matching.term(posterior)  # first: the evidence overwrites B⁻¹
            value, gradient = OBJECTIVES[self.objective](posterior)
        return value + term, gradient + slope


def fit_semisupervised(
    model: pm.Model,
    objective: str | None = None,
    starts: int = 1,
    progressbar: bool = True,
    *,
    proportions=None,
    priors: bool = True,
    start: dict | None = None,
    seed: int | np.random.Generator | None = None,
    max_evaluations: int = 500,
    weights: Sequence[float] = WEIGHTS,
    max_rounds: int = MAX_ROUNDS,
) -> SemiSupervisedFit:
    """Return the fit that makes the labels of unlabelled rows probable too [SSGPOR, Algorithm 1].

    ``pmo.fit(model, semisupervised=True)`` calls it. From the supervised optimum the weight of the unlabelled rows
    grows step by step; within a step, hyperparameters (L-BFGS) and labels (switching) are improved in turn until
    no label changes. One evaluation costs O(n_l³ + n_l² n_u).

    Parameters
    ----------
    model : pm.Model
        From `gp_model` with missing labels in `y` or ``unlabeled=``, and an engine that differentiates its
        predictions: ``"ep"`` (the paper's) or ``"laplace"``.
    objective, starts, progressbar, priors, start, seed
        See `fit`; `starts` are those of the supervised fit.
    proportions : array_like, shape (r,), optional
        Class proportions γ of the unlabelled rows, for all classes in order. Default is those of the labels; a
        class without a labelled row then gets no unlabelled row either, which is warned of. Class counts are n_u γ
        rounded by largest remainders.
    max_evaluations : int
        Evaluations of the objective, for each θ step.
    weights : sequence of float
        Annealing schedule λ.
    max_rounds : int
        Alternations in one annealing step before giving up, with a warning.

    Returns
    -------
    SemiSupervisedFit

    Examples
    --------
    >>> import pmordinal as pmo
    >>> X, y = np.linspace(0, 3, 12), [1, np.nan, 1, 1, np.nan, np.nan, 2, 2, np.nan, 3, 3, np.nan]
    >>> model = pmo.gp_model(X, y, engine="ep")
    >>> fit = pmo.fit(model, semisupervised=True, progressbar=False)
    >>> fit.unlabeled_labels.tolist()
    [1, 1, 2, 2, 3]
    >>> fit.path["weight"].tolist()
    [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
    """
    starts = checks.integer("starts", starts, minimum=1)
    max_evaluations = checks.integer("max_evaluations", max_evaluations, minimum=1)
    max_rounds = checks.integer("max_rounds", max_rounds, minimum=1)
    steps = checks.finite_array("weights", weights, ndim=1)
    weights = [checks.positive("weights", weight) for weight in steps.tolist()]
    began = time.perf_counter()
    target = Target(model, objective, priors, MatchedProblem.of)
    problem = target.problem
    assert isinstance(problem, MatchedProblem)
    gamma = class_proportions(problem.labels, proportions)
    if not problem.engine.has_latent_pullback:
        raise ValueError(
            f"engine {problem.engine.name!r} does not differentiate its predictions, which a semi-supervised fit "
            "needs: build the model with engine='ep' or engine='laplace'"
        )
    if not len(problem.unlabeled):
        warnings.warn(
            "no unlabelled rows: this is the supervised fit (leave labels missing, or pass unlabeled=)",
            UserWarning,
            stacklevel=3,
        )
        known = {"priors": priors, "start": start, "seed": seed, "max_evaluations": max_evaluations}
        fit = fit_supervised(model, objective, starts, progressbar, **known)  # type: ignore[arg-type]
        codes = np.zeros(0, dtype=np.int64)
        empty = pd.DataFrame({name: [] for name in PATH}, dtype=float)
        return SemiSupervisedFit.of(fit, proportions=gamma, unlabeled_codes=codes, path=empty)

    points = target.starting_points(starts, start or {}, checks.generator("seed", seed))
    with blas_threads(len(problem.X)), progress_bar(progressbar, counted=True) as progress:
        task = progress.add_task("supervised", total=1 + len(weights), info="")
        label, spent = "supervised", 0

        def show(count: int, best: float) -> None:
            info = f"{spent + count} evaluations, objective {best:.4f}"
            progress.update(task, description=label, info=info)

        first: list[Run] = []
        for point in points:
            first.append(target.maximise(point, max_evaluations, show))
            if first[-1].interrupted:
                break
        run = best_of(first, problem.objective)
        spent, iterations = sum(r.evaluations for r in first), sum(r.iterations for r in first)
        counts = transport.class_counts(len(problem.unlabeled), gamma)
        matching = problem.matching
        matching.codes = transport.ranked(
            class_log_probs(target.posterior(run.x), matching.rows), counts
        )
        path: list[dict[str, Any]] = []
        unsettled: list[float] = []
        stopped = first[-1].interrupted
        for matching.weight in weights:
            if stopped or run.interrupted:
                break
            progress.update(task, advance=1)
            label = f"λ = {matching.weight:g}"
            codes = matching.codes
            try:
                step, runs = _anneal(target, matching, run, max_evaluations, max_rounds, show)
            except KeyboardInterrupt:  # between two optimisations: the step before it is whole
                matching.codes, stopped = codes, True
                break
            path.append(step)
            run = runs[-1]
            if not (step["settled"] or run.interrupted):
                unsettled.append(matching.weight)
            spent += sum(r.evaluations for r in runs)
            iterations += sum(r.iterations for r in runs)
        progress.update(task, advance=1)
    message = run.message
    interrupted = stopped or run.interrupted
    if stopped:
        message = f"interrupted at λ = {matching.weight:g}: the step before it is kept"
    elif unsettled and not interrupted:
        message = (
            f"labels still changed after {max_rounds} rounds at λ = {unsettled[0]:g}: raise max_rounds of "
            "pmordinal.semisupervised.fit_semisupervised"
        )
    status = FitStatus(
        converged=run.converged and not unsettled and not interrupted,
        evaluations=spent,
        iterations=iterations,
        seconds=time.perf_counter() - began,
        message=message,
        objectives=tuple(r.value for r in first),
        interrupted=interrupted,
        seed=checks.seed_number(seed),
    )
    if not status.converged:
        warnings.warn(f"fit did not converge: {message}", ConvergenceWarning, stacklevel=3)
    return SemiSupervisedFit.of(
        target.result(run, status),
        proportions=gamma,
        unlabeled_codes=matching.codes,
        path=pd.DataFrame(path, columns=PATH),
    )


def _anneal(
    target: Target, matching: Matching, run: Run, max_evaluations: int, max_rounds: int, show
) -> tuple[dict[str, Any], list[Run]]:
    """Alternate θ and q at one weight until q stays [SSGPOR, Algorithm 1, lines 5–8]."""
    runs: list[Run] = []
    total, settled = 0, False
    for _ in range(max_rounds):
        run = target.maximise(run.x, max_evaluations, show)  # line 6
        runs.append(run)
        posterior = target.posterior(run.x)
        log_probs = class_log_probs(posterior, matching.rows)
        if run.interrupted:
            break
        codes, switches = transport.switch(log_probs, matching.codes)  # line 7
        if not switches:
            settled = True
            break
        matching.codes = codes
        total += switches
    step = {
        "weight": matching.weight,
        "objective": run.value,
        "log_evidence": posterior.log_evidence,
        "match": transport.total_log_prob(log_probs, matching.codes) / len(matching.rows),
        "switches": total,
        "rounds": len(runs),
        "evaluations": sum(r.evaluations for r in runs),
        "settled": settled,
    }
    return step, runs


def class_log_probs(posterior: Posterior, rows: np.ndarray) -> np.ndarray:
    """Return the log probability of every class at new rows [SSGPOR, eq. 5], shape (m, r)."""
    return posterior.likelihood.log_probabilities(*posterior.latent(rows))


def class_proportions(labels: Labels, proportions=None) -> np.ndarray:
    """Return class proportions γ with sum one: those given, checked, or those of the labels.

    Parameters
    ----------
    labels : Labels
    proportions : array_like, shape (r,), optional

    Examples
    --------
    >>> from pmordinal.labels import encode
    >>> class_proportions(encode([1, 2, 2, 3])).tolist()
    [0.25, 0.5, 0.25]
    """
    names = labels.class_names
    if proportions is None:
        absent = [name for name, count in zip(names, labels.counts, strict=True) if not count]
        if absent:
            warnings.warn(
                f"no row is labelled {absent[0]!r}, so that its proportion is taken to be zero and no unlabelled row "
                "gets that label: pass proportions= to give it a share",
                UserWarning,
                stacklevel=4,
            )
        return labels.counts / labels.counts.sum()
    gamma = checks.finite_array("proportions", proportions, ndim=1)
    listing = ", ".join(names)
    if gamma.size != labels.n_classes:
        raise ValueError(
            f"proportions must have one number for each of the {labels.n_classes} classes ({listing}), got {gamma.size}"
        )
    if gamma.min() < 0.0:
        raise ValueError(f"proportions must not be negative, got {gamma.min():g}")
    if abs(gamma.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"proportions must sum to one, got {gamma.sum():g}: divide them by their sum"
        )
    return gamma / gamma.sum()
