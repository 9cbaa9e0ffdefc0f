"""Errors against the share of labelled rows, without and with the unlabelled ones [SSGPOR, Figures 2 and 3].

Read from ``docs/tables``, relative to this folder, where the documentation is built.
"""

import pandas as pd
from matplotlib import pyplot as plt

table = pd.read_csv("../tables/inductive.csv", comment="#")
table[["name", "share"]] = table["set"].str.extract(r"(.+)-(\d+)%")
table["share"] = table["share"].astype(int)
names = list(table["name"].unique())
figure, axes = plt.subplots(2, len(names), figsize=(14, 5), sharex=True, layout="constrained")
for row, error in zip(axes, ("zero_one", "absolute"), strict=True):
    for ax, name in zip(row, names, strict=True):
        part = table[table["name"] == name]
        full = part[(part["share"] == 100) & (part["method"] == "ssgpor")]
        ax.axhline(full[error].iloc[0], color="0.5", ls=":", label="all labels")
        for method, label in {
            "ssgpor-supervised": "supervised",
            "ssgpor": "semi-supervised",
        }.items():
            line = part[(part["method"] == method) & (part["share"] < 100)].sort_values("share")
            ax.errorbar(
                line["share"],
                line[error],
                line[f"{error}_sd"],
                marker="o",
                ms=3,
                capsize=2,
                label=label,
            )
        ax.set_title(name)
    row[0].set_ylabel("zero-one error, %" if error == "zero_one" else "absolute error")
handles, labels = axes[0, 0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=9)
figure.supxlabel("labelled training rows, %")
