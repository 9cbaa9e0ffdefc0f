"""The ordinal likelihood at a latent value or averaged over a Gaussian, with all derivatives."""

from pmordinal.likelihood.ordinal import OrdinalLikelihood, OutOfRange
from pmordinal.likelihood.rows import Rows

__all__ = ["OrdinalLikelihood", "OutOfRange", "Rows"]
