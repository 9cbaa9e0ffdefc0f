"""What an engine is: options in the constructor, data in the call, a Posterior out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.links import Link
from pmordinal.posterior import Posterior, SitePosterior, Start
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
        Whether the latent function predicts the labels as numbers, so that its amplitude is not
        one.
    has_latent_pullback : bool
        Whether its posterior differentiates predictions: `Posterior.latent_with_pullback`.
    links : tuple of str
        The links it works with; empty for all.
    has_weights : bool
        Whether a row may stand for several: `Rows.weights`.
    is_monte_carlo : bool
        Whether its results are estimates from draws, with standard errors.
    posterior_type : type
        The class of its posteriors.
    fewest_iterations : int
        What a run takes that starts close to its solution.
    """

    name: ClassVar[str]
    objectives: ClassVar[tuple[str, ...]] = ("evidence",)
    in_label_units: ClassVar[bool] = False
    has_latent_pullback: ClassVar[bool] = False
    links: ClassVar[tuple[str, ...]] = ()
    has_weights: ClassVar[bool] = False
    is_monte_carlo: ClassVar[bool] = False
    posterior_type: ClassVar[type[Posterior]] = SitePosterior
    fewest_iterations: ClassVar[int] = 1

    @property
    def turns(self) -> int:
        """How often `fit` may call `select` and optimise again, while that helps."""
        return 1

    def select(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        turn: int = 0,
        report: Callable[[str], None] | None = None,
    ) -> Self:
        """Return the engine with all that stays fixed while the hyperparameters move, chosen at these.

        Most engines hold nothing fixed and return themselves.

        Parameters
        ----------
        gram, y, likelihood
            As in the call.
        turn : int
            How often it has been asked in this fit.
        report : callable, optional
            Takes lines of text on the progress.
        """
        return self

    def check_link(self, link: Link) -> None:
        """Raise an error that names the alternatives if the engine does not work with `link`."""
        if self.links and link.name not in self.links:
            raise ValueError(
                f"engine {self.name!r} needs link={' or '.join(map(repr, self.links))}, got {link.name!r}: use "
                "engine='ep' or 'laplace', or sample the latent function itself (NUTS) with pmo.latent_model"
            )

    def check_weights(self, weights: np.ndarray | None) -> None:
        """Raise an error that names the alternatives if there are weights and the engine has no use for them."""
        if weights is not None and not self.has_weights:
            able = ", ".join(repr(name) for name, engine in ENGINES.items() if engine.has_weights)
            raise ValueError(
                f"engine {self.name!r} has one latent value a label and takes no weights=: use one of {able}, or "
                "repeat the rows"
            )

    def loosened(self, objective: str, sampled: bool = False) -> Self:
        """Return the engine as an optimiser may use it: no more exact than the objective needs.

        Parameters
        ----------
        objective : str
        sampled : bool
            Whether a sampler will use it, which needs less: energies to a thousandth.
        """
        return self

    def describe(self, objective: str, value: float, n: int) -> str:
        """Return an objective's value for `n` rows as the progress bar shows it."""
        return f"{objective} {value:.4f}"

    def __call__(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        start: Start | None = None,
    ) -> Posterior:
        """Return the posterior of the latent function.

        Parameters
        ----------
        gram : Gram
            Covariance of the training rows.
        y : ndarray of int, shape (n,)
            Class codes.
        likelihood : OrdinalLikelihood
        start : Start, optional
            Warm start: `start` of an earlier result for nearby parameters.
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
