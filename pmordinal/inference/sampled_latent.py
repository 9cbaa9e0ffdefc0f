"""Draws of a sampled `latent_model`, and its latent function at new rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

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
        Without known shifts.
    thresholds, noise : ndarray, shape (chains, draws, r − 1) and (chains, draws)
    values : list of ndarray, shape (chains, draws, …)
        Parameters with which `problem` draws the function at new rows.
    coords : dict
        Of chains and draws.
        Thresholds and noise that differ from group to group are those of every row, shapes (chains, draws, n, r − 1)
        and (chains, draws, n).
    groups : tuple of two ndarrays, optional
        Thresholds and noise of every group and of the population after them, where they differ; None where not.
    """

    problem: Process | Basis
    f: np.ndarray
    thresholds: np.ndarray
    noise: np.ndarray
    values: list[np.ndarray]
    coords: dict[str, Any]
    groups: tuple[np.ndarray | None, np.ndarray | None] = (None, None)

    def continued(self, Xnew, rng: np.random.Generator) -> xr.Dataset:
        """Return draws of f and y at new rows; within a draw f is drawn jointly."""
        rows = self.problem.features.transform(Xnew, name="Xnew")
        draw = self.problem.continuation(rows)
        f = np.empty((*self.f.shape[:2], len(rows)))
        with blas_threads(self.f.shape[-1]):
            for at in np.ndindex(self.f.shape[:2]):
                f[at] = draw(self.f[at], [value[at] for value in self.values], rng)
        if (shift := self.problem.features.shift(rows)) is not None:
            f += shift
        thresholds, noise = self.groups
        by_threshold, by_noise = self.problem.by_row.codes_at(Xnew)
        s = self.noise[..., None] if noise is None else noise[:, :, by_noise]
        b = self.thresholds[..., None, :] if thresholds is None else thresholds[:, :, by_threshold]
        noisy = f + s * self.problem.link.draw(rng, f.shape)
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
    """Return draws of a `latent_model`, ready to be continued to new rows."""
    problem = find_latent(model).op.problem
    groups = [
        name
        for name, by in (("thresholds", problem.by_row.thresholds), ("noise", problem.by_row.noise))
        if by is not None
    ]
    further = [model[name + end] for name in groups for end in ("", "_population")]
    outputs, needed = latent_parameters(model, further)
    function = of_variables(needed, outputs)
    f, shift = given["f"].values, problem.features.shift(problem.X)
    if shift is not None:
        f = f - shift
    arrays = [given[v.name].values for v in needed]
    found = [function([a[at] for a in arrays]) for at in np.ndindex(f.shape[:2])]
    thresholds, noise, *values = (
        np.array(column).reshape(*f.shape[:2], *np.shape(column[0]))
        for column in zip(*found, strict=True)
    )
    values, rest = values[: len(values) - len(further)], values[len(values) - len(further) :]
    all_groups = {
        name: np.concatenate([rest[2 * k], rest[2 * k + 1][:, :, None]], axis=2)
        for k, name in enumerate(groups)
    }
    coords = {name: given[name] for name in ("chain", "draw")}
    by_group = all_groups.get("thresholds"), all_groups.get("noise")
    return SampledLatent(problem, f, thresholds, noise, values, coords, by_group)
