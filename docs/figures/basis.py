"""Error and NLP of the sparse engine against the share of the rows in its basis [Srijith2012, section 5].

Read from ``docs/tables``, relative to this folder, where the documentation is built.
"""

import pandas as pd
from matplotlib import pyplot as plt

table = pd.read_csv("../tables/basis.csv", comment="#")
table["share"] = table["method"].str.extract(r"basis(\d+)")[0].fillna("20").astype(int)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
names = {"zero_one": "zero-one error, %", "absolute": "absolute error", "nlp": "NLP"}
for ax, (score, title) in zip(axes, names.items(), strict=True):
    wide = table.pivot(index="share", columns="set", values=score)
    ax.plot(wide, marker="o", ms=3, lw=1, label=list(wide.columns))
    ax.plot(wide.mean(axis=1), color="0.1", marker="o", lw=2, label="mean")
    ax.set(title=title, xlabel="basis, % of the training rows", xticks=wide.index)
axes[2].legend(fontsize=8)
