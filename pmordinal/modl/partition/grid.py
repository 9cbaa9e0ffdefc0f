"""`Grid`: a fitted partition of predictor and target, in values, ranks and labels."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pmordinal.modl.encode import as_series, to_floats
from pmordinal.modl.partition.criterion import level

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False, eq=False)
class Grid:
    """A partition of the plane (predictor, target) with its counts and its cost.

    Parameters
    ----------
    counts : ndarray of int, shape (I, J)
        N_ij; the part of missing predictors, if any, is the last row.
    cost, null_cost : float
        c(M) of [HB2007, eqs. 1 and 3] and that of the one-cell model, in nats.
    x_boundaries, y_boundaries : ndarray
        Cuts in values; a part holds its lower boundary, not its upper one.
    x_ranks, y_ranks : ndarray
        The same cuts as normalised ranks in (0, 1).
    groups : tuple of tuples or None
        Labels of each part of a categorical predictor.
    missing_part : int or None
        Row of `counts` that holds missing predictors.
    x_name, y_name : str
        Names for pictures and messages.
    x, y : ndarray or None
        The data, kept for pictures; not part of the model.
    y_labels : tuple of str or None
        Labels of an ordered target, whose positions `y_boundaries` cut.

    Examples
    --------
    >>> import numpy as np
    >>> from pmordinal.modl import fit_grid
    >>> x = np.arange(40.0)
    >>> grid = fit_grid(x, np.where(x < 20, x % 7, 50 + x % 5))
    >>> grid.I, grid.J, grid.x_boundaries.tolist()
    (2, 2, [19.5])
    """

    counts: np.ndarray
    cost: float
    null_cost: float
    x_boundaries: np.ndarray
    y_boundaries: np.ndarray
    x_ranks: np.ndarray
    y_ranks: np.ndarray
    groups: tuple[tuple[Any, ...], ...] | None = None
    missing_part: int | None = None
    x_name: str = "x"
    y_name: str = "y"
    x: np.ndarray | None = None
    y: np.ndarray | None = None
    y_labels: tuple[str, ...] | None = None

    @property
    def kind(self) -> str:
        """``"numeric"`` or ``"categorical"``."""
        return "numeric" if self.groups is None else "categorical"

    @property
    def I(self) -> int:  # noqa: E743 - the paper's letter, fixed by the public API
        """Number of parts of the predictor."""
        return self.counts.shape[0]

    @property
    def J(self) -> int:
        """Number of intervals of the target."""
        return self.counts.shape[1]

    @property
    def n(self) -> int:
        """Number of instances N."""
        return int(self.counts.sum())

    @property
    def level(self) -> float:
        """Compression gain g(M) = 1 − c(M)/c(M_0), in [0, 1)."""
        # g is 0/0 for one single instance, where only the null model exists
        return level(self.cost, self.null_cost) if not self.is_null else 0.0

    @property
    def is_null(self) -> bool:
        """Whether this is the one-cell model: the predictor says nothing about the target."""
        return self.counts.size == 1

    def part_of(self, x: Any) -> np.ndarray:
        """Return the index of the part of each predictor value; −1 if it belongs to none.

        Parameters
        ----------
        x : array-like, shape (n,)
            Predictor values; missing ones belong to `missing_part`, unseen labels to none.

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        series = as_series(x, self.x_name)
        if self.is_null:
            return np.zeros(len(series), dtype=np.int64)
        missing = -1 if self.missing_part is None else self.missing_part
        if self.groups is None:
            values = to_floats(series, self.x_name)
            part = np.searchsorted(self.x_boundaries, values, side="right")
            return np.where(np.isnan(values), missing, part).astype(np.int64)
        part_of_label = {label: i for i, g in enumerate(self.groups) for label in g}
        codes, labels = pd.factorize(series, use_na_sentinel=True)
        part = np.array([part_of_label.get(v, -1) for v in labels] + [missing], dtype=np.int64)
        return part[codes]

    def interval_of(self, y: Any) -> np.ndarray:
        """Return the target interval of each value of y.

        Parameters
        ----------
        y : array-like of float, shape (n,)

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        values = to_floats(as_series(y, self.y_name), self.y_name)
        return np.searchsorted(self.y_boundaries, values, side="right")

    def probabilities(self, smoothing: float = 1.0) -> np.ndarray:
        """Return P(target interval j | part i) = (N_ij + a) / (N_i + a J).

        Parameters
        ----------
        smoothing : float, default 1.0
            a: 1 is the predictive of the model's own uniform prior; 1/N comes close to the paper,
            whose N_ij/N_i [HB2007, eq. 4] is 0 on empty cells and makes the log score infinite.

        Returns
        -------
        ndarray, shape (I, J)
        """
        smooth = self.counts + smoothing
        return smooth / smooth.sum(axis=1, keepdims=True)

    def rank_density(self, smoothing: float = 1.0) -> np.ndarray:
        """Return the density of the normalised target rank in each cell, constant there.

        Returns
        -------
        ndarray, shape (I, J)
            ``p_ij N / N_.j``; 1 everywhere means no information.
        """
        return self.probabilities(smoothing) * (self.n / self.counts.sum(axis=0))  # [HB2007, eq. 4]

    def rank_cdf(self, ranks: Any = None, smoothing: float = 1.0) -> np.ndarray:
        """Return P(normalised target rank ≤ r | part i) for every part.

        Parameters
        ----------
        ranks : array-like, shape (k,), optional
            Where to evaluate, in [0, 1]; by default at 0, the target cuts and 1, between which the
            function is linear.
        smoothing : float, default 1.0
            As for `probabilities`.

        Returns
        -------
        ndarray, shape (I, k)
        """
        edges = np.concatenate(([0.0], self.y_ranks, [1.0]))
        at_edges = np.cumsum(self.probabilities(smoothing), axis=1)
        at_edges = np.column_stack((np.zeros(self.I), at_edges))
        at_edges[:, -1] = 1.0
        if ranks is None:
            return at_edges
        return np.array([np.interp(np.asarray(ranks, dtype=float), edges, row) for row in at_edges])

    def part_names(self) -> list[str]:
        """Return a readable name of every predictor part."""
        if self.is_null:
            return ["all"]
        if self.groups is not None:
            names = ["{" + ", ".join(map(str, g)) + "}" for g in self.groups]
        else:
            names = _interval_names(self.x_boundaries)
        return [*names, "missing"] if self.missing_part is not None else names

    def interval_names(self) -> list[str]:
        """Return a readable name of every target interval: ``low``, ``medium to high`` where the target has labels."""
        if self.y_labels is None:
            return _interval_names(self.y_boundaries)
        cuts = [0, *np.ceil(self.y_boundaries).astype(int), len(self.y_labels)]
        spans = [self.y_labels[a:b] for a, b in pairwise(cuts)]
        return [s[0] if len(s) == 1 else f"{s[0]} to {s[-1]}" for s in spans]

    def to_frame(self) -> pd.DataFrame:
        """Return the counts as a data frame with named parts and intervals."""
        return pd.DataFrame(
            self.counts,
            index=pd.Index(self.part_names(), name=self.x_name),
            columns=pd.Index(self.interval_names(), name=self.y_name),
        )

    def plot(self, ax: "Axes | None" = None, **kwargs: Any) -> "Axes":
        """Draw the scatter of the data with the grid; shades are the conditional rank density."""
        from pmordinal.modl.plots.plot_data_with_grid import plot_data_with_grid

        return plot_data_with_grid(self, ax=ax, **kwargs)

    def plot_cdf(self, ax: "Axes | None" = None, **kwargs: Any) -> "Axes":
        """Draw the conditional cdf of the target rank for every part of the predictor."""
        from pmordinal.modl.plots.plot_rank_cdf import plot_rank_cdf

        return plot_rank_cdf(self, ax=ax, **kwargs)

    def __repr__(self) -> str:
        """Return sizes, cost, level and the table of counts."""
        head = (
            f"Grid {self.x_name} → {self.y_name} ({self.kind}): N = {self.n}, I × J = {self.I} × {self.J}, "
            f"cost {self.cost:.2f} (null {self.null_cost:.2f}), level {self.level:.4f}"
        )
        if self.is_null:
            return head + "\n(the null model: no information found)"
        table = self.to_frame()
        table.index = pd.Index([_shorten(str(v)) for v in table.index], name=self.x_name)
        return head + "\n" + table.to_string(max_rows=30, max_cols=12)


def _shorten(text: str, width: int = 48) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _interval_names(boundaries: np.ndarray) -> list[str]:
    """Return names such as ``[3.55, 4.25)`` for the intervals between boundaries."""
    if len(boundaries) == 0:
        return ["all"]
    text = [f"{b:.6g}" for b in boundaries]
    middle = [f"[{a}, {b})" for a, b in pairwise(text)]
    return [f"(-inf, {text[0]})", *middle, f"[{text[-1]}, inf)"]
