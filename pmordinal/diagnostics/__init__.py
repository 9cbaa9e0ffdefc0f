"""Judging fits: leave-one-out, scores, comparison, checks."""
