# %% [markdown]
# # Which interactions?
#
# A response of four attributes. Which matter, and which matter together? The ANOVA model has a smooth function of
# each attribute and of each pair. All have mean zero over the data, and each has a variance of its own. Variances
# of terms that explain nothing go to zero. The data are synthetic: the truth is one sine, one cosine and one
# product.

# %%
import numpy as np
import pandas as pd

import pmordinal as pmo

rng = np.random.default_rng(7)


def sample(n):
    table = pd.DataFrame(rng.normal(size=(n, 4)), columns=["dose", "age", "time", "weight"])
    f = np.sin(2 * table["dose"]) + np.cos(1.5 * table["age"]) + 1.2 * table["dose"] * table["time"]
    table["response"] = np.digitize(f + 0.5 * rng.normal(size=n), [-1.0, 0.0, 1.0]) + 1
    return table


train, test = sample(250), sample(2000)

# %%
formula = "response ~ anova(dose, age, time, weight)"
anova = pmo.fit(pmo.formula_model(formula, train), progressbar=False)
anova.variance_shares().sort_values(ascending=False).round(3)

# %% [markdown]
# Two main effects and one pair: the truth. The picture shows the strongest terms.

# %%
pmo.plots.plot_terms(anova, most=6)

# %% [markdown]
# ## Does it predict better?
#
# A single covariance with a length-scale for each attribute can learn the same function. But it has to find out
# from the data that most interactions are not there.

# %%
columns = ["dose", "age", "time", "weight"]
single = pmo.fit(pmo.gp_model(train[columns], train["response"], ard=True), progressbar=False)


def score(fit):
    probs = fit.predict(test).values
    return -np.log(probs[np.arange(len(test)), test["response"] - 1]).mean()


pd.DataFrame(
    {
        "log evidence": {"ANOVA": anova.log_evidence, "ARD": single.log_evidence},
        "negative log probability": {"ANOVA": score(anova), "ARD": score(single)},
    }
).round(3)
