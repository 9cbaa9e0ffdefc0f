"""MODL on synthetic pairs [HB2007, Figures 9 and 11].

Read from ``docs/tables``, relative to this folder, where the documentation is built.
"""

import pandas as pd
from matplotlib import pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
truth = pd.read_csv("../tables/truth.csv", comment="#")
for n_test, part in truth[truth["training"] == "new"].groupby("n_test"):
    left.plot(part["n"], part["nlrpd"], marker="o", ms=3, label=f"{n_test:,} test rows")
left.set(title="NLRPD of the true distribution", xlabel="training rows")
blocks = pd.read_csv("../tables/blocks.csv", comment="#")
for rate, part in blocks.groupby("noise"):
    right.plot(part["n"], part["J"], marker="o", ms=3, label=f"noise {rate:g}")
right.set(title="blocks: mean number of target intervals", xlabel="rows")
for ax in (left, right):
    ax.set_xscale("log", base=2)
    ax.legend(fontsize=8)
