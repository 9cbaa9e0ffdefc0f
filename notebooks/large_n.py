# %% [markdown]
# # Twenty thousand rows: what to do when n × n is too much?
#
# A full Gaussian process stores an n × n matrix and factorises it again and again. With 20 000 rows that is 3.2 GB,
# and hours. There are two ways out: some of the rows, or all of them through a few inducing rows. Here they are
# side by side, on data whose truth is known.

# %%
import time
import warnings

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


X, y = draw(20_000)
Xtest, ytest = draw(5_000)
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
for n in (100, 300, 900):
    began = time.process_time()
    some = pmo.fit(pmo.gp_model(X[:n], y[:n], ard=True), progressbar=False)
    report(f"full process, {n} rows", some.predict(Xtest), time.process_time() - began)

# %% [markdown]
# **All rows through a few of them.** Beyond 3000 rows a model takes `engine="inducing"` by itself. A few rows carry
# the latent function, and all labels count. Time grows linearly with the rows. With many rows `fit` first finds the
# hyperparameters on a part of them. The status has these stages.

# %%
for size in (20, 60):
    began = time.process_time()
    model = pmo.gp_model(X, y, ard=True, engine=pmo.Inducing(n_inducing=size))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit = pmo.fit(model, progressbar=False)
    for one in said:
        print(one.message, end="\n\n")
    report(f"20000 rows through {size}", fit.predict(Xtest), time.process_time() - began)
    print(f"through {size} rows:", *fit.status.stages, sep="\n    ")
    print("   ", fit.status.notes, end="\n\n")
fit

# %% [markdown]
# With twenty inducing rows the fit warns. What they leave of the latent function is no longer small against the
# noise: `residual_over_noise` is above a tenth. With sixty it is a thousandth. The inducing rows (white) spread
# over the whole square. Lines are the thresholds.

# %%
ax = pmo.plots.plot_regions(fit, points=False)
ax.plot(*X[fit.posterior.support].T, "wo", ms=5, mec="k")

# %% [markdown]
# **Scores.** The floor is what the truth itself would score, because labels are noisy.

# %%
edges = np.array([-np.inf, -0.9, -0.3, 0.3, 0.9, np.inf])
best = np.diff(norm.cdf((edges - truth(Xtest)[:, None]) / 0.3), axis=1)
floor = pmo.scores(ytest, best, categories=range(1, 6))
table = pd.DataFrame(rows).set_index("name")
table.loc["the truth"] = [np.nan, floor["nlp"], floor["zero_one"]]
table.round(3)

# %%
_, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.axhline(floor["nlp"], color="0.6", ls="--", lw=1, label="the truth")
done = table.dropna()
ax.semilogx(done["seconds"], done["nlp"], "o")
for name, row in done.iterrows():
    side, shift = ("right", -6) if name.startswith("full") else ("left", 6)
    place = {"xytext": (shift, 4), "textcoords": "offset points", "ha": side, "fontsize": 8}
    ax.annotate(name, (row["seconds"], row["nlp"]), **place)
ax.set(xlim=(0.05, 50), xticks=[0.1, 1, 10], xticklabels=["0.1", "1", "10"])
ax.margins(y=0.15)
ax.set(xlabel="CPU seconds", ylabel="− log probability of test labels")
ax.legend()

# %% [markdown]
# A few hundred rows are the first thing to try. They cost a second or two, and here they come close. A hundred are
# too few. All rows, through sixty of them, get what is left to gain, in a few seconds more.
#
# **Raters.** Linear and group terms of a formula are exact, whatever the number of inducing rows: each rater is a
# column of its own. Here two hundred raters, each with a shift.

# %%
raters = rng.integers(0, 200, len(X))
shift = rng.normal(size=200)
table = pd.DataFrame({"x": X[:, 0], "rater": [f"r{i:03d}" for i in raters]})
f = np.sin(1.5 * X[:, 0]) + 0.5 * shift[raters]
table["y"] = np.digitize(f + 0.5 * rng.normal(size=len(X)), [-0.9, -0.3, 0.3, 0.9]) + 1
some = table[:4000]
fit = pmo.fit(pmo.formula_model("y ~ gp(x) + (1 | rater)", some), progressbar=False)
found = fit.coefficients().set_index("level")["mean"]
print(fit)
print(np.corrcoef(found, shift[[int(name[1:]) for name in found.index]])[0, 1])

# %% [markdown]
# Millions of rows go the same way: in memory, or from Dask tables and folders of Parquet files. See the page on
# many rows. The engine of the papers, `engine="sparse"`, is there to reproduce them. With one to three attributes
# there is another way, `pmo.latent_model(X, y, approx="hsgp")`. It is a weighted sum of waves. NUTS samples it,
# hyperparameters and all, and takes minutes.
