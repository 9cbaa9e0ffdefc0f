"""The posterior mean on two attributes and three classes, at two levels of noise [CG2005, Figure 2]."""

import numpy as np
from matplotlib import pyplot as plt

import pmordinal as pmo

COLOURS = ("#1b6ca8", "#d95f02", "#4a7c2a")
rng = np.random.default_rng(7)
X = rng.uniform(-1.0, 1.0, size=(70, 2))
latent = 2.0 * X[:, 0] + np.sin(3.0 * X[:, 1])
side = np.linspace(-1.0, 1.0, 41)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(
    2, 2, figsize=(8.5, 7.5), sharex=True, sharey=True, layout="constrained"
)
for row, noise in zip(axes, (0.1, 0.8), strict=True):
    y = np.digitize(latent + noise * rng.normal(size=70), [-0.8, 0.8])
    for ax, engine in zip(row, ("laplace", "ep"), strict=True):
        fit = pmo.fit(pmo.gp_model(X, y, "expquad", engine=engine), progressbar=False)
        mean = fit.predict(grid, kind="latent")["mean"].to_numpy().reshape(41, 41)
        lines = ax.contour(side, side, mean, levels=fit.point["thresholds"], colors="0.2")
        ax.clabel(lines, fmt="%.2f")
        for k, colour in enumerate(COLOURS):
            ax.plot(*X[y == k].T, "o+x"[k], color=colour, mfc="none", label=f"y = {k + 1}")
        ax.set_title(f"{engine}, noise {noise}")
axes[0, 0].legend(loc="lower left")
