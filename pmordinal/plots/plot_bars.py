"""Observed class counts beside those of replicated data, group by group."""

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection, visuals

from pmordinal.data.lettering import caption
from pmordinal.diagnostics.model_checks import predictive_bars
from pmordinal.plots.base import ACCENT, class_colours, intervals, name_axis, panels
from pmordinal.results.fit import OrdinalFit


def plot_bars(source: OrdinalFit | xr.DataTree, by=None, **kwargs) -> PlotCollection:
    """Draw observed class counts as bars with predictive intervals over them, one panel for each group.

    Parameters
    ----------
    source : OrdinalFit or DataTree
    by : str or array_like, shape (n,), optional
        A categorical column of the training table, or any grouping of the rows.
    **kwargs
        For `predictive_bars`.

    Returns
    -------
    PlotCollection
    """
    table = predictive_bars(source, by, **kwargs)
    groups, classes = (list(table[name].cat.categories) for name in ("group", "class"))
    shape = (len(groups), len(classes))
    x = np.broadcast_to(np.arange(shape[1], dtype=float), shape)
    columns = {"x": x} | {
        name: table[name].to_numpy(dtype=float).reshape(shape)
        for name in ("observed", "mean", "low", "high")
    }
    names = {"x": "x", "observed": "y", "mean": "mean", "low": "y_bottom", "high": "y_top"}
    data = xr.Dataset(
        {"count": (("plot_axis", "group", "class"), np.stack([columns[name] for name in names]))},
        coords={"plot_axis": list(names.values()), "group": [str(g) for g in groups]},
    )
    collection = panels(
        data,
        "group",
        2.5,
        f"Observed counts (bars) and what the model predicts ({intervals(kwargs)})",
    )
    data = collection.data
    collection.map(_bars, "observed", colours=class_colours(len(classes)))
    collection.map(visuals.ci_line_y, "interval", color=ACCENT, width=1.8)
    predicted = data.sel(plot_axis=["x", "mean"]).assign_coords(plot_axis=["x", "y"])
    collection.map(visuals.scatter_xy, "mean", data=predicted, color=ACCENT, size=22)
    for i, group in enumerate(data["group"].values):
        ax = collection.get_target("count", {"group": group})
        name_axis(ax, x[0], classes, "")
        ax.set_title("" if by is None else caption(group, 30), fontsize="medium")
        ax.set_ylim(bottom=0)
        if i % 4 == 0:
            ax.set_ylabel("rows")
    return collection


def _bars(da: xr.DataArray, target, colours, **kwargs):
    return target.bar(da.sel(plot_axis="x"), da.sel(plot_axis="y"), 0.75, color=colours, alpha=0.75)
