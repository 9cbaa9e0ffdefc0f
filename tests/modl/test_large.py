"""Large samples: searches end, and costs are those of the counts.

The searches run in processes of their own, which a time limit ends whatever they do.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

from pmordinal.modl import fit_grid
from pmordinal.modl.partition import axis, criterion
from pmordinal.modl.partition.cells import Cells
from pmordinal.modl.partition.improve_cuts import best_cut
from pmordinal.modl.partition.least_gain import least_gain
from pmordinal.modl.partition.log_tables import log_tables
from pmordinal.modl.partition.search import Search


def repeated(n, n_values, rng):
    """Noise on few values: the counts are large and the search is fast."""
    return Cells.from_codes(rng.integers(0, n_values, n), rng.integers(0, n_values, n))


def test_costs_of_moves_are_functions_of_the_counts():
    """So an unchanged partition gains nothing at all: running sums made it gain and the search endless."""
    cells = repeated(1_000_000, 300, np.random.default_rng(0))
    problem = axis.predictor_problem(cells, np.array([0, 100, 200, 300]))
    lf, lg = log_tables(problem.top)
    work = np.zeros((2, problem.n_other), dtype=np.int64)

    def scan(first, last):
        rows = (problem.start, problem.part, problem.count)
        return best_cut(*rows, first, last, *work, problem.extra, lf, lg)

    for first, last in [(0, 300), (10, 290), (7, 150), (100, 102)]:
        _, two, cut = scan(first, last)
        assert first < cut < last
        assert two == scan(first, cut)[0] + scan(cut, last)[0]


def test_a_gain_is_more_than_the_rounding_of_the_cost():
    rng = np.random.default_rng(1)
    search = Search(repeated(1_000_000, 400, rng))
    cuts = np.concatenate(([0], np.sort(rng.choice(np.arange(1, 400), 40, replace=False)), [400]))
    found = search.evaluate(axis.labels_of(cuts), cuts)
    assert abs(found.cost - criterion.cost(found.counts[::-1, ::-1])) < found.tolerance()
    assert 1e-7 < found.tolerance() < 1e-3
    assert search.evaluate(axis.labels_of(cuts[[0, 20, -1]]), cuts[[0, 20, -1]]).tolerance() < 1e-6
    assert least_gain(10, 1e3) == 1e-7 and least_gain(10, 1e3, floor=1e-9) == 1e-9


def test_more_labels_than_pairs_can_be_tried():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 400, 4000)
    grid = fit_grid(x, 3.0 * (x % 3) + rng.normal(size=4000), categorical=True)
    assert not grid.is_null
    assert grid.cost == pytest.approx(criterion.cost(grid.counts, 400), rel=1e-12)
    shares = [np.bincount(np.array(g) % 3, minlength=3).max() / len(g) for g in grid.groups]
    assert min(shares) > 0.9


CHILD = """
import json, sys
import numpy as np
from pmordinal.modl.partition import criterion
from pmordinal.modl import fit_grid
from tests.modl.oracles import heteroscedastic
n, seeds, options = {n}, {seeds}, {options}
for seed in seeds:
    rng = np.random.default_rng(seed)
    {data}
    grid = fit_grid(x, y, **options)
    n_values = len(np.unique(x)) if options else None
    cost = criterion.cost(grid.counts, n_values)
    print(json.dumps([grid.I, grid.J, grid.n, grid.cost, cost, grid.null_cost]), flush=True)
"""
NOISE = "x, y = rng.normal(size=(2, n))"
SIGNAL = "x, y = heteroscedastic(n, rng)"


def fits(n, data, seeds=(0, 1, 3), options=None, limit=400):
    """Return sizes and costs of grids that another process finds within `limit` seconds."""
    code = CHILD.format(n=n, data=data, seeds=seeds, options=options or {})
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=limit
    )
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(found) == len(seeds)
    for i, j, size, cost, from_counts, null in found:
        assert size == n
        assert cost == pytest.approx(from_counts, rel=1e-13)
        assert cost < null if i * j > 1 else cost == null
    return found


@pytest.mark.slow
@pytest.mark.parametrize("n", [300_000, 500_000, 700_000, 1_000_000, 2_000_000])
def test_noise_ends_in_the_null_model(n):
    assert all(i == j == 1 for i, j, *_ in fits(n, NOISE))


@pytest.mark.slow
@pytest.mark.parametrize("n", [300_000, 700_000, 1_000_000, 2_000_000])
def test_signal_is_found(n):
    assert all(i > 30 and j > 20 for i, j, *_ in fits(n, SIGNAL, seeds=(0, 3)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "data"),
    [
        (2_000_000, "x, y = rng.integers(0, 1000, (2, n))"),
        (1_000_000, "x, y = rng.integers(0, 3000, (2, n))"),
        (2_000_000, "x, y = rng.integers(0, 4, (2, n))"),
        (1_000_000, "x, y = np.where(rng.random(n) < 0.999, 0.0, rng.normal(size=n)), rng.random(n)"),
        (2_000_000, "x, y = np.zeros(n), rng.normal(size=n)"),
        (2_000_000, "x, y = rng.normal(size=n), np.zeros(n)"),
    ],
)  # fmt: skip
def test_ties_and_constants_end_in_the_null_model(n, data):
    assert all(i == j == 1 for i, j, *_ in fits(n, data))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "data", "least"),
    [
        (2_000_000, "x = np.arange(n); y = x", 500),
        (1_000_000, "x = np.arange(n); y = -x", 500),
        (1_000_000, "x = rng.random(n); y = np.floor(300 * x) + rng.random(n)", 290),
        (2_000_000, "x, y = heteroscedastic(n, rng); x, y = np.floor(300 * x), np.floor(20 * y)", 30),
        (1_000_000, "x, y = heteroscedastic(n, rng); x[::3] = np.nan", 30),
    ],
)  # fmt: skip
def test_sorted_tied_and_missing_values(n, data, least):
    assert all(i >= least for i, *_ in fits(n, data, seeds=(0,)))


@pytest.mark.slow
def test_a_hundred_thousand_labels():
    data = "x = rng.integers(0, 100_000, n); y = rng.normal(size=100_000)[x] + 0.3 * rng.normal(size=n)"
    ((i, j, *_),) = fits(300_000, data, seeds=(0,), options={"categorical": True, "starts": 1})
    assert i > 2 and j > 2
