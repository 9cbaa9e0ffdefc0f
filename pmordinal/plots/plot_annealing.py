"""The path of a semi-supervised fit, as the weight of the unlabelled rows grows."""

import numpy as np
from matplotlib import pyplot as plt

from pmordinal.plots.base import INK, tidy
from pmordinal.results.semisupervised import SemiSupervisedFit

PANELS = {
    "log_evidence": "log evidence of the labels",
    "match": "mean log probability of the\nlabels given to unlabelled rows",
    "switches": "pairs of labels switched",
}


def plot_annealing(
    fit: SemiSupervisedFit, figsize: tuple[float, float] = (10.5, 3.2)
) -> np.ndarray:
    """Draw evidence, match and label switches along the annealing of a semi-supervised fit.

    Parameters
    ----------
    fit : SemiSupervisedFit
        From ``pmo.fit(model, semisupervised=True)``.
    figsize : tuple of float

    Returns
    -------
    ndarray of three Axes
    """
    if not isinstance(fit, SemiSupervisedFit):
        raise TypeError(
            f"fit must be a SemiSupervisedFit, got {type(fit).__name__}: fit with semisupervised=True"
        )
    _, axes = plt.subplots(1, len(PANELS), figsize=figsize, sharex=True, layout="constrained")
    for ax, (column, title) in zip(axes, PANELS.items(), strict=True):
        ax.plot(fit.path["weight"], fit.path[column], "o-", color=INK, ms=5, lw=1.2)
        ax.set_title(title, fontsize="medium", loc="left")
        ax.set(xscale="log", xlabel="weight λ of the unlabelled rows")
        tidy(ax)
    axes[2].set_ylim(bottom=0)
    axes[2].yaxis.get_major_locator().set_params(integer=True)
    return axes
