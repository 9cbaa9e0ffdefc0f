"""What an engine is: options in the constructor, data in the call, a Posterior out."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.posterior import Posterior, Start
from pmordinal.registry import Registry


@dataclass(frozen=True)
class Engine:
    """Base of all engines; a subclass is a frozen dataclass of options.

    Attributes
    ----------
    name : str
        The name that users pass.
    objectives : tuple of str
        The objectives it supports, the default first.
    in_label_units : bool
        Whether the latent function predicts the labels as numbers, so that its amplitude is not one.
    """

    name: ClassVar[str]
    objectives: ClassVar[tuple[str, ...]] = ("evidence",)
    in_label_units: ClassVar[bool] = False

    def __call__(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        start: Posterior | Start | None = None,
    ) -> Posterior:
        """Return the posterior of the latent function.

        Parameters
        ----------
        gram : Gram
            Covariance of the training rows.
        y : ndarray of int, shape (n,)
            Class codes.
        likelihood : OrdinalLikelihood
        start : Posterior or Start, optional
            Warm start: an earlier result for nearby parameters.
        """
        raise NotImplementedError


ENGINES: Registry[type[Engine]] = Registry("engine")


def get_engine(engine: str | Engine) -> Engine:
    """Return the engine of that name with its default options, or `engine` itself."""
    if isinstance(engine, Engine):
        return engine
    if isinstance(engine, type) and issubclass(engine, Engine):
        return engine()
    return ENGINES[engine]()
