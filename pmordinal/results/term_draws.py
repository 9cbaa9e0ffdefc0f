"""Draws of the effects of terms, jointly with draws of the latent function.

Given f at the training rows the labels say nothing more: the effects e are Gaussian by the prior alone. With K = R Rᵀ
and f = R z they are N(C z, K_ee − C Cᵀ), where C = K_eX R (RᵀR)⁻¹. K may be singular, as it is without a smooth term.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.linalg import block_diag, solve_triangular

from pmordinal.data.features import Features
from pmordinal.data.terms import WITH_COEFFICIENTS, Term, stored_name
from pmordinal.linalg import factor_psd
from pmordinal.posterior import LatentDraws, Posterior
from pmordinal.results.terms import effect_rows

ROUNDING = 1e-12  # relative to the largest prior variance, a variance that is zero but for rounding
MOST_EFFECTS = 1000  # of one term: covariances of more would take long
TAKEN = ("chain", "draw", "sample", "obs", "feature", "threshold", "class")


@dataclass(frozen=True, eq=False)
class TermEffects:
    """The effects of one term.

    Attributes
    ----------
    term : Term
    place : int
        Of the term among all of the model.
    rows : ndarray, shape (m, d)
        Where the term has its effects.
    unit : float
        What the term there is divided by.
    levels : mapping of str to tuple of str
        The levels of each column that has some.
    """

    term: Term
    place: int
    rows: np.ndarray
    unit: float
    levels: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Effects:
    """The effects of all linear, factor, interaction and group terms of a model.

    Attributes
    ----------
    terms : tuple of TermEffects
    left_out : tuple of str
        Names of terms with too many effects.
    """

    terms: tuple[TermEffects, ...] = ()
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, features: Features, terms: Sequence[Term]) -> "Effects":
        """Return the effects of the terms of a model; none if it has no named terms."""
        found, left_out = [], []
        for place, term in enumerate(terms):
            if term.kind not in WITH_COEFFICIENTS:
                continue
            columns = [features.columns[features.names.index(name)] for name in term.columns]
            levels = {c.name: c.levels for c in columns if c.levels is not None}
            if np.prod([float(len(of_one)) for of_one in levels.values()]) > MOST_EFFECTS:
                left_out.append(term.name)
                continue
            rows, _, unit = effect_rows(features, term)
            found.append(TermEffects(term, place, rows, unit, levels))
        return cls(tuple(found), tuple(left_out))

    @property
    def size(self) -> int:
        """Number of effects of all terms together."""
        return sum(len(one.rows) for one in self.terms)

    def given_latent(self, posterior: Posterior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return C, P and V: given f at `support` the effects are N(C P f, V), in units of the matrix.

        z = P f is white noise under the prior.

        Parameters
        ----------
        posterior : Posterior
            At the hyperparameters of the draw.

        Returns
        -------
        C : ndarray, shape (size, rank of K)
        P : ndarray, shape (rank of K, s)
        V : ndarray, shape (size, size)
        """
        own = [(*posterior.term(one.place), one.rows) for one in self.terms]
        K_Xe = np.concatenate([posterior.cross(one.rows, one.place) for one in self.terms], 1)
        K_ee = block_diag(*(k.matrix(values, rows, rows)[0] for k, values, rows in own))
        Q, T = np.linalg.qr(factor_psd(posterior.support_matrix))
        C = solve_triangular(T, Q.T @ K_Xe).T
        return C, solve_triangular(T, Q.T), K_ee - C @ C.T

    def draw(
        self, posterior: Posterior, latent: LatentDraws, rng: np.random.Generator
    ) -> np.ndarray:
        """Return a draw of all effects for each draw of f, shape (draws, size), in the user's units."""
        f = latent.f[:, posterior.support] if latent.support is None else latent.support
        if not self.terms:
            return np.empty((len(f), 0))
        C, P, V = self.given_latent(posterior)
        variances, axes = np.linalg.eigh(V)
        largest = float(posterior.support_matrix.diagonal().max())
        variances[variances < ROUNDING * largest] = 0.0
        noise = rng.standard_normal((len(f), self.size)) * np.sqrt(variances)
        units = np.repeat([one.unit for one in self.terms], [len(one.rows) for one in self.terms])
        return ((C @ (P @ f.T)).T + noise @ axes.T) / units

    def variables(self, draws: np.ndarray, others: xr.Dataset) -> dict[str, xr.DataArray]:
        """Return draws as variables of a posterior group, named like the terms.

        Parameters
        ----------
        draws : ndarray, shape (chains, draws, size)
        others : Dataset
            The other variables. A term that is called like one of them has ``_effect`` after its name; a
            dimension of levels is called like its column, or has ``_level`` after it.
        """
        taken = {str(name) for name in (*others.variables, *others.dims, *TAKEN)}
        names = [_free(stored_name(one.term.name), "_effect", taken) for one in self.terms]
        taken |= set(names)
        found, start = {}, 0
        for one, name in zip(self.terms, names, strict=True):
            block = draws[..., start : start + len(one.rows)]
            start += len(one.rows)
            dims = [_free(_column(column), "_level", taken) for column in one.levels]
            shape = [len(levels) for levels in one.levels.values()]
            coords: dict[str, Any] = {dim: others[dim] for dim in ("chain", "draw")}
            coords |= {d: list(of) for d, of in zip(dims, one.levels.values(), strict=True)}
            found[name] = xr.DataArray(
                block.reshape(*block.shape[:2], *shape),
                coords=coords,
                dims=["chain", "draw", *dims],
                attrs={"term": one.term.name},
            )
        return found

    def add_to(self, tree: xr.DataTree, draws: np.ndarray) -> None:
        """Add draws of the effects to the posterior group of a tree, if there are some."""
        if not (self.terms or self.left_out):
            return
        posterior = tree["posterior"].to_dataset()
        posterior = posterior.assign(self.variables(draws, posterior))
        if self.left_out:
            posterior.attrs["terms_left_out"] = list(self.left_out)
        tree["posterior"] = xr.DataTree(posterior)


def without_effects(posterior: xr.Dataset) -> xr.Dataset:
    """Return a posterior group without the variables that `Effects.add_to` added."""
    ours = [name for name, values in posterior.data_vars.items() if "term" in values.attrs]
    kept = posterior.drop_vars(ours)
    used = {dim for values in kept.data_vars.values() for dim in values.dims}
    lost = {dim for name in ours for dim in posterior[name].dims} - used
    return kept.drop_dims(lost)


def _column(name: str) -> str:
    """Return what a column of levels is called in the user's table.

    Examples
    --------
    >>> _column("C(judge)"), _column("judge")
    ('judge', 'judge')
    """
    return stored_name(re.sub(r"^C\((\w+)\)$", r"\1", name))


def _free(name: str, ending: str, taken: Collection[str]) -> str:
    while name in taken:
        name += ending
    return name
