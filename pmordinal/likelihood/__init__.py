"""The ordinal likelihood, alone or averaged over a Gaussian, with all its derivatives."""

from pmordinal.likelihood.ordinal import OrdinalLikelihood

__all__ = ["OrdinalLikelihood"]
