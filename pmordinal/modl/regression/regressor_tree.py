"""Results of a rank regressor as an `xarray.DataTree` that ArviZ can read."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pmordinal import checks
from pmordinal.modl.regression.density import RankDensity
from pmordinal.modl.regression.projection import ValueDistribution, ValueScale

if TYPE_CHECKING:
    import xarray as xr


def _draw_tables(
    density: RankDensity, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return one draw of the cell probabilities and the log density tables it implies."""
    middle = 0.5 * (density.segments.edges[:-1] + density.segments.edges[1:])
    cells, tables = {}, {}
    for name, grid in density.grids.items():
        gamma = rng.standard_gamma(grid.counts + density.smoothing)
        theta = gamma / gamma.sum(axis=1, keepdims=True)
        interval = np.searchsorted(grid.y_ranks, middle, side="right")
        table = np.log(theta * (grid.n / grid.counts.sum(axis=0)))[:, interval]
        cells[name] = theta
        tables[name] = np.vstack((table, np.zeros(len(middle))))
    return cells, tables


def regressor_tree(
    density: RankDensity,
    scale: ValueScale,
    parts: Mapping[str, np.ndarray],
    y: np.ndarray,
    *,
    draws: int,
    chains: int,
    seed: int | None,
    labels: list[Any] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> "xr.DataTree":
    """Return posterior draws of the cell probabilities with predictions and pointwise log scores.

    Given the grids, the cell probabilities of a part have a Dirichlet posterior with parameters
    N_ij + smoothing. For one predictor the draws are the exact posterior of the model; for products of predictors
    they are those of the tables that enter the product.

    Returns
    -------
    xarray.DataTree
        posterior: one variable a predictor, dims (chain, draw, part, interval);
        posterior_predictive: y; log_likelihood: y, the log density of the normalised rank;
        observed_data; constant_data: weights and levels of the predictors in use.
    """
    import arviz as az

    if not density.grids:
        raise ValueError(
            "no predictor is informative: the rank density is uniform, every log score is 0 and there is "
            "nothing to draw"
        )
    rng = checks.generator("seed", seed)
    n = len(y)
    edges = density.segments.edges
    segment = np.searchsorted(scale.boundaries_at(edges[1:-1]), y, side="right")
    shape = (chains, draws)
    log_score = np.empty((*shape, n))
    simulated = np.empty((*shape, n))
    cells = {k: np.empty((*shape, *g.counts.shape)) for k, g in density.grids.items()}
    for c in range(chains):
        for d in range(draws):
            theta, tables = _draw_tables(density, rng)
            for k, value in theta.items():
                cells[k][c, d] = value
            log_density = density.log_density(parts, n, tables)
            log_score[c, d] = log_density[np.arange(n), segment]
            cdf = ValueDistribution(scale, edges, np.exp(log_density)).cdf_at_edges
            simulated[c, d] = _simulate(cdf, edges, scale, rng)
    dims = {k: [f"{k}_part", f"{k}_interval"] for k in cells}
    coords: dict[str, Any] = {"row": np.arange(n), "predictor": list(density.grids)}
    for k, g in density.grids.items():
        coords[f"{k}_part"] = g.part_names()
        coords[f"{k}_interval"] = g.interval_names()
    dims.update(y=["row"], weight=["predictor"], level=["predictor"])
    constant = {
        "weight": np.array([density.weights[k] for k in density.grids]),
        "level": np.array([g.level for g in density.grids.values()]),
    }
    if labels is not None:
        coords["y_label"] = list(labels)
        constant["y_code"] = np.arange(len(labels))
        dims["y_code"] = ["y_label"]
    return az.from_dict(
        {
            "posterior": cells,
            "posterior_predictive": {"y": simulated},
            "log_likelihood": {"y": log_score},
            "observed_data": {"y": y},
            "constant_data": constant,
        },
        coords=coords,
        dims=dims,
        attrs={"posterior": dict(attrs)} if attrs else None,
    )


def _simulate(
    cdf: np.ndarray, edges: np.ndarray, scale: ValueScale, rng: np.random.Generator
) -> np.ndarray:
    """Return one draw of the target for each row: a training value at a rank drawn from `cdf`."""
    u = rng.random(len(cdf))
    segment = (cdf[:, 1:-1] <= u[:, None]).sum(axis=1)
    at = np.arange(len(cdf))
    low, high = cdf[at, segment], cdf[at, segment + 1]
    rank = edges[segment] + (edges[segment + 1] - edges[segment]) * (u - low) / (high - low)
    return scale.values[np.searchsorted(scale.ranks[1:-1], rank, side="right")]
