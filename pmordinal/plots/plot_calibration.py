"""Calibration of the cumulative probabilities, threshold by threshold."""

import numpy as np
import pandas as pd
import xarray as xr
from arviz_plots import PlotCollection, visuals

from pmordinal.data.lettering import caption
from pmordinal.diagnostics.model_checks import calibration
from pmordinal.plots.base import INK, MUTED, class_colours, intervals, panels

MOST = 1000  # points of a curve: a picture shows no more, and a file of many rows would be huge


def plot_calibration(source, y=None, **kwargs) -> PlotCollection:
    """Draw the observed against the predicted frequency of Y ≤ k, one panel for each threshold.

    The grey band is where the curve of a calibrated model would lie; ticks at the bottom are the
    predictions. Beyond 1000 different predictions it draws so many of them, evenly chosen in order.

    Parameters
    ----------
    source : OrdinalFit, DataTree, or array_like of probabilities, shape (m, r)
    y : array_like, shape (m,), optional
        True labels; only with probabilities.
    **kwargs
        For `calibration`.

    Returns
    -------
    PlotCollection
    """
    table = calibration(source, y, **kwargs)
    names = list(table["threshold"].cat.categories)
    parts = [_thinned(table[table["threshold"] == name]) for name in names]
    longest = max(map(len, parts))
    axes = {"x": "predicted", "y": "observed", "y_bottom": "low", "y_top": "high"}
    values = np.full((len(names), len(axes), longest), np.nan)
    for value, part in zip(values, parts, strict=True):
        value[:, : len(part)] = part[list(axes.values())].to_numpy().T
    data = xr.Dataset(
        {"probability": (("threshold", "plot_axis", "point"), values)},
        coords={"threshold": names, "plot_axis": list(axes)},
    )
    band = f"{intervals(kwargs)} of a right model"
    collection = panels(data, "threshold", 3.0, f"Calibration of P(Y ≤ k), {band}")
    data = collection.data
    collection.map(
        visuals.fill_between_y,
        "band",
        x=data.sel(plot_axis="x"),
        y_bottom=data.sel(plot_axis="y_bottom"),
        y_top=data.sel(plot_axis="y_top"),
        color="0.5",
        alpha=0.3,
    )
    collection.map(_diagonal, "diagonal")
    collection.map(visuals.line_xy, "curve", color=class_colours(2)[0], width=1.8)
    collection.map(
        visuals.scatter_x,
        "rug",
        data=data.sel(plot_axis="x"),
        y=-0.035,
        marker="|",
        color=INK,
        size=25,
    )
    for i, name in enumerate(data["threshold"].values):
        ax = collection.get_target("probability", {"threshold": name})
        ax.set_title(caption(name, 30), fontsize="medium")
        ax.set(xlabel="predicted", xlim=(-0.03, 1.03), ylim=(-0.07, 1.03))
        if i % 4 == 0:
            ax.set_ylabel("observed")
    return collection


def _thinned(part: pd.DataFrame) -> pd.DataFrame:
    """Return at most `MOST` of the rows, the first and the last among them."""
    if len(part) <= MOST:
        return part
    return part.iloc[np.linspace(0, len(part) - 1, MOST).round().astype(int)]


def _diagonal(da: xr.DataArray, target, **kwargs):
    return target.plot([0, 1], [0, 1], color=MUTED, lw=0.9, ls="--")[0]
