# %% [markdown]
# # Raters and items
#
# A survey: forty essays, each read by some of ten raters, who give marks from 1 to 5. Raters differ in severity,
# essays in quality. The marks change with the length of an essay, but not along a line. Some marks are missing. The
# data are synthetic, so the truth is known.

# %%
import warnings

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
from matplotlib import pyplot as plt

import pmordinal as pmo

rng = np.random.default_rng(3)
raters, essays = [f"R{j}" for j in range(10)], [f"E{i:02d}" for i in range(40)]
severity = dict(zip(raters, -0.8 * rng.normal(size=10), strict=True))
quality = dict(zip(essays, 0.6 * rng.normal(size=40), strict=True))
length = dict(zip(essays, rng.uniform(200, 1200, 40), strict=True))
topic = dict(zip(essays, rng.choice(["history", "science", "travel"], 40), strict=True))

pairs = [(r, e) for e in essays for r in rng.choice(raters, 5, replace=False)]
table = pd.DataFrame(pairs, columns=["rater", "essay"])
table["words"] = table["essay"].map(length)
table["topic"] = table["essay"].map(topic)
shift = {"history": -0.4, "science": 0.0, "travel": 0.4}
latent = (
    table["rater"].map(severity)
    + table["essay"].map(quality)
    + 1.2 * np.sin((table["words"] - 200) / 200)
    + table["topic"].map(shift)
    + rng.normal(size=len(table))
)
table["mark"] = (np.digitize(latent, [-1.5, -0.5, 0.5, 1.5]) + 1).astype(float)
table.loc[rng.choice(len(table), 15, replace=False), "mark"] = np.nan
table.head()

# %% [markdown]
# ## The model is one line
#
# A factor, a smooth, and two groups: the severity of raters, and what is left of an essay's quality. Rows without a
# mark are marginalised.

# %%
formula = "mark ~ topic + gp(words) + (1 | rater) + (1 | essay)"
model = pmo.formula_model(formula, table)
fit = pmo.fit(model, progressbar=False)
fit

# %% [markdown]
# ## Every term comes back

# %%
fit.variance_shares()

# %%
pmo.plots.plot_terms(fit)

# %% [markdown]
# The effects of raters, with intervals, beside what they really are:

# %%
effects = fit.coefficients().query("term == '1|rater'").set_index("level")
effects["truth"] = pd.Series(severity)
effects.sort_values("mean").round(2)

# %%
tree = fit.to_datatree(seed=1)
az.plot_forest(tree, var_names=["1|rater"])

# %% [markdown]
# ## A new rater
#
# Nothing is known of her but how much raters differ. So her marks are less certain than those of a known one.

# %%
row = table.dropna().head(1)
new = pd.concat([row, row.assign(rater="someone new")])
fit.predict(new).round(3).to_pandas()

# %% [markdown]
# ## How much do the hyperparameters matter?
#
# `pmo.fit` holds them at their best values. Sampling them takes seconds, since all terms are integrated out.

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # few draws, for the sake of time
    draws = pm.sample(
        model=model, draws=200, tune=200, chains=2, cores=1, quiet=True, random_seed=1
    )
names = ["1|rater_sd", "1|essay_sd", "gp(words)_sd"]
summary = az.summary(draws, var_names=names)
summary["fit"] = [float(fit.point[name]) for name in names]
summary

# %% [markdown]
# ## Do raters use the scale differently?
#
# `thresholds_by` gives each rater thresholds of her own, pooled around those of the population.

# %%
by_rater = pmo.fit(pmo.formula_model(formula, table, thresholds_by="rater"), progressbar=False)
pd.Series({"one scale": fit.log_evidence, "a scale for each rater": by_rater.log_evidence}).round(1)

# %%
fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(by_rater.thresholds.T, color="0.6", lw=0.8)
ax.plot(fit.thresholds, color="C0", marker="o", label="all raters")
ax.set_xticks(range(4), fit.labels.threshold_names)
ax.set_ylabel("threshold")
ax.legend(frameon=False)
