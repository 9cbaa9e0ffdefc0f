# %% [markdown]
# # Learning from unlabelled rows
#
# Three ordered classes in the plane, ten labelled and a hundred unlabelled rows of each (Srijith, Shevade and
# Sundararajan 2013, section 4 and Fig. 1). The paper does not say which Gaussians it drew from. These are ours. In
# the first set labelled and unlabelled rows are drawn alike. In the second the labelled ones are narrow and
# displaced to the right. So the gaps between the unlabelled clouds are not in the middle between the labelled ones.

# %%
import numpy as np
from matplotlib import pyplot as plt

import pmordinal as pmo

means = np.array([[-3.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
roots = np.array([[[0.8, 0.0], [0.3, 0.9]], [[0.7, 0.0], [-0.2, 0.8]], [[0.8, 0.0], [0.4, 0.6]]])


def draw(rng, count, shift=0.0, size=1.0):
    """Return rows and labels of the three clouds, displaced and shrunk."""
    z = rng.normal(size=(3, count, 2)) @ roots.transpose(0, 2, 1)
    X = (means[:, None] + size * z + np.array([shift, 0.0])).reshape(-1, 2)
    return X, np.repeat([1, 2, 3], count)


rng = np.random.default_rng(1)
sets = {
    "drawn alike": (draw(rng, 10), draw(rng, 100)),
    "labelled rows displaced": (draw(rng, 10, 1.0, 0.4), draw(rng, 100)),
}

# %% [markdown]
# Unlabelled rows are given by `unlabeled=`, or by missing labels in `y`. By default they are marginalised and
# change nothing. `semisupervised=True` runs the paper's Algorithm 1. The unlabelled rows get labels in the
# proportions of the labelled ones. The hyperparameters have to make these labels probable too, with a weight λ that
# grows to one.

# %%
fits = {}
for name, ((X, y), (Xu, truth)) in sets.items():
    model = pmo.gp_model(X, y, "expquad", engine="ep", unlabeled=Xu)
    supervised = pmo.fit(model, progressbar=False)
    fit = pmo.fit(model, semisupervised=True, progressbar=False)
    fits[name] = supervised, fit
    print(name)
    print(f"  rows wrong: supervised {np.mean(supervised.predict(Xu, 'class') != truth):.3f}")
    print(f"  semi-supervised {np.mean(fit.predict(Xu, 'class') != truth):.3f}")
    print(f"  final labels {np.mean(fit.unlabeled_labels != truth):.3f}")

# %% [markdown]
# The decision boundaries are where the mean of the latent function crosses a threshold. Labelled rows are large.
# Unlabelled ones are small and coloured by the truth, which no fit has seen.

# %%
x1, x2 = np.meshgrid(np.linspace(-6, 6.5, 121), np.linspace(-3, 4, 71))
grid = np.column_stack([x1.ravel(), x2.ravel()])
figure, axes = plt.subplots(1, 2, figsize=(12, 4.2), sharey=True, layout="constrained")
colours = np.array(["C0", "C1", "C2"])
for axis, (name, ((X, y), (Xu, truth))) in zip(axes, sets.items(), strict=True):
    axis.scatter(*Xu.T, s=8, c=colours[truth - 1], alpha=0.5, lw=0)
    axis.scatter(*X.T, s=45, c=colours[y - 1], edgecolor="k")
    for fit, style in zip(fits[name], ("--", "-"), strict=True):
        mean = fit.predict(grid, "latent")["mean"].values.reshape(x1.shape)
        axis.contour(x1, x2, mean, levels=fit.thresholds, colors="k", linestyles=style)
    axis.plot([], [], "k--", label="supervised")
    axis.plot([], [], "k-", label="semi-supervised")
    axis.set(title=name, xlabel="$x_1$")
axes[0].set_ylabel("$x_2$")
axes[1].legend(loc="lower right")

# %% [markdown]
# What happened on the way, for each weight λ: the log evidence of the labelled rows, the mean log probability of
# the labels given to the unlabelled ones, and how many pairs of labels were switched.

# %%
figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
for name, (_, fit) in fits.items():
    for axis, column in zip(axes, ("log_evidence", "match", "switches"), strict=True):
        axis.semilogx(fit.path["weight"], fit.path[column], "o-", label=name)
        axis.set(xlabel="λ", title=column)
axes[0].legend()
fits["labelled rows displaced"][1].path
