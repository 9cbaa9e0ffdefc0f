"""What every engine returns: a posterior of the latent function, and all that prediction needs."""

from pmordinal.posterior.base import Gradient, LatentDraws, Posterior, Start, Status
from pmordinal.posterior.sites import MeasuredPosterior, SitePosterior, SiteReaction

__all__ = [
    "Gradient",
    "LatentDraws",
    "MeasuredPosterior",
    "Posterior",
    "SitePosterior",
    "SiteReaction",
    "Start",
    "Status",
]
