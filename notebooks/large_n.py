# %% [markdown]
# # Ten thousand rows: what to do when n × n is too much?
#
# A full Gaussian process stores an n × n matrix and factorises it again and again: with 10 000 rows that is 800 MB
# and a minute or so for each evaluation. Two ways out, side by side on data whose truth is known: a few hundred of
# the rows, or a sparse basis that all rows judge.

# %%
import time

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from scipy.stats import norm

import pmordinal as pmo

rng = np.random.default_rng(2)


def truth(X):
    """Return the latent function."""
    return np.sin(1.5 * X[:, 0]) + 0.6 * np.cos(2.0 * X[:, 1]) + 0.4 * X[:, 0] * X[:, 1] / 4


def draw(n):
    """Return rows and labels of five classes."""
    X = rng.uniform(-3, 3, size=(n, 2))
    return X, np.digitize(truth(X) + 0.3 * rng.normal(size=n), [-0.9, -0.3, 0.3, 0.9]) + 1


X, y = draw(10_000)
Xtest, ytest = draw(2_000)
rows = []


def report(name, probs, seconds):
    """Keep scores and time of a result."""
    scores = pmo.scores(ytest, probs, categories=range(1, 6))
    rows.append(
        {"name": name, "seconds": seconds, "nlp": scores["nlp"], "zero_one": scores["zero_one"]}
    )


# %% [markdown]
# **Some of the rows.** Before anything clever: how much does a full process gain from more rows? Time grows with n³
# in the end, and the score levels off.

# %%
pmo.fit(pmo.gp_model(X[:30], y[:30], ard=True), progressbar=False)  # compiles once, for fair times
for n in (100, 200, 400):
    began = time.process_time()
    some = pmo.fit(pmo.gp_model(X[:n], y[:n], ard=True), progressbar=False)
    report(f"full process, {n} rows", some.predict(Xtest), time.process_time() - began)

# %% [markdown]
# **A sparse basis.** `engine="sparse"` grows a basis of s rows by assumed density filtering; all other labels judge
# which row comes next and which hyperparameters are best (Srijith, Shevade and Sundararajan 2012). Time is O(n s²),
# memory O(n s). We start it at the hyperparameters of the small fit, which saves most of the search.

# %%
for size in (20, 60):
    began = time.process_time()
    model = pmo.gp_model(X, y, ard=True, engine=pmo.SparseADF(n_basis=size, rounds=2))
    sparse = pmo.fit(model, start=some.point, progressbar=False)
    report(f"sparse, {size} of 10000 rows", sparse.predict(Xtest), time.process_time() - began)
sparse

# %% [markdown]
# The basis rows (white) spread over the whole square; lines are the thresholds. Sixty well-chosen rows carry what ten
# thousand labels say.

# %%
ax = pmo.plots.plot_regions(sparse, points=False)
ax.plot(*X[sparse.posterior.support].T, "wo", ms=5, mec="k")

# %% [markdown]
# **Scores.** The floor is what the truth itself would score: labels are noisy.

# %%
edges = np.array([-np.inf, -0.9, -0.3, 0.3, 0.9, np.inf])
best = np.diff(norm.cdf((edges - truth(Xtest)[:, None]) / 0.3), axis=1)
floor = pmo.scores(ytest, best, categories=range(1, 6))
table = pd.DataFrame(rows).set_index("name")
table.loc["the truth"] = [np.nan, floor["nlp"], floor["zero_one"]]
table.round(3)

# %%
_, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
ax.axhline(floor["nlp"], color="0.6", ls="--", lw=1, label="the truth")
done = table.dropna()
ax.semilogx(done["seconds"], done["nlp"], "o")
for name, row in done.iterrows():
    ax.annotate(
        name, (row["seconds"], row["nlp"]), xytext=(6, 4), textcoords="offset points", fontsize=8
    )
ax.margins(x=0.35, y=0.15)
ax.set(xlabel="CPU seconds", ylabel="− log probability of test labels")
ax.legend()

# %% [markdown]
# A few hundred rows are the first thing to try: they cost a second, and here they come close. What is left to gain
# the sparse basis gets, from all rows, if it is large enough: with twenty it is worse than two hundred rows. Its
# `log_evidence` is that of the basis labels alone, so compare by scores. The search for a basis has local optima: in
# earnest use `starts=4`.
#
# With one to three attributes there is a third way, `pmo.latent_model(X, y, approx="hsgp")`, a weighted sum of waves
# whose cost is linear in the rows. It is sampled by NUTS, hyperparameters and all, and takes minutes.
