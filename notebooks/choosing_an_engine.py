# %% [markdown]
# # Which engine should I take?
#
# One model, several ways to integrate out its latent function. This notebook measures what each costs and what one
# gets for it, as the rows become more. It ends with a rule of thumb. `compare_engines` asks whether an engine can
# be trusted on *your* data.

# %%
import time

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import pmordinal as pmo
from pmordinal.gram import Gram

rng = np.random.default_rng(6)


def draw(n):
    """Return rows with three attributes, the third without effect, and labels of four classes."""
    X = rng.uniform(-2, 2, size=(n, 3))
    latent = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.4 * rng.normal(size=n)
    return X, np.digitize(latent, [-0.8, 0.0, 0.8]) + 1


X, y = draw(400)
Xtest, ytest = draw(1000)

# %% [markdown]
# **What does one get?** Each engine is fitted to 50, 150 and 400 rows and scored on 1000 others: `test_nlp` is minus
# the mean log probability of the labels. The sparse engine has a basis of a fifth of the rows.

# %%
engines = ["laplace", "ep", "plsor", "sparse"]
fits = {
    n: {
        e: pmo.fit(pmo.gp_model(X[:n], y[:n], engine=e, ard=True), progressbar=False)
        for e in engines
    }
    for n in (50, 150, 400)
}
tables = {n: pmo.compare(some, test=(Xtest, ytest), draws=100) for n, some in fits.items()}
table = pd.concat(tables, names=["rows", "engine"])
table[["evaluations", "converged", "log_evidence", "elpd_loo", "test_nlp", "test_absolute"]].round(
    3
)

# %% [markdown]
# More rows help far more than another engine. The noise is moderate here, so there is hardly a difference between
# Laplace and EP. Regression on labels keeps up, since the classes are of similar width. Its `log_evidence` is that
# of numbers, and that of the sparse engine is that of its basis. Neither compares with the others.
#
# **What does it cost?** An engine is called with a covariance bound to its rows, with labels and a likelihood. Here
# it is called at what EP has learned. The gradient is left out, and so is the covariance matrix, which all need
# alike. The sparse engine is given the first fifty rows as its basis. Regression on labels is one factorisation. It
# works in other units and is left out.

# %%
learned = fits[400]["ep"].posterior
kernel, values = learned.gram.kernel, learned.gram.values
sizes = [100, 200, 400, 800, 1600]
Xlarge, ylarge = draw(max(sizes))
methods = {
    "laplace": pmo.Laplace(),
    "ep": pmo.EP(),
    "sparse": pmo.SparseADF(basis=tuple(range(50))),
}
cost = pd.DataFrame(index=sizes, columns=list(methods), dtype=float)
for n in sizes:
    rows = fits[400]["ep"].features.transform(Xlarge[:n])
    for name, engine in methods.items():
        gram = Gram(kernel, rows, values)
        if name != "sparse":
            gram.matrix  # computed once, kept
        began = time.process_time()
        engine(gram, ylarge[:n] - 1, learned.likelihood)
        cost.loc[n, name] = time.process_time() - began
(1e3 * cost).round(1)

# %%
_, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for name in engines:
    axes[0].semilogx(list(fits), table.xs(name, level="engine")["test_nlp"], "o-", label=name)
for name in methods:
    axes[1].loglog(sizes, cost[name], "o-", color=f"C{engines.index(name)}", label=name)
axes[1].loglog(sizes, 3e-2 * (np.array(sizes) / 800) ** 3, ":", color="0.5", label="n³")
for ax, title, ticks in (
    (axes[0], "− log probability of test labels", list(fits)),
    (axes[1], "seconds an evaluation", sizes),
):
    ax.set(title=title, xlabel="rows")
    ax.set_xticks(ticks, [str(n) for n in ticks])
    ax.minorticks_off()
    ax.legend()

# %% [markdown]
# **What to look at before trusting it.** EP estimates by how much its evidence is off. The exact engine, for the
# probit link, states its Monte-Carlo error. At the hyperparameters that EP found:

# %%
ep = fits[150]["ep"]
at = {"lengthscale": ep.point["lengthscale"], "noise": float(ep.noise), "thresholds": ep.thresholds}
fixed = {
    e: pmo.fit(pmo.gp_model(X[:150], y[:150], engine=e, ard=True, **at), progressbar=False)
    for e in ("laplace", "ep", "exact")
}
columns = [
    "log_evidence",
    "log_evidence_correction",
    "log_evidence_error",
    "latent_mean",
    "latent_sd",
    "tv_max",
]
checked = pmo.compare(fixed, reference="exact")
checked[columns].round(4)

# %% [markdown]
# A rule of thumb:
#
# | your data | engine |
# |---|---|
# | up to about two thousand rows | `"ep"`, the default |
# | the same, many fits, noise not small | `"laplace"` |
# | probit link, and you want the truth with a stated error | `"exact"`, or `pmo.sample_exact` for the hyperparameters too |
# | a baseline without iteration, many classes of similar width | `"plsor"` |
# | more rows | `"inducing"`, the default beyond 3000 rows; one to three attributes: `pmo.latent_model(approx="hsgp")` |
# | thresholds by rater, other predictors | `pmo.latent_model`, `pmo.Ordinal` and `pm.sample` |
#
# The engine does not change the model: priors, covariances and names stay, and with them every line of code around
# it.

# %%
pmo.plots.plot_engines(checked, columns=["latent_mean", "latent_sd", "tv_max"])
