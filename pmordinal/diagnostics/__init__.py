"""Judging fits: leave-one-out, scores, comparison, checks."""

from pmordinal.diagnostics.checks import (
    calibration,
    predictive_bars,
    prior_categories,
    surrogate_residuals,
)
from pmordinal.diagnostics.comparison import Comparison, compare
from pmordinal.diagnostics.contest import compare_engines
from pmordinal.diagnostics.leave_one_out import loo
from pmordinal.diagnostics.scoring import compare_scores, rank_methods, scores

__all__ = [
    "Comparison",
    "calibration",
    "compare",
    "compare_engines",
    "compare_scores",
    "loo",
    "predictive_bars",
    "prior_categories",
    "rank_methods",
    "scores",
    "surrogate_residuals",
]
