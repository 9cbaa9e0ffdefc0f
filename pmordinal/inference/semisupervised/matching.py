"""The objective of a semi-supervised fit: a term for the labels of unlabelled rows is added [SSGPOR, eq. 7]."""

from dataclasses import dataclass, field, fields
from typing import Self

import numpy as np

from pmordinal.engines.objectives import OBJECTIVES
from pmordinal.likelihood import Rows
from pmordinal.likelihood.rows import ALIKE
from pmordinal.linalg.threads import blas_threads
from pmordinal.model.memory import Found
from pmordinal.model.problem import Problem
from pmordinal.posterior import Gradient, Posterior


@dataclass(eq=False)
class Matching:
    """Labels of the unlabelled rows and their weight, both of which change between two θ steps.

    Attributes
    ----------
    rows : ndarray, shape (m, d)
    codes : ndarray of int, shape (m,)
    known : Rows
        Known shifts of the rows.
    weight : float
        λ; the rows have no effect if it is zero.
    """

    rows: np.ndarray
    codes: np.ndarray
    known: Rows = ALIKE
    weight: float = 0.0

    def term(self, posterior: Posterior) -> tuple[float, Gradient]:
        """Return λ (n_l/n_u) Σ log p(q_i | x_i) [SSGPOR, eqs. 5 and 7], and its exact gradient."""
        likelihood = posterior.likelihood.at_new(self.known)
        mean, var, pullback = posterior.latent_with_pullback(self.rows)
        terms = likelihood.tilted(self.codes, mean, var)
        weights = posterior.likelihood.weights
        n_labels = posterior.y.size if weights is None else weights.sum()
        scale = self.weight * n_labels / len(self.rows)
        by_var = 0.5 * (terms.d1**2 - terms.curvature)
        moved = pullback(scale * terms.d1, scale * by_var)
        direct = Gradient(
            [np.zeros_like(g) for g in moved.parameters],
            scale * likelihood.threshold_gradient(self.codes, terms.upper[0], terms.lower[0]),
            scale * float(terms.log_noise[0].sum()),
        )
        return scale * float(terms.value.sum()), direct + moved


def class_log_probs(posterior: Posterior, rows: np.ndarray, known: Rows = ALIKE) -> np.ndarray:
    """Return the log probability of every class at new rows [SSGPOR, eq. 5], shape (m, r)."""
    return posterior.likelihood.at_new(known).log_probabilities(*posterior.latent(rows))


@dataclass(frozen=True, eq=False)
class MatchedProblem(Problem):
    """A problem whose objective includes the labels of its unlabelled rows."""

    matching: Matching = field(kw_only=True)

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return `problem` with unlabelled rows of weight zero."""
        known = {f.name: getattr(problem, f.name) for f in fields(Problem)}
        known |= {"is_optimised": True, "found": Found()}
        codes = np.zeros(len(problem.unlabeled), dtype=np.int64)
        shift = problem.features.shift(problem.unlabeled)
        return cls(**known, matching=Matching(problem.unlabeled, codes, Rows(shift=shift)))

    def loosened(self) -> Self:
        """Return the problem unchanged: predictions need exact sites, unlike the evidence."""
        return self

    def evaluate(self, values, thresholds, noise, y, memory=None) -> tuple[float, Gradient]:
        """Return the objective with the matching term, and its gradient."""
        if self.matching.weight == 0.0:
            return super().evaluate(values, thresholds, noise, y, memory)
        with blas_threads(len(self.X)):
            posterior = self.posterior(values, thresholds, noise, y)
            term, slope = self.matching.term(posterior)
            value, gradient = OBJECTIVES[self.objective](posterior)
        return value + term, gradient + slope
