"""The ordinal likelihood, alone or averaged over a Gaussian, with all its derivatives."""

from pmordinal.likelihood.ordinal import OrdinalLikelihood
from pmordinal.likelihood.rows import Rows

__all__ = ["OrdinalLikelihood", "Rows"]
