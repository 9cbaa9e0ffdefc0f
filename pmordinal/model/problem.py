"""`Problem`: the data and settings of an engine's objective, and its evaluation at given parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from pmordinal.data.by_row import ByRow
from pmordinal.data.features import Features
from pmordinal.data.labels import Labels
from pmordinal.data.terms import Term
from pmordinal.data.whole import Whole
from pmordinal.engines import Engine
from pmordinal.engines.objectives import OBJECTIVES
from pmordinal.gram import Gram, Kernel
from pmordinal.likelihood import OrdinalLikelihood, Rows
from pmordinal.likelihood.rows import ALIKE
from pmordinal.linalg.threads import blas_threads
from pmordinal.links import Link
from pmordinal.model.memory import Found, Memory
from pmordinal.posterior import Gradient, Posterior


@dataclass(frozen=True, eq=False)
class Problem:
    """All that an engine's objective needs except the parameters: data, engine, objective, names.

    Attributes
    ----------
    kernel : Kernel
        The covariance function.
    X : ndarray, shape (n, d)
        Labelled rows, in the units of the kernel.
    labels : Labels
        The training labels with their names.
    features : Features
        How the user's table becomes rows.
    engine : Engine
    objective : str
    link : Link
    unlabeled : ndarray, shape (m, d)
        Rows without a label.
    by_row : ByRow
        Groups and weights of the labelled rows.
    scale_is_free : bool
        Whether amplitude, noise and thresholds are all free: their common scale is fixed by priors only.
    start : mapping of str to ndarray
        Where to start optimising, by the names of the model's variables.
    terms : tuple of Term
        Names of the parts of the covariance, if it has some.
    is_optimised : bool
        Whether the objective is for an optimiser, rather than for a sampler.
    whole : Whole, optional
        What is known of the table where `X` is a sample of it.
    some : ndarray of int, optional
        The labelled rows that count in the objective, if not all: a stage of a fit to many rows.
    found : Found
        The engine after `Engine.select`, and solutions to start from.
    """

    kernel: Kernel
    X: np.ndarray
    labels: Labels
    features: Features
    engine: Engine
    objective: str
    link: Link
    unlabeled: np.ndarray
    by_row: ByRow = field(default_factory=ByRow)
    scale_is_free: bool = False
    start: Mapping[str, np.ndarray] = field(default_factory=dict)
    terms: tuple[Term, ...] = ()
    is_optimised: bool = False
    whole: Whole | None = None
    some: np.ndarray | None = None
    found: Found = field(default_factory=Found, repr=False)

    @property
    def y(self) -> np.ndarray:
        """Class codes of the labelled rows, shape (n,)."""
        return self.labels.codes[self.labels.observed]

    @property
    def n_labels(self) -> float:
        """How many labels the rows stand for."""
        weights = self.by_row.weights
        if weights is None:
            return float(self.n_rows)
        return float(weights.sum() if self.some is None else weights[self.some].sum())

    @property
    def n_rows(self) -> int:
        """How many labelled rows count."""
        if self.some is not None:
            return self.some.size
        return len(self.X) if self.whole is None else self.whole.rows

    def stage(self, size: int) -> np.ndarray:
        """Return the numbers of so many of the rows in memory, random ones."""
        chosen = self.engine.sample(self.n_rows, size)
        if self.whole is not None:
            chosen = np.searchsorted(self.engine.sample(self.whole.rows), chosen)
        return chosen

    @cached_property
    def rows(self) -> Rows:
        """What the likelihood knows of each labelled row that counts."""
        shift = self.features.shift(self.X)
        if self.by_row.is_plain and shift is None:
            return ALIKE
        rows = Rows(*self.by_row.codes(), self.by_row.weights, shift)
        return rows if self.some is None else rows.take(self.some)

    def take(self, rows: np.ndarray) -> Self:
        """Return the problem of some of the labelled rows, a mask; the others are left out."""
        return replace(
            self,
            X=self.X[rows],
            labels=self.labels.without(~rows),
            by_row=self.by_row.take(rows),
            found=Found(),
        )

    def likelihood(self, thresholds, noise) -> OrdinalLikelihood:
        """Return the likelihood of the labelled rows."""
        # data may have changed since the model was built
        if np.shape(thresholds)[-1] != self.labels.n_classes - 1:
            raise ValueError(
                f"there are {np.shape(thresholds)[-1]} thresholds for {self.labels.n_classes} classes: give one for "
                "each border between two classes"
            )
        for name, values, groups in (
            ("vectors of thresholds", thresholds, self.by_row.thresholds),
            ("noises", noise, self.by_row.noise),
        ):
            if groups is not None and len(values) != groups.size:
                raise ValueError(
                    f"there are {len(values)} {name} for {groups.size} groups of {groups.name!r}"
                )
        return OrdinalLikelihood(thresholds, noise, self.link, self.rows)

    def _at(self, values, thresholds, noise) -> tuple[Gram, OrdinalLikelihood]:
        X = self.X if self.some is None else self.X[self.some]
        gram, likelihood = Gram(self.kernel, X, values), self.likelihood(thresholds, noise)
        if likelihood.weights is not None and not self.engine.in_label_units:
            white = gram.diagonal - gram.copy_diagonal()
            if np.any(white > 1e-12 * gram.diagonal):
                raise ValueError(
                    "weights: the rows that a weight stands for would each have white noise of their own: leave the "
                    "pm.gp.cov.WhiteNoise out, since noise= is noise on each label, or repeat the rows"
                )
        return gram, likelihood

    def posterior(
        self, values, thresholds, noise, y, loosely: bool = False, memory: Memory | None = None
    ) -> Posterior:
        """Run the engine at the given parameters, with a start predicted from earlier solutions.

        Parameters
        ----------
        values, thresholds, noise, y
            The parameters of the kernel and of the likelihood, and the class codes.
        loosely : bool
            Whether only the objective is needed, by a sampler. The engine then uses a looser tolerance, once its
            start is predicted from enough solutions.
        memory : Memory, optional
            Earlier solutions; by default those that all users of the problem share.
        """
        gram, likelihood = self._at(values, thresholds, noise)
        memory = self.found.solutions(y) if memory is None else memory
        y = y if self.some is None else y[self.some]
        engine = self.found.selected(lambda: self.engine.select(gram, y, likelihood))
        parameters = np.concatenate(
            (*gram.values, likelihood.noise, likelihood.thresholds), axis=None
        )
        scales = parameters[: -likelihood.thresholds.size]
        scales[:] = np.arcsinh(1e3 * scales)  # as good as logarithms
        start, is_predicted = memory.predict(parameters)
        if loosely and is_predicted:
            engine = engine.loosened(self.objective, sampled=True)
        posterior = engine(gram, y, likelihood, start)
        if start is not None and not posterior.status.converged:  # a bad start, perhaps
            posterior = engine(gram, y, likelihood)
        if posterior.status.converged:
            missed = posterior.status.iterations > engine.fewest_iterations
            memory.add(parameters, posterior.start, missed)
        return posterior

    def select(
        self,
        values,
        thresholds,
        noise,
        y,
        turn: int = 0,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Call `Engine.select` at the given parameters, and keep what it has chosen."""
        gram, likelihood = self._at(values, thresholds, noise)
        self.found.solutions(y).results.clear()
        y = y if self.some is None else y[self.some]
        self.found.engine = self.engine.select(gram, y, likelihood, turn, report)

    def loosened(self) -> Self:
        """Return the problem for an optimiser, with a looser tolerance of the engine."""
        engine = self.engine.loosened(self.objective)
        return replace(self, engine=engine, is_optimised=True, found=Found())

    def evaluate(
        self, values, thresholds, noise, y, memory: Memory | None = None
    ) -> tuple[float, Gradient]:
        """Return the objective and its gradient.

        Results are kept for a while, since a sampler starts each trajectory where it has been before.
        """
        memory = self.found.solutions(y) if memory is None else memory.of(y)
        key = b"".join(x.tobytes() for x in map(np.asarray, (*values, thresholds, noise)))
        known = memory.recall(key)
        if known is None:
            with blas_threads(len(self.X)), memory.workspace:
                loosely = not self.is_optimised
                posterior = self.posterior(values, thresholds, noise, y, loosely, memory)
                known = OBJECTIVES[self.objective](posterior)
            if known[0] > 0.0 and not posterior.status.converged:
                raise ArithmeticError("a log probability above zero")
            memory.keep(key, known)
        return known
