"""Expectation propagation: the engine, and the updates of its sites."""

from pmordinal.engines.ep.engine import EP

__all__ = ["EP"]
