"""One partition of the target for all predictors, as [HB2007, section 5.3] suggests for naive Bayes.

The partition and the parts of the predictors minimise the sum of the costs of all grids. The cuts of the predictors'
own grids are merged greedily, and the parts are found again for what is left, in turn, until nothing gets cheaper.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import gammaln

from pmordinal.modl.encode import EncodedColumn
from pmordinal.modl.partition.cells import Cells
from pmordinal.modl.partition.criterion import log_binomial
from pmordinal.modl.partition.fit_grid import to_grid
from pmordinal.modl.partition.grid import Grid
from pmordinal.modl.partition.search import Partition, Search, null_partition


def with_common_target(
    grids: Mapping[str, Grid], columns: Mapping[str, EncodedColumn], target: EncodedColumn
) -> dict[str, Grid]:
    """Return grids with one partition of the target; predictors that say nothing by it get the null model.

    Parameters
    ----------
    grids : dict of str to Grid
        The predictors' own grids.
    columns : dict of str to EncodedColumn
    target : EncodedColumn

    Returns
    -------
    dict of str to Grid
    """
    useful = {name: grid for name, grid in grids.items() if not grid.is_null}
    if not useful:
        return dict(grids)
    last = np.cumsum(np.bincount(target.code))
    own = [
        np.searchsorted(last, np.rint(g.y_ranks * g.n), side="left") + 1 for g in useful.values()
    ]
    cuts = np.concatenate(([0], np.unique(np.concatenate(own)), [last.size]))
    searches, labels = {}, {}
    for name, grid in useful.items():
        column = columns[name]
        cells = Cells.from_codes(column.code, target.code, categorical=column.categorical)
        searches[name] = Search(cells)
        labels[name] = grid.part_of(column.values)
    best = np.inf
    while True:
        tables = [searches[k].evaluate(labels[k], cuts).counts for k in useful]
        cuts = cuts[_kept(tables)]
        labels = {k: searches[k].solve_x(cuts, "improve", labels[k]) for k in useful}
        found = {k: searches[k].evaluate(labels[k], cuts) for k in useful}
        total = sum(partition.cost for partition in found.values())
        if total > best - sum(partition.tolerance() for partition in found.values()):
            break
        best, cheapest = total, found
    return {name: _grid(grid, searches, cheapest, columns, target) for name, grid in grids.items()}


def _grid(
    grid: Grid,
    searches: Mapping[str, Search],
    found: Mapping[str, Partition],
    columns: Mapping[str, EncodedColumn],
    target: EncodedColumn,
) -> Grid:
    name = grid.x_name
    if name not in found:
        return grid
    cells, partition = searches[name].cells, found[name]
    null = null_partition(cells)
    cheaper = partition if partition.cost < null.cost else null
    return to_grid(cells, cheaper, columns[name], target, name, grid.y_name)


def _kept(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Return the places of the cuts that are left when intervals are merged to the least sum of costs.

    Neighbours are merged one by one, those first that save most, until two are left; the cheapest of these partitions
    counts. The first and the last cut, the ends, are always kept.
    """
    rows = [table.sum(axis=1) for table in tables]
    counts = np.vstack(tables).astype(float)
    n = counts[: len(tables[0])].sum(axis=0)  # of each interval: the same for all predictors
    kept = np.arange(n.size + 1)
    best, total, cheapest = 0.0, 0.0, kept
    while n.size > 2:
        J = n.size
        prior = sum(
            (log_binomial(r + J - 2, J - 2) - log_binomial(r + J - 1, J - 1)).sum() for r in rows
        )
        cells = _merging(counts).sum(axis=0)
        gain = len(tables) * _merging(n[None])[0] - cells
        j = int(np.argmin(gain))
        total += prior + gain[j]
        counts[:, j] += counts[:, j + 1]
        n[j] += n[j + 1]
        counts, n, kept = np.delete(counts, j + 1, 1), np.delete(n, j + 1), np.delete(kept, j + 1)
        if total < best:
            best, cheapest = total, kept
    return cheapest


def _merging(counts: np.ndarray) -> np.ndarray:
    """Return log (a + b)! − log a! − log b! for neighbouring columns."""
    a, b = counts[:, :-1], counts[:, 1:]
    return gammaln(a + b + 1.0) - gammaln(a + 1.0) - gammaln(b + 1.0)
