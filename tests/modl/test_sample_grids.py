"""The chain over grids against the enumeration of all of them, and predictions averaged over it."""

import warnings

import numpy as np
import pytest

from pmordinal.modl import averaged_log_score, averaged_rank_cdf, fit_grid, sample_grids
from pmordinal.modl.partition import criterion
from pmordinal.modl.partition.cells import Cells
from pmordinal.modl.partition.sample_grids import Chain

from .oracles import bell_sum, every_grid_cost, heteroscedastic, lf, set_partitions

az = pytest.importorskip("arviz")


def total_variation(p, q):
    return 0.5 * np.abs(p - q).sum()


def test_chain_draws_grids_in_proportion_to_exp_minus_cost():
    x = np.array([1, 2, 2, 4, 5, 6, 7.0])
    y = np.array([1, 2, 3, 3, 11, 12, 13.0])
    cost, x_parts, y_parts = every_grid_cost(x, y)
    exact = np.exp(-(cost - cost.min()))
    exact /= exact.sum()
    tree = sample_grids(x, y, draws=8000, chains=2, thin=20, tune=500, progressbar=False)
    found = np.zeros_like(exact)
    x_index, y_index = ({p: k for k, p in enumerate(parts)} for parts in (x_parts, y_parts))
    parts = tree["partitions"]
    for a, b in zip(
        parts["x_part"].to_numpy().reshape(16000, -1).astype(int),
        parts["y_part"].to_numpy().reshape(16000, -1).astype(int),
        strict=True,
    ):
        cuts = [(0, *(np.flatnonzero(np.diff(v)) + 1).tolist(), len(v)) for v in (a, b)]
        found[x_index[cuts[0]], y_index[cuts[1]]] += 1
    found /= found.sum()
    assert cost.size == 2**5 * 2**5
    # 16,000 nearly independent draws over 1,024 grids: expected distance ≈ Σ √(2 p / π n) / 2 < 0.08
    expected = 0.5 * np.sqrt(2 * exact / np.pi / 16000).sum()
    assert total_variation(exact, found) < 1.6 * expected
    assert total_variation(exact.sum(1), found.sum(1)) < 0.04
    assert tree.posterior["cost"].min() == pytest.approx(cost.min(), abs=1e-8)


def test_categorical_chain_draws_groupings_in_proportion():
    rng = np.random.default_rng(0)
    x = np.repeat(np.arange(4), 5)
    y = np.where(x < 2, 0, 1) + (rng.random(20) < 0.3)
    table = np.zeros((4, 3), dtype=int)
    np.add.at(table, (x, y.astype(int)), 1)
    tree = sample_grids(
        [f"v{k}" for k in x], y, draws=8000, chains=2, thin=20, tune=500, progressbar=False
    )
    exact = {}
    for part in set_partitions(4):
        grouped = np.zeros((part.max() + 1, 3), dtype=int)
        np.add.at(grouped, part, table)
        weight = 0.0
        for cuts in ((0, 3), (0, 1, 3), (0, 2, 3), (0, 1, 2, 3)):
            counts = np.add.reduceat(grouped, cuts[:-1], axis=1)
            i, j = counts.shape
            ni = counts.sum(1)
            c = np.log(bell_sum(4, i)) + (lf(ni + j - 1) - lf(j - 1)).sum() - lf(counts).sum()
            weight += np.exp(-(c + lf(counts.sum(0)).sum()) + 40)
        exact[tuple(part)] = weight
    drawn = tree["partitions"]["x_part"].to_numpy().reshape(-1, 4).astype(int)
    found = dict.fromkeys(exact, 0.0)
    for row in drawn:
        seen = {}
        found[tuple(seen.setdefault(v, len(seen)) for v in row)] += 1 / len(drawn)
    p = np.array(list(exact.values())) / sum(exact.values())
    assert total_variation(p, np.array(list(found.values()))) < 0.03
    same = tree["boundaries"]["x_same_group"]
    np.testing.assert_allclose(same.sel(x_value="v0", x_value_other="v0"), 1.0)


@pytest.fixture(scope="module")
def fitted():
    x, y = heteroscedastic(200, np.random.default_rng(1))
    return x, y, sample_grids(x, y, draws=300, chains=4, progressbar=False)


def test_arviz_reads_the_tree(fitted):
    tree = fitted[2]
    summary = az.summary(tree)
    assert list(summary.index) == ["I", "J", "cost"]
    rhat = az.rhat(tree)
    # Two chains start at the null model.
    assert float(rhat["cost"]) < 1.1 and float(rhat["I"]) < 1.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rows next to a cut have a large k-hat
        loo = az.loo(tree)
        table = az.compare({"grids": tree, "same": tree})
    assert loo.elpd > 20 and len(table) == 2
    assert (tree["sample_stats"]["acceptance"] > 0).all()


def test_loo_where_every_draw_is_the_same_grid():
    """ArviZ cannot fit a tail to draws that are equal; the score is then that of the one grid."""
    x, y = np.repeat(["a", "b"], 60), np.repeat([0, 1], 60)
    tree = sample_grids(x, y, draws=200, chains=2, progressbar=False)
    assert (tree["posterior"]["I"] == 2).all() and (tree["posterior"]["J"] == 2).all()
    loo = az.loo(tree, pointwise=True)
    assert loo.elpd == pytest.approx(120 * np.log(60 * 120 / (61 * 60)), abs=1e-6)
    assert (loo.pareto_k < 0.7).all()


def test_plots_of_arviz_run(fitted):
    plt = pytest.importorskip("matplotlib.pyplot")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = az.plot_trace_dist(fitted[2], var_names=["I", "cost"], backend="matplotlib")
    plt.close("all")
    for kind in ("dist", "trace"):
        assert {name: lines.size for name, lines in drawn.viz[kind].items()} == {"I": 4, "cost": 4}


def test_boundary_densities_count_the_cuts(fitted):
    tree = fitted[2]
    for axis, size in (("x", "I"), ("y", "J")):
        cuts = tree["boundaries"][f"{axis}_density"].sum(f"{axis}_boundary")
        np.testing.assert_allclose(cuts, tree["posterior"][size].mean("draw") - 1)


def test_costs_are_those_of_the_criterion(fitted):
    tree = fitted[2]
    parts = tree["partitions"]
    for chain, draw in ((0, 0), (1, 17), (3, 299)):
        i = parts["x_part"][chain, draw].to_numpy()[parts["x_code"]].astype(int)
        j = parts["y_part"][chain, draw].to_numpy()[parts["y_code"]].astype(int)
        counts = np.zeros((i.max() + 1, j.max() + 1), dtype=int)
        np.add.at(counts, (i, j), 1)
        assert tree["posterior"]["cost"][chain, draw] == pytest.approx(
            criterion.cost(counts), abs=1e-6
        )


def test_pointwise_score_is_the_ratio_of_posteriors():
    """exp(−c) with an instance over exp(−c) without it, priors of I and of its parts aside."""
    x, y = heteroscedastic(60, np.random.default_rng(2))
    cells = Cells.from_codes(np.argsort(np.argsort(x)), np.argsort(np.argsort(y)))
    label = (np.arange(60) >= 25).astype(np.int64)
    chain = Chain(cells, label, np.array([0, 20, 45, 60]), np.random.SeedSequence(0))
    scores = chain.log_scores()
    i, j = label[cells.x_code], chain.y_label[cells.y_code]
    counts = np.zeros((2, 3), dtype=int)
    np.add.at(counts, (i, j), 1)

    def log_p(c):
        return -(
            criterion.distribution_prior(c)
            + criterion.multinomial_likelihood(c)
            + criterion.rank_likelihood(c)
        )

    for n in (0, 13, 59):
        without = counts.copy()
        without[i[n], j[n]] -= 1
        assert scores[n] == pytest.approx(log_p(counts) - log_p(without) + np.log(60), abs=1e-9)


def test_averaged_prediction(fitted):
    _, y, tree = fitted
    cdf = averaged_rank_cdf(tree, [0.3, 1.0, 2.9])
    assert cdf.shape == (3, 101)
    assert (np.diff(cdf, axis=1) >= 0).all() and np.allclose(cdf[:, [0, -1]], [[0, 1]] * 3)
    # the score is the slope of the cdf at the rank of y
    values = np.sort(y)
    at = np.array([40.0, 100.0, 160.0])
    slope = 200 * np.array([
        np.diff(averaged_rank_cdf(tree, [1.0], [(k - 1) / 200, k / 200]))[0, 0] for k in at + 1
    ])  # fmt: skip
    found = averaged_log_score(tree, np.full(3, 1.0), values[at.astype(int)])
    np.testing.assert_allclose(np.exp(found), slope, rtol=1e-9)


def test_averaging_beats_the_single_grid_on_new_data():
    gains = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, y = heteroscedastic(200, rng)
        x_new, y_new = heteroscedastic(2000, rng)
        tree = sample_grids(x, y, draws=200, chains=2, pointwise=False, progressbar=False)
        grid = fit_grid(x, y)
        single = np.log(grid.rank_density()[grid.part_of(x_new), grid.interval_of(y_new)])
        gains.append(averaged_log_score(tree, x_new, y_new).mean() - single.mean())
        assert "log_likelihood" not in tree.children
    assert np.mean(gains) > 0.02


def test_missing_predictors_keep_their_part():
    x, y = heteroscedastic(150, np.random.default_rng(3))
    x[::10] = np.nan
    tree = sample_grids(x, y, draws=50, chains=2, progressbar=False)
    assert (tree["posterior"]["I"] >= 2).all()
    assert np.isfinite(averaged_log_score(tree, [np.nan, 1.0], [0.0, 0.0])).all()


def test_unknown_labels_are_predicted_by_the_ranks_alone():
    rng = np.random.default_rng(4)
    x = rng.choice(["a", "b"], 100)
    y = (x == "a") + rng.random(100)
    tree = sample_grids(x, y, draws=50, chains=2, progressbar=False)
    np.testing.assert_allclose(
        averaged_rank_cdf(tree, ["z"], [0.25, 0.5]), [[0.25, 0.5]], atol=1e-9
    )


def test_pairs_of_labels_are_counted_draw_by_draw():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, 40)
    few = {"draws": 7, "chains": 2, "tune": 0, "progressbar": False}
    tree = sample_grids(x, x % 2 + rng.random(40), categorical=True, **few)
    part = tree["partitions"]["x_part"].to_numpy()
    same = part[..., :, None] == part[..., None, :]
    assert 0 < same.mean() < 1
    found = tree["boundaries"]["x_same_group"]
    np.testing.assert_allclose(found, same.mean(axis=1), rtol=1e-15)


def test_bad_input():
    with pytest.raises(ValueError, match="two distinct values"):
        sample_grids([1, 1], [1, 2])
    with pytest.raises(ValueError, match="draws must be an integer of at least 1"):
        sample_grids([1, 2], [1, 2], draws=0)
    labels = np.arange(5001)
    with pytest.raises(ValueError, match=r"5001 labels.*at most 5000"):
        sample_grids(labels, labels, categorical=True)
    with pytest.raises(ValueError, match="x has 2 rows and y has 3"):
        sample_grids([1, 2], [1, 2, 3])


def test_tree_survives_netcdf(fitted, tmp_path):
    pytest.importorskip("h5netcdf")
    xr = pytest.importorskip("xarray")
    path = tmp_path / "grids.nc"
    fitted[2].to_netcdf(path, engine="h5netcdf")
    back = xr.open_datatree(path, engine="h5netcdf").load()
    np.testing.assert_allclose(averaged_rank_cdf(back, [1.0]), averaged_rank_cdf(fitted[2], [1.0]))
