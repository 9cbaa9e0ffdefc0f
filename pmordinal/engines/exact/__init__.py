"""The exact posterior under the probit link, by weighted draws from a Gaussian truncated to a box."""

from pmordinal.engines.exact.engine import Exact

__all__ = ["Exact"]
