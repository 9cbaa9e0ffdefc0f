"""MODL on synthetic pairs [HB2007, Figures 9, 10 and 11].

Read from ``docs/tables``, relative to this folder, where the documentation is built.
"""

import pandas as pd
from matplotlib import pyplot as plt

PUBLISHED = {32: 0.008, 128: 0.002, 1024: 0.00006}  # share of the sets in which something is found
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.6), layout="constrained")
truth = pd.read_csv("../tables/truth.csv", comment="#")
for n_test, part in truth.groupby("n_test"):
    left.plot(part["n"], part["nlrpd"], marker="o", ms=3, label=f"{n_test:,} test rows")
left.set(title="NLRPD of the true distribution", xlabel="training rows")
noise = pd.read_csv("../tables/noise.csv", comment="#").groupby("n")[["I", "J"]].mean()
for name, style in {"I": "o-", "J": "s--"}.items():
    label = "predictor" if name == "I" else "target"
    middle.plot(noise.index, noise[name], style, ms=4, mfc="none", label=label)
shares = pd.Series(PUBLISHED)
middle.plot(shares.index, 1.0 + shares, "kx", label="paper: 1 + share of false detections")
middle.set(title="noise alone: mean number of intervals", xlabel="rows", ylim=(0.9995, 1.0145))
blocks = pd.read_csv("../tables/blocks.csv", comment="#")
for rate, part in blocks.groupby("noise"):
    right.plot(part["n"], part["J"], marker="o", ms=3, label=f"noise {rate:g}")
right.set(title="blocks: mean number of target intervals", xlabel="rows")
for ax in (left, middle, right):
    ax.set_xscale("log", base=2)
    ax.legend(fontsize=8, loc="upper right" if ax is middle else "best")
