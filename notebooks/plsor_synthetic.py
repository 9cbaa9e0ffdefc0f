# %% [markdown]
# # EP and PLSOR on the synthetic set of the PLSOR paper
#
# One attribute, five ordered classes, a handful of points (Srijith, Shevade and Sundararajan 2012, section 5.1 and
# Fig. 1). The paper says 20 points, but the counts that it gives (2, 3, 10, 5, 1) add up to 21. We follow the
# counts. It does not say where in its interval each point lies, so they are drawn at random.

# %%
import numpy as np
from matplotlib import pyplot as plt

import pmordinal as pmo

rng = np.random.default_rng(0)
groups = [(1, 2, 2, 4), (2, 3, 4, 6), (3, 10, 8, 14), (4, 5, 14, 18), (5, 1, 18, 20)]
x = np.concatenate([np.sort(rng.uniform(low, high, count)) for _, count, low, high in groups])
y = np.concatenate([np.full(count, label) for label, count, _, _ in groups])
grid = np.arange(0, 20.05, 0.1)

# %% [markdown]
# Both are models of PyMC, and the engine is one argument. EP approximates the posterior of the latent function
# under the ordinal likelihood. PLSOR regresses on the labels as numbers, which is exact. It learns from
# leave-one-out predictions where to cut them.

# %%
fits = {
    engine: pmo.fit(pmo.gp_model(x, y, "expquad", engine=engine), progressbar=False)
    for engine in ("ep", "plsor")
}
for fit in fits.values():
    print(fit, "\n")

# %% [markdown]
# Mean and standard deviation of the predicted class, as in the paper's Fig. 1, and the class probabilities behind them.

# %%
figure, axes = plt.subplots(2, 2, figsize=(11, 6.5), sharex=True, layout="constrained")
for (engine, fit), column in zip(fits.items(), axes.T, strict=True):
    probs = fit.predict(grid).values
    labels = np.arange(1, 6)
    mean = probs @ labels
    sd = np.sqrt(probs @ labels**2 - mean**2)
    column[0].fill_between(grid, mean - sd, mean + sd, alpha=0.3, lw=0)
    column[0].plot(grid, mean)
    column[0].plot(x, y, "k+", ms=9)
    column[0].set(title=f"{engine}: predicted class, mean ± sd", ylabel="class", ylim=(0, 6))
    pmo.plots.plot_categories(fit, "x0", ax=column[1], n_grid=200)
    column[1].set(xlabel="x", xlim=(0, 20))
plt.show()

# %% [markdown]
# The two agree where there are data. Their leave-one-out log scores, from each engine's own formulas:

# %%
{engine: round(float(fit.posterior.leave_one_out.value.sum()), 2) for engine, fit in fits.items()}
