"""Posteriors of the latent function, which the engines return and predictions are made from."""

from pmordinal.posterior.base import Gradient, LatentDraws, Posterior, Start, Status
from pmordinal.posterior.mixture import MixturePosterior
from pmordinal.posterior.sites import MeasuredPosterior, SitePosterior, SiteReaction

__all__ = [
    "Gradient",
    "LatentDraws",
    "MeasuredPosterior",
    "MixturePosterior",
    "Posterior",
    "SitePosterior",
    "SiteReaction",
    "Start",
    "Status",
]
