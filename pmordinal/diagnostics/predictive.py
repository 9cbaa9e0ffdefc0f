"""Predictions of a fit or sampled tree for its own labelled rows; its link, class names and groups."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from pmordinal import checks
from pmordinal.diagnostics.loo import loo, refuse_weights
from pmordinal.diagnostics.scoring import aligned
from pmordinal.links import LINKS, Link, get_link
from pmordinal.results.fit import OrdinalFit

SAMPLE = ("chain", "draw")


@dataclass(frozen=True)
class Predictions:
    """Class probabilities of labelled rows.

    Attributes
    ----------
    probs : ndarray, shape (n, r)
    codes : ndarray of int, shape (n,)
    names, threshold_names : list of str
    rows : ndarray, shape (n,)
        Names of the rows.
    link : str
    """

    probs: np.ndarray
    codes: np.ndarray
    names: list[str]
    rows: np.ndarray
    link: str | Link

    @property
    def threshold_names(self) -> list[str]:
        """Names of the r − 1 thresholds."""
        return [f"{below}|{above}" for below, above in pairwise(self.names)]


def predictions(source, y=None, leave_one_out: bool = True) -> Predictions:
    """Return the class probabilities of a fit or of a tree; or check given ones with labels `y`."""
    if isinstance(source, OrdinalFit | xr.DataTree) and y is not None:
        raise ValueError("y comes with the fit or tree; for new rows pass fit.predict(Xnew) and y")
    if isinstance(source, OrdinalFit):
        q = source.posterior
        probs = q.left_out_probabilities() if leave_one_out else q.probabilities()
        codes, rows = q.y, source.index
        if (weights := source.by_row.weights) is not None:
            if np.any(weights != np.round(weights)):
                raise ValueError(
                    "the fit has weights that are not whole numbers, and this check counts rows: use whole weights"
                )
            again = np.repeat(np.arange(codes.size), weights.astype(int))
            probs, codes, rows = probs[again], codes[again], rows[again]
        return Predictions(probs, codes, source.labels.class_names, rows, q.likelihood.link)
    if isinstance(source, xr.DataTree):
        return _tree_predictions(source, leave_one_out)
    if y is None:
        raise ValueError("source: pass a fit, a tree, or class probabilities together with y")
    P, labels = aligned(y, source, None)
    return Predictions(P, labels.codes, labels.class_names, np.arange(len(P)), "probit")


def _tree_predictions(tree: xr.DataTree, leave_one_out: bool) -> Predictions:
    posterior = tree["posterior"].to_dataset()
    for name in ("f", "thresholds"):
        if name not in posterior:
            raise ValueError(
                f"the tree lacks posterior/{name}, which predictions need: take fit.to_datatree(), a "
                "sampled latent_model, or let pmo.sample_posterior add it"
            )
    refuse_groups(tree)
    link = link_of(tree)
    observed = variable(tree, "observed_data", "y")
    (obs,) = observed.dims
    f = posterior["f"].stack(sample=SAMPLE).transpose("sample", obs).values
    b = posterior["thresholds"].stack(sample=SAMPLE).transpose("sample", ...).values
    noise = posterior["noise"].stack(sample=SAMPLE).values if "noise" in posterior else 1.0
    weights = np.full(f.shape, 1.0 / len(f))
    if leave_one_out:
        log_weights = loo(tree).log_weights
        weights = np.exp(log_weights.stack(sample=SAMPLE).transpose("sample", obs).values)
        weights /= weights.sum(0)
    probs = _averaged(f, b, noise, link, weights)
    names = class_names(tree, b.shape[1] + 1)
    rows = observed[obs].values if obs in observed.coords else np.arange(observed.size)
    return Predictions(probs, observed.values, names, rows, link)


def refuse_groups(tree: xr.DataTree) -> None:
    """Raise for trees whose rows differ in more than the latent function."""
    posterior = tree["posterior"].to_dataset()
    alike = {"thresholds": 3, "noise": 2}
    by_group = [k for k, ndim in alike.items() if k in posterior and posterior[k].ndim > ndim]
    if by_group:
        raise ValueError(
            f"the tree has {by_group[0]} by group, which this check does not know: use ArviZ's own on the tree, or "
            "pass class probabilities together with y"
        )
    refuse_weights(tree)


def predicted(tree: xr.DataTree, name: str) -> xr.DataArray:
    """Return the class probabilities of the new rows in the group ``predictions``, shape (m, r)."""
    try:
        f = variable(tree, "predictions", "f")
    except ValueError:
        raise ValueError(
            f"{name!r}: the tree has no predictions of the test rows: make them with "
            "pmo.sample_posterior(model, tree, Xnew)"
        ) from None
    refuse_groups(tree)
    posterior = tree["posterior"].to_dataset()
    if f.sizes["draw"] != posterior.sizes["draw"]:  # predictions of a part of the draws
        posterior = posterior.sel(draw=f["draw"])
    b = posterior["thresholds"].stack(sample=SAMPLE).transpose("sample", ...).values
    noise = posterior["noise"].stack(sample=SAMPLE).values if "noise" in posterior else 1.0
    f = f.stack(sample=SAMPLE).transpose("sample", ...)
    link = link_of(tree)
    probs = _averaged(f.values, b, noise, link, np.full(f.shape, 1.0 / len(f)))
    return xr.DataArray(
        probs, dims=("obs", "class"), coords={"class": class_names(tree, b.shape[1] + 1)}
    )


def _averaged(f, b, noise, link: Link, weights: np.ndarray) -> np.ndarray:
    """Return class probabilities averaged over draws, shape (rows, r)."""
    cdf = np.ones((f.shape[1], b.shape[1] + 2))
    cdf[:, 0] = 0.0
    for k in range(b.shape[1]):
        z = (b[:, k, None] - f) / np.reshape(noise, (-1, 1))
        cdf[:, k + 1] = (weights * link.cdf(z)).sum(0)
    return np.diff(cdf, axis=1)


def link_of(tree: xr.DataTree) -> Link:
    """Return the link of a tree: the one it names, else the one that its log likelihoods agree with."""
    if "link" in tree.attrs:
        return get_link(tree.attrs["link"])
    if "log_likelihood" in tree.children:
        draw = {"chain": [0], "draw": [0]}
        posterior = tree["posterior"].to_dataset().isel(draw)
        (known,) = np.exp(variable(tree, "log_likelihood", "y").isel(draw).values[0])
        y = variable(tree, "observed_data", "y").values
        f, b = (posterior[name].values[0, 0] for name in ("f", "thresholds"))
        edges = np.concatenate([[-np.inf], b, [np.inf]])
        noise = posterior["noise"].item() if "noise" in posterior else 1.0
        for name in LINKS:
            cdf = get_link(name).cdf
            here = cdf((edges[y + 1] - f) / noise) - cdf((edges[y] - f) / noise)
            if np.allclose(here, known, atol=1e-6):
                return get_link(name)
    raise ValueError("the tree does not say its link: set tree.attrs['link'], say to 'probit'")


def class_names(tree: xr.DataTree, n_classes: int) -> list[str]:
    """Return the class names that a tree has, else the class codes as text."""
    if "constant_data" in tree.children and "label" in tree["constant_data"]:
        return [str(name) for name in tree["constant_data"].to_dataset()["label"].values]
    return [str(name) for name in tree.attrs.get("classes", range(n_classes))]


def n_classes(tree: xr.DataTree, *codes: np.ndarray) -> int:
    """Return the number of classes: from the thresholds of a tree, else from the largest code."""
    for group in ("posterior", "prior"):
        if group in tree.children and "thresholds" in tree[group]:
            return tree[group].to_dataset()["thresholds"].shape[-1] + 1
    return int(max(c.max() for c in codes)) + 1


def variable(tree: xr.DataTree, group: str, name: str) -> xr.DataArray:
    """Return a variable of a tree; raise if there is none of that name."""
    if not isinstance(tree, xr.DataTree):
        raise TypeError(f"source must be a DataTree or a fit, got {checks.got(tree)}")
    if group not in tree.children or name not in tree[group]:
        raise ValueError(f"the tree lacks {group}/{name}, which this check needs")
    return tree[group].to_dataset()[name]


def grouping(source, tree: xr.DataTree, by: Any, n: int) -> Any:
    """Return the group of each of the n labelled rows; see `predictive_bars`."""
    if by is None:
        return pd.Categorical(["all"] * n)
    if not isinstance(by, str):
        if np.ndim(by) != 1:
            raise TypeError(
                f"by must be a column's name or an array of groups, got {checks.got(by)}"
            )
        if isinstance(source, OrdinalFit) and len(by) == source.labels.codes.size:
            by = pd.Series(by)[source.labels.observed]  # rows without a label have no counts
        if len(by) != n:
            raise ValueError(f"by must have one value for each of the {n} rows, got {len(by)}")
        groups = pd.Categorical(by)
        missing = groups.codes < 0
        if missing.any():
            raise ValueError(
                f"by has {missing.sum()} missing value(s), the first in labelled row {missing.argmax()}: give "
                "these rows a group of their own"
            )
        return groups.remove_unused_categories()
    X = variable(tree, "constant_data", "X")
    names = [str(name) for name in X["feature"].values]
    columns = [i for i, name in enumerate(names) if name.startswith(f"{by}=")]
    if not columns:
        known = sorted({name.split("=")[0] for name in names if "=" in name})
        raise ValueError(
            f"by: {by!r} is no categorical column of the table, those are {known}: pass one of them, or an "
            "array of groups, such as pd.cut(x, 4)"
        )
    levels = [names[i].removeprefix(f"{by}=") for i in columns]
    codes = X.values[:, columns].argmax(1)
    return pd.Categorical.from_codes(codes, categories=pd.Index(levels)).remove_unused_categories()
