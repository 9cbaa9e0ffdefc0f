"""Judging fits: leave-one-out, scores, comparisons and model checks."""
