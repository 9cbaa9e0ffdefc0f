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
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm

from pmordinal import checks
from pmordinal.data.labels import Labels
from pmordinal.data.levels import show
from pmordinal.errors import ConvergenceWarning, warn
from pmordinal.inference.landscape import Landscape
from pmordinal.inference.optimise import Run, maximise
from pmordinal.inference.progress import progress_bar
from pmordinal.inference.record import record
from pmordinal.inference.semisupervised import assignment as transport
from pmordinal.inference.semisupervised.matching import MatchedProblem, Matching, class_log_probs
from pmordinal.inference.starting_points import starting_points
from pmordinal.inference.supervised import best_of, fit_supervised
from pmordinal.linalg.threads import blas_threads
from pmordinal.results.semisupervised import PATH, SemiSupervisedFit
from pmordinal.results.status import FitStatus

WEIGHTS = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)  # λ [SSGPOR, Algorithm 1, line 4]
MAX_ROUNDS = 50  # largest number of alternations for one λ


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
    """Return a fit that also learns from unlabelled rows [SSGPOR, Algorithm 1].

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
        Class proportions γ of the unlabelled rows: for all classes in order, or a dict or Series by label, where
        a class that is left out gets none. Default is those of the labels; a class without a labelled row then
        gets no unlabelled row either, which is warned of. Class counts are n_u γ rounded by largest remainders.
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
    if not steps.size:
        raise ValueError("weights must hold at least one weight: leave them out for the paper's")
    weights = [checks.positive("weights", weight) for weight in steps.tolist()]
    began = time.perf_counter()
    landscape = Landscape(model, objective, priors, MatchedProblem.of)
    problem = landscape.problem
    assert isinstance(problem, MatchedProblem)
    if problem.by_row.has_groups:
        raise ValueError(
            "a semi-supervised fit knows neither thresholds_by= nor noise_by=, since unlabelled rows are kept without "
            "their groups: leave them out, or fit the labelled rows alone"
        )
    gamma = class_proportions(problem.labels, proportions, problem.by_row.weights)
    if not problem.engine.has_latent_pullback:
        raise ValueError(
            f"engine {problem.engine.name!r} does not differentiate its predictions, which a semi-supervised fit "
            "needs: build the model with engine='ep' or engine='laplace'"
        )
    if not len(problem.unlabeled):
        warn(
            "no unlabelled rows: this is the supervised fit (leave labels missing, or pass unlabeled=)"
        )
        fit = fit_supervised(
            model,
            objective,
            starts,
            progressbar,
            priors=priors,
            start=start,
            seed=seed,
            max_evaluations=max_evaluations,
        )
        codes = np.zeros(0, dtype=np.int64)
        empty = pd.DataFrame({name: [] for name in PATH}, dtype=float)
        return SemiSupervisedFit.of(fit, proportions=gamma, unlabeled_codes=codes, path=empty)
    points = starting_points(landscape, starts, start or {}, checks.generator("seed", seed))
    with blas_threads(len(problem.X)), progress_bar(progressbar, counted=True) as progress:
        task = progress.add_task("supervised", total=1 + len(weights), info="")
        annealing = _Annealing(
            landscape, problem.matching, max_evaluations, partial(progress.update, task)
        )
        annealing.begin(points, gamma)
        annealing.anneal(weights, max_rounds)
        progress.update(task, advance=1)
    status = FitStatus(
        converged=annealing.run.converged and not annealing.unsettled and not annealing.interrupted,
        evaluations=sum(run.evaluations for run in annealing.runs),
        iterations=sum(run.iterations for run in annealing.runs),
        seconds=time.perf_counter() - began,
        message=annealing.message(max_rounds),
        objectives=annealing.objectives,
        interrupted=annealing.interrupted,
        seed=checks.seed_number(seed),
    )
    if not status.converged:
        warn(f"fit did not converge: {status.message}", ConvergenceWarning)
    return SemiSupervisedFit.of(
        record(landscape, annealing.run, status),
        proportions=gamma,
        unlabeled_codes=annealing.matching.codes,
        path=pd.DataFrame(annealing.path, columns=PATH),
    )


class _Annealing:
    """Anneals hyperparameters and labels q, from the supervised optimum to the full weight.

    Parameters
    ----------
    landscape : Landscape
    matching : Matching
        The labels q and their weight.
    max_evaluations : int
        Largest number of evaluations for each θ step.
    update : callable
        Called with what the progress bar is to show.
    """

    run: Run  # the last optimisation
    objectives: tuple[float, ...]  # the supervised optima

    def __init__(
        self, landscape: Landscape, matching: Matching, max_evaluations: int, update: Callable
    ):
        self.landscape, self.matching = landscape, matching
        self.max_evaluations, self.update = max_evaluations, update
        self.runs: list[Run] = []
        self.path: list[dict[str, Any]] = []
        self.unsettled: list[float] = []  # weights at which labels still changed
        self.stopped = False  # whether Ctrl-C came in between two optimisations

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the fit."""
        return self.stopped or self.run.interrupted

    def begin(self, points: list[np.ndarray], gamma: np.ndarray) -> None:
        """Find the supervised optimum, and the first labels."""
        first: list[Run] = []
        for point in points:
            first.append(
                maximise(self.landscape, point, self.max_evaluations, self._shown("supervised"))
            )
            if first[-1].interrupted:
                break
        self.run = best_of(first, self.landscape.problem.objective)
        self.objectives = tuple(run.value for run in first)
        self.runs, self.stopped = first, first[-1].interrupted
        rows = self.matching.rows
        posterior = self.landscape.posterior(self.run.x)
        log_probs = class_log_probs(posterior, rows, self.matching.known)
        self.matching.codes = transport.ranked(log_probs, transport.class_counts(len(rows), gamma))

    def anneal(self, weights: Sequence[float], max_rounds: int) -> None:
        """Increase the weight of the unlabelled rows step by step [SSGPOR, Algorithm 1, line 4]."""
        matching = self.matching
        for matching.weight in weights:
            if self.interrupted:
                break
            self.update(advance=1)
            show = self._shown(f"λ = {matching.weight:g}")
            codes = matching.codes
            try:
                step, runs = _anneal(
                    self.landscape, matching, self.run, self.max_evaluations, max_rounds, show
                )
            except KeyboardInterrupt:  # keep the step before, which is complete
                matching.codes, self.stopped = codes, True
                break
            self.path.append(step)
            self.runs += runs
            self.run = runs[-1]
            if not (step["settled"] or self.run.interrupted):
                self.unsettled.append(matching.weight)

    def message(self, max_rounds: int) -> str:
        """Return a message on how the fit ended."""
        if self.stopped:
            return f"interrupted at λ = {self.matching.weight:g}: the step before it is kept"
        if self.unsettled and not self.interrupted:
            return f"labels still changed after {max_rounds} rounds at λ = {self.unsettled[0]:g}: raise max_rounds"
        return self.run.message

    def _shown(self, label: str) -> Callable[[int, float], None]:
        spent = sum(run.evaluations for run in self.runs)

        def show(count: int, best: float) -> None:
            info = f"{spent + count} evaluations, objective {best:.4f}"
            self.update(description=label, info=info)

        return show


def _anneal(
    landscape: Landscape, matching: Matching, run: Run, max_evaluations: int, max_rounds: int, show
) -> tuple[dict[str, Any], list[Run]]:
    """Update θ and q in turn at one weight until q does not change [SSGPOR, Algorithm 1, lines 5–8]."""
    runs: list[Run] = []
    total, settled = 0, False
    for _ in range(max_rounds):
        run = maximise(landscape, run.x, max_evaluations, show)  # line 6
        runs.append(run)
        posterior = landscape.posterior(run.x)
        log_probs = class_log_probs(posterior, matching.rows, matching.known)
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


def class_proportions(
    labels: Labels, proportions=None, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return class proportions γ with sum one: those given, checked, or those of the labels.

    Parameters
    ----------
    labels : Labels
    proportions : array_like, shape (r,), dict or Series, optional
    weights : ndarray, optional
        How many rows each labelled row stands for.

    Examples
    --------
    >>> from pmordinal.data.labels import encode
    >>> class_proportions(encode([1, 2, 2, 3])).tolist()
    [0.25, 0.5, 0.25]
    >>> class_proportions(encode([1, 2, 2, 3]), {3: 0.7, 2: 0.3}).tolist()
    [0.0, 0.3, 0.7]
    """
    names = labels.class_names
    if proportions is None:
        absent = [name for name, count in zip(names, labels.counts, strict=True) if not count]
        if absent:
            warn(
                f"no row is labelled {absent[0]!r}, so that its proportion is taken to be zero and no unlabelled row "
                "gets that label: pass proportions= to give it a share",
            )
        counts = np.bincount(labels.codes[labels.observed], weights, labels.n_classes)
        return counts / counts.sum()
    gamma = checks.finite_array("proportions", _in_order(labels, proportions), ndim=1)
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


def _in_order(labels: Labels, proportions: Any) -> Any:
    """Return proportions from the lowest class to the highest, which those of a dict or Series by label need not be."""
    if isinstance(proportions, pd.Series):
        index = proportions.index
        is_numbered = index.equals(pd.RangeIndex(index.size))
        if is_numbered and not set(index) <= set(labels.categories):
            return proportions
        if not index.is_unique:
            raise ValueError("proportions: the index must hold every label once")
        proportions = proportions.to_dict()
    if not isinstance(proportions, Mapping):
        return proportions
    unknown = [name for name in proportions if name not in labels.categories]
    if unknown:
        raise ValueError(
            f"proportions: {unknown[0]!r} is no label; the labels are {show(list(labels.categories))}"
        )
    return [proportions.get(name, 0.0) for name in labels.categories]
