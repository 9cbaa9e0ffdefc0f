"""Judging fits: leave-one-out, scores, comparison."""

from pmordinal.diagnostics.comparison import compare
from pmordinal.diagnostics.leave_one_out import loo
from pmordinal.diagnostics.scoring import rank_methods, scores

__all__ = ["compare", "loo", "rank_methods", "scores"]
