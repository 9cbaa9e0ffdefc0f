"""Saves fits as netCDF or Zarr files: plain data, no pickles."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from pmordinal.data import files
from pmordinal.data.rows import storable
from pmordinal.results import stores

if TYPE_CHECKING:
    from pmordinal.posterior import Posterior
    from pmordinal.results.fit import OrdinalFit

FORMAT = 3  # the newest, of fits with offsets or with integrated hyperparameters
GROUPED = 2  # of fits with groups or weights
ALIKE = 1  # of fits whose rows are alike; older versions read all that they know


def save(fit: "OrdinalFit", path: str | Path) -> None:
    """Write `fit` to a file; see `OrdinalFit.save`.

    The file is written under a temporary name and then renamed, so that no half file is left.
    """
    path = files.local(path)
    stores.check_target(path)
    posterior = fit.posterior if fit.integral is None else fit.integral.mode
    header = {
        "kernel": posterior.gram.kernel.form(),
        "labels": fit.labels.to_json(),
        "features": fit.features.to_json(),
        "terms": [term.to_json() for term in fit.model_terms],
        "link": posterior.likelihood.link.name,
        "engine": fit.engine,
        "objective": fit.objective,
        "objective_value": fit.objective_value,
        "status": asdict(fit.status),
        "posterior_status": asdict(posterior.status),
        "dims": {k: list(v) for k, v in fit.dims.items() if k in fit.point},
        "point": list(fit.point),  # their order, which Zarr does not keep
        "log_evidence": posterior.log_evidence,
    }
    if fit.whole is not None:
        header["whole"] = fit.whole.to_json()
    if not fit.by_row.is_plain:
        header["by_row"] = fit.by_row.to_json()
    by_threshold = ["threshold_group", "threshold"][-posterior.likelihood.thresholds.ndim :]
    by_noise = ["noise_group"] if fit.by_row.noise is not None else []
    arrays = xr.Dataset(
        {
            "header": ("byte", np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)),
            "X": (("obs", "column"), posterior.gram.X),
            "y": ("obs", posterior.y),
            "codes": ("row", fit.labels.codes),
            "unlabeled": (("extra", "column"), fit.unlabeled),
            "thresholds": (by_threshold, posterior.likelihood.thresholds),
            "noise": (by_noise, posterior.likelihood.noise),
            "support": ("basis", posterior.support),
            "alpha": ("basis", posterior.alpha),
            "mean": ("obs", posterior.mean),
            "precision": (_sites(posterior), posterior.precision),
            **{name: ("obs", values) for name, values in fit.by_row.arrays().items()},
        },
        coords={"obs": fit.index, "threshold": storable(fit.labels.threshold_names)},
        attrs={"format": _format(fit), "creator": "pmordinal"},
    )
    extra = {f"extra_{name}": value for name, value in posterior.extra.items()}
    arrays = arrays.merge(_ragged(extra))
    values = {f"value_{i}": v for i, v in enumerate(posterior.gram.values)}
    groups = {
        "/fit": arrays,
        "/kernel": _ragged(values),
        "/point": _ragged({k: np.asarray(v) for k, v in fit.point.items()}),
    }
    groups |= {f"/{name}": data for name, data in fit.further_groups().items()}
    stores.write(xr.DataTree.from_dict(groups), path)


def _sites(posterior: "Posterior") -> str:
    """Return the dimension of the sites: of the rows of `support`, or of all."""
    return "basis" if posterior.precision.size == posterior.support.size else "obs"


def _ragged(arrays: dict[str, np.ndarray]) -> xr.Dataset:
    """Return arrays of any shapes as one dataset; each has its own dimensions."""
    return xr.Dataset(
        {name: ([f"{name}_{i}" for i in range(a.ndim)], a) for name, a in arrays.items()}
    )


def _format(fit: "OrdinalFit") -> int:
    """Return the oldest format that can hold a fit."""
    if fit.features.offsets or fit.integral is not None:
        return FORMAT
    return ALIKE if fit.by_row.is_plain else GROUPED
