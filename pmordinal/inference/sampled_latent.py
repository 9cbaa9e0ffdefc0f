"""Draws of a sampled `latent_model`, and its latent function at new rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from pmordinal.data import groups
from pmordinal.data.rows import row_names
from pmordinal.inference.density import find_latent, latent_parameters, of_variables
from pmordinal.linalg.threads import blas_threads
from pmordinal.model.latent.hsgp_ops import Basis
from pmordinal.model.latent.process_ops import Process


@dataclass(frozen=True, eq=False)
class SampledLatent:
    """Draws of a sampled `latent_model`; the first dimensions are chain and draw.

    Attributes
    ----------
    problem : Process or Basis
    f : ndarray, shape (chains, draws, n)
    thresholds, noise : ndarray, shape (chains, draws, r − 1) and (chains, draws)
    values : list of ndarray, shape (chains, draws, …)
        Parameters with which `problem` draws the function at new rows.
    coords : dict
        Coordinates of chains and draws.
    by_group : callable, optional
        Returns the thresholds of new rows, shape (chains, draws, m, r − 1), where they differ from
        group to group; `thresholds` are then those of every row, shape (chains, draws, n, r − 1).
    """

    problem: Process | Basis
    f: np.ndarray
    thresholds: np.ndarray
    noise: np.ndarray
    values: list[np.ndarray]
    coords: dict[str, Any]
    by_group: Callable[[Any], np.ndarray] | None = None

    def continued(self, Xnew, rng: np.random.Generator) -> xr.Dataset:
        """Return draws of f and y at new rows; within a draw f is drawn jointly."""
        rows = self.problem.features.transform(Xnew, name="Xnew")
        draw = self.problem.continuation(rows)
        f = np.empty((*self.noise.shape, len(rows)))
        with blas_threads(self.f.shape[-1]):
            for at in np.ndindex(self.noise.shape):
                f[at] = draw(self.f[at], [value[at] for value in self.values], rng)
        noisy = f + self.noise[..., None] * self.problem.link.draw(rng, f.shape)
        b = self.by_group(Xnew) if self.by_group else self.thresholds[..., None, :]
        y = (noisy[..., None] > b).sum(-1)
        coords = self.coords | {"obs": row_names(Xnew, len(rows))}
        dims = ("chain", "draw", "obs")
        return xr.Dataset({"f": (dims, f), "y": (dims, y)}, coords=coords)


def latent_given(model: pm.Model, tree: xr.DataTree) -> xr.Dataset:
    """Return the posterior group of a sampled `latent_model`; the first dimensions are chain and draw."""
    if "posterior" not in tree.children:
        raise ValueError("tree has no posterior group: pass what pm.sample(model=model) returned")
    given = tree["posterior"].to_dataset().transpose("chain", "draw", ...)
    needed = [v.name for v in latent_parameters(model)[1]]
    missing = [name for name in [*needed, "f"] if name not in given]
    if missing:
        raise ValueError(
            f"tree has no draws of {missing[0]!r}: pass what pm.sample returned for this model"
        )
    return given


def latent_draws(model: pm.Model, given: xr.Dataset) -> SampledLatent:
    """Return draws of a `latent_model` in a form that can predict at new rows."""
    outputs, needed = latent_parameters(model)
    function = of_variables(needed, outputs)
    f = given["f"].values
    arrays = [given[v.name].values for v in needed]
    found = [function([a[at] for a in arrays]) for at in np.ndindex(f.shape[:2])]
    thresholds, noise, *values = (
        np.array(column).reshape(*f.shape[:2], *np.shape(column[0]))
        for column in zip(*found, strict=True)
    )
    coords = {name: given[name] for name in ("chain", "draw")}
    by, by_group = groups.dimension(model), None
    if by is not None:

        def by_group(Xnew):
            return given["thresholds"].values[:, :, groups.codes(model, by, Xnew)]

    problem = find_latent(model).op.problem
    return SampledLatent(problem, f, thresholds, noise, values, coords, by_group)
