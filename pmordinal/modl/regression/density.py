"""Conditional densities of the target rank: one predictor, naive Bayes, weighted naive Bayes.

The target cuts of all predictors together divide the ranks into segments. On a segment every
predictor's density [HB2007, eq. 4] is constant, so the product of [HB2007, eq. 5], renormalised (which the paper
leaves out), is exact on segments: no table over pairs of instances is ever built.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pmordinal.modl.partition.grid import Grid


@dataclass(frozen=True)
class Segments:
    """Segments of the normalised target rank.

    Parameters
    ----------
    edges : ndarray, shape (S + 1,)
        Ranks 0 = edges[0] < … < edges[S] = 1.
    """

    edges: np.ndarray

    @classmethod
    def of(cls, grids: Sequence[Grid]) -> "Segments":
        """Merge the target cuts of several grids on the same instances."""
        n = grids[0].n if grids else 1
        # cuts are multiples of 1/N: compare them as integers
        cuts = np.unique(np.concatenate([np.rint(g.y_ranks * n) for g in grids] or [np.zeros(0)]))
        return cls(np.concatenate(([0.0], cuts / n, [1.0])))

    @property
    def widths(self) -> np.ndarray:
        """Rank mass of each segment under the null model, shape (S,)."""
        return np.diff(self.edges)

    def find(self, ranks: np.ndarray) -> np.ndarray:
        """Return the segment of each normalised rank in [0, 1]."""
        return np.searchsorted(self.edges[1:-1], ranks, side="right")

    def density_table(self, grid: Grid, smoothing: float) -> np.ndarray:
        """Return densities of the parts of `grid` on the segments, shape (I + 1, S).

        The last row is 1, for predictor values without a part: an unseen label, or a missing value if the
        training data had none.
        """
        middle = 0.5 * (self.edges[:-1] + self.edges[1:])
        interval = np.searchsorted(grid.y_ranks, middle, side="right")
        table = grid.rank_density(smoothing)[:, interval]
        return np.vstack((table, np.ones(len(middle))))


@dataclass(frozen=True)
class RankDensity:
    """A product of predictors' rank densities, each raised to its weight and renormalised.

    Parameters
    ----------
    grids : dict of str to Grid
        Predictors with a positive weight.
    weights : dict of str to float
        1 for every predictor is naive Bayes.
    smoothing : float
        Added to every cell count.
    """

    grids: Mapping[str, Grid]
    weights: Mapping[str, float]
    smoothing: float
    segments: Segments = field(init=False)
    tables: Mapping[str, np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        """Tabulate the log densities of all parts on the common segments."""
        segments = Segments.of(list(self.grids.values()))
        tables = {
            k: np.log(segments.density_table(g, self.smoothing)) for k, g in self.grids.items()
        }
        object.__setattr__(self, "segments", segments)
        object.__setattr__(self, "tables", tables)

    def log_density(
        self, parts: Mapping[str, np.ndarray], n: int, tables: Mapping | None = None
    ) -> np.ndarray:
        """Return log densities of the rank on the segments, shape (n, S).

        Parameters
        ----------
        parts : dict of str to ndarray of int, shape (n,)
            Part of each row for each predictor, −1 for none.
        n : int
            Number of rows.
        tables : dict, optional
            Log density tables instead of the fitted ones (draws from their posterior).
        """
        tables = self.tables if tables is None else tables
        total = np.zeros((n, len(self.segments.widths)))
        for name in self.grids:
            total += self.weights[name] * tables[name][parts[name]]  # [HB2007, eq. 5]
        log_mass = total + np.log(self.segments.widths)
        peak = log_mass.max(axis=1, keepdims=True)
        norm = peak + np.log(np.exp(log_mass - peak).sum(axis=1, keepdims=True))
        return total - norm
