# %% [markdown]
# # Is my ordinal model any good? ArviZ from the priors to the comparison
#
# Nine judges rated the bitterness of wine, 1 to 5 (Randall 1989). This is the usual round of Bayesian checks, with
# what is special about ordered classes. The prior of thresholds is judged by the classes that it implies. Counts
# and calibration take the place of densities of the data.

# %%
import logging

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr

import pmordinal as pmo

logging.getLogger("pymc").setLevel(logging.WARNING)  # no lists of variables
wine = pmo.datasets.wine()
y = wine["rating"]
model = pmo.gp_model(wine[["temperature", "contact", "judge"]], y, "expquad")

# %% [markdown]
# **Before the data: what do the priors say?** Data sets are drawn from them. The default makes every division into
# classes equally probable. So each class may take nearly nothing or nearly all. No class is ruled out, and none is
# favoured.

# %%
pmo.plots.plot_prior(model, seed=1)

# %% [markdown]
# **Sampling.** The latent function is integrated out, so NUTS sees six parameters. `sample_posterior`
# then adds the function, replicated labels and log likelihoods.

# %%
tree = pm.sample(400, tune=400, chains=2, cores=1, model=model, random_seed=1, quiet=True)
tree = pmo.sample_posterior(model, tree, seed=1)
az.summary(tree, var_names=["lengthscale", "noise", "thresholds"])

# %% [markdown]
# R-hat near one and hundreds of effective draws: the chains agree. The thresholds carry the names of the classes on
# either side.

# %%
az.plot_rank(tree, var_names=["lengthscale", "noise"])

# %% [markdown]
# How much did the data say? Prior and posterior in one picture, as logarithms: the priors are log-normal.

# %%
with model:
    prior = pm.sample_prior_predictive(1000, var_names=["lengthscale", "noise"], random_seed=1)
names = {"lengthscale": "log length-scale", "noise": "log noise"}
logs = {
    group: np.log(source[group].to_dataset()[list(names)]).rename(names)
    for group, source in {"prior": prior, "posterior": tree}.items()
}
az.plot_prior_posterior(xr.DataTree.from_dict(logs))

# %% [markdown]
# **Does the model reproduce the data?** Counts of each rating, observed and replicated, judge by judge. The model
# understands that judge 7 finds nothing bitter. Judge 5 says 3 to nearly everything, and is at the edge of what the
# model expects. The latent function can move for a judge, but she would need thresholds of her own (see
# `build_your_own`).

# %%
pmo.plots.plot_bars(tree, wine["judge"])

# %% [markdown]
# **Are the probabilities right?** Take each event "at most k". The picture shows the share of rows in which it
# happened, against the probability that it was given, by isotonic regression.

# %%
az.plot_ppc_pava(tree, data_type="ordinal")

# %% [markdown]
# These predictions have seen the label that they predict. A stricter test leaves it out. A fit knows what it would
# have said without it, from the cavities of expectation propagation.

# %%
fit = pmo.fit(model, progressbar=False)
pmo.plots.plot_calibration(fit, seed=1)

# %% [markdown]
# The probability integral transform, with the label left out. The curve of a calibrated model wanders about zero.
# The p-value says whether this one does.

# %%
az.plot_loo_pit(tree)

# %% [markdown]
# **What is not understood?** Residuals of classes: the noise is drawn, given the class that it led to. If the model
# is right, they are distributed like the noise of the link, and the points stay in the band.

# %%
pmo.plots.plot_residuals(fit, seed=1)

# %% [markdown]
# **Is another model better?** Leave-one-out scores, from the engine's cavities. The other model does not know the
# judges.

# %%
without = pmo.fit(pmo.gp_model(wine[["temperature", "contact"]], y, "expquad"), progressbar=False)
scores = {"judges": pmo.loo(fit), "no judges": pmo.loo(without)}
comparison = az.compare(scores)
comparison

# %%
az.plot_compare(comparison)

# %% [markdown]
# Where does the difference come from? From the judges whose ratings are high or low throughout: 1, 3 and 7. For the
# others there is nothing to gain, and a little is lost.

# %%
gain = (scores["judges"].elpd_i - scores["no judges"].elpd_i).values
pd.Series(gain).groupby(wine["judge"], observed=True).sum().rename(
    "nats gained by knowing the judge"
).round(2)
