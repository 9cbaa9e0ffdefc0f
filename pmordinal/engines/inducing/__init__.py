"""The inducing-point engine: all rows through a few of them, block by block."""

from pmordinal.engines.inducing.engine import Inducing

__all__ = ["Inducing"]
