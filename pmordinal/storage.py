"""Fits on disk: netCDF or Zarr, data only; nothing is unpickled."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import xarray as xr
from pytensor.tensor.variable import TensorConstant

from pmordinal.engines import ENGINES
from pmordinal.features import Features
from pmordinal.fitted import FitStatus, OrdinalFit
from pmordinal.gram import Gram, revive
from pmordinal.labels import Labels
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.posterior import Status
from pmordinal.semisupervised import SemiSupervisedFit

FORMAT = 1
GROUPS = ("fit", "kernel", "point")
CODECS = ("bytes", "zstd")  # of Zarr
# What reading a file that is not ours, or half of it, ends in: the libraries below agree on none.
FOREIGN = (
    OSError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    IndexError,
    RuntimeError,
    np.linalg.LinAlgError,
)


def save(fit: OrdinalFit, path: str | Path) -> None:
    """Write `fit` to a file; see `OrdinalFit.save`.

    The file is written under a temporary name and then renamed, so that no half file is left.
    """
    path = Path(path)
    _suffix(path)
    posterior = fit.posterior
    header = {
        "kernel": posterior.gram.kernel.form(),
        "labels": fit.labels.to_json(),
        "features": fit.features.to_json(),
        "link": posterior.likelihood.link.name,
        "engine": fit.engine,
        "objective": fit.objective,
        "objective_value": fit.objective_value,
        "status": asdict(fit.status),
        "posterior_status": asdict(posterior.status),
        "dims": {k: list(v) for k, v in fit.dims.items() if k in fit.point},
        "log_evidence": posterior.log_evidence,
    }
    arrays = xr.Dataset(
        {
            "header": ("byte", np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)),
            "X": (("obs", "column"), posterior.gram.X),
            "y": ("obs", posterior.y),
            "codes": ("row", fit.labels.codes),
            "unlabeled": (("extra", "column"), fit.unlabeled),
            "thresholds": ("threshold", posterior.likelihood.thresholds),
            "noise": posterior.likelihood.noise,
            "support": ("basis", posterior.support),
            "alpha": ("basis", posterior.alpha),
            "mean": ("obs", posterior.mean),
            "precision": ("basis", posterior.precision),
        },
        coords={"obs": fit.index, "threshold": fit.labels.threshold_names},
        attrs={"format": FORMAT, "creator": "pmordinal"},
    )
    extra = {f"extra_{name}": value for name, value in posterior.extra.items()}
    arrays = arrays.merge(_ragged(extra))
    values = {f"value_{i}": v for i, v in enumerate(posterior.gram.values)}
    groups = {
        "/fit": arrays,
        "/kernel": _ragged(values),
        "/point": _ragged({k: np.asarray(v) for k, v in fit.point.items()}),
    }
    if isinstance(fit, SemiSupervisedFit):
        groups["/semisupervised"] = fit.to_dataset()
    tree = xr.DataTree.from_dict(groups)
    temporary = path.with_name(f".{path.name}.part{path.suffix}")
    old = path.with_name(f".{path.name}.old{path.suffix}")
    try:
        if path.suffix == ".zarr":
            tree.to_zarr(temporary, mode="w", consolidated=False)
            if path.exists():  # a folder replaces no folder: the old one steps aside
                path.replace(old)
        else:
            # in memory first: HDF5 crashes the process when a disk is full
            temporary.write_bytes(tree.to_netcdf(engine="h5netcdf"))
        temporary.replace(path)
    except OSError as error:
        raise OSError(f"cannot write {path}: {error}") from error
    finally:
        if old.exists() and not path.exists():
            old.replace(path)
        _remove(temporary)
        _remove(old)


def load(path: str | Path) -> OrdinalFit:
    """Return a fit that `OrdinalFit.save` wrote.

    Parameters
    ----------
    path : str or Path
        A ``.nc`` or ``.zarr`` file; it is read as data, no code in it is run.

    Returns
    -------
    OrdinalFit
        Predicts exactly as the fit that was saved.
    """
    path = Path(path)
    suffix = _suffix(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        groups = _read(path, suffix)
    except FOREIGN as error:
        raise ValueError(f"{path} is not a pmordinal fit, or it is damaged: {error}") from error
    attributes = groups["fit"].attrs
    if attributes.get("creator") != "pmordinal" or "format" not in attributes:
        raise ValueError(f"{path} was not written by pmordinal's fit.save")
    if int(attributes["format"]) > FORMAT:
        raise ValueError(f"{path} was written by a newer version of pmordinal: upgrade to read it")
    try:
        return _rebuild(groups)
    except FOREIGN as error:
        raise ValueError(f"{path} is damaged, or was edited: {error!r}") from error


def _read(path: Path, suffix: str) -> dict[str, xr.Dataset]:
    if suffix == ".zarr":
        _check_codecs(path)
        opened = xr.open_datatree(path, engine="zarr", consolidated=False)
    else:
        opened = xr.open_datatree(path, engine="h5netcdf")
    with opened as tree:
        names = [*GROUPS, *(name for name in ("semisupervised",) if name in tree.children)]
        return {name: tree[name].to_dataset().load() for name in names}


def _check_codecs(path: Path) -> None:
    """Refuse a Zarr store that names a codec we do not write: some of them run code."""
    if any(path.rglob(".zarray")):
        raise ValueError("it is of Zarr's old format")
    for file in path.rglob("zarr.json"):
        codecs = json.loads(file.read_text()).get("codecs", [])
        unknown = [codec.get("name") for codec in codecs if codec.get("name") not in CODECS]
        if unknown:
            raise ValueError(f"it has the codec {unknown[0]!r}, which fit.save does not write")


def _rebuild(groups: dict[str, xr.Dataset]) -> OrdinalFit:
    """Return the fit that the groups of a file describe."""
    data = groups["fit"]
    header = json.loads(data["header"].values.astype(np.uint8).tobytes().decode())
    kernel_values = groups["kernel"]
    values = [kernel_values[f"value_{i}"].values for i in range(len(kernel_values.data_vars))]
    kernel = revive(header["kernel"], iter(values))
    constants = [p.data for p in kernel.parameters if isinstance(p, TensorConstant)]
    gram = Gram(kernel, data["X"].values, constants)
    likelihood = OrdinalLikelihood(data["thresholds"].values, data["noise"].item(), header["link"])
    posterior = ENGINES[header["engine"]].posterior_type.restore(
        support=data["support"].values,
        gram=gram,
        y=data["y"].values,
        likelihood=likelihood,
        alpha=data["alpha"].values,
        mean=data["mean"].values,
        precision=data["precision"].values,
        log_evidence=header["log_evidence"],
        status=Status(**header["posterior_status"]),
        **{
            str(name).removeprefix("extra_"): data[name].values
            for name in data.data_vars
            if str(name).startswith("extra_")
        },
    )
    status = header["status"]
    fit = OrdinalFit(
        posterior=posterior,
        point={str(k): v.values for k, v in groups["point"].data_vars.items()},
        dims=header["dims"],
        objective=header["objective"],
        objective_value=header["objective_value"],
        status=FitStatus(**{**status, "objectives": tuple(status["objectives"])}),
        engine=header["engine"],
        labels=Labels.from_json(header["labels"], data["codes"].values),
        features=Features.from_json(header["features"]),
        unlabeled=data["unlabeled"].values,
        index=data["obs"].values,
    )
    if "semisupervised" in groups:
        return SemiSupervisedFit.from_dataset(fit, groups["semisupervised"])
    return fit


def _ragged(arrays: dict[str, np.ndarray]) -> xr.Dataset:
    """Arrays of any shapes side by side, each with dimensions of its own."""
    return xr.Dataset(
        {name: ([f"{name}_{i}" for i in range(a.ndim)], a) for name, a in arrays.items()}
    )


def _suffix(path: Path) -> str:
    if path.suffix not in (".nc", ".zarr"):
        raise ValueError(f"path must end in .nc (netCDF) or .zarr, got {path.name!r}")
    return path.suffix


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    elif path.exists():
        path.unlink(missing_ok=True)
