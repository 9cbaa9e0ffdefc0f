"""Posterior of the latent function given all labels, through the inducing rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from pmordinal import linalg
from pmordinal.engines.inducing import passes
from pmordinal.engines.inducing.blocks import (
    Block,
    Blocks,
    Elsewhere,
    blocks_of,
    each_block,
    over_blocks,
)
from pmordinal.engines.inducing.carriers import carriers_of, term_carriers
from pmordinal.engines.inducing.correction import MOST_PAIRED, ep_correction, laplace_correction
from pmordinal.engines.inducing.iteration import factor
from pmordinal.engines.inducing.passes import Reacting
from pmordinal.engines.inducing.pieces import Kept, Shared, State
from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.likelihood.smoothing import Terms
from pmordinal.posterior import Gradient, LatentDraws, Posterior, Start

COARSE = 0.1  # residual variance over that of the noise, above which more inducing rows are advised


@dataclass(frozen=True)
class Marginals:
    """Posterior of f at each row, arrays of shape (n,).

    Attributes
    ----------
    mean, variance
    cavity_mean, cavity_variance
        Without the label of the row; of rows with a weight, without one of its labels.
    precision, alpha
        Of the site on f: its precision, and its natural mean minus precision times `mean`. Sums over a row's labels.
    residual
        λ, what the inducing rows leave of the prior variance.
    """

    mean: np.ndarray
    variance: np.ndarray
    cavity_mean: np.ndarray
    cavity_variance: np.ndarray
    precision: np.ndarray
    alpha: np.ndarray
    residual: np.ndarray


@dataclass(frozen=True, eq=False)
class InducingPosterior(Posterior):
    """Posterior of f given all labels: that of m weights, and a residual of its own for each row.

    What concerns single rows is computed when it is asked for, in a pass over them.

    Attributes
    ----------
    basis : ndarray of int, shape (m,)
        The rows of the carriers; `alpha` belongs to them.
    carrier : ndarray of int, shape (m,)
        What each carries: see `carriers_of`. Those of zero are the inducing rows.
    spread : ndarray, shape (m, m)
        S, the posterior precision of the whitened weights minus one.
    sites : {"ep", "laplace"}
    of_rows : ndarray, shape (m, m), optional
        Σ τ φ φᵀ of the last pass, for gradients.
    excess : float
        Mean of λ over the noise variance: above a tenth, there are too few inducing rows.
    elsewhere : Elsewhere, optional
        All rows, where those of `gram` are a sample of them: the weights and the evidence are those of all rows, what
        concerns single rows is that of the sample. Not in files and pickles.
    kept : Kept, optional
        Cavities that the engine has found, to start from. Not in files and pickles.
    """

    basis: np.ndarray
    carrier: np.ndarray = field(repr=False)
    spread: np.ndarray = field(repr=False)
    sites: str = "ep"
    of_rows: np.ndarray | None = field(default=None, repr=False)
    excess: float = np.nan
    elsewhere: Elsewhere | None = field(default=None, repr=False)
    kept: Kept | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the rows of a cluster out of pickles, and what is computed again when needed."""
        kept = {f.name for f in fields(self)} - {"elsewhere", "kept"}
        return {name: value for name, value in self.__dict__.items() if name in kept}

    @classmethod
    def restore(cls, support: np.ndarray, **found: Any) -> Self:
        """Rebuild the posterior from these fields; means and precisions are computed again."""
        found = {k: v for k, v in found.items() if k not in ("mean", "precision")}
        sites = "laplace" if found.pop("at_mode") else "ep"
        found.setdefault("carrier", np.zeros_like(support))  # files of fits without such terms
        return cls(basis=support, sites=sites, **found | {"excess": float(found["excess"])})

    @property
    def extra(self) -> dict[str, np.ndarray]:
        """Further arrays for `restore`."""
        at_mode = np.array(int(self.sites == "laplace"))
        found = {"spread": self.spread, "at_mode": at_mode, "excess": np.array(self.excess)}
        return found | ({"carrier": self.carrier} if self.carrier.any() else {})

    @property
    def support(self) -> np.ndarray:
        """The inducing rows in the order of choice, then those of linear and group terms, shape (m,)."""
        return self.basis

    @property
    def n_inducing(self) -> int:
        """Number of inducing rows."""
        return int(np.count_nonzero(self.carrier == 0))

    @property
    def notes(self) -> dict[str, float]:
        """The number of inducing rows, and what they leave of the prior variance in units of the noise's.

        ``n_columns`` is that of the columns of linear and group terms, if there are some.
        """
        found = {"n_inducing": self.n_inducing, "residual_over_noise": self.excess}
        columns = self.basis.size - self.n_inducing
        return found | ({"n_columns": columns} if columns else {})

    @property
    def advice(self) -> str:
        """Name a larger number of inducing rows if these leave too much to the noise."""
        if not self.excess > COARSE:
            return ""
        m = self.n_inducing
        return (
            f"{m} inducing rows are few: what they leave of the latent function has {self.excess:.2g} times the "
            f"noise's variance, and should have less than {COARSE}. The noise may be underestimated; use "
            f"engine=pmo.Inducing(n_inducing={2 * m})"
        )

    @cached_property
    def outside(self) -> np.ndarray:
        """No row: the labels of all of them have been used."""
        return np.empty(0, dtype=np.intp)

    @property
    def support_gram(self) -> Gram:
        """Raise: some rows of `support` stand for one term alone."""
        raise TypeError("inducing rows have no one covariance: see support_matrix and cross")

    @property
    def support_matrix(self) -> np.ndarray:
        """Covariance of what the weights stand for, shape (m, m); see `Posterior`."""
        return self.shared.L @ self.shared.L.T

    def cross(self, Xnew: np.ndarray, place: int | None = None) -> np.ndarray:
        """Return the covariance of what the weights stand for with a term at new rows; see `Posterior`."""
        shared = self.shared
        if place is None:
            parts = [c.kernel.matrix(c.values, c.Z, Xnew)[0] for c in shared.carriers]
            return np.concatenate(parts)
        kernel, values = self.term(place)
        owner = term_carriers(self.gram, self.carrier)[place]
        k = np.zeros((self.basis.size, len(Xnew)))
        mine = self.carrier == owner
        if mine.any():
            k[mine] = kernel.matrix(values, self.gram.X[self.basis[mine]], Xnew)[0]
        return k

    @cached_property
    def blocks(self) -> Sequence[Block]:
        """The rows."""
        if self.kept is not None:
            return self.kept.blocks
        return blocks_of(self.gram.X, self.y, self.likelihood.rows)

    @cached_property
    def shared(self) -> Shared:
        """What the rows share."""
        return share(self.gram, self.basis, self.carrier, self.likelihood)

    @cached_property
    def weights(self) -> np.ndarray:
        """Posterior mean of the whitened weights, shape (m,)."""
        return self.shared.L.T @ self.alpha

    @cached_property
    def state(self) -> State:
        """What a pass needs."""
        shared = self.shared.as_dict() | {"kept": self.kept}
        return State(**shared, w=self.weights, C=factor(self.spread))

    @cached_property
    def marginals(self) -> Marginals:
        """The posterior of f at each row, from one pass."""
        at_mode = self.sites == "laplace"
        function = passes.laplace_marginal_pass if at_mode else passes.marginal_pass
        parts = list(each_block(function, self.blocks, self.state))
        return Marginals(*np.concatenate(parts, axis=1))

    @cached_property
    def mean(self) -> np.ndarray:
        """Posterior mean, shape (n,)."""
        return self.marginals.mean

    @cached_property
    def precision(self) -> np.ndarray:
        """Precisions of the sites on f, shape (n,)."""
        return self.marginals.precision

    @cached_property
    def variance(self) -> np.ndarray:
        """Posterior variances, shape (n,)."""
        return self.marginals.variance

    @cached_property
    def cavity(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f_i without the i-th label."""
        return self.marginals.cavity_mean, self.marginals.cavity_variance

    @property
    def start(self) -> Start:
        """A warm start for the engine's next run."""
        cavities = None if self.kept is None else self.kept.cavities
        known = None if cavities is None else (cavities[0], cavities[1])
        return Start(self.alpha, known, replace(self.state, kept=None))

    @cached_property
    def leave_one_out(self) -> Terms:
        """Log p(y_i | y without i) from the cavities, with derivatives."""
        return self.likelihood.tilted(self.y, *self.cavity)

    def left_out_probabilities(self) -> np.ndarray:
        """Return the class probabilities of each training row without its own label, shape (n, r)."""
        return self.likelihood.probabilities(*self.cavity)

    @cached_property
    def _explaining(self) -> np.ndarray:
        """R with Rᵀ R = I − Λ⁻¹, shape (m, m)."""
        values, axes = np.linalg.eigh(self.spread)
        values = np.maximum(values, 0.0)
        return np.sqrt(values / (1.0 + values))[:, None] * axes.T

    def explain(self, k: np.ndarray) -> np.ndarray:
        """Return R L⁻¹ k, Rᵀ R = I − Λ⁻¹; see `Posterior`."""
        return self._explaining @ linalg.half_solve(self.shared.L, k)

    @cached_property
    def log_evidence_correction(self) -> float | None:
        """Second-order estimate of log Z − `log_evidence`, Z being that of the inducing rows' covariance.

        It is a sum over all pairs of rows: None beyond 5000 of them, and for rows on a cluster.
        """
        if self.elsewhere is not None or self.y.size > MOST_PAIRED:
            return None
        correction = laplace_correction if self.sites == "laplace" else ep_correction
        return correction(self.blocks, self.state)

    def draw(self, draws: int, rng: np.random.Generator) -> LatentDraws:
        """Return draws of f: the weights jointly, then each row's residual.

        Densities are with respect to white noise, from which weights and residuals are made.
        """
        C, w = self.state.C, self.weights
        assert C is not None
        z = rng.standard_normal((w.size, draws))
        weights = w[:, None] + linalg.lapack.dtrtrs(C, z, lower=1, trans=1)[0]
        constant = -0.5 * (w.size + self.y.size) * np.log(2 * np.pi)
        log_prior = constant - 0.5 * (weights * weights).sum(0)
        log_q = constant - 0.5 * (z * z).sum(0) + 0.5 * linalg.log_det(C)
        f = np.empty((draws, self.y.size))
        at, rows = self.marginals, 0
        for block in self.blocks:
            for piece in self.shared.pieces(block):
                part = slice(rows, rows := rows + len(piece.block))
                p, lam = at.precision[part], piece.lam
                eta = weights.T @ piece.phi
                natural = at.alpha[part] + p * at.mean[part]
                shrunk = 1.0 / (1.0 + lam * p)
                noise = rng.standard_normal(eta.shape)
                e = np.sqrt(lam) * shrunk * (natural - p * eta) + np.sqrt(shrunk) * noise
                f[:, part] = eta + np.sqrt(lam) * e
                log_prior -= 0.5 * (e * e).sum(1)
                log_q -= 0.5 * (noise * noise).sum(1) + 0.5 * np.log(shrunk).sum()
        return LatentDraws(f, log_prior, log_q, support=(self.shared.L @ weights).T)

    def evidence_gradient(self) -> Gradient:
        """Return the exact gradient of the evidence; the inducing rows are held fixed."""
        state, w = self.state, self.weights
        blocks: Blocks = self.blocks if self.elsewhere is None else self.elsewhere
        assert state.C is not None
        if self.sites == "laplace":
            by_mode = over_blocks(passes.pull_pass, blocks, state)["by_mode"]
            pull = linalg.solve(state.C, by_mode)
            reacting = Reacting(**state.as_dict(), pull=pull)
            found = over_blocks(passes.laplace_gradient_pass, blocks, reacting)
            outer = [w, pull]
        else:
            found = over_blocks(passes.gradient_pass, blocks, state)
            outer = [w]
        of_rows = self.spread if self.of_rows is None else self.of_rows
        by_L = -linalg.solve(state.C, of_rows) - 2.0 * linalg.fill_upper(found["A"])
        for k, u in enumerate(outer):
            by_L += np.outer(u, found[f"outer_{k}"])
        each = zip(state.carriers, state.slices, strict=True)
        through = state.to_parameters(c.through_factor(by_L[at, at]) for c, at in each)
        return Gradient(
            [found[f"parameter_{i}"] + g for i, g in enumerate(through)],
            found["thresholds"],
            found["log_noise"] if found["log_noise"].ndim else float(found["log_noise"]),
        )


def share(
    gram: Gram, basis: np.ndarray, carrier: np.ndarray, likelihood: OrdinalLikelihood
) -> Shared:
    """Return what all rows share, given the rows of the carriers."""
    b, s = likelihood.thresholds, likelihood.noise
    carriers = carriers_of(gram, basis, carrier)
    return Shared(gram.kernel, gram.values, carriers, b, s, likelihood.link)
