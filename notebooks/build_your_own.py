# %% [markdown]
# # How do I build the model that no factory has?
#
# Eight critics rate dishes from 1 to 5. They differ in severity and in how they use the scale, and one of them is
# careless. Saltiness acts in its own way, price as a straight line. Every piece of pmordinal is a PyMC variable or
# a PyMC covariance, so the model is written down piece by piece. First the data, so that we know what should come
# out.

# %%
import warnings

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
from matplotlib import pyplot as plt

import pmordinal as pmo

rng = np.random.default_rng(4)
n, critics = 240, [f"critic {c}" for c in "ABCDEFGH"]
critic = rng.integers(0, 8, n)
salt, price = rng.uniform(0, 4, n), rng.normal(size=n)
severity = np.array([-0.9, -0.5, -0.2, 0.0, 0.1, 0.3, 0.5, 0.8])
careless = np.array([0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 1.5])  # critic H
taste = 1.3 * np.sin(salt * np.pi / 4) ** 2 - 0.6 + 0.5 * price
noisy = taste - severity[critic] + careless[critic] * rng.normal(size=n)
rating = np.digitize(noisy, [-1.1, -0.3, 0.4, 1.2]) + 1
table = pd.DataFrame({"salt": salt, "price": price, "critic": np.array(critics)[critic]})
pd.crosstab(table["critic"], rating)

# %% [markdown]
# ## Gaussian process, straight line and severity, integrated out
#
# Whatever has Gaussian weights is a covariance. Here there are three, and they are added: a smooth function of
# salt, a linear effect of price, and a shift for each critic. The fit integrates over all of it and takes a second.
# The columns that the covariances see are salt, price and one for each critic.

# %%
with pm.Model() as additive:
    ls = pm.LogNormal("salt_lengthscale", 0.0, 1.0)
    slope = pm.HalfNormal("price_sd", 1.0)
    spread = pm.HalfNormal("critic_sd", 1.0)
    cov = pm.gp.cov.ExpQuad(10, ls=ls, active_dims=[0])
    cov = cov + slope**2 * pm.gp.cov.Linear(10, c=0.0, active_dims=[1])
    cov = cov + spread**2 * pm.gp.cov.Linear(10, c=0.0, active_dims=list(range(2, 10)))
    pmo.gp_model(table, rating, cov)
fit = pmo.fit(additive, progressbar=False)
fit

# %% [markdown]
# The parts in one picture each: the bump of salt, the line of price, the critics' averages.

# %%
_, axes = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
for ax, name in zip(axes, ("salt", "price", "critic"), strict=True):
    effect = fit.effects(name, kind="rank")
    at, (mean, low, high) = effect[name], effect[["mean", "low", "high"]].to_numpy().T + 1.0
    if name == "critic":
        ax.errorbar(at.str[-1], mean, [mean - low, high - mean], fmt="o")
    else:
        ax.fill_between(at.astype(float), low, high, alpha=0.25, lw=0)
        ax.plot(at.astype(float), mean)
    ax.set(xlabel=name, ylabel="expected stars" if name == "salt" else "")

# %% [markdown]
# ## Thresholds and noise for each critic, by sampling
#
# Severity is a shift of all thresholds. But a critic may also use the middle of the scale more widely, or be
# careless. Thresholds by critic are partially pooled with `by=`. The noise is a vector of PyMC variables, one for
# each critic. `pmo.Ordinal` takes any predictor. Here it is the line of price and an HSGP, the cheap Gaussian
# process for one attribute. All that is plain PyMC, so NUTS does the rest.

# %%
coords = {"critic": critics, "threshold": ["1|2", "2|3", "3|4", "4|5"]}
with pm.Model(coords=coords) as own:
    slope = pm.Normal("slope", 0.0, 1.0)
    ls = pm.LogNormal("salt_lengthscale", 0.0, 0.5)
    gp = pm.gp.HSGP(m=[12], c=1.5, cov_func=pm.gp.cov.ExpQuad(1, ls=ls))
    f = gp.prior("f", (salt - salt.mean())[:, None])
    b = pmo.thresholds("thresholds", n_classes=5, dims="threshold", by="critic")
    noise = pm.LogNormal("noise", -0.7, 0.7, dims="critic")
    eta = f - f.mean() + slope * price  # the level belongs to the thresholds
    pmo.Ordinal("rating", eta, b[critic], noise[critic], observed=rating - 1)
    options = {"chains": 2, "cores": 1, "random_seed": 1, "quiet": True}
    tree = pm.sample(300, tune=400, target_accept=0.9, **options)
az.summary(
    tree,
    var_names=["slope", "salt_lengthscale", "noise", "thresholds_shift_sd", "thresholds_gap_sd"],
)

# %% [markdown]
# Critic H is found out: her noise is several times that of the others, so her stars count for less. The critics
# differ in severity (`thresholds_shift_sd`), hardly in their use of the scale (`thresholds_gap_sd`). Crosses are
# the truth. The unit is that of the process, whose amplitude is one. So everything may be off by a common factor.

# %%
_, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
posterior = tree["posterior"].to_dataset()
low, middle, high = posterior["noise"].quantile([0.05, 0.5, 0.95], ("chain", "draw")).values
axes[0].errorbar(range(8), middle, [middle - low, high - middle], fmt="o")
axes[0].plot(range(8), careless, "x", color="0.3", ms=8)
axes[0].set(title="noise", yscale="log")
cuts = (
    posterior["thresholds"]
    .quantile([0.05, 0.5, 0.95], ("chain", "draw"))
    .transpose("quantile", "critic", "threshold")
)
for k, colour in enumerate(plt.get_cmap("viridis")(np.linspace(0, 0.9, 4))):
    low, middle, high = cuts.values[:, :, k]
    axes[1].errorbar(
        range(8),
        middle,
        [middle - low, high - middle],
        fmt="o",
        color=colour,
        label=coords["threshold"][k],
    )
    axes[1].plot(range(8), severity + [-1.1, -0.3, 0.4, 1.2][k], "x", color="0.3", ms=7)
axes[1].legend(ncols=4, fontsize=8, loc="upper left")
axes[1].set(title="thresholds")
for ax in axes:
    ax.set_xticks(range(8), [c[-1] for c in critics])
    ax.set_xlabel("critic")

# %% [markdown]
# ## Was it worth it?
#
# The additive model has one noise for all. These are leave-one-out scores of the two. The first is from the
# engine's cavities. The second is by importance sampling of the draws, which is rough for a few rows. Draws
# integrate over the hyperparameters, without the label left out. So the fit does it, too, by `fit.integrate`:

# %%
with own:
    pm.compute_log_likelihood(tree, progressbar=False)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # about those rows, counted below
    sampled = az.loo(tree, pointwise=True)
    comparison = az.compare(
        {"one noise, shifts": pmo.loo(fit.integrate()), "thresholds and noise by critic": sampled}
    )
print(
    f"{int((sampled.pareto_k > sampled.good_k).sum())} of {n} rows have a k-hat above {sampled.good_k:.2f}"
)
comparison

# %% [markdown]
# More of such pieces, with code to copy, are in the recipes of the documentation: mean functions, offsets, a noise
# for each row.
