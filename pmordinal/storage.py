"""Fits on disk: netCDF or Zarr, data only; nothing is unpickled."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import xarray as xr
from pytensor.tensor.variable import TensorConstant

from pmordinal import files, stores
from pmordinal.engines import ENGINES
from pmordinal.features import Features
from pmordinal.fitted import FitStatus, OrdinalFit
from pmordinal.gram import Gram, revive
from pmordinal.labels import Labels
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.posterior import Status
from pmordinal.rows import storable
from pmordinal.semisupervised import SemiSupervisedFit

FORMAT = 1
GROUPS = ("fit", "kernel", "point")
# What reading a file that is not ours, or half of it, ends in: the libraries below agree on none.
FOREIGN = (
    OSError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    np.linalg.LinAlgError,
)


def save(fit: OrdinalFit, path: str | Path) -> None:
    """Write `fit` to a file; see `OrdinalFit.save`.

    The file is written under a temporary name and then renamed, so that no half file is left.
    """
    path = files.local(path)
    stores.check_target(path)
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
        coords={"obs": fit.index, "threshold": storable(fit.labels.threshold_names)},
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
    stores.write(xr.DataTree.from_dict(groups), path)


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
    path = files.local(path)
    stores.suffix(path)
    try:
        groups = stores.read(path)
        if lost := [name for name in GROUPS if name not in groups]:
            raise ValueError(f"it has no group {lost[0]!r}")
    except FOREIGN as error:
        if isinstance(error, FileNotFoundError) and not path.exists():
            raise FileNotFoundError(f"there is no file {path}") from None
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
