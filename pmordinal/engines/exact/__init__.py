"""The exact posterior under the probit link: a Gaussian in a box, by weighted draws."""

from pmordinal.engines.exact.engine import Exact

__all__ = ["Exact"]
