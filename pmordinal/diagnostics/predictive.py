"""Predictions of a fit or sampled tree for its own labelled rows; its link, class names and groups."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from pmordinal import checks
from pmordinal.data.by_row import CODES
from pmordinal.diagnostics.loo import loo, repeats, tree_weights
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
        again = repeats(source.by_row.weights, codes.size)
        names, link = source.labels.class_names, q.likelihood.link
        return Predictions(probs[again], codes[again], names, rows[again], link)
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
    link = link_of(tree)
    observed = variable(tree, "observed_data", "y")
    (obs,) = observed.dims
    f = posterior["f"].stack(sample=SAMPLE).transpose("sample", obs).values
    b, noise = row_parameters(tree, posterior)
    weights = np.full(f.shape, 1.0 / len(f))
    if leave_one_out:
        log_weights = loo(tree).log_weights
        weights = np.exp(log_weights.stack(sample=SAMPLE).transpose("sample", obs).values)
        weights /= weights.sum(0)
    probs = _averaged(f, b, noise, link, weights)
    names = class_names(tree, b.shape[-1] + 1)
    rows = observed[obs].values if obs in observed.coords else np.arange(observed.size)
    again = repeats(tree_weights(tree), observed.size)
    return Predictions(probs[again], observed.values[again], names, rows[again], link)


def row_parameters(
    tree: xr.DataTree, posterior: xr.Dataset, rows: str = "constant_data"
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of thresholds and noise at rows, shapes (draws, rows or 1, r − 1) and (draws, rows or 1).

    Parameters
    ----------
    tree : DataTree
    posterior : Dataset
        The draws to use.
    rows : str
        The group of the tree that has the groups of the rows, where parameters differ by group.
    """
    found = []
    for name, codes, ndim in zip(("thresholds", "noise"), CODES, (3, 2), strict=True):
        if name not in posterior:  # the noise, which is one then
            found.append(np.ones((posterior.sizes["chain"] * posterior.sizes["draw"], 1)))
            continue
        values = _stacked(posterior, name)
        if posterior[name].ndim == ndim:
            found.append(values[:, None])
            continue
        if rows not in tree.children or codes not in tree[rows]:
            raise ValueError(
                f"the tree has {name} by group, and does not say of which group a row is: take fit.to_datatree(), or "
                "let pmo.sample_posterior add it"
            )
        if f"{name}_population" in posterior:  # for rows of other groups
            population = _stacked(posterior, f"{name}_population")
            values = np.concatenate([values, population[:, None]], axis=1)
        found.append(values[:, variable(tree, rows, codes).values])
    return found[0], found[1]


def _stacked(posterior: xr.Dataset, name: str) -> np.ndarray:
    return posterior[name].stack(sample=SAMPLE).transpose("sample", ...).values


def predicted(tree: xr.DataTree, name: str) -> xr.DataArray:
    """Return the class probabilities of the new rows in the group ``predictions``, shape (m, r)."""
    try:
        f = variable(tree, "predictions", "f")
    except ValueError:
        raise ValueError(
            f"{name!r}: the tree has no predictions of the test rows: make them with "
            "pmo.sample_posterior(model, tree, Xnew)"
        ) from None
    posterior = tree["posterior"].to_dataset()
    if f.sizes["draw"] != posterior.sizes["draw"]:  # predictions of a part of the draws
        posterior = posterior.sel(draw=f["draw"])
    b, noise = row_parameters(tree, posterior, "predictions_constant_data")
    f = f.stack(sample=SAMPLE).transpose("sample", ...)
    link = link_of(tree)
    probs = _averaged(f.values, b, noise, link, np.full(f.shape, 1.0 / len(f)))
    return xr.DataArray(
        probs, dims=("obs", "class"), coords={"class": class_names(tree, b.shape[-1] + 1)}
    )


def _averaged(f, b, noise, link: Link, weights: np.ndarray) -> np.ndarray:
    """Return class probabilities averaged over draws, shape (rows, r)."""
    cdf = np.ones((f.shape[1], b.shape[-1] + 2))
    cdf[:, 0] = 0.0
    for k in range(b.shape[-1]):
        z = (b[..., k] - f) / noise
        cdf[:, k + 1] = (weights * link.cdf(z)).sum(0)
    return np.diff(cdf, axis=1)


def replicated(tree: xr.DataTree, rng: np.random.Generator) -> np.ndarray:
    """Return labels drawn from the posterior, shape (draws, rows): each row as often as its weight says."""
    y = variable(tree, "posterior_predictive", "y").stack(sample=SAMPLE).transpose("sample", ...)
    weights = tree_weights(tree)
    if weights is None:
        return y.values
    posterior = tree["posterior"].to_dataset()
    again = repeats(weights, y.shape[1])
    f = _stacked(posterior, "f")[:, again]
    b, noise = row_parameters(tree, posterior)
    b, noise = (x[:, again] if x.shape[1] > 1 else x for x in (b, noise))
    noisy = f + noise * link_of(tree).draw(rng, f.shape)
    return sum((noisy > b[..., k]).astype(int) for k in range(b.shape[-1]))  # type: ignore[return-value]


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
    given = source.features.given if isinstance(source, OrdinalFit) else ()
    coded = {column.name: column.levels for column in given if column.is_coded}
    if by in coded:
        codes = X.sel(feature=by).values.astype(int)
        levels = pd.Index(list(coded[by] or ()))
        return pd.Categorical.from_codes(codes, levels).remove_unused_categories()
    names = [str(name) for name in X["feature"].values]
    columns = [i for i, name in enumerate(names) if name.startswith(f"{by}=")]
    if not columns:
        known = sorted({*coded, *(name.split("=")[0] for name in names if "=" in name)})
        raise ValueError(
            f"by: {by!r} is no categorical column of the table, those are {known}: pass one of them, or an "
            "array of groups, such as pd.cut(x, 4)"
        )
    levels = pd.Index([names[i].removeprefix(f"{by}=") for i in columns])
    codes = X.values[:, columns].argmax(1)
    return pd.Categorical.from_codes(codes, categories=levels).remove_unused_categories()
