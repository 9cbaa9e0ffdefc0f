# %% [markdown]
# # Which engine can be trusted on my data?
#
# Seventy-two ratings of the bitterness of wine, 1 to 5: two temperatures, skin contact or not, nine judges (Randall
# 1989). Every engine of pmordinal answers the same question, how probable each rating is, at a different price.
# Here they are fitted to the same rows and compared with the exact posterior.

# %%
import arviz as az
from matplotlib import pyplot as plt

import pmordinal as pmo

wine = pmo.datasets.wine()
X, y = wine[["temperature", "contact", "judge"]], wine["rating"]
test = wine.index % 4 == 0  # a quarter of the rows is kept for judging
train = X[~test], y[~test]

# %% [markdown]
# One call fits Laplace, expectation propagation and regression on labels. It then computes the exact posterior at
# the hyperparameters of the best approximation. Under the probit link that posterior is a Gaussian in a box, so it
# can be drawn from without Markov chains. What remains is Monte-Carlo error. `log_evidence_error` states it.

# %%
table = pmo.compare_engines(
    *train, engines=["laplace", "ep", "plsor"], reference="exact", test=(X[test], y[test]), seed=1
)
table

# %% [markdown]
# The last column is the verdict. Everything behind it is in the other columns of the table:

# %%
table.full.T

# %% [markdown]
# How to read it:
#
# - `log_evidence` of Laplace and EP against the exact one: how far the approximation of the marginal likelihood is
#   off, in nats. Regression on labels has an evidence of its own, of numbers rather than of classes. It does not
#   compare.
# - `latent_mean` and `latent_sd`: the worst row's distance to the exact posterior, in its standard deviations.
#   Regression on labels measures the latent function in other units, so there is no number.
# - `tv_max`: the worst row's total variation between class probabilities, what a user of predictions sees.
# - `k_hat`: below 0.7 the engine's draws can be reweighted to the exact posterior.
# - `elpd_loo`: leave-one-out scores, from each engine's own cavities.

# %%
pmo.plots.plot_engines(table)

# %% [markdown]
# The approximations agree with the truth to about a hundredth. The engines differ little in what they predict,
# compared with what the data leave open. A paired bootstrap of the test rows tells:

# %%
fits = {name: table.results[name] for name in ("exact", "laplace", "ep", "plsor")}
predictions = {name: fit.predict(X[test]) for name, fit in fits.items()}
pmo.compare_scores(y[test], predictions, reference="exact").xs("rps", level="score")

# %% [markdown]
# Row by row: the probability that each engine gives to every class, against the exact one. The tree of the comparison has all of them.

# %%
probs = table.tree["predictive"]["probs"]
_, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, name in zip(axes, ("laplace", "ep", "plsor"), strict=True):
    ax.axline((0, 0), slope=1, color="0.8", lw=1)
    ax.plot(
        probs.sel(result="exact").values.ravel(), probs.sel(result=name).values.ravel(), ".", ms=4
    )
    ax.set(title=name, xlabel="exact P(Y = k)")
axes[0].set_ylabel("P(Y = k) of the engine")

# %% [markdown]
# Is the model itself any good? `az.compare` takes the leave-one-out scores of fits, of different models too: is the judge worth knowing?

# %%
without = pmo.fit(
    pmo.gp_model(train[0][["temperature", "contact"]], train[1], "expquad"), progressbar=False
)
az.compare({"with judges": pmo.loo(fits["ep"]), "without": pmo.loo(without)})

# %% [markdown]
# And calibration: are events that were given the probability p seen in a share p of the rows? These are
# leave-one-out predictions, cumulative event by event, with the band in which a calibrated forecast stays.

# %%
pmo.plots.plot_calibration(fits["ep"])

# %% [markdown]
# What did we learn from the fit? Warm wine with skin contact is rated as more bitter. The bars show by how much
# each class becomes more probable.

# %%
pmo.plots.plot_effects(fits["ep"], "contact")
