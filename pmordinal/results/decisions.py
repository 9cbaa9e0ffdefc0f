"""Turns class probabilities into predictions: labels by a decision rule, cumulative probabilities, ranks."""

import numpy as np
import xarray as xr

from pmordinal.checks import finite_array, one_of
from pmordinal.data.labels import Labels

KINDS = ("probs", "class", "cumulative", "latent", "rank")


def present(probs: np.ndarray, labels: Labels, rows: dict, kind: str, rule):
    """Return the kind of prediction that was asked for; see `OrdinalFit.predict`."""
    if kind == "class":
        return labels.decode(decide(probs, rule))
    if kind == "rank":
        return xr.DataArray(probs @ np.arange(labels.n_classes), rows, name="rank")
    if kind == "cumulative":
        names = {"threshold": labels.threshold_names}
        return xr.DataArray(probs.cumsum(1)[:, :-1], rows | names, name="cumulative")
    return xr.DataArray(probs, rows | {"class": labels.class_names}, name="probs")


def decide(probs: np.ndarray, rule) -> np.ndarray:
    """Return the class code for each row of probabilities, by a decision rule.

    Parameters
    ----------
    probs : ndarray, shape (m, r)
    rule : {"mode", "median"} or array_like, shape (r, r)
        See `OrdinalFit.predict`.

    Examples
    --------
    >>> probs = np.array([[0.45, 0.15, 0.4]])
    >>> decide(probs, "mode"), decide(probs, "median")
    (array([0]), array([1]))
    """
    if isinstance(rule, str):
        one_of("rule", rule, ("mode", "median"))
        if rule == "mode":
            return probs.argmax(1)
        return (probs.cumsum(1) < 0.5).sum(1)
    cost = finite_array("rule", rule, ndim=2)
    r = probs.shape[1]
    if cost.shape != (r, r):
        raise ValueError(f"rule: a cost matrix must have shape {(r, r)}, got {cost.shape}")
    return (probs @ cost).argmin(1)
