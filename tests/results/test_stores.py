"""Saved fits as files: several writers, Ctrl-C, odd names, lost parts, and files that reach out for others."""

import json
import os
import pickle
import shutil
import sys
import threading
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

import pmordinal as pmo
from pmordinal.results import stores

X = np.linspace(-2, 2, 16)[:, None]
Y = np.array([0, 0, 0, 1, 0, 1, 1, 1, 1, 2, 1, 1, 2, 2, 2, 2])
SUFFIXES = pytest.mark.parametrize("suffix", stores.SUFFIXES)


def fitted(noise):
    fixed = {"lengthscale": 1.0, "noise": noise, "thresholds": [-0.5, 0.5]}
    return pmo.fit(pmo.gp_model(X, Y, "expquad", engine="laplace", **fixed), progressbar=False)


@pytest.fixture(scope="module")
def fit():
    return fitted(0.5)


@pytest.fixture(scope="module")
def other():
    return fitted(2.0)


def same(one, two):
    return (
        one.noise == two.noise
        and np.array_equal(one.posterior.alpha, two.posterior.alpha)
        and np.array_equal(one.posterior.mean, two.posterior.mean)
    )


# Writing


@SUFFIXES
@pytest.mark.parametrize("folder", ["run#2", "run?x=1", "run\n2"])
def test_names_that_look_like_addresses(fit, tmp_path, suffix, folder):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").write_text("as it was")
    (tmp_path / folder).mkdir()
    path = tmp_path / folder / f"fit{suffix}"
    fit.save(path)
    assert same(pmo.load(path), fit)
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["precious"]
    assert {p.name for p in tmp_path.iterdir()} == {"run", folder}


@SUFFIXES
def test_addresses_are_refused(fit, tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    for call in (fit.save, pmo.load):
        with pytest.raises(ValueError, match="is an address"):
            call(f"s3://bucket/fit{suffix}")
    with pytest.raises(ValueError, match="is an address"):
        pmo.write_report(fit, "https://host/report.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@SUFFIXES
def test_several_writers_and_a_reader(fit, other, tmp_path, suffix):
    """Every load is one of the two fits, whole."""
    path = tmp_path / f"fit{suffix}"
    fit.save(path)
    failures = []

    def again(which):
        try:
            for _ in range(6):
                which.save(path)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=again, args=(which,)) for which in (fit, other)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        found = pmo.load(path)
        assert same(found, fit) or same(found, other)
    assert not failures
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("at", [1, 7, 20])
def test_an_interrupt_does_not_stand_in_the_way(fit, other, tmp_path, monkeypatch, at):
    """Ctrl-C at the k-th of the store's files: the old fit is there, and the next one is saved at once."""
    path, write, calls = tmp_path / "fit.zarr", Path.write_bytes, []
    fit.save(path)

    def interrupted(self, content):
        calls.append(self)
        if len(calls) == at:
            raise KeyboardInterrupt
        return write(self, content)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            other.save(path)
    assert same(pmo.load(path), fit)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    other.save(path)
    assert same(pmo.load(path), other)


@SUFFIXES
def test_a_link_is_written_through(fit, other, tmp_path, suffix):
    (tmp_path / "far").mkdir()
    link, real = tmp_path / f"link{suffix}", tmp_path / "far" / f"real{suffix}"
    fit.save(real)
    link.symlink_to(real)
    other.save(link)
    assert link.is_symlink()
    assert same(pmo.load(link), other) and same(pmo.load(real), other)


def test_a_folder_with_other_things_is_not_replaced(fit, tmp_path):
    path = tmp_path / "photos.zarr"
    path.mkdir()
    (path / "cat.jpg").write_text("precious")
    with pytest.raises(FileExistsError, match=r"a folder without zarr\.json"):
        fit.save(path)
    assert (path / "cat.jpg").read_text() == "precious"


def test_a_folder_in_place_of_a_file(fit, tmp_path):
    (tmp_path / "fit.nc").mkdir()
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        fit.save(tmp_path / "fit.nc")
    with pytest.raises(ValueError, match="it is a folder, not a file"):
        pmo.load(tmp_path / "fit.nc")
    (tmp_path / "fit.zarr").write_text("no store")
    with pytest.raises(ValueError, match="it is a file, not a folder"):
        pmo.load(tmp_path / "fit.zarr")
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(ValueError, match="not a pmordinal fit"):
        pmo.load(tmp_path / "empty.zarr")


def test_without_zarr(fit, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    monkeypatch.setitem(sys.modules, "zarr.storage", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs zarr 3: pip install 'pmordinal\[zarr\]'"):
        fit.save(tmp_path / "fit.zarr")
    fit.save(tmp_path / "fit.nc")


# Zarr


@pytest.fixture
def store(fit, tmp_path):
    path = tmp_path / "fit.zarr"
    fit.save(path)
    return path


def test_a_lost_part_is_not_taken_for_zeros(store):
    (store / "fit" / "alpha" / "c" / "0").unlink()
    with pytest.raises(ValueError, match="fit/alpha has 0 of 1 chunks: a part is lost"):
        pmo.load(store)


def test_stores_that_leave_out_chunks_of_zeros_are_read(fit, store, tmp_path):
    """As fit.save wrote them once."""
    with xr.open_datatree(store, engine="zarr", consolidated=False) as tree:
        older = tree.load()
    older.attrs = {}
    path = tmp_path / "older.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        older.to_zarr(path, consolidated=False, write_empty_chunks=False)
    assert same(pmo.load(path), fit)


class Malice:
    """Unpickling it would create a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        """Have a file opened."""
        return open, (self.path, "w")


def pickled_array(folder, victim):
    """Make an array of Zarr's old format whose codec unpickles."""
    folder.mkdir(parents=True)
    meta = {
        "zarr_format": 2,
        "shape": [16, 1],
        "chunks": [16, 1],
        "dtype": "<f8",
        "fill_value": 0.0,
    }
    meta |= {"order": "C", "filters": None, "compressor": {"id": "pickle", "protocol": 5}}
    (folder / ".zarray").write_text(json.dumps(meta))
    (folder / "0.0").write_bytes(pickle.dumps(Malice(victim)))


def linked_group(store, aside):
    shutil.move(store / "fit", aside / "fit")
    shutil.rmtree(aside / "fit" / "X")
    pickled_array(aside / "fit" / "X", aside / "victim")
    (store / "fit").symlink_to(aside / "fit")


def linked_array(store, aside):
    pickled_array(aside / "X", aside / "victim")
    shutil.rmtree(store / "fit" / "X")
    (store / "fit" / "X").symlink_to(aside / "X")


def linked_chunk(store, aside):
    (aside / "secret").write_bytes(b"secret")
    chunk = store / "fit" / "X" / "c" / "0" / "0"
    chunk.unlink()
    chunk.symlink_to(aside / "secret")


def pipe(store, aside):
    chunk = store / "fit" / "X" / "c" / "0" / "0"
    chunk.unlink()
    os.mkfifo(chunk)


def consolidated(store, aside):
    meta = json.loads((store / "zarr.json").read_text())
    array = json.loads((store / "fit" / "X" / "zarr.json").read_text())
    array["codecs"] = ["numcodecs.pickle"]
    meta["consolidated_metadata"] = {"kind": "inline", "metadata": {"fit/X": array}}
    (store / "zarr.json").write_text(json.dumps(meta))


def sharded(store, aside):
    file = store / "fit" / "X" / "zarr.json"
    meta = json.loads(file.read_text())
    inner = {"chunk_shape": [16, 1], "codecs": meta["codecs"], "index_codecs": meta["codecs"]}
    meta["codecs"] = [{"name": "sharding_indexed", "configuration": inner}]
    file.write_text(json.dumps(meta))


def test_numcodecs_itself_does_not_unpickle(tmp_path):
    """The lowest version that pyproject.toml allows, and what is here, refuse it without our checks."""
    import numcodecs

    data = pickle.dumps(Malice(tmp_path / "victim"))
    with pytest.raises(Exception, match="unpickl"):
        numcodecs.get_codec({"id": "pickle"}).decode(data)
    assert not (tmp_path / "victim").exists()


STORES = {
    linked_group: "fit is a link",
    linked_array: "fit/X is a link",
    linked_chunk: "fit/X/c/0/0 is a link",
    pipe: "not an ordinary file",
    consolidated: r"the codec 'numcodecs\.pickle'",
    sharded: "the codec 'sharding_indexed'",
}


@pytest.mark.parametrize("change", STORES, ids=lambda change: change.__name__)
def test_stores_that_reach_out_are_refused(store, tmp_path, change):
    aside = tmp_path / "aside"
    aside.mkdir()
    change(store, aside)
    with pytest.raises(ValueError, match=STORES[change]):
        pmo.load(store)
    assert not (aside / "victim").exists()


# netCDF


def loop(file, aside):
    file["fit/again"] = file["/"]


def twice(file, aside):
    file["fit/again"] = file["point"]


def soft_link(file, aside):
    file["fit/again"] = h5py.SoftLink("/fit")


def external_link(file, aside):
    with h5py.File(aside, "w") as other:
        other["secret"] = np.arange(16.0)
    del file["fit/mean"]
    file["fit/mean"] = h5py.ExternalLink(str(aside), "secret")


def external_data(file, aside):
    aside.write_bytes(np.arange(16.0).tobytes())
    del file["fit/mean"]
    file["fit"].create_dataset("mean", (16,), "f8", external=[(str(aside), 0, 128)])


def virtual(file, aside):
    with h5py.File(aside, "w") as other:
        other["secret"] = np.arange(16.0)
    layout = h5py.VirtualLayout((16,), "f8")
    layout[:] = h5py.VirtualSource(str(aside), "secret", (16,))
    del file["fit/mean"]
    file["fit"].create_virtual_dataset("mean", layout)


def named_type(file, aside):
    file["fit/kind"] = np.dtype("f8")


FILES = {
    loop: "/fit/again is in the file twice",
    twice: "/fit/again is in the file twice",
    soft_link: "/fit/again is a link",
    external_link: "/fit/mean is a link",
    external_data: "the data of /fit/mean are in another file",
    virtual: "the data of /fit/mean are in another file",
    named_type: "/fit/kind is neither a group nor an array",
}


@pytest.mark.parametrize("change", FILES, ids=lambda change: change.__name__)
@pytest.mark.timeout(60)
def test_files_that_reach_out_are_refused(fit, tmp_path, change):
    path = tmp_path / "fit.nc"
    fit.save(path)
    with h5py.File(path, "a") as file:
        change(file, tmp_path / "aside")
    with pytest.raises(ValueError, match=FILES[change]):
        pmo.load(path)


@pytest.mark.timeout(60)
def test_a_pipe_is_not_waited_for(tmp_path):
    path = Path(tmp_path / "fit.nc")
    os.mkfifo(path)
    with pytest.raises(ValueError, match="not an ordinary file"):
        pmo.load(path)
