"""Expectation propagation: the iteration, and the sites that it updates."""

from pmordinal.engines.ep.engine import EP

__all__ = ["EP"]
