"""One posterior seen by three engines, and their evidence against the exact one."""

import numpy as np
import pymc as pm
from matplotlib import pyplot as plt
from scipy.stats import multivariate_normal, norm

import pmordinal as pmo
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood

ENGINES = {"laplace": pmo.Laplace(), "ep": pmo.EP()}
COLOURS = {"exact": "0.1", "laplace": "#d95f02", "ep": "#1b6ca8"}


def exact_evidence(K, likelihood, y):
    """Return log P(b_y < f + ε ≤ b_{y+1}), a Gaussian rectangle probability."""
    low, high = likelihood.bounds(y)
    C = K + likelihood.noise**2 * np.eye(len(y))
    rectangle = multivariate_normal(np.zeros(len(y)), C, allow_singular=True)
    return np.log(rectangle.cdf(high, lower_limit=low))


figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")

# left: three correlated points in the lowest and highest class, little noise: a skewed posterior
likelihood = OrdinalLikelihood([-0.3, 0.3], 0.2)
X, y = np.array([[0.0], [0.6], [1.2]]), np.array([2, 2, 0])
kernel = lower(pm.gp.cov.ExpQuad(1, ls=1.0))
gram = Gram(kernel, X, [1.0])
f = np.linspace(-1.0, 3.0, 161)
grid = np.stack(np.meshgrid(f, f, f, indexing="ij"), -1).reshape(-1, 3)
density = multivariate_normal(np.zeros(3), gram.matrix).pdf(grid)
for i, (low, high) in enumerate(zip(*likelihood.bounds(y), strict=True)):
    density *= norm.cdf((high - grid[:, i]) / 0.2) - norm.cdf((low - grid[:, i]) / 0.2)
marginal = density.reshape(161, 161, 161).sum((1, 2))
left.fill_between(f, marginal / marginal.sum() / (f[1] - f[0]), color="0.85", label="exact")
for name, engine in ENGINES.items():
    posterior = engine(gram, y, likelihood)
    curve = norm.pdf(f, posterior.mean[0], np.sqrt(posterior.variance[0]))
    left.plot(f, curve, color=COLOURS[name], label=name)
left.set(xlabel="latent value of the first row", ylabel="posterior density", xlim=(-0.5, 2.8))
left.legend(frameon=False)

# right: error of the evidence on random problems
rng = np.random.default_rng(0)
plane = lower(pm.gp.cov.ExpQuad(2, ls=1.0))
noises = [0.1, 0.2, 0.4, 0.8]
errors = {name: [] for name in ENGINES}
for noise in noises:
    gaps = {name: [] for name in ENGINES}
    for _ in range(12):
        X = rng.normal(size=(8, 2))
        ls = float(np.exp(rng.uniform(-0.5, 1.5)))
        gram = Gram(plane, X, [ls])
        b = np.sort(rng.normal(size=3)) + np.array([-0.2, 0.0, 0.2])
        likelihood = OrdinalLikelihood(b, noise)
        root = np.linalg.cholesky(gram.matrix + 1e-10 * np.eye(8))
        y = likelihood.draw(root @ rng.normal(size=8), rng)
        truth = exact_evidence(gram.matrix, likelihood, y)
        for name, engine in ENGINES.items():
            gaps[name].append(abs(engine(gram, y, likelihood).log_evidence - truth))
    for name in ENGINES:
        errors[name].append(np.median(gaps[name]))
for name in ENGINES:
    right.loglog(noises, errors[name], "o-", color=COLOURS[name], label=name)
right.set(xlabel="noise", ylabel="median |log evidence − exact|, nats")
right.set_xticks(noises, [str(noise) for noise in noises])
right.minorticks_off()
right.legend(frameon=False)
