"""Long searches in pieces: the same results, an end on request, and Ctrl-C at once."""

import _thread
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from pmordinal.modl import fit_grid, interrupt, sample_grids
from pmordinal.modl.interrupt import Stop, StoppedError, check, listening
from pmordinal.modl.parallel import run_tasks
from pmordinal.modl.partition import axis, grouping, improve_cuts, merges, optimal_cuts
from pmordinal.modl.partition import sample_grids as sampler
from pmordinal.modl.regression import subsets

from .oracles import heteroscedastic

WITH_BUDGET = (axis, optimal_cuts, grouping, merges, improve_cuts, sampler, subsets)


def levels(n, n_labels, rng):
    """Labels with an effect each."""
    x = rng.integers(0, n_labels, n)
    return x, rng.normal(size=n_labels)[x] + rng.normal(size=n)


def everything():
    """Return results of every kernel that works in pieces."""
    from pmordinal.modl import RankRegressor

    rng = np.random.default_rng(0)
    x, y = heteroscedastic(300, rng)  # merges, moves and exact programs, coarse and fine
    holes = np.where(rng.random(300) < 0.1, np.nan, x)
    grids = [fit_grid(x, y), fit_grid(holes, y)]
    grids.append(fit_grid(*levels(400, 270, rng), categorical=True))
    grids.append(fit_grid(*levels(200, 9, rng), categorical=True))
    found = [(g.cost, g.counts.tolist(), g.x_boundaries.tolist(), g.groups) for g in grids]
    tree = sample_grids(x[:60], y[:60], draws=9, tune=30, chains=1, progressbar=False)
    model = RankRegressor().fit(np.column_stack((x, y + rng.normal(size=300))), y)
    return found, tree.posterior["cost"].to_numpy().tolist(), model.selection_.cost


def test_pieces_do_not_change_the_result(monkeypatch):
    found, costs, selected = everything()
    for module in WITH_BUDGET:
        assert module.BUDGET == interrupt.BUDGET
        monkeypatch.setattr(module, "BUDGET", 100)
    in_pieces = everything()
    assert in_pieces[0] == found
    assert in_pieces[1] == costs
    assert in_pieces[2] == pytest.approx(selected, rel=1e-13)  # a sum over rows, in another order


@pytest.mark.parametrize(
    "work",
    [
        lambda x, y: fit_grid(x, y),
        lambda x, y: fit_grid(np.round(3 * x), y, categorical=True),
        lambda x, y: sampler.Chain(
            sampler.Cells.from_codes(np.argsort(x), np.argsort(y)),
            np.zeros(len(x), dtype=np.int64),
            np.array([0, len(x)]),
            np.random.SeedSequence(0),
        ).advance(10),
    ],
)
def test_a_raised_flag_ends_every_search(work):
    x, y = heteroscedastic(60, np.random.default_rng(0))
    stop = Stop()
    with listening(stop):
        work(x, y)
        stop.set()
        with pytest.raises(StoppedError, match="interrupted"):
            work(x, y)
    check()  # nobody listens any more
    assert not pickle.loads(pickle.dumps(stop)).is_set()


@pytest.fixture
def interruptible():
    """Let an interrupt raise KeyboardInterrupt, also in a process that was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_threads_that_still_work():
    ended = threading.Event()

    def endless():
        time.sleep(0.3)  # the other task is done and its result is in
        _thread.interrupt_main()
        try:
            while True:
                check()
                time.sleep(0.001)
        finally:
            ended.set()

    tasks = {"quick": (lambda: 1,), "endless": (endless,)}
    with pytest.warns(UserWarning, match="interrupted: 1 of 2"):
        found = run_tasks(
            lambda task: task(), tasks, what="task", n_jobs=2, progressbar=False, partial=True
        )
    assert found == {"quick": 1}
    assert ended.wait(20)


CHILD = """
import sys, time, warnings
import numpy as np
from pmordinal.modl import RankRegressor, fit_grid, rank_predictors, sample_grids
from tests.modl.oracles import heteroscedastic
from tests.modl.test_interrupt import levels
warnings.simplefilter("ignore", UserWarning)  # some predictors may be done
rng = np.random.default_rng(3)
quiet = {{"progressbar": False}}

def work(n):
    {work}

work(2000)  # compiles
print("ready", flush=True)
try:
    work({n})
except KeyboardInterrupt:
    pass
print("out", flush=True)
time.sleep(0.5)
before = time.process_time()
time.sleep(1.0)
print(time.process_time() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to another process")
@pytest.mark.parametrize("delay", [0.5, 4.0])
@pytest.mark.parametrize(
    ("work", "n"),
    [
        ("fit_grid(*rng.normal(size=(2, n)))", 4_000_000),
        ("fit_grid(*levels(n, n // 10, rng), categorical=True)", 1_000_000),
        ("rank_predictors(rng.normal(size=(n, 9)), rng.random(n), n_jobs=2, **quiet)", 1_000_000),
        ("sample_grids(*heteroscedastic(n, rng), chains=2, draws=9, n_jobs=1, **quiet)", 1_000_000),
        ("sample_grids(*heteroscedastic(n, rng), chains=2, draws=9, n_jobs=2, **quiet)", 1_000_000),
        ("X = rng.random((n, 4)); RankRegressor().fit(X, X.sum(axis=1))", 1_000_000),
    ],
)
def test_ctrl_c(work, n, delay):
    code = CHILD.format(work=work, n=n)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            time.sleep(delay)
            start = time.monotonic()
            child.send_signal(signal.SIGINT)
            assert all(iter(child.stdout.readline, "out\n"))  # an empty line: it ended before
            # measured: below 0.6 s of one processor; the machines that test are busy
            assert time.monotonic() - start < 5.0
            assert float(child.stdout.read()) < 0.3  # no thread goes on
            assert child.wait(30) == 0
        finally:
            child.kill()
