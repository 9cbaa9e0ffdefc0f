# %% [markdown]
# # MODL rank regression: the experiments of the paper
#
# Hue and Boullé (2007), sections 2, 3 and 5, with `pmordinal.modl`. Two things go beyond the paper: averaging over
# subsets of predictors, and a posterior over grids. Everything is drawn or generated here. Iris comes with
# scikit-learn. It takes about two minutes on one core. Raise `SETS` for smoother curves.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import norm

from pmordinal import modl
from pmordinal.modl import plots

SETS = 20  # data sets per point of a curve; the paper has 100 to 100,000
rng = np.random.default_rng(2007)

# %% [markdown]
# ## One pair (section 2)
#
# Petal length and sepal length of the irises. The criterion weighs the fineness of the grid against its fit. One
# cell costs 615 nats, a cell for each pair of ranks 966, the best grid 546.

# %%
from sklearn.datasets import load_iris

iris = load_iris(as_frame=True).frame
grid = modl.fit_grid(
    iris["petal length (cm)"],
    iris["sepal length (cm)"],
    x_name="petal length",
    y_name="sepal length",
)
fig, axes = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
grid.plot(axes[0])
grid.plot_cdf(axes[1])
grid

# %% [markdown]
# A categorical predictor is grouped, not cut; missing values are a part of their own.

# %%
species = pd.Series(iris["target"].map(dict(enumerate(load_iris().target_names))), name="species")
species = species.astype(object).mask(rng.random(150) < 0.15, None)
grouped = modl.fit_grid(species, iris["sepal length (cm)"], y_name="sepal length")
grouped.plot()
grouped

# %% [markdown]
# ## The heteroscedastic set (sections 3 and 5.1)
#
# A curve whose noise depends on the place. The optimal grid at N = 384 and its conditional rank cdfs, as in figures 7 and 8.


# %%
def heteroscedastic(n):
    """Draw n rows of the synthetic set."""
    x = rng.uniform(0, np.pi, n)
    return x, rng.normal(*moments(x))


def moments(x):
    """Return the conditional mean and standard deviation."""
    mean = np.sin(2.5 * x) * np.sin(1.5 * x)
    return mean, np.sqrt(0.01 + 0.25 * (1 - np.sin(2.5 * x)) ** 2)


x, y = heteroscedastic(384)
grid = modl.fit_grid(x, y)
fig, axes = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
grid.plot(axes[0])
grid.plot_cdf(axes[1])
grid

# %% [markdown]
# ### NLRPD against the training size (figure 9)
#
# This is the negative log rank predictive density (NLRPD). That of the *true* distribution settles at N ≈ 100, near
# −0.945, and does not depend on the training size beyond that. A grid of constant cells comes down to it slowly,
# because the true density is sharp in places. The average over the posterior of grids is ahead of the single grid
# at every size.


# %%
def true_score(y_train, x, y):
    """Return the NLRPD of the true distribution."""
    mean, sd = moments(x)

    def log_probability(low, high):
        a, b = (low - mean) / sd, (high - mean) / sd
        # take the tail that does not cancel
        p = np.where(a > 0, norm.sf(a) - norm.sf(b), norm.cdf(b) - norm.cdf(a))
        return np.log(p)

    return modl.nlrpd_of_cdf(log_probability, y_train, y).mean()


def grid_score(grid, x, y):
    """Return the NLRPD of one grid."""
    return -np.log(grid.rank_density()[grid.part_of(x), grid.interval_of(y)]).mean()


sizes = 2 ** np.arange(2, 13)
scores = {"true density": [], "one grid": [], "average over grids": []}
for n in sizes:
    rows = []
    for k in range(max(SETS // 2, 1)):
        x, y = heteroscedastic(n)
        x_new, y_new = heteroscedastic(1000)
        row = [true_score(y, x_new, y_new), grid_score(modl.fit_grid(x, y), x_new, y_new), np.nan]
        if k < 4:
            tree = modl.sample_grids(
                x, y, draws=100, chains=2, tune=5000, pointwise=False, progressbar=False
            )
            row[2] = -modl.averaged_log_score(tree, x_new, y_new).mean()
        rows.append(row)
    for name, value in zip(scores, np.nanmean(rows, axis=0), strict=True):
        scores[name].append(value)

fig, ax = plt.subplots(layout="constrained")
for name, values in scores.items():
    ax.semilogx(sizes, values, marker=".", base=2, label=name)
ax.axhline(-0.945, color="0.7", linestyle=":")
ax.set(xlabel="training size", ylabel="NLRPD on 1,000 new rows")
ax.legend()

# %% [markdown]
# ## Noise (section 5.2, figure 10)
#
# Independent variables: the share of data sets in which something is found. The paper has 0.8 % at N = 32, 0.2 % at 128 and 0.006 % at
# 1,024.

# %%
sizes = 2 ** np.arange(2, 10)
false = [
    np.mean([not modl.fit_grid(rng.random(n), rng.random(n)).is_null for _ in range(10 * SETS)])
    for n in sizes
]
fig, ax = plt.subplots(layout="constrained")
ax.semilogx(sizes, false, marker=".", base=2)
ax.set(xlabel="N", ylabel="false detections", ylim=(-0.002, 0.05))

# %% [markdown]
# ## Two blocks with noise (figure 11)
#
# The paper calls it XOR: two diagonal blocks, a share of the rows replaced by noise. Each curve has a sharp threshold.


# %%
def blocks(n, noise):
    """Draw two diagonal blocks with a share of noise."""
    x = rng.random(n)
    y = 0.5 * rng.random(n) + 0.5 * (x > 0.5)
    k = rng.random(n) < noise
    x[k], y[k] = rng.random(k.sum()), rng.random(k.sum())
    return x, y


sizes = 2 ** np.arange(2, 12)
fig, axes = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
for noise in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
    mean = [np.mean([modl.fit_grid(*blocks(n, noise)).J for _ in range(SETS)]) for n in sizes]
    axes[0].semilogx(sizes, mean, marker=".", base=2, label=f"noise {noise}")
axes[0].set(xlabel="N", ylabel="mean number of target intervals")
axes[0].legend(loc="lower right", fontsize="small")
modl.fit_grid(*blocks(1024, 0.8)).plot(axes[1])

# %% [markdown]
# ## A noisy circle (figure 12)
#
# The conditional distribution has two modes for most x; nothing in the model stands against that.

# %%
angle = rng.uniform(0, 2 * np.pi, 300)
x, y = (f(angle) + 0.08 * rng.normal(size=300) for f in (np.cos, np.sin))
fig, axes = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
circle = modl.fit_grid(x, y)
circle.plot(axes[0])
circle.plot_cdf(axes[1])

# %% [markdown]
# ## Beyond the paper: a posterior over grids
#
# exp(−c(M)) is a posterior probability, so it can be sampled. The average over grids is smooth where the single grid is blocky.

# %%
import arviz as az

x, y = heteroscedastic(384)
grid = modl.fit_grid(x, y)
tree = modl.sample_grids(x, y, progressbar=False)
az.summary(tree)

# %%
fig, axes = plt.subplots(1, 3, figsize=(15, 4), layout="constrained")
plots.plot_boundaries(tree, "x", axes[0])
plots.plot_boundaries(tree, "y", axes[1])
plots.plot_averaged_cdf(tree, [0.5, 1.4, 2.6], grid, axes[2])
axes[2].set_title("solid: average, dashed: one grid")

# %% [markdown]
# ## Many predictors (sections 3.3 and 5.3)
#
# Univariate, naive Bayes, selective naive Bayes and the average over subsets, on correlated predictors of which two
# are noise. ArviZ compares them from their pointwise log scores. Naive Bayes counts several times what the
# predictors share. Selection and weights mend that.

# %%
n = 600
z = rng.normal(size=n)
X = pd.DataFrame({f"x{k}": z + (0.5 + 0.3 * k) * rng.normal(size=n) for k in range(5)})
X["group"] = np.where(z + rng.normal(size=n) > 0, "high", "low")
X["noise 1"], X["noise 2"] = rng.normal(size=(2, n))
target = 2 * z + 0.5 * rng.normal(size=n)
train, test = np.arange(n) < 400, np.arange(n) >= 400

plots.plot_ranking(modl.rank_predictors(X[train], target[train], progressbar=False))
models = {
    kind: modl.RankRegressor(kind).fit(X[train], target[train])
    for kind in ("univariate", "nb", "snb", "averaged")
}
pd.DataFrame(
    {
        kind: {
            "NLRPD": m.nlrpd(X[test], target[test]),
            "NLPD": m.nlpd(X[test], target[test]),
            "CRPS": m.crps(X[test], target[test]),
            "RPS": m.rps(X[test], target[test], [-2, 0, 2]),
            "predictors": len(m.weights_),
        }
        for kind, m in models.items()
    }
).T.round(3)

# %%
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # rows in nearly empty cells have a large k-hat
    comparison = az.compare({kind: m.to_datatree() for kind, m in models.items()})
comparison
