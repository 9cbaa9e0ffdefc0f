"""The section on MODL: what each attribute alone says, and the grids of the best."""

from collections.abc import Mapping

import pandas as pd
from matplotlib import pyplot as plt

from pmordinal.modl import Grid
from pmordinal.plots import plot_grid
from pmordinal.report.page import Section, columns, figure, text, top_rows, whole_page

MOST_GRIDS = 4  # so many attributes have a picture of their grid


def grids_section(grids: Mapping[str, Grid], ranking: pd.DataFrame, target: str) -> Section:
    """Return the ranking of the attributes, and pictures of the best grids."""
    shown = ranking.rename(
        columns={"I": "parts", "J": "intervals of the labels", "cost": "cost in nats"}
    )
    parts = [
        text(
            f"What does each attribute alone say about the order of {target}? MODL answers without the Gaussian "
            "process. It cuts the attribute and the labels into parts, as finely as the data support. It looks at "
            "the order of the labels only. The level is 0 if nothing was found, and 1 if the attribute determines "
            "the label."
        ),
        top_rows(shown, "attributes", bars="level"),
    ]
    informative = [str(name) for name in ranking.index if not grids[str(name)].is_null][:MOST_GRIDS]
    pictures = []
    for name in informative:
        drawn, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
        plot_grid(grids[name], ax)
        pictures.append([figure(drawn, f"{name} and {target}: counts, and shares by colour")])
    if pictures:
        parts.append(columns(*pictures, wide=True))
    else:
        parts.append(text("No attribute says anything on its own.", "soft"))
    return Section("modl", "MODL ranking", tuple(parts))


def ranking_page(grids: Mapping[str, Grid], ranking: pd.DataFrame, target: str) -> str:
    """Return a whole page on the ranking of the columns, with pictures of the best grids."""
    informative = sum(not grid.is_null for grid in grids.values())
    tiles = {
        "rows": f"{next(iter(grids.values())).to_frame().to_numpy().sum():,}",
        "columns": f"{len(grids):,}",
        "say something": f"{informative:,}",
    }
    section = grids_section(grids, ranking, target)
    return whole_page(f"What says anything about {target}?", "", tiles, [section])
