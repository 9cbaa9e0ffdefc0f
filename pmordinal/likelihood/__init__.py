"""The ordinal likelihood at a latent value or averaged over a Gaussian, with all derivatives."""

from pmordinal.likelihood.ordinal import OrdinalLikelihood

__all__ = ["OrdinalLikelihood"]
