"""The likelihood of three classes and the derivatives of the loss [CG2005, Figure 1]."""

import numpy as np
from matplotlib import pyplot as plt

from pmordinal.likelihood import OrdinalLikelihood

likelihood = OrdinalLikelihood([-3.0, 3.0], 1.0)
f = np.linspace(-8.0, 8.0, 401)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
titles = ("P(y | f)", "first derivative of −log P(y | f)", "second derivative")
for k, colour in enumerate(("#1b6ca8", "#d95f02", "#4a7c2a")):
    terms = likelihood.log_prob(np.full(f.size, k), f)
    values = (np.exp(terms.value), -terms.d1, terms.curvature)
    for ax, curve, title in zip(axes, values, titles, strict=True):
        ax.plot(f, curve, color=colour, label=f"y = {k + 1}")
        ax.set(title=title, xlabel="f")
axes[0].legend()
