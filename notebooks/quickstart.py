# %% [markdown]
# # From a table of ordered answers to probabilities in five minutes
#
# How people feel in the morning, from poor to excellent, and how long they slept. The order of the answers means
# something. The distances between them are unknown. The effect of sleep is no straight line: too little is bad, and
# so is too much.

# %%
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import pmordinal as pmo

rng = np.random.default_rng(3)
n = 150
table = pd.DataFrame({"sleep": rng.uniform(3, 11, n), "coffee": rng.choice(["no", "yes"], n)})
feeling = 2.0 - 0.3 * (table["sleep"] - 7.5) ** 2 + 0.7 * (table["coffee"] == "yes")
feeling += rng.normal(0, 0.7, n)
names = ["poor", "fair", "good", "excellent"]
table["mood"] = pd.Categorical.from_codes(
    np.digitize(feeling, [-0.5, 1.0, 2.2]), names, ordered=True
)
table.head()

# %% [markdown]
# A model is one call, and it is a real `pm.Model`. It has an unknown smooth function of the attributes, noise on
# top, and thresholds that cut it into classes. Each level of a text column gets a column of its own. The labels
# keep their names. A fit takes a second or so.

# %%
model = pmo.gp_model(table[["sleep", "coffee"]], table["mood"], ard=True)
fit = pmo.fit(model, progressbar=False)
fit

# %% [markdown]
# Predictions for new rows are probabilities of the classes, under your labels. `kind=` asks for something else,
# such as the class itself or the chance of *at most* fair.

# %%
new = pd.DataFrame({"sleep": [4.0, 7.5, 10.5], "coffee": ["yes", "yes", "no"]})
fit.predict(new).to_pandas().round(3)

# %%
at_most = fit.predict(new, kind="cumulative").to_pandas()
new.assign(mood=fit.predict(new, kind="class"), at_most_fair=at_most["fair|good"].round(3))

# %% [markdown]
# What did it learn? Left the latent function with its thresholds, right the probabilities of the classes along the
# hours of sleep, averaged over the people of the table.

# %%
_, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
pmo.plots.plot_latent(fit, "sleep", ax=axes[0])
pmo.plots.plot_categories(fit, "sleep", ax=axes[1])

# %% [markdown]
# And coffee? The change of every probability from no coffee to coffee, with intervals, as a frame and as a picture.

# %%
effect = fit.effects("coffee", kind="probs", versus="no")
effect

# %%
pmo.plots.plot_effects(fit, "coffee")

# %% [markdown]
# Can the probabilities be believed? Each row is predicted from all others, at no further cost. A curve within the
# grey band is calibrated.

# %%
pmo.plots.plot_calibration(fit, seed=1)

# %% [markdown]
# Everything ends in an ArviZ `DataTree`, where `az.summary`, `az.loo` and the plots of ArviZ take over.
# `hyper="gaussian"` lets the hyperparameters vary too.

# %%
tree = fit.to_datatree(hyper="gaussian", seed=0)
tree["posterior"].to_dataset()
