"""Writes and reads DataTrees as netCDF or Zarr files; files are checked before they are opened.

A file may come from a stranger. So its bytes are read into memory once, checked, and then passed to the libraries: no
link may lead out of it, no array may be in another file, and no codec may run that `write` does not use.
"""

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

from pmordinal.data import files

SUFFIXES = (".nc", ".zarr")
CODECS = ("bytes", "zstd")  # of Zarr files that we write
META = "zarr.json"
COMPLETE = {"chunks": "all"}  # attribute: every chunk is in the file, also those of zeros


def suffix(path: Path) -> str:
    """Return the suffix of a path; raise if it is not supported."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"path must end in .nc (netCDF) or .zarr, got {path.name!r}")
    return path.suffix


def check_target(path: Path) -> None:
    """Raise if no tree can be written to `path`: no folder, no permission, or no zarr installed."""
    is_zarr = suffix(path) == ".zarr"
    if is_zarr:
        _memory_store()
    files.target(path, META if is_zarr else None)


def write(tree: xr.DataTree, path: Path) -> None:
    """Write a tree to a netCDF file or a Zarr store, completely or not at all.

    Parameters
    ----------
    tree : DataTree
    path : Path
        Its suffix decides which.
    """
    check_target(path)
    # in memory first: HDF5 crashes the process when a disk is full, and Zarr writes in threads
    # that go on after Ctrl-C
    if path.suffix == ".zarr":
        content: dict[str, Any] = {}
        tree = tree.copy()
        tree.attrs = {**tree.attrs, **COMPLETE}
        store = _memory_store()(content)
        tree.to_zarr(store, mode="w", consolidated=False, write_empty_chunks=True)
        stored = {name: buffer.to_bytes() for name, buffer in content.items()}
        files.write_folder(path, stored, META)
    else:
        data = tree.to_netcdf(engine="h5netcdf")
        with files.whole(path) as temporary:
            temporary.write_bytes(data)


def read(path: Path) -> dict[str, xr.Dataset]:
    """Return the groups below the root of a netCDF file or a Zarr store, in memory.

    Parameters
    ----------
    path : Path
        Its suffix decides which; raises if the file has parts that `write` never writes.
    """
    if suffix(path) == ".zarr":
        opened = _open_zarr(files.read_folder(path))
    else:
        opened = _open_netcdf(files.read_file(path))
    with opened as tree:
        return {str(name): node.to_dataset().load() for name, node in tree.children.items()}


def _open_netcdf(content: bytes) -> xr.DataTree:
    with h5py.File(io.BytesIO(content), "r") as file:
        _check_links(file)
    return xr.open_datatree(io.BytesIO(content), engine="h5netcdf")


def _check_links(file: h5py.File) -> None:
    """Refuse a file with links, with loops, or with data in other files."""
    seen: set[Any] = {file["/"]}
    todo = [file["/"]]
    while todo:
        group = todo.pop()
        for name in group:
            where = f"{group.name.rstrip('/')}/{name}"
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise ValueError(f"{where} is a link, and may lead anywhere")
            item = group[name]
            if item in seen:
                raise ValueError(f"{where} is in the file twice, so that it has no end")
            seen.add(item)
            if isinstance(item, h5py.Group):
                todo.append(item)
            elif not isinstance(item, h5py.Dataset):
                raise ValueError(f"{where} is neither a group nor an array")
            elif item.is_virtual or item.external:
                raise ValueError(f"the data of {where} are in another file")


def _open_zarr(content: Mapping[str, bytes]) -> xr.DataTree:
    memory_store = _memory_store()
    from zarr.core.buffer import default_buffer_prototype

    if META not in content:
        raise ValueError(f"it has no {META}")
    old = [name for name in content if name.rsplit("/", 1)[-1].startswith(".z")]
    if old:
        raise ValueError("it is of Zarr's old format")
    described = {
        name: json.loads(data) for name, data in content.items() if name.split("/")[-1] == META
    }
    for name, meta in described.items():
        for codec in _codecs(meta):
            if codec not in CODECS:
                raise ValueError(f"it has the codec {codec!r}, which fit.save does not write")
        if described[META].get("attributes", {}).items() >= COMPLETE.items():
            _check_chunks(name, meta, content)
    make = default_buffer_prototype().buffer.from_bytes
    store = memory_store({name: make(data) for name, data in content.items()}, read_only=True)
    return xr.open_datatree(store, engine="zarr", consolidated=False)


def _codecs(meta: Any) -> Iterator[Any]:
    """Yield the names of all codecs in an array's metadata, at any depth."""
    if isinstance(meta, list):
        for item in meta:
            yield from _codecs(item)
    elif isinstance(meta, dict):
        for key, value in meta.items():
            if key == "codecs":
                for codec in value:
                    yield codec.get("name") if isinstance(codec, dict) else codec
            yield from _codecs(value)


def _check_chunks(name: str, meta: dict[str, Any], content: Mapping[str, bytes]) -> None:
    """Refuse an array with a missing chunk, which Zarr would read as zeros."""
    if meta["node_type"] != "array":
        return
    chunks = np.array(meta["chunk_grid"]["configuration"]["chunk_shape"], dtype=int)
    count = int(np.prod(-(-np.array(meta["shape"], dtype=int) // np.maximum(chunks, 1))))
    folder = name.removesuffix(META)
    found = sum(key == f"{folder}c" or key.startswith(f"{folder}c/") for key in content)
    if found != count:
        raise ValueError(f"{folder.rstrip('/')} has {found} of {count} chunks: a part is lost")


def _memory_store() -> Any:
    """Return Zarr's class of stores in memory; raise with what to install if there is none."""
    try:
        from zarr.storage import MemoryStore
    except ImportError as error:
        raise ModuleNotFoundError(
            "a .zarr file needs zarr 3: pip install 'pmordinal[zarr]', or use .nc", name="zarr"
        ) from error
    return MemoryStore
