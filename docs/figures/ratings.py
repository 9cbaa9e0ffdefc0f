"""Errors against the number of rated films, by engine and by how missing ratings are filled [CG2005, Figure 3].

Read from ``docs/tables``, relative to this folder, where the documentation is built.
"""

import pandas as pd
from matplotlib import pyplot as plt

table = pd.read_csv("../tables/ratings.csv", comment="#")
means = table.groupby(["missing", "engine", "size"], as_index=False)[
    ["zero_one", "absolute"]
].mean()
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ax, error in zip(axes, ("absolute", "zero_one"), strict=True):
    for (missing, engine), part in means.groupby(["missing", "engine"]):
        style = "--" if missing == "mean" else "-"
        colour = "#d95f02" if engine == "laplace" else "#1b6ca8"
        label = f"{engine}, {missing}"
        ax.plot(part["size"], part[error], style, color=colour, marker="o", ms=3, label=label)
    ax.set(
        xlabel="rated films", title="absolute error" if error == "absolute" else "zero-one error, %"
    )
axes[0].legend(fontsize=8)
