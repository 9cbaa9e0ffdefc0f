"""CPU seconds of a whole fit against the number of rows: numbers of benchmarks/scale.py."""

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt

# The plot directive runs this file in its own folder.
table = pd.read_csv(Path("scale.csv"))
figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for (engine, m), part in table.groupby(["engine", table["m"].where(table["engine"] != "ep", 0)]):
    name = "ep, n × n matrices" if engine == "ep" else f"inducing, m = {m:.0f}"
    colour = {0: "0.3", 100: "#d95f02", 200: "#1b6ca8", 500: "#1b9e77"}[m]
    ax.loglog(part["rows"], part["cpu_s"], "o-", color=colour, label=name)
ax.set(xlabel="rows", ylabel="CPU seconds of a fit, one thread")
ax.grid(alpha=0.3)
ax.legend(frameon=False)
