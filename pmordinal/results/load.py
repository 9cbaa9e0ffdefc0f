"""Loads fits from netCDF or Zarr files; they are read as data, nothing is unpickled."""

import json
from pathlib import Path

import numpy as np
import xarray as xr
from pytensor.tensor.variable import TensorConstant

from pmordinal.data import files
from pmordinal.data.by_row import ByRow
from pmordinal.data.features import Features
from pmordinal.data.labels import Labels
from pmordinal.data.terms import Term
from pmordinal.data.whole import Whole
from pmordinal.engines import ENGINES
from pmordinal.gram import Gram, revive
from pmordinal.likelihood import OrdinalLikelihood, Rows
from pmordinal.likelihood.rows import ALIKE
from pmordinal.posterior import Status
from pmordinal.results import stores
from pmordinal.results.fit import OrdinalFit
from pmordinal.results.integral import Integral, integrated
from pmordinal.results.semisupervised import SemiSupervisedFit
from pmordinal.results.status import FitStatus
from pmordinal.results.storage import FORMAT

GROUPS = ("fit", "kernel", "point")
# Errors that the libraries raise for a file that is damaged or not ours; each has its own.
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
    """Return the fit, built from the groups of a file."""
    data = groups["fit"]
    header = json.loads(data["header"].values.astype(np.uint8).tobytes().decode())
    kernel_values = groups["kernel"]
    values = [kernel_values[f"value_{i}"].values for i in range(len(kernel_values.data_vars))]
    kernel = revive(header["kernel"], iter(values))
    constants = [p.data for p in kernel.parameters if isinstance(p, TensorConstant)]
    gram = Gram(kernel, data["X"].values, constants)
    features = Features.from_json(header["features"])
    by_row, rows, shift = ByRow(), ALIKE, features.shift(gram.X)
    if "by_row" in header:
        arrays = {str(name): data[name].values for name in data.data_vars}
        by_row = ByRow.from_json(header["by_row"], arrays)
    if "by_row" in header or shift is not None:
        rows = Rows(*by_row.codes(), by_row.weights, shift)
    likelihood = OrdinalLikelihood(
        data["thresholds"].values, data["noise"].values, header["link"], rows
    )
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
        point={k: groups["point"][k].values for k in header.get("point", groups["point"])},
        dims=header["dims"],
        objective=header["objective"],
        objective_value=header["objective_value"],
        status=FitStatus(
            **{
                **status,
                "objectives": tuple(status["objectives"]),
                "stages": tuple(status.get("stages", ())),
            }
        ),
        engine=header["engine"],
        labels=Labels.from_json(header["labels"], data["codes"].values),
        features=features,
        unlabeled=data["unlabeled"].values,
        index=data["obs"].values,
        by_row=by_row,
        whole=Whole.from_json(header["whole"]) if "whole" in header else None,
        model_terms=tuple(map(Term.from_json, header.get("terms", ()))),
    )
    if "semisupervised" in groups:
        return SemiSupervisedFit.from_dataset(fit, groups["semisupervised"])
    if "integral" in groups:
        return integrated(fit, Integral.from_dataset(posterior, fit.engine, groups["integral"]))
    return fit
