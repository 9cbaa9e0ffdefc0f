"""The sparse engine: chooses a few basis rows, and filters their labels one by one."""

from pmordinal.engines.sparse.engine import SparseADF

__all__ = ["SparseADF"]
