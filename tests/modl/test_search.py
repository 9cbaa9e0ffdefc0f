"""The optimiser against exhaustive search, against exact dynamic programs, and on tables of numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmordinal.modl import fit_grid
from pmordinal.modl.partition import axis, criterion
from pmordinal.modl.partition import search as modl_search
from pmordinal.modl.partition.cells import Cells
from pmordinal.modl.partition.log_tables import log_tables
from pmordinal.modl.partition.merge_both_axes import merge_both_axes
from pmordinal.modl.partition.search import Search, find_partition, find_proper_partition

from .oracles import (
    best_cuts_cost,
    best_grouping,
    blocks,
    every_grid_cost,
    heteroscedastic,
    lf,
)


def codes(values):
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def make_cells(x, y, **options):
    return Cells.from_codes(codes(x), codes(y), **options)


def small_case(case, rng, largest):
    """Small samples with signal; two of three have ties."""
    n = int(rng.integers(5, largest + 1))
    if case % 3 == 0:
        x = rng.random(n)
        return x, np.where(rng.random(n) < 0.9, x > 0.5, rng.random(n) > 0.5) + rng.random(n)
    k = int(rng.integers(3, largest + 1))
    x = rng.integers(0, k, n)
    signal = (x > k / 2) * 5 + rng.integers(0, 3, n)
    return x, np.where(rng.random(n) < 0.8, signal, rng.integers(0, largest, n))


def check_against_brute_force(n_cases, largest, seed):
    rng = np.random.default_rng(seed)
    checked = 0
    for case in range(n_cases):
        x, y = small_case(case, rng, largest)
        total, x_parts, y_parts = every_grid_cost(x, y)
        grid = fit_grid(x, y)
        assert grid.cost == pytest.approx(total.min(), abs=1e-9)
        proper = find_proper_partition(make_cells(x, y), 10, np.random.default_rng(0))
        if proper is None:
            continue
        keep = np.ix_([len(p) > 2 for p in x_parts], [len(p) > 2 for p in y_parts])
        # also where the null model wins: the best grid with two parts on both axes
        assert proper.cost == pytest.approx(total[keep].min(), abs=1e-9)
        assert proper.cost == pytest.approx(criterion.cost(proper.counts), abs=1e-9)
        checked += 1
    assert checked > 0.9 * n_cases


def test_optimum_equals_brute_force():
    check_against_brute_force(60, 9, seed=5)


@pytest.mark.slow
def test_optimum_equals_brute_force_in_200_cases_up_to_12():
    check_against_brute_force(200, 12, seed=6)


def test_categorical_optimum_equals_brute_force():
    rng = np.random.default_rng(1)
    found_something = 0
    for _ in range(12):
        n, v = int(rng.integers(25, 60)), int(rng.integers(2, 7))
        x = rng.integers(0, v, n)
        y = np.where(rng.random(n) < 0.7, x % 3 * 2 + rng.integers(0, 2, n), rng.integers(0, 6, n))
        grid = fit_grid(x, y, categorical=True)
        assert grid.cost == pytest.approx(best_grouping(x, y), abs=1e-9)
        found_something += not grid.is_null
    assert found_something >= 8


@pytest.mark.slow
def test_categorical_optimum_equals_brute_force_with_seven_values():
    rng = np.random.default_rng(2)
    for _ in range(4):
        n = 80
        x = rng.integers(0, 7, n)
        y = np.where(rng.random(n) < 0.6, x % 3 * 2 + rng.integers(0, 2, n), rng.integers(0, 6, n))
        assert fit_grid(x, y, categorical=True).cost == pytest.approx(best_grouping(x, y), abs=1e-9)


def axis_cases(n_cases, n, rng):
    """Both 1-D problems of random target partitions of four kinds of pairs."""
    for case in range(n_cases):
        x, y = heteroscedastic(n, rng)
        if case % 4 == 1:
            x, y = blocks(n, 0.2, rng)
        elif case % 4 == 2:
            x, y = np.round(x, 1), np.round(y, 1)
        elif case % 4 == 3:
            y = x + rng.random(n)
        search = Search(make_cells(x, y))
        m = search.cells.y.n_values
        j = min(int(2 * (np.sqrt(n) / 2) ** rng.random()), m)
        inner = np.sort(rng.choice(m - 1, j - 1, replace=False)) + 1
        yield search, np.concatenate(([0], inner, [m]))


def test_penalised_dynamic_program_is_exact():
    rng = np.random.default_rng(3)
    for search, cuts in axis_cases(16, 120, rng):
        cells = search.cells
        problem = axis.predictor_problem(cells, cuts)
        table = problem.counts(np.arange(problem.n_values))
        penalty = axis.interval_penalty(cells, problem.n_other, problem.n_values)
        label = axis.labels_of(problem.exact(penalty))
        counts = problem.counts(label)
        mine = lf(counts.sum(1) + problem.extra).sum() - lf(counts).sum() + penalty[len(counts)]
        oracle = best_cuts_cost(table, problem.extra, penalty, 2)
        assert mine == pytest.approx(oracle, abs=1e-8)

        problem = axis.target_problem(cells, label)
        table = problem.counts(np.arange(problem.n_values))
        penalty = axis.target_penalty(counts.sum(1), problem.n_values, search.lf)
        found = problem.counts(axis.labels_of(problem.exact(penalty)))
        mine = lf(found.sum(1)).sum() - lf(found).sum() + penalty[len(found)]
        assert mine == pytest.approx(best_cuts_cost(table, 0, penalty, 2), abs=1e-8)


def test_two_sided_merge_takes_the_cheapest_merge_of_either_axis():
    rng = np.random.default_rng(12)
    for _ in range(10):
        a, b = rng.integers(3, 8, size=2)
        counts = rng.integers(0, 3, (a, b)) + 8 * np.eye(a, b, dtype=int) + 1
        side = max(a, b)
        table = np.zeros((2, side, side), dtype=np.int64)
        table[0, :a, :b] = counts
        table[1] = table[0].T
        lines = np.array([[a, b], [0, 0]])
        cuts = np.zeros((2, 2, side + 1), dtype=np.int64)
        merge_both_axes(table, lines, cuts, log_tables(2000)[0])
        rows, cols = cuts[1, 0, : lines[1, 0]], cuts[1, 1, : lines[1, 1]]
        found = np.add.reduceat(np.add.reduceat(counts, rows, axis=0), cols, axis=1)

        now, best = counts, criterion.cost(counts)
        while now.shape != (2, 2):
            tries = [
                np.add.reduceat(now, [k for k in range(now.shape[axis]) if k != i + 1], axis=axis)
                for axis in (0, 1)
                if now.shape[axis] > 2
                for i in range(now.shape[axis] - 1)
            ]
            now = min(tries, key=criterion.cost)
            best = min(best, criterion.cost(now))
        assert criterion.cost(found) == pytest.approx(best, abs=1e-9)


def test_penalties_are_concave():
    cells = make_cells(np.arange(80), np.arange(80))
    search = Search(cells)
    sizes = np.array([10, 50, 20])
    for penalty in (
        axis.interval_penalty(cells, 5, 80)[1:],
        axis.target_penalty(sizes, 80, search.lf)[1:],
    ):
        assert (np.diff(penalty, 2) < 1e-9).all()


def test_greedy_path_with_moves_is_close_to_exact():
    rng = np.random.default_rng(4)
    gaps = []
    for search, cuts in axis_cases(40, 300, rng):
        greedy = search.evaluate(search.solve_x(cuts, "greedy"), cuts)
        exact = search.evaluate(search.solve_x(cuts, "exact"), cuts)
        gaps.append(greedy.cost - exact.cost)
    assert min(gaps) > -1e-8
    # measured: 94 % equal, mean gap 0.05 nats over 600 cases; this is 40 cases
    assert np.mean(np.array(gaps) < 1e-7) >= 0.8
    assert np.mean(gaps) <= 0.3


def test_result_is_exact_given_the_other_axis_at_300():
    rng = np.random.default_rng(7)
    gaps = []
    for search, _ in axis_cases(12, 300, rng):
        best = find_proper_partition(search.cells, 10, np.random.default_rng(0))
        x_label = search.solve_x(best.y_cuts, "exact")
        gaps.append(best.cost - search.evaluate(x_label, best.y_cuts).cost)
        gaps.append(
            best.cost - search.evaluate(best.x_label, search.solve_y(best.x_label, "exact")).cost
        )
    assert np.mean(np.array(gaps) < 1e-7) >= 0.99
    assert np.mean(gaps) <= 0.02


def test_iris_optimum():
    load_iris = pytest.importorskip("sklearn.datasets").load_iris
    data = load_iris()["data"]
    grid = fit_grid(data[:, 2], data[:, 0])
    assert (grid.I, grid.J) == (4, 4)
    assert grid.cost == pytest.approx(545.98, abs=5e-3)
    assert grid.level == pytest.approx(0.1123, abs=5e-5)
    assert grid.x_boundaries == pytest.approx([3.55, 4.25, 5.75])
    assert grid.y_boundaries == pytest.approx([5.45, 5.95, 7.05])


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_ranks_only_and_reflection(seed):
    """Increasing maps, row order and reversal of either axis leave the best cost alone."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 11))
    x, y = rng.integers(0, 6, n).astype(float), rng.integers(0, 6, n).astype(float)
    cost = fit_grid(x, y).cost
    order = rng.permutation(n)
    assert fit_grid(np.exp(x), y**3 - 7).cost == pytest.approx(cost, abs=1e-9)
    assert fit_grid(x[order], y[order]).cost == pytest.approx(cost, abs=1e-9)
    assert fit_grid(-x, y).cost == pytest.approx(cost, abs=1e-9)
    assert fit_grid(x, -y).cost == pytest.approx(cost, abs=1e-9)


def test_coarse_search_with_refinement_reaches_the_fine_one(monkeypatch):
    x, y = heteroscedastic(3000, np.random.default_rng(8))
    cells = make_cells(x, y)
    coarse = find_partition(cells, 10, np.random.default_rng(0))
    assert coarse.cost == pytest.approx(criterion.cost(coarse.counts), rel=1e-12)
    monkeypatch.setattr(modl_search, "COARSE", 4000)
    monkeypatch.setattr(modl_search, "EXACT", 0)
    fine = find_partition(cells, 3, np.random.default_rng(0))
    # two local searches of a 20,000-nat cost: agreement within a few nats
    assert coarse.cost <= fine.cost + 5.0


def test_more_starts_never_hurt_much_and_seed_repeats():
    x, y = heteroscedastic(400, np.random.default_rng(9))
    one = fit_grid(x, y, seed=3)
    assert fit_grid(x, y, seed=3).cost == one.cost
    assert fit_grid(x, y, starts=40, seed=3).cost <= one.cost + 1e-9


def test_noise_is_the_null_model_and_blocks_are_found():
    rng = np.random.default_rng(10)
    false = sum(not fit_grid(rng.random(64), rng.random(64)).is_null for _ in range(100))
    assert false <= 4  # expected 0.7 of 100 at most; 4 has probability below 1e-3
    for noise, n in ((0.0, 32), (0.4, 192), (0.6, 400)):
        grid = fit_grid(*blocks(n, noise, rng))
        assert (grid.I, grid.J) == (2, 2)


@pytest.mark.slow
def test_detection_rates():
    """The rates of MODL.md; bounds leave three standard errors."""
    rng = np.random.default_rng(11)

    def rate(make, n_sets):
        return np.mean([not fit_grid(*make()).is_null for _ in range(n_sets)])

    def allowed(p, n_sets):
        return p + 3 * np.sqrt(p * (1 - p) / n_sets)

    assert rate(lambda: (rng.random(32), rng.random(32)), 2000) <= allowed(0.010, 2000)
    assert rate(lambda: (rng.random(128), rng.random(128)), 2000) <= allowed(0.0035, 2000)
    assert rate(lambda: blocks(16, 0.0, rng), 300) >= 0.96 - 3 * np.sqrt(0.96 * 0.04 / 300)
    assert rate(lambda: blocks(32, 0.0, rng), 200) == 1.0
    assert rate(lambda: blocks(128, 0.4, rng), 100) >= 0.9
    assert rate(lambda: blocks(256, 0.6, rng), 100) >= 0.9
    assert rate(lambda: blocks(1024, 0.8, rng), 60) >= 0.75
    assert rate(lambda: blocks(2048, 0.8, rng), 60) == 1.0
