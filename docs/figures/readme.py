"""The picture of the README and of the index: `python docs/figures/readme.py` writes readme.svg beside this file."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import pmordinal as pmo


def draw():
    """Return a figure: ratings along one attribute, the latent function with its thresholds, class probabilities."""
    rng = np.random.default_rng(7)
    hours = np.sort(rng.uniform(0, 10, 70))
    latent = np.sin(0.7 * hours) + 0.15 * hours + 0.25 * rng.normal(size=70)
    names = ["poor", "fair", "good", "great"]
    rating = pd.Categorical.from_codes(np.digitize(latent, [0.3, 0.9, 1.5]), names, ordered=True)
    fit = pmo.fit(pmo.gp_model(pd.DataFrame({"hours": hours}), rating), progressbar=False)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.1), layout="constrained")
    pmo.plots.plot_latent(fit, "hours", ax=left).set_title("the latent function and its thresholds")
    pmo.plots.plot_categories(fit, "hours", ax=right).set_title("P(rating = k)")
    return figure


if __name__ == "__main__":
    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "pmordinal", "path.simplify": True}
    draw().savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})
