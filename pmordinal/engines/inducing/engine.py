"""The engine with inducing rows: expectation propagation or Laplace under the FITC prior, rows without limit.

A few rows of the data carry the latent function: given its values there, all other rows are independent, each with the
variance that its own covariance leaves (fully independent training conditional). Linear and group terms have columns
of their own besides, and are exact. Rows are passed over in blocks, at a cost of O(n m²) and in the memory of one
block.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from pmordinal import checks, linalg
from pmordinal.engines.base import ENGINES, Engine
from pmordinal.engines.inducing import carriers
from pmordinal.engines.inducing.basis import LARGEST, POOL, sample
from pmordinal.engines.inducing.blocks import Blocks, Elsewhere, blocks_of
from pmordinal.engines.inducing.iteration import NEAR, Iteration, Solution
from pmordinal.engines.inducing.pieces import Shared, State
from pmordinal.engines.inducing.posterior import InducingPosterior, share
from pmordinal.engines.inducing.spread import SpreadBlocks
from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.posterior import Posterior, Start, Status

MOST = 200  # default number of inducing rows
LOOSE = 1e-3  # tolerance inside an optimiser: the error of the evidence is 1e-6 nats
STAGES = (5_000, LARGEST)  # rows on which hyperparameters are optimised first
SITES = ("ep", "laplace")


@ENGINES.register("inducing")
@dataclass(frozen=True)
class Inducing(Engine):
    """Inducing rows: all labels count, through a few rows; O(n m²) time, and memory for one block.

    Parameters
    ----------
    n_inducing : int, optional
        Number m of inducing rows; by default 200, or all if there are fewer.
    sites : {"ep", "laplace"}
        How labels enter: by expectation propagation, or by Laplace's approximation, which takes half the time.
    seed : int
        Seed of the random rows that the inducing rows are chosen from.
    tol : float
        The iteration ends when a pass moves the posterior by less than this, in its own standard deviations.
    max_passes : int
        Largest number of passes over the rows; the status says if they were not enough.
    rounds : int
        Largest number of times that `fit` chooses inducing rows and optimises the hyperparameters for them.
    basis : sequence of int, optional
        The inducing rows, if they are not to be chosen.
    carrier : sequence of int, optional
        Set by `select`: what each row of `basis` carries, those of linear and group terms being among them.
    elsewhere : Elsewhere, optional
        All rows, where the table in memory is a sample of them: set by models of Dask tables.

    Examples
    --------
    >>> import pymc as pm
    >>> from pmordinal.gram import Gram, lower
    >>> X = np.linspace(-2, 2, 400)[:, None]
    >>> gram = Gram(lower(pm.gp.cov.ExpQuad(1, ls=1.0)), X, [1.0])
    >>> posterior = Inducing(n_inducing=8)(gram, (X[:, 0] > 0).astype(int), OrdinalLikelihood([0.0], noise=0.5))
    >>> posterior.support.size, posterior.mean.shape, posterior.status.message
    (8, (400,), 'converged')
    """

    name: ClassVar[str] = "inducing"
    is_dense: ClassVar[bool] = False
    objectives: ClassVar[tuple[str, ...]] = ("evidence",)
    has_weights: ClassVar[bool] = True
    takes_spread_rows: ClassVar[bool] = True
    posterior_type: ClassVar[type[Posterior]] = InducingPosterior

    n_inducing: int | None = None
    sites: str = "ep"
    seed: int = 0
    tol: float = 1e-8
    max_passes: int = 200
    rounds: int = 2
    basis: tuple[int, ...] | None = None
    carrier: tuple[int, ...] | None = field(default=None, repr=False)
    elsewhere: Elsewhere | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the options."""
        if self.n_inducing is not None:
            checks.integer("n_inducing", self.n_inducing, minimum=1)
        checks.one_of("sites", self.sites, SITES)
        checks.integer("seed", self.seed, minimum=0)
        checks.positive("tol", self.tol)
        checks.integer("max_passes", self.max_passes, minimum=1)
        checks.integer("rounds", self.rounds, minimum=1)
        if self.basis is not None and self.carrier is None:
            object.__setattr__(self, "basis", checks.rows("basis", self.basis))

    @property
    def turns(self) -> int:
        """Largest number of times that a fit chooses inducing rows."""
        return 1 if self.basis is not None else self.rounds

    def stages(self, n: int) -> tuple[int, ...]:
        """Return numbers of rows that are optimised on first: a tenth of the time, and almost the same optimum."""
        return tuple(rows for rows in STAGES if 3 * rows <= n)

    def select(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        turn: int = 0,
        report: Callable[[str], None] | None = None,
    ) -> Self:
        """Return the engine with inducing rows, chosen at these hyperparameters; see `Engine`."""
        if self.carrier is not None:
            return self
        if report is not None and self.basis is None:
            report("choosing inducing rows")
        m = MOST if self.n_inducing is None else self.n_inducing
        pool = None
        if self.elsewhere is not None:  # the same rows as if all were in memory
            n = self.elsewhere.n
            pool = np.searchsorted(self.sample(n), sample(n, POOL))
        given = None if self.basis is None else np.array(self.basis)
        if given is not None and given.max() >= y.size:
            raise ValueError(f"basis must hold some of the rows 0 to {y.size - 1}")
        rng = np.random.default_rng([self.seed, turn])
        rows, carrier = carriers.select(gram, m, rng, pool, given)
        return replace(self, basis=tuple(rows.tolist()), carrier=tuple(carrier.tolist()))

    def sample(self, n: int, size: int | None = None) -> np.ndarray:
        """Return the rows that stand for all in the first stages; see `Engine`."""
        return sample(n, STAGES[-1] if size is None else size)

    def gathered(self) -> Self:
        """Return the engine for rows in memory; see `Engine`."""
        return replace(self, elsewhere=None)

    def spread_over(self, parts: Sequence[Any], lengths: Sequence[int], y: np.ndarray) -> Self:
        """Return the engine for rows on a cluster; see `Engine`."""
        return replace(self, elsewhere=SpreadBlocks(parts, lengths, y))

    def loosened(self, objective: str, sampled: bool = False) -> Self:
        """Return the engine with a larger tolerance: the error of the evidence is quadratic in it."""
        return replace(self, tol=max(self.tol, LOOSE))

    def as_exact_as(self, other: Self) -> Self:
        """Return the engine with the tolerance of another; see `Engine`."""
        return replace(self, tol=other.tol)

    def __call__(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        start: Start | None = None,
    ) -> InducingPosterior:
        """Return the posterior, with inducing rows that are chosen if there are none yet; see `Engine`."""
        chosen = self.select(gram, y, likelihood)
        basis, carrier = np.array(chosen.basis), np.array(chosen.carrier)
        shared = share(gram, basis, carrier, likelihood)
        rows: Blocks
        if self.elsewhere is None:
            rows = blocks_of(gram.X, y, likelihood.rows)
        else:
            self.elsewhere.check_labels(y)
            rows = self.elsewhere
        before = _usable(start, shared)
        cavities = None if before is None or start is None else start.cavity
        known = None if cavities is None else np.array(cavities)
        iteration = Iteration(rows, shared, self.tol, self.max_passes, known)
        found = self._solve(iteration, before)
        return InducingPosterior(
            gram=gram,
            y=y,
            likelihood=likelihood,
            alpha=linalg.lapack.dtrtrs(shared.L, found.w, lower=1, trans=1)[0],
            log_evidence=found.log_evidence,
            status=self._status(found),
            basis=basis,
            carrier=carrier,
            spread=found.S,
            sites=self.sites,
            of_rows=found.of_rows,
            excess=found.excess / iteration.n,
            elsewhere=self.elsewhere,
            kept=None if iteration.kept is None else iteration.kept.forget_features(),
        )

    def _solve(self, iteration: Iteration, before: State | None) -> Solution:
        """Iterate from what was found before, or from the prior."""
        at_mode = self.sites == "laplace"
        known = iteration.begin(before, at_mode) if before or not at_mode else None
        w = np.zeros(iteration.shared.m)
        if at_mode:
            return iteration.mode(w if known is None else known[0], self.tol)
        found = None if known is None else iteration.sites(*known)
        if found is not None and (found.message or iteration.passes >= self.max_passes):
            return found
        # the mode is found wherever the likelihood is, and may be a better start
        mode = iteration.mode(w, NEAR)
        again = iteration.sites(mode.w, mode.S) or mode
        return again if found is None or again.residual < found.residual else found

    def _status(self, found: Solution) -> Status:
        lost = (
            f"no convergence in {found.passes} passes (residual {found.residual:.1e}): raise max_passes, or give "
            "the noise and length-scales proper priors"
        )
        converged = bool(found.message)
        return Status(converged, found.passes, found.message or lost, found.passes)


def _usable(start: Start | None, shared: Shared) -> State | None:
    """Return the state of a start if it is of the same kind of model."""
    if start is None or not isinstance(start.state, State):
        return None
    before = start.state
    same = [v.shape for v in before.values] == [v.shape for v in shared.values]
    same &= before.carriers[0].Z.shape[1] == shared.carriers[0].Z.shape[1]
    same &= before.link is shared.link
    same &= np.shape(before.noise) == np.shape(shared.noise)
    return before if same and before.thresholds.shape == shared.thresholds.shape else None
