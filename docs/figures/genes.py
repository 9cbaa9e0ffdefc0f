"""Errors against the number of selected genes, with and without the gene that separates the classes [CG2005, Figure 4].

Read from ``docs/tables``, relative to this folder, where the documentation is built.
"""

import pandas as pd
from matplotlib import pyplot as plt

table = pd.read_csv("../tables/genes.csv", comment="#")
names = ["absolute", "zero_one"]
means = table.groupby(["without", "engine", "genes"], as_index=False)[names].mean()
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for ax, error in zip(axes, names, strict=True):
    for (without, engine), part in means.groupby(["without", "engine"]):
        colour = "#d95f02" if engine == "laplace" else "#1b6ca8"
        style = "-" if without == "none" else "--"
        label = f"{engine}, all genes" if without == "none" else f"{engine}, without {without}"
        ax.plot(part["genes"], part[error], style, color=colour, marker="o", ms=3, label=label)
    ax.set(xlabel="genes", title="absolute error" if error == "absolute" else "zero-one error, %")
    ax.set_xscale("log", base=2)
handles, labels = axes[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8)
