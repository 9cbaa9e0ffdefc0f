"""Predictions for tables of Dask: partition by partition, when they are asked for, where the rows are."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from pmordinal.checks import one_of
from pmordinal.errors import located
from pmordinal.linalg.threads import blas_threads
from pmordinal.results.decisions import KINDS, decide

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit


def predict_spread(fit: "OrdinalFit", Xnew: Any, kind: str, rule: Any) -> Any:
    """Return predictions for the rows of a Dask table, as a Dask table; see `OrdinalFit.predict`."""
    import dask

    one_of("kind", kind, KINDS)
    if kind == "class":
        decide(np.full((1, fit.labels.n_classes), 1.0 / fit.labels.n_classes), rule)  # checks it
    slim = dask.delayed(fit, traverse=False, pure=False)  # travels once
    empty = _framed(fit, _nothing(fit, kind), kind, pd.RangeIndex(0))
    if hasattr(Xnew, "chunks"):
        Xnew = Xnew.rechunk({1: -1}) if Xnew.ndim == 2 else Xnew
        values = _as_array(empty)
        wide: dict[str, Any] = {}
        if values.ndim == 2:
            wide["chunks"] = (Xnew.chunks[0], (values.shape[1],))
        wide |= {"drop_axis": 1} if values.ndim == 1 and Xnew.ndim == 2 else {}
        wide |= {"new_axis": 1} if values.ndim == 2 and Xnew.ndim == 1 else {}
        return Xnew.map_blocks(
            predicted_array, slim, kind, rule, dtype=values.dtype, meta=values, **wide
        )
    return Xnew.map_partitions(
        predicted_frame, slim, kind, rule, meta=empty, enforce_metadata=False
    )


def predicted_frame(table: Any, fit: "OrdinalFit", kind: str, rule: Any) -> Any:
    """Return the predictions for one partition; runs on a worker."""
    if not len(table):
        return _framed(fit, _nothing(fit, kind), kind, table.index)
    with located("Xnew, in one of its partitions"), blas_threads(0):
        return _framed(fit, fit.predict(table, kind, rule=rule), kind, table.index)


def predicted_array(rows: np.ndarray, fit: "OrdinalFit", kind: str, rule: Any) -> np.ndarray:
    """Return the predictions for one block of an array; runs on a worker."""
    if not len(rows):
        return _as_array(_framed(fit, _nothing(fit, kind), kind, pd.RangeIndex(0)))
    with located("Xnew, in one of its blocks"), blas_threads(0):
        found = fit.predict(rows, kind, rule=rule)
        return _as_array(_framed(fit, found, kind, pd.RangeIndex(len(rows))))


def _nothing(fit: "OrdinalFit", kind: str) -> Any:
    """Return predictions for no rows."""
    r = fit.labels.n_classes
    if kind == "class":
        return fit.labels.decode(np.empty(0, dtype=np.int64))
    if kind == "latent":
        return xr.Dataset({name: ("obs", np.empty(0)) for name in ("mean", "sd")})
    shape = {"probs": (0, r), "cumulative": (0, r - 1), "rank": (0,)}[kind]
    return xr.DataArray(np.empty(shape))


def _framed(fit: "OrdinalFit", found: Any, kind: str, index: pd.Index) -> pd.DataFrame | pd.Series:
    """Return predictions as a table of pandas, with the index of their rows."""
    if kind == "class":
        found = found.to_list() if type(found).__module__.startswith("polars") else found
        return pd.Series(found, index=index, name="class")
    if kind == "rank":
        return pd.Series(found.values, index=index, name="rank")
    if kind == "latent":
        return pd.DataFrame({k: found[k].values for k in ("mean", "sd")}, index=index)
    names = fit.labels.class_names if kind == "probs" else fit.labels.threshold_names
    return pd.DataFrame(found.values, index=index, columns=names)


def _as_array(table: pd.DataFrame | pd.Series) -> np.ndarray:
    return table.to_numpy()
