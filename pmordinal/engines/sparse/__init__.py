"""Sparse posteriors of a few basis rows: their choice, and the filter that passes through them."""

from pmordinal.engines.sparse.engine import SparseADF

__all__ = ["SparseADF"]
