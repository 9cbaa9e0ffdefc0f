"""Age by workclass, label by label and for the groups of the best grid [HB2007, Figures 3 and 4].

Read from ``docs/tables``, relative to this folder, where the documentation is built.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from pmordinal.modl import fit_grid

table = pd.read_csv("../tables/workclass.csv", comment="#").query("workclass != '?'")
ages, labels = (np.repeat(table[name], table["rows"]) for name in ("age", "workclass"))
counts = table.pivot(index="age", columns="workclass", values="rows").fillna(0)
grid = fit_grid(np.asarray(labels, dtype=object), np.asarray(ages, dtype=float))
groups = [[name] for name in counts.columns] + [list(group) for group in grid.groups]
edges = np.concatenate(([17.0], grid.y_boundaries, [91.0]))
figure, axes = plt.subplots(2, 8, figsize=(14, 5.4), layout="constrained")
for ax in axes.flat[len(groups) :]:
    ax.axis("off")
for i, (ax, members) in enumerate(zip(axes.flat, groups, strict=False)):
    bins = np.arange(15, 96, 5) if i < 8 else edges
    weights = counts[members].sum(axis=1)
    ax.hist(
        counts.index, bins, weights=weights, density=True, color="#1b6ca8" if i < 8 else "#d95f02"
    )
    ax.set_title("\n".join(members), fontsize=8)
    ax.tick_params(labelsize=7)
    ax.set_xlim(15, 95)
figure.supxlabel(
    f"age; below, the {grid.I} groups and {grid.J} intervals of the best grid", fontsize=9
)
