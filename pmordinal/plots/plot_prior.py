"""The priors of a model: the class shares that they imply, and the hyperparameters on their own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator
from scipy.stats import gaussian_kde

from pmordinal import checks
from pmordinal.data.lettering import caption
from pmordinal.diagnostics.model_checks import prior_categories, prior_draws
from pmordinal.diagnostics.predictive import SAMPLE
from pmordinal.plots.base import ACCENT, FAINT, INK, WIDTH, class_colours, name_axis, new_axes
from pmordinal.results.fit import OrdinalFit, a_fit
from pmordinal.words import guessing

FEW = 6  # largest number of entries of a vector that are drawn apart
WIDE = 30.0  # ratio of quantiles of a positive variable from which its axis is logarithmic
INNER = (0.01, 0.99)  # part of the draws that a panel shows
LATENT = ("f", "f_white", "y")


@guessing
def plot_prior(
    source: pm.Model | xr.DataTree,
    ax: Axes | None = None,
    *,
    parameters: bool | str | Sequence[str] | None = None,
    fit: OrdinalFit | None = None,
    draws: int = 500,
    ci_prob: float | None = None,
    seed: int | None = None,
    random_seed: int | None = None,
) -> Any:
    """Draw the class shares of data sets drawn from the priors, and the priors of the hyperparameters.

    Class shares: thick lines are the inner half of the draws, thin ones their interval, the mark their
    median, beside what is observed. Hyperparameters: a panel each with the density of the prior along its
    axis, which may be logarithmic, and the fitted value as a line.

    Parameters
    ----------
    source : pm.Model or DataTree
        A model whose labels are called ``y``, or draws of it by ``pm.sample_prior_predictive``.
    ax : Axes, optional
        Where to draw the class shares, if there are no panels of hyperparameters.
    parameters : bool or names of variables, optional
        Which hyperparameters get a panel: all, some, or none; default is all if there is a `fit`, else none.
    fit : OrdinalFit, optional
        The fit of the model, whose values are marked.
    draws, ci_prob, seed, random_seed
        See `prior_categories`.

    Returns
    -------
    Axes, or ndarray of Axes
        With panels of hyperparameters, the class shares first.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> model = pmo.formula_model("rating ~ temperature + (1 | judge)", pmo.datasets.wine())
    >>> axes = plot_prior(model, parameters=True, draws=50, seed=1)
    >>> [ax.get_title(loc="left") for ax in axes]
    ['Class shares under the prior', '1|judge_sd', 'thresholds']
    """
    seed = checks.one_seed(seed, random_seed)
    point = {} if fit is None else a_fit(fit).point
    tree = prior_draws(source, draws, seed)
    if parameters is None:
        parameters = fit is not None
    if parameters is False:
        return _shares(tree, new_axes(ax, "Class shares under the prior"), ci_prob)
    found = _hyperparameters(tree)
    if isinstance(source, pm.Model):
        order = [v.name for v in source.unobserved_RVs if v.name in found]
        found = {name: found[name] for name in order}
    if parameters is not True:
        names = checks.names("parameters", parameters)
        for name in names:
            checks.one_of("parameters", name, list(found))
        found = {name: found[name] for name in names}
    if ax is not None:
        raise ValueError("ax: panels of hyperparameters make a figure of their own: leave ax out")
    n = 1 + len(found)
    n_columns = min(n, 4)
    n_rows = -(-n // n_columns)
    size = (0.8 + 3.1 * max(n_columns, 2), 0.5 + 2.6 * n_rows)
    figure, grid = plt.subplots(
        n_rows, n_columns, figsize=size, layout="constrained", squeeze=False
    )
    for spare in grid.flat[n:]:
        figure.delaxes(spare)
    axes = np.array([new_axes(one) for one in grid.flat[:n]])
    axes[0].set_title("Class shares under the prior", loc="left", fontsize="medium")
    _shares(tree, axes[0], ci_prob)
    axes[0].legend(loc="upper right", frameon=False, fontsize="small")
    if fit is not None:
        figure.suptitle("Priors; lines mark the fitted values", fontsize="medium")
    for one, (name, values) in zip(axes[1:], found.items(), strict=True):
        _density(one, name, values, point.get(name))
    return axes


def _shares(tree: xr.DataTree, ax: Axes, ci_prob: float | None) -> Axes:
    wide = prior_categories(tree, ci_prob=ci_prob)
    inner = prior_categories(tree, ci_prob=0.5)
    x, colours = np.arange(len(wide)), class_colours(len(wide))
    ax.vlines(x, wide["low"], wide["high"], colors=colours, lw=2)
    ax.vlines(x, inner["low"], inner["high"], colors=colours, lw=8)
    ax.scatter(x, wide["median"], s=34, color="white", edgecolors=colours, linewidths=1.2, zorder=3)
    ax.plot(x, wide["observed"], "D", color=ACCENT, ms=6, mec="white", label="observed", zorder=4)
    name_axis(ax, x, list(wide["class"]), "class")
    ax.set(ylabel="share of the rows", xlim=(-0.6, len(x) - 0.4))
    ax.set_ylim(0, 1)
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return ax


def _hyperparameters(tree: xr.DataTree) -> dict[str, xr.DataArray]:
    """Return draws of numbers and vectors, the latter with their dimension last."""
    prior = tree["prior"].to_dataset() if "prior" in tree.children else xr.Dataset()
    return {
        str(name): values.stack(sample=SAMPLE).transpose("sample", ...)
        for name, values in prior.data_vars.items()
        if values.ndim <= 3
        and values.dtype.kind == "f"
        and name not in LATENT
        and not str(name).endswith("_z")  # standard normal, of groups
        and values.dims[-1] != "obs"
        and float(values.std()) > 0.0
    }


def _density(ax: Axes, name: str, values: xr.DataArray, fitted: Any) -> None:
    """Draw the density of a number, or of the entries of a vector, with fitted values as lines."""
    draws = values.values.reshape(len(values), -1)
    marks = None if fitted is None else np.reshape(fitted, -1)
    low, high = np.quantile(draws, INNER)
    is_log = bool(draws.min() > 0.0 and high > WIDE * low)
    if marks is not None:
        low, high = min(low, marks.min()), max(high, marks.max())
    grid = np.geomspace(low, high, 200) if is_log else np.linspace(low, high, 200)
    size = draws.shape[1]
    apart = 1 < size <= FEW
    columns = draws.T if apart else [draws.ravel()]
    colours = class_colours(size) if apart else [INK]
    labels = _labels(values) if apart else [""]
    for column, colour, label in zip(columns, colours, labels, strict=True):
        density = gaussian_kde(np.log(column) if is_log else column)(
            np.log(grid) if is_log else grid
        )
        ax.plot(grid, density, color=colour, lw=1.4, label=label)
        if not apart:
            ax.fill_between(grid, density, color=FAINT, lw=0)
    if marks is not None:
        own = colours if apart else [ACCENT] * size
        for mark, colour in zip(marks, own, strict=True):
            ax.axvline(mark, color=colour, lw=1.8, ls="--" if apart else "-")
    if is_log:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=5))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_locator(NullLocator())
    ax.set(xlim=(low, high) if high > low else None, yticks=[])
    ax.set_ylim(0.0)
    ax.spines["left"].set_visible(False)
    ax.set_title(caption(name, 34), loc="left", fontsize="medium")
    if apart:
        ax.legend(frameon=False, fontsize="x-small", handlelength=1.2)


def _labels(values: xr.DataArray) -> list[str]:
    """Return the names of a vector's entries."""
    dim = values.dims[-1]
    if dim in values.coords:
        return [caption(str(name), WIDTH) for name in values[dim].values]
    return [str(k) for k in range(values.sizes[dim])]
