"""Faults from outside: Ctrl-C, workers that fail, disks that are full, files that are not what they seem."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import pmordinal as pmo
from pmordinal import modl
from pmordinal.engines import laplace
from pmordinal.inference.semisupervised import assignment as transport
from pmordinal.inference.semisupervised.fit import fit_semisupervised
from pmordinal.modl.partition import sample_grids as grid_sampler
from pmordinal.modl.regression import ranking

X = np.linspace(-2, 2, 16)[:, None]
Y = np.array([0, 0, 0, 1, 0, 1, 1, 1, 1, 2, 1, 1, 2, 2, 2, 2])
TABLE = {name: np.arange(60.0) % k for name, k in {"a": 60, "b": 7, "c": 13, "d": 31}.items()}
TARGET = np.arange(60.0) // 20
QUIET = {"progressbar": False}


@pytest.fixture
def interrupt(monkeypatch, request):
    """Return a function that lets the k-th call of something be interrupted by a real signal."""
    # A parent may have had it ignored, as shells do for jobs in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    def arrange(owner, name, at, wait=0.0):
        original, calls = getattr(owner, name), []

        def patched(*args, **kwargs):
            calls.append(1)
            if len(calls) == at:
                time.sleep(wait)  # others that run beside it may end
                os.kill(os.getpid(), signal.SIGINT)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, patched)
        return calls

    return arrange


# Ctrl-C


def test_fit_keeps_the_best_point(interrupt):
    model = pmo.gp_model(X, Y, "expquad", engine="laplace")
    interrupt(laplace.Laplace, "__call__", at=6)
    with pytest.warns(pmo.ConvergenceWarning, match="interrupted after 5 evaluations: the best"):
        fit = pmo.fit(model, **QUIET)
    assert fit.status.interrupted
    assert not fit.status.converged
    assert fit.objective_value == max(fit.status.objectives)
    assert np.all(np.isfinite(fit.predict(X)))


def test_fit_says_so_where_an_earlier_start_was_best(interrupt):
    model = pmo.gp_model(X, Y, "expquad", engine="laplace")
    alone = pmo.fit(model, **QUIET)
    interrupt(laplace.Laplace, "__call__", at=alone.status.evaluations + 3)
    with pytest.warns(pmo.ConvergenceWarning, match="interrupted in start 2 of 3"):
        fit = pmo.fit(model, starts=3, seed=1, **QUIET)
    assert fit.status.interrupted
    assert len(fit.status.objectives) == 2
    assert fit.objective_value == pytest.approx(alone.objective_value)


@pytest.mark.parametrize("where", [(laplace.Laplace, "__call__"), (transport, "switch")])
def test_semisupervised_fit_keeps_the_steps_that_are_done(interrupt, where):
    fixed = {"lengthscale": 1.0, "thresholds": [-0.5, 0.5]}
    model = pmo.gp_model(X, Y, "expquad", engine="laplace", unlabeled=X + 0.05, **fixed)
    calls = interrupt(*where, at=10**9)
    whole = fit_semisupervised(model, weights=[0.01, 0.1, 1.0], **QUIET)
    interrupt(*where, at=len(calls) - 1)
    with pytest.warns(pmo.ConvergenceWarning, match="interrupted"):
        fit = fit_semisupervised(model, weights=[0.01, 0.1, 1.0], **QUIET)
    assert fit.status.interrupted
    assert 1 <= len(fit.path) <= 3
    np.testing.assert_allclose(fit.path["objective"][0], whole.path["objective"][0])
    assert np.all(np.isfinite(fit.predict_unlabeled()))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_grids_that_are_done_are_kept(interrupt, n_jobs):
    whole = modl.fit_grids(TABLE, TARGET, n_jobs=1, **QUIET)
    interrupt(ranking, "grid_from_columns", at=4, wait=1.0)
    with pytest.warns(UserWarning, match=r"interrupted: \d of 4 are done and kept"):
        grids = modl.fit_grids(TABLE, TARGET, n_jobs=n_jobs, **QUIET)
    assert 1 <= len(grids) < 4
    assert all(grid.cost == whole[name].cost for name, grid in grids.items())


@pytest.mark.slow
def test_chains_that_are_done_are_kept(interrupt):
    interrupt(grid_sampler, "_run", at=3)
    few = {"draws": 5, "tune": 5, "thin": 1, "chains": 4, "n_jobs": 1}
    with pytest.warns(UserWarning, match="interrupted: 2 of 4 are done"):
        tree = modl.sample_grids(TABLE["a"], TARGET, **few, **QUIET)
    assert tree["posterior"].sizes["chain"] == 2


def test_nothing_done_is_an_interrupt(interrupt):
    interrupt(ranking, "grid_from_columns", at=1)
    with pytest.raises(KeyboardInterrupt):
        modl.fit_grids(TABLE, TARGET, n_jobs=1, **QUIET)


def test_half_an_estimator_is_no_estimator(interrupt):
    interrupt(ranking, "grid_from_columns", at=3)
    with pytest.raises(KeyboardInterrupt):
        modl.RankRegressor("nb").fit(np.column_stack(list(TABLE.values())), TARGET)


@pytest.mark.slow
def test_elimination_keeps_the_sets_that_are_done(interrupt, rng):
    Z = rng.normal(size=(12, 2))
    y = (Z[:, 0] > 0).astype(int)
    calls = interrupt(laplace.Laplace, "__call__", at=10**9)
    whole = pmo.select_features(Z, y, engine="laplace", **QUIET)
    interrupt(laplace.Laplace, "__call__", at=len(calls) - 3)
    with pytest.warns(pmo.ConvergenceWarning, match="interrupted") as warned:
        table = pmo.select_features(Z, y, engine="laplace", **QUIET)
    assert "1 of 2 sets" in str(warned[-1].message)
    assert table["features"].tolist() == whole["features"].tolist()[:1]


# Workers


@pytest.fixture
def failing(monkeypatch):
    """Let the search of one predictor fail."""
    original = ranking.grid_from_columns

    def patched(column, target, starts, seed, x_name, y_name):
        if x_name in ("b", "x1"):
            raise ZeroDivisionError("no luck")
        return original(column, target, starts, seed, x_name, y_name)

    monkeypatch.setattr(ranking, "grid_from_columns", patched)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failing_worker_names_its_task_and_the_others_go_on(failing, n_jobs):
    words = r"'b' failed and is left out: ZeroDivisionError\('no luck'\)"
    with pytest.warns(UserWarning, match=words) as said:
        table = modl.rank_predictors(TABLE, TARGET, n_jobs=n_jobs, **QUIET)
    assert said[0].filename == __file__
    assert sorted(table.index) == ["a", "c", "d"]
    alone = modl.fit_grid(TABLE["a"], TARGET)
    assert table.loc["a", "level"] == pytest.approx(alone.level)


def test_where_all_fail_it_is_an_error(failing):
    with pytest.raises(RuntimeError, match="MODL grid of 'b' failed: ZeroDivisionError"):
        modl.rank_predictors({"b": TABLE["b"]}, TARGET, **QUIET)


def test_an_estimator_needs_all_its_predictors(failing):
    with pytest.raises(RuntimeError, match="'x1' failed"):
        modl.RankRegressor("nb").fit(np.column_stack([TABLE["a"], TABLE["b"]]), TARGET)


# Files


@pytest.fixture(scope="module")
def fit():
    fixed = {"lengthscale": 1.0, "noise": 0.5, "thresholds": [-0.5, 0.5]}
    return pmo.fit(pmo.gp_model(X, Y, "expquad", engine="laplace", **fixed), **QUIET)


@pytest.fixture(scope="module")
def original(fit, tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "fit.nc"
    fit.save(path)
    return path


@pytest.fixture
def saved(original, tmp_path):
    return Path(shutil.copy(original, tmp_path))


SUFFIXES = pytest.mark.parametrize("suffix", [".nc", ".zarr"])


@SUFFIXES
def test_an_unwritable_path(fit, tmp_path, suffix):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OSError, match="cannot write"):
        fit.save(tmp_path / "file" / f"fit{suffix}")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


FULL_DISK = """
    import resource, signal, sys, warnings
    from pathlib import Path
    import pmordinal as pmo

    warnings.simplefilter("ignore")
    path = Path(sys.argv[1])
    fit = pmo.load(path)
    before = {p: p.read_bytes() for p in path.parent.rglob("*") if p.is_file()}
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    try:
        fit.save(path)
    except OSError as error:
        assert f"cannot write {path}" in str(error), error
    else:
        raise SystemExit("it was written")
    assert before == {p: p.read_bytes() for p in path.parent.rglob("*") if p.is_file()}
    print("refused")
"""


def python(code, *arguments):
    """Run code in a process of its own; return what it printed."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@SUFFIXES
def test_a_full_disk_leaves_the_old_file_and_no_half_one(fit, tmp_path, suffix):
    path = tmp_path / f"fit{suffix}"
    fit.save(path)
    limit = 2000 if suffix == ".nc" else 100  # bytes a file
    assert python(FULL_DISK, path, limit).strip() == "refused"


@SUFFIXES
def test_an_interrupt_while_writing_leaves_the_old_file(fit, tmp_path, suffix, monkeypatch):
    path = tmp_path / f"fit{suffix}"
    fit.save(path)

    def stopped(file, content):
        file.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", stopped)
    with pytest.raises(KeyboardInterrupt):
        fit.save(path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    np.testing.assert_array_equal(pmo.load(path).predict(X), fit.predict(X))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_truncated_files(saved, share):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match="not a pmordinal fit, or it is damaged"):
        pmo.load(saved)


def edited(path, change):
    """Rewrite a saved fit after a change of its groups, a dictionary of datasets."""
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        groups = {name: node.to_dataset().load() for name, node in tree.children.items()}
    change(groups)
    xr.DataTree.from_dict(groups).to_netcdf(path)
    return path


def with_header(**entries):
    def change(groups):
        header = json.loads(groups["fit"]["header"].values.astype(np.uint8).tobytes())
        header |= entries
        data = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        rest = groups["fit"].drop_vars("header")
        groups["fit"] = rest.assign(header=("byte", data)).assign_attrs(groups["fit"].attrs)

    return change


def without(group, name=None):
    def change(groups):
        if name is None:
            del groups[group]
        else:
            groups[group] = groups[group].drop_vars(name)

    return change


def with_attributes(**attributes):
    def change(groups):
        groups["fit"].attrs = attributes

    return change


BROKEN = {
    "no kernel group": (without("kernel"), "not a pmordinal fit"),
    "no header": (without("fit", "header"), "is damaged"),
    "no thresholds": (without("fit", "thresholds"), "is damaged"),
    "foreign": (with_attributes(creator="somebody"), "was not written by pmordinal"),
    "no version": (with_attributes(creator="pmordinal"), "was not written by pmordinal"),
    "newer": (with_attributes(creator="pmordinal", format=99), "newer version"),
    "kernel that is code": (with_header(kernel={"kernel": "os.system"}), "unknown kernel"),
    "engine that is code": (with_header(engine="__import__('os')"), "unknown engine"),
    "link that is code": (with_header(link="eval"), "unknown link"),
    "labels of a dtype that is code": (
        with_header(labels={"kind": "array", "dtype": "exec('1')", "categories": [0, 1, 2]}),
        None,
    ),
    "status of other fields": (with_header(status={"__class__": "x", "objectives": []}), "damaged"),
    "features of another type": (with_header(features=3), "damaged"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_files_that_are_not_what_they_seem(saved, case):
    change, message = BROKEN[case]
    edited(saved, change)
    if message is None:  # loads as data: what it names is no dtype when labels are to be made
        with pytest.raises((TypeError, ValueError)):
            pmo.load(saved).predict(X, "class")
        return
    with pytest.raises(ValueError, match=message):
        pmo.load(saved)


class Malice:
    """Unpickling it would create a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        """Have a file opened."""
        return open, (self.path, "w")


LOADED_WITHOUT_PICKLE = """
    import sys, warnings
    import pmordinal as pmo

    warnings.simplefilter("ignore")
    FORBIDDEN = ("pickle.find_class", "os.system", "subprocess.Popen")
    armed = False

    def watch(event, arguments):
        if armed and event in FORBIDDEN:
            print("FORBIDDEN", event, flush=True)

    for path in sys.argv[1:3]:
        pmo.load(path)  # what is loaded on first use, compiled code and the like, may be unpickled
    sys.addaudithook(watch)
    armed = True
    for path in sys.argv[1:]:
        try:
            pmo.load(path)
            print("loaded")
        except ValueError:
            print("refused")
"""


@pytest.mark.slow
def test_malicious_files_run_nothing(fit, saved, tmp_path):
    victim = tmp_path / "victim"
    plain = tmp_path / "plain.nc"
    plain.write_bytes(pickle.dumps(Malice(victim)))
    good = tmp_path / "good.zarr"
    fit.save(good)
    stores = []
    codec = {"id": "pickle", "protocol": 5}
    for part in ({"compressor": codec, "filters": None}, {"compressor": None, "filters": [codec]}):
        store = tmp_path / f"old{len(stores)}.zarr"
        shutil.copytree(good, store)
        shutil.rmtree(store / "fit" / "X")
        (store / "fit" / "X").mkdir()
        array = {"zarr_format": 2, "shape": [16, 1], "chunks": [16, 1], "dtype": "<f8", **part}
        array |= {"fill_value": 0.0, "order": "C"}
        (store / "fit" / "X" / ".zarray").write_text(json.dumps(array))
        (store / "fit" / "X" / "0.0").write_bytes(pickle.dumps((Malice(victim), (16, 1))))
        stores.append(store)
    modern = tmp_path / "modern.zarr"
    shutil.copytree(good, modern)
    meta = modern / "fit" / "X" / "zarr.json"
    described = json.loads(meta.read_text())
    described["codecs"] = [{"name": "numcodecs.pickle", "configuration": {}}]
    meta.write_text(json.dumps(described))
    out = python(LOADED_WITHOUT_PICKLE, saved, good, plain, *stores, modern)
    assert out.split() == ["loaded", "loaded", "refused", "refused", "refused", "refused"]
    assert not victim.exists()


def test_a_report_in_a_folder_that_is_none(fit, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(OSError, match="report"):
            pmo.write_report(fit, tmp_path / "missing" / "report.html")
    assert not list(tmp_path.iterdir())
