"""`sample_grids`: draws from the posterior over grids, p(M | data) ∝ exp(−c(M)), as a DataTree."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pmordinal import checks
from pmordinal.data.rows import check_paired
from pmordinal.modl.encode import (
    EncodedColumn,
    as_series,
    encode_predictor,
    encode_target,
    midpoints,
    observed,
)
from pmordinal.modl.interrupt import BUDGET, check
from pmordinal.modl.parallel import run_tasks
from pmordinal.modl.partition.axis import log_bell_table
from pmordinal.modl.partition.cells import Cells
from pmordinal.modl.partition.chain import MAX_PARTS, grid_cost, run_chain
from pmordinal.modl.partition.criterion import log_binomial, size_prior
from pmordinal.modl.partition.log_tables import log_tables
from pmordinal.modl.partition.search import find_partition
from pmordinal.words import guessing

if TYPE_CHECKING:
    import xarray as xr

MAX_LABELS = 5000  # of a categorical predictor: the table of pairs takes 200 MB for each chain
TIE = 1e-9  # nats: far below what is shown, far above rounding


class Chain:
    """The state of one chain."""

    def __init__(
        self, cells: Cells, x_label: np.ndarray, y_cuts: np.ndarray, seed: np.random.SeedSequence
    ) -> None:
        self.cells = cells
        self.lf, _ = log_tables(2 * cells.n + 2)
        self.missing = int(cells.n_missing > 0)
        self.categorical = cells.n_categories is not None
        parts = np.arange(MAX_PARTS + 3)
        bell = log_bell_table(cells)
        if bell is None:
            self.x_prior = np.append(0.0, log_binomial(cells.n + parts[1:] - 1, parts[1:] - 1))
        else:
            self.x_prior = np.append(bell, np.full(MAX_PARTS + 3, np.inf))
        n_x, n_y = int(x_label.max(initial=0)) + 1, len(y_cuts) - 1
        self.state = np.array([n_x, n_y])
        self.x_label = np.append(x_label, n_x)
        self.x_cuts = np.zeros(MAX_PARTS + 2, dtype=np.int64)
        if not self.categorical:
            cuts = np.flatnonzero(np.diff(x_label)) + 1
            self.x_cuts[: n_x + 1] = np.concatenate(([0], cuts, [len(x_label)]))
        self.y_cuts = np.zeros(MAX_PARTS + 2, dtype=np.int64)
        self.y_cuts[: n_y + 1] = y_cuts
        self.y_label = np.repeat(np.arange(n_y), np.diff(y_cuts))
        rows = cells.y
        self.cost = grid_cost(
            rows.ptr, rows.col, rows.cnt, self.x_label, n_x + self.missing, self.y_label, n_y,
            self.x_prior, self.lf,
        )  # fmt: skip
        self.constant = size_prior(cells.n, cells.n_categories)
        self.tally = np.zeros((2, 5), dtype=np.int64)
        self.rng = np.random.default_rng(seed)

    def advance(self, steps: int) -> None:
        """Run `steps` steps."""
        rows = self.cells.y
        piece = 1 + BUDGET // (4 * (len(rows.col) + len(self.x_label) + len(self.y_label)))
        for done in range(0, steps, piece):
            check()
            self.cost = run_chain(
                rows.ptr, rows.col, rows.cnt, self.x_cuts, self.x_label, self.y_cuts, self.y_label,
                self.state, self.cost, self.missing, self.categorical, self.x_prior,
                self.rng.random((min(piece, steps - done), 6)), self.tally, self.lf,
            )  # fmt: skip

    def log_scores(self) -> np.ndarray:
        """Return log p(rank of n | the other instances, this grid) for every instance.

        N_ij / (N_i + J − 1) / N_.j is the conditional of exp(−c(M)) for one instance given the
        others, so that importance sampling over grids (``az.loo``) leaves an instance out exactly.
        """
        i = self.x_label[self.cells.x_code]  # code −1, missing, is the last label
        j = self.y_label[self.cells.y_code]
        n_x, n_y = self.state[0] + self.missing, self.state[1]
        counts = np.bincount(i * n_y + j, minlength=n_x * n_y).reshape(n_x, n_y)
        rows, columns = counts.sum(axis=1), counts.sum(axis=0)
        return np.log(counts[i, j] * self.cells.n / ((rows[i] + n_y - 1) * columns[j]))


def _start(cells: Cells, which: int, seed: np.random.SeedSequence) -> Chain:
    """Return a chain that starts at the best grid or, for every other chain, far from it."""
    best = find_partition(cells, 10, np.random.default_rng(seed))
    x_label, y_cuts = best.x_label, best.y_cuts
    too_fine = max(x_label.max(initial=0) + 1, len(y_cuts) - 1) > MAX_PARTS
    if (which % 2 == 1 and not cells.n_categories) or too_fine:
        x_label, y_cuts = np.zeros_like(x_label), np.array([0, cells.y.n_values])
    return Chain(cells, x_label.copy(), y_cuts, seed)


def _run(
    cells: Cells, which: int, seed: np.random.SeedSequence, draws: int, tune: int, thin: int,
    pointwise: bool,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Run one chain and return its draws."""
    chain = _start(cells, which, seed)
    chain.advance(tune)
    chain.tally[:] = 0
    out: dict[str, np.ndarray] = {
        "I": np.empty(draws, dtype=np.int64),
        "J": np.empty(draws, dtype=np.int64),
        "cost": np.empty(draws),
        "x_part": np.empty((draws, cells.x.n_values), dtype=np.uint8),
        "y_part": np.empty((draws, cells.y.n_values), dtype=np.uint8),
        "log_score": np.empty((draws, cells.n if pointwise else 0)),
    }
    for d in range(draws):
        chain.advance(thin)
        out["I"][d] = chain.state[0] + chain.missing
        out["J"][d] = chain.state[1]
        out["cost"][d] = chain.cost + chain.constant
        out["x_part"][d] = chain.x_label[:-1]
        out["y_part"][d] = chain.y_label
        if pointwise:
            out["log_score"][d] = chain.log_scores()
    out["acceptance"] = chain.tally[0] / np.maximum(chain.tally[1], 1)
    return out


@guessing
def sample_grids(
    x: Any,
    y: Any,
    *,
    draws: int = 1000,
    chains: int = 4,
    tune: int = 20_000,
    thin: int = 50,
    seed: int | None = 0,
    categorical: bool | None = None,
    pointwise: bool = True,
    n_jobs: int | None = -1,
    progressbar: bool = True,
    random_seed: int | None = None,
) -> "xr.DataTree":
    """Return draws from the posterior over grids, p(M | data) ∝ exp(−c(M)).

    Parameters
    ----------
    x, y : array-like, shape (n,)
        Predictor and target, as for `fit_grid`.
    draws, chains : int, default 1000 and 4
        Number of draws kept. Every other chain of a numeric predictor starts at the null model.
    tune, thin : int, default 20000 and 50
        Steps before the first draw, and for each draw.
    seed, random_seed : int or None, default 0
        Seed.
    categorical : bool, optional
        Whether to group `x` as labels; found from its type by default.
    pointwise : bool, default True
        Whether to keep the log score of every instance, which ``az.loo`` needs.
    n_jobs : int or None, default -1
        Parallel chains, as in joblib.
    progressbar : bool, default True
        Whether to show progress.

    Returns
    -------
    xarray.DataTree
        Draws of the completed chains: one that fails is left out with a warning, and Ctrl-C keeps those
        that are done. Groups are posterior: I, J, cost; log_likelihood: y; observed_data;
        sample_stats: acceptance by kind of move; partitions: part of every distinct value in every
        draw; boundaries: probability of a cut at each boundary (of a common group for each pair of
        labels).

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(60.0)
    >>> tree = sample_grids(x, x // 30, draws=100, chains=2, progressbar=False)
    >>> tree.posterior["I"].median().item()
    2.0
    """
    seed = checks.one_seed(seed, random_seed)
    draws = checks.integer("draws", draws, minimum=1)
    chains = checks.integer("chains", chains, minimum=1)
    thin = checks.integer("thin", thin, minimum=1)
    tune = checks.integer("tune", tune, minimum=0)
    seeds = checks.seeds("seed", seed, chains)
    x_series = as_series(x, "x")
    values, _ = encode_target(y)
    if len(values) != len(x_series):
        raise ValueError(
            f"x has {len(x_series)} rows and y has {len(values)}: pass as many of both"
        )
    check_paired(x, y, "x")
    seen = observed(values)
    column = encode_predictor(x_series[seen], categorical=categorical)
    target = encode_predictor(values[seen])
    if len(target.values) < 2 or len(column.values) < 2:
        raise ValueError(
            "x and y need two distinct values each: the null model is the only grid otherwise"
        )
    if column.categorical and len(column.values) > MAX_LABELS:
        raise ValueError(
            f"x has {len(column.values)} labels, and the table of their common groups one number for each pair: "
            f"at most {MAX_LABELS} labels are possible; join the rare ones first, or use fit_grid"
        )
    cells = Cells.from_codes(column.code, target.code, categorical=column.categorical)
    found = run_tasks(
        _run,
        {str(k): (cells, k, s, draws, tune, thin, pointwise) for k, s in enumerate(seeds)},
        what="chain over MODL grids",
        n_jobs=n_jobs,
        progressbar=progressbar,
        partial=True,
    )
    tree = _to_tree(cells, column, target, list(found.values()), pointwise)
    if (number := checks.seed_number(seed)) is not None:
        tree.attrs["seed"] = number
    return tree


def _share_of_common_groups(part: np.ndarray) -> np.ndarray:
    """Return how often each pair of values shares a group, by chain, from parts (chain, draw, value)."""
    chains, draws, n_values = part.shape
    same = np.zeros((chains, n_values, n_values))
    for c in range(chains):
        for d in range(draws):  # one draw at a time: all at once would take draws × values² bytes
            same[c] += part[c, d][:, None] == part[c, d]
    return same / draws


def _without_ties(log_score: np.ndarray) -> np.ndarray:
    """Return log scores whose lowest value is not shared by several draws of a row.

    ``az.loo`` fits a Pareto tail to the draws with the lowest scores, and stops where these are equal, as they
    are if most draws are one grid. The lowest scores of each row are lowered by up to `TIE` nats, in no order; a
    single lowest one, too.
    """
    lowest = log_score == log_score.min(axis=(0, 1))
    step = np.random.default_rng(0).random(log_score.shape[:2])[..., None]
    return np.where(lowest, log_score - TIE * step, log_score)


def _to_tree(
    cells: Cells, column: EncodedColumn, target: EncodedColumn, found: list[dict[str, np.ndarray]],
    pointwise: bool,
) -> "xr.DataTree":  # fmt: skip
    import arviz as az
    import xarray as xr

    stack = {k: np.stack([r[k] for r in found]) for k in found[0]}
    y = target.values[target.code]
    groups = {
        "posterior": {k: stack[k] for k in ("I", "J", "cost")},
        "observed_data": {"y": y},
    }
    if pointwise:
        groups["log_likelihood"] = {"y": _without_ties(stack["log_score"])}
    tree = az.from_dict(groups, dims={"y": ["row"]}, coords={"row": np.arange(cells.n)})
    x_values = column.values.astype(str) if column.categorical else column.values
    tree["sample_stats"] = xr.DataTree(
        xr.Dataset(
            {"acceptance": (("chain", "move"), stack["acceptance"])},
            coords={"move": ["birth", "death", "shift", "short shift", "joint"]},
        )
    )
    tree["partitions"] = xr.DataTree(
        xr.Dataset(
            {
                "x_part": (("chain", "draw", "x_value"), stack["x_part"]),
                "y_part": (("chain", "draw", "y_value"), stack["y_part"]),
                "x_code": (("row",), column.code),
                "y_code": (("row",), target.code),
            },
            coords={"x_value": x_values, "y_value": target.values},
            attrs={"categorical": int(column.categorical), "n_missing": cells.n_missing},
        )
    )
    cut_y = (np.diff(stack["y_part"].astype(np.int16), axis=-1) > 0).mean(axis=1)
    boundary: dict[str, Any] = {"y_density": (("chain", "y_boundary"), cut_y)}
    coords: dict[str, Any] = {"y_boundary": midpoints(target.values)}
    if column.categorical:
        boundary["x_same_group"] = (
            ("chain", "x_value", "x_value_other"),
            _share_of_common_groups(stack["x_part"]),
        )
        coords.update(x_value=x_values, x_value_other=x_values)
    else:
        cut_x = (np.diff(stack["x_part"].astype(np.int16), axis=-1) > 0).mean(axis=1)
        boundary["x_density"] = (("chain", "x_boundary"), cut_x)
        coords["x_boundary"] = midpoints(column.values)
    tree["boundaries"] = xr.DataTree(xr.Dataset(boundary, coords=coords))
    return tree
