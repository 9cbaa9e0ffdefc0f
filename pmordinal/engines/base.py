"""The base class `Engine`: the constructor takes options, a call takes data and returns a `Posterior`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.links import Link
from pmordinal.posterior import Posterior, SitePosterior, Start
from pmordinal.registry import Registry

COMFORTABLE = 3000  # up to so many rows every row can have a latent value of its own


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
        Whether the latent function predicts the class numbers themselves, so that its amplitude is not
        one.
    has_latent_pullback : bool
        Whether its posterior has `Posterior.latent_with_pullback`, the derivatives of predictions.
    needs_normal_noise : bool
        Whether it works only with links of standard normal noise.
    has_weights : bool
        Whether a row may stand for several: `Rows.weights`.
    takes_spread_rows : bool
        Whether the rows may be spread over Dask: `spread_over`.
    is_dense : bool
        Whether it holds matrices of n × n numbers.
    is_monte_carlo : bool
        Whether its results are estimates from draws, with standard errors.
    posterior_type : type
        The class of its posteriors.
    fewest_iterations : int
        Iterations of a run that starts close to its solution.
    """

    name: ClassVar[str]
    objectives: ClassVar[tuple[str, ...]] = ("evidence",)
    in_label_units: ClassVar[bool] = False
    has_latent_pullback: ClassVar[bool] = False
    needs_normal_noise: ClassVar[bool] = False
    has_weights: ClassVar[bool] = False
    takes_spread_rows: ClassVar[bool] = False
    is_dense: ClassVar[bool] = True
    is_monte_carlo: ClassVar[bool] = False
    posterior_type: ClassVar[type[Posterior]] = SitePosterior
    fewest_iterations: ClassVar[int] = 1

    @property
    def turns(self) -> int:
        """Largest number of rounds in which `fit` calls `select` and optimises, while that helps."""
        return 1

    def stages(self, n: int) -> tuple[int, ...]:
        """Return numbers of rows that `fit` optimises on, one after the other, before it takes all `n`."""
        return ()

    def select(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        turn: int = 0,
        report: Callable[[str], None] | None = None,
    ) -> Self:
        """Choose what stays fixed while the hyperparameters change, such as a basis; return the engine with it.

        The choice is made at the hyperparameters of the arguments. Most engines return themselves.

        Parameters
        ----------
        gram, y, likelihood
            As in the call.
        turn : int
            How often it has been called in this fit.
        report : callable, optional
            Called with lines of text about the progress.
        """
        return self

    def check_link(self, link: Link) -> None:
        """Raise an error that names the alternatives if the engine does not work with `link`."""
        if self.needs_normal_noise and not link.is_normal:
            raise ValueError(
                f"engine {self.name!r} needs link='probit', got {link.name!r}: use engine='ep' or 'laplace', or "
                "sample the latent function itself (NUTS) with pmo.latent_model"
            )

    def check_weights(self, weights: np.ndarray | None) -> None:
        """Raise an error that names the alternatives if there are weights and the engine has no use for them."""
        if weights is not None and not self.has_weights:
            able = ", ".join(repr(name) for name, engine in ENGINES.items() if engine.has_weights)
            raise ValueError(
                f"engine {self.name!r} has one latent value a label and takes no weights=: use one of {able}, or "
                "repeat the rows"
            )

    def check_spread(self) -> None:
        """Raise an error that names the alternatives unless rows may be spread over Dask."""
        if not self.takes_spread_rows:
            raise ValueError(
                f"X is spread over Dask, and engine {self.name!r} needs all rows in memory: use engine='inducing', or "
                "gather them with X.compute() and y.compute()"
            )

    def sample(self, n: int, size: int | None = None) -> np.ndarray:
        """Return the numbers of `size` rows out of `n`, those that are in memory where the others are spread over Dask.

        A smaller sample is part of a larger one.
        """
        return np.arange(n)

    def gathered(self) -> Self:
        """Return the engine for rows in memory."""
        return self

    def spread_over(self, parts: Sequence[Any], lengths: Sequence[int], y: np.ndarray) -> Self:
        """Return the engine for rows that are spread over Dask.

        Parameters
        ----------
        parts : sequence of Delayed
            Blocks of rows: pairs of attributes and class codes.
        lengths : sequence of int
            Their numbers of rows.
        y : ndarray of int
            Class codes of the sample that the engine is called with.
        """
        self.check_spread()
        raise NotImplementedError

    def loosened(self, objective: str, sampled: bool = False) -> Self:
        """Return the engine with a looser tolerance, as exact as an optimiser of the objective needs.

        Parameters
        ----------
        objective : str
        sampled : bool
            Whether it is for a sampler, which needs less accuracy: log densities to a thousandth.
        """
        return self

    def as_exact_as(self, other: Self) -> Self:
        """Return the engine, with what it has selected, at the tolerance of the one that `loosened` was called of."""
        return self

    def describe(self, objective: str, value: float, n: int) -> str:
        """Return an objective's value for `n` rows as text for the progress bar."""
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
    if isinstance(engine, str) and engine.lower() in ("nuts", "mcmc"):
        raise ValueError(
            f"{engine!r} is no engine: pmo.sample draws the hyperparameters of a model with any engine, and those of "
            "pmo.latent_model together with the latent function"
        )
    return ENGINES[engine]()


def engine_for(engine: str | Engine | None, n: float) -> Engine:
    """Return the engine of that name; without one, that which suits `n` rows.

    Examples
    --------
    >>> engine_for(None, 500).name, engine_for(None, 20_000).name
    ('ep', 'inducing')
    """
    if engine is None:
        engine = "ep" if n <= COMFORTABLE else "inducing"
    return get_engine(engine)
