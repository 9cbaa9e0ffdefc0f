"""Sparse engine: a posterior given the labels of a few basis rows [Srijith2012, section 4, Algorithm 1].

The labels of the basis enter by assumed density filtering. Those of the other rows are used for validation: the next
basis row and the hyperparameters are those that predict them best. No n × n matrix is formed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import blas

from pmordinal import checks, linalg
from pmordinal.engines.base import ENGINES, Engine
from pmordinal.engines.sparse.filtering import LEAST_VARIANCE, Chain
from pmordinal.engines.sparse.greedy import Greedy, blocks_of
from pmordinal.gram import Gram
from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.posterior import Gradient, LatentDraws, Posterior, SitePosterior, Start, Status

# Default size of the basis: this share of the rows [Srijith2012, section 5], but at most MOST.
SHARE, MOST = 0.2, 200


@dataclass(frozen=True, eq=False)
class SparsePosterior(SitePosterior):
    """Posterior given the labels of the basis rows.

    `alpha`, `precision` and `factor` belong to the basis, in the order of inclusion; `mean`, `variance` and `cavity` to
    all rows. Outside the basis the cavity is the posterior itself, which has not used the label. `log_evidence` is
    that of the labels of the basis.

    Attributes
    ----------
    basis : ndarray of int, shape (s,)
        Basis rows in the order of inclusion.
    basis_gram : Gram
        Covariance of these rows.
    B_inverse_diagonal : ndarray, shape (s,)
    variance : ndarray, shape (n,)
        Posterior variances of all rows.
    chain : Chain, optional
        The passes of the filter, kept for gradients; None for a posterior loaded from a file.
    """

    basis: np.ndarray
    basis_gram: Gram = field(repr=False)
    B_inverse_diagonal: np.ndarray = field(repr=False)
    variance: np.ndarray = field(repr=False)
    chain: Chain | None = field(default=None, repr=False)

    @property
    def support(self) -> np.ndarray:
        """The basis rows in the order of inclusion, shape (s,)."""
        return self.basis

    @property
    def support_gram(self) -> Gram:
        """Covariance of the basis rows."""
        return self.basis_gram

    @classmethod
    def restore(cls, support: np.ndarray, **fields: Any) -> Self:
        """Rebuild the posterior from these fields and this basis."""
        gram, alpha, precision = (fields[name] for name in ("gram", "alpha", "precision"))
        basis_gram = Gram(gram.kernel, gram.X[support], gram.values)
        factor = linalg.cholesky_B(basis_gram.matrix, np.sqrt(precision))
        D = linalg.column_squares(linalg.triangular_inverse(factor))
        _, variance = marginals(gram, support, basis_gram, alpha, precision, factor, D)
        fields |= {"basis_gram": basis_gram, "B_inverse_diagonal": D, "variance": variance}
        return cls(factor=factor, basis=support, **fields)

    @cached_property
    def cavity(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f_i without the site of row i, which only rows of the basis have."""
        mean, var = self.mean.copy(), self.variance.copy()
        var[self.basis] /= self.B_inverse_diagonal
        mean[self.basis] -= var[self.basis] * self.alpha
        return mean, var

    def draw(self, draws: int, rng: np.random.Generator) -> LatentDraws:
        """Return draws of f: the basis jointly, the other rows independent given the basis.

        All marginals and all correlations with the basis are exact. Correlations between the other rows, given the
        basis, are left out, which keeps memory and time linear in n. `log_prior` is the density of that same
        process, so that log_q − log_prior is exact.
        """
        K, S, u = self.support_gram.matrix, self.root_precision[:, None], self.basis
        R = linalg.factor_psd(K)
        z0 = rng.standard_normal((R.shape[1], draws))
        f0 = R @ z0
        e = rng.standard_normal(f0.shape)
        c = self.alpha[:, None] - S * linalg.solve(self.factor, S * f0 + e)
        z = z0 + R.T @ c
        f = np.empty((draws, self.gram.n))
        f[:, u] = fu = (f0 + K @ c).T
        log_prior = -0.5 * (z * z).sum(0) - 0.5 * R.shape[1] * np.log(2 * np.pi)
        for rows in blocks_of(self.outside, u.size):
            G = np.linalg.lstsq(R, self.support_gram.cross(self.gram.X[rows]))[0]
            spread = self.gram.diagonal[rows] - (G * G).sum(0)
            e = rng.standard_normal((draws, rows.size))
            f[:, rows] = z.T @ G + e * np.sqrt(np.maximum(spread, 0.0))
            log_prior += -0.5 * (e * e).sum(1) - 0.5 * rows.size * np.log(2 * np.pi)
        nu = self.alpha + self.precision * self.mean[u]
        log_Z = 0.5 * nu @ self.mean[u] - 0.5 * linalg.log_det(self.factor)
        log_q = log_prior + fu @ nu - 0.5 * (fu * fu) @ self.precision - log_Z
        return LatentDraws(f, log_prior, log_q)

    def validation_gradient(self) -> Gradient:
        """Return the exact gradient of Σ log p(y_i | y_u) over the rows outside the basis u.

        The basis and its order are held fixed. The sites are not: they change with the hyperparameters, and the
        derivative goes back through every step of the filter.
        """
        terms, left = self.leave_one_out, self.outside
        by_mean, curvature = terms.d1[left], terms.curvature[left]
        by_variance = 0.5 * (by_mean**2 - curvature)
        through = self._pullback(self.gram.X[left], by_mean, by_variance)
        outside = self.likelihood.of_rows(left)
        upper, lower, log_noise = (t[0][left] for t in (terms.upper, terms.lower, terms.log_noise))
        return Gradient(
            through.parameters,
            through.thresholds + outside.threshold_gradient(self.y[left], upper, lower),
            through.log_noise + outside.noise_gradient(log_noise),
        )

    def latent_with_pullback(
        self, Xnew: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray, np.ndarray], Gradient]]:
        """Return mean and variance of f at new rows, and the pullback to the hyperparameters.

        The same is held fixed as in `validation_gradient`.
        """
        mean, variance = self.latent(Xnew)
        return mean, variance, partial(self._pullback, Xnew)

    def _pullback(self, Xnew: np.ndarray, by_mean: np.ndarray, by_variance: np.ndarray) -> Gradient:
        """Return the gradient, given derivatives by means and variances at rows outside the basis."""
        chain = self.chain
        if chain is None:
            raise ValueError("a loaded posterior has no gradient: fit the model again")
        M, gamma, nu = chain.last.M, chain.last.gamma, chain.last.nu
        kernel, values, Xu = self.gram.kernel, self.gram.values, self.support_gram.X
        dM, dgamma, dnu = np.zeros_like(M), np.zeros_like(gamma), np.zeros_like(nu)
        total = [np.zeros(v.shape) for v in values]

        def add(derivatives: list[np.ndarray]) -> None:
            for sum_, derivative in zip(total, derivatives, strict=True):
                sum_ += derivative

        for rows in blocks_of(np.arange(len(Xnew)), nu.size):
            X, dmean, dvar = Xnew[rows], by_mean[rows], by_variance[rows]
            k, pull = kernel.matrix(values, Xu, X)
            c = blas.dtrsm(1.0, M, k, lower=1, diag=1)  # mean = γᵀ c, variance = k** − νᵀ c²
            square = c * c
            dgamma += c @ dmean
            dnu -= square @ dvar
            dc = np.multiply(c, -2.0 * dvar, out=square)
            dc *= nu[:, None]
            dc = blas.dger(1.0, gamma, dmean, a=dc, overwrite_a=1)
            dk = blas.dtrsm(1.0, M, dc, lower=1, diag=1, trans_a=1, overwrite_b=1)
            dM = blas.dgemm(-1.0, dk, c, beta=1.0, c=dM, trans_b=1, overwrite_c=1)
            add(pull(dk))
            add(kernel.diagonal(values, X)[1](dvar))
        dK, by = chain.back(dM, dgamma, dnu)
        add(self.support_gram.pullback(dK))
        inside = self.likelihood.of_rows(self.basis)
        thresholds = inside.threshold_gradient(self.y[self.basis], by.upper, by.lower)
        return Gradient(total, thresholds, inside.noise_gradient(by.log_noise))


@ENGINES.register("sparse")
@dataclass(frozen=True)
class SparseADF(Engine):
    """Assumed density filtering of s basis rows, chosen by validation, at a cost of O(n s²).

    Parameters
    ----------
    n_basis : int or float, optional
        Number s of basis rows, or their share of all rows. By default a fifth of the rows, at most 200.
    working_set : int
        Number of random rows that are tried for each new basis row.
    compared : int or None
        Number of random rows outside the basis by which each of these steps compares the rows tried, if there are more;
        None for all of them. The hyperparameters are always chosen by all rows outside.
    seed : int
        Seed of the working sets.
    refresh : int
        Sweeps of expectation propagation over the sites of the basis after the filter's pass.
    rounds : int
        Largest number of times that `fit` chooses a basis and optimises the hyperparameters for it.
    basis : sequence of int, optional
        The basis rows in the order of inclusion, if they are not to be chosen.

    Examples
    --------
    >>> import pymc as pm
    >>> from pmordinal.gram import Gram, lower
    >>> X = np.linspace(-2, 2, 40)[:, None]
    >>> gram = Gram(lower(pm.gp.cov.ExpQuad(1, ls=1.0)), X, [1.0])
    >>> posterior = SparseADF(n_basis=4)(gram, (X[:, 0] > 0).astype(int), OrdinalLikelihood([0.0], noise=0.5))
    >>> posterior.support.size, posterior.mean.shape
    (4, (40,))
    """

    name: ClassVar[str] = "sparse"
    is_dense: ClassVar[bool] = False
    objectives: ClassVar[tuple[str, ...]] = ("validation",)
    posterior_type: ClassVar[type[Posterior]] = SparsePosterior

    n_basis: int | float | None = None
    working_set: int = 59
    seed: int = 0
    refresh: int = 0
    rounds: int = 10
    basis: tuple[int, ...] | None = None
    compared: int | None = 4000

    def __post_init__(self) -> None:
        """Check the options."""
        if isinstance(self.n_basis, float):
            if not 0.0 < self.n_basis < 1.0:
                raise ValueError(f"n_basis as a share must be between 0 and 1, got {self.n_basis}")
        elif self.n_basis is not None:
            checks.integer("n_basis", self.n_basis, minimum=1)
        checks.integer("working_set", self.working_set, minimum=1)
        if self.compared is not None:
            checks.integer("compared", self.compared, minimum=1)
        checks.integer("refresh", self.refresh, minimum=0)
        checks.integer("rounds", self.rounds, minimum=1)
        if self.basis is not None:
            object.__setattr__(self, "basis", checks.rows("basis", self.basis))

    @property
    def turns(self) -> int:
        """Largest number of times that a fit chooses a basis."""
        return 1 if self.basis is not None else self.rounds

    def describe(self, objective: str, value: float, n: int) -> str:
        """Return the mean negative log probability outside the basis, including the log prior, as text."""
        return f"NLP {-value / (n - self.size(n)):.4f}"

    def size(self, n: int) -> int:
        """Return the number of basis rows among `n`."""
        if self.basis is not None:
            s = len(self.basis)
        elif self.n_basis is None:
            s = min(int(np.ceil(SHARE * n)), MOST, n - 1)
        elif isinstance(self.n_basis, float):
            s = min(max(1, round(self.n_basis * n)), n - 1)
        else:
            s = self.n_basis
        if not 1 <= s < n:
            raise ValueError(
                f"n_basis must be below the number of rows, got {s} of {n}: the rows outside the basis are "
                "those that choose it; use engine='ep' to keep all rows"
            )
        return s

    def select(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        turn: int = 0,
        report: Callable[[str], None] | None = None,
    ) -> Self:
        """Return the engine with a basis, chosen at these hyperparameters; see `Engine`."""
        if self.basis is not None:
            return self
        greedy = Greedy(gram, y, likelihood, self.size(y.size))
        rng = np.random.default_rng([self.seed, turn])
        for count, nlp in greedy.grow(self.working_set, rng, self.compared):
            if report is not None:
                report(f"basis {count} of {greedy.s}, NLP {nlp:.4f}")
        return replace(self, basis=tuple(greedy.basis.tolist()))

    def __call__(
        self,
        gram: Gram,
        y: np.ndarray,
        likelihood: OrdinalLikelihood,
        start: Start | None = None,
    ) -> SparsePosterior:
        """Return the posterior given the labels of the basis, which is chosen if there is none yet."""
        self.check_weights(likelihood.weights)
        u = np.array(self.select(gram, y, likelihood).basis)
        if u.size >= y.size or u.max() >= y.size:
            raise ValueError(f"basis must hold some of the rows 0 to {y.size - 1}, and not all")
        support = Gram(gram.kernel, gram.X[u], gram.values)
        K = support.matrix
        of_basis = likelihood.of_rows(u)
        chain = Chain(K, y[u], of_basis, self.refresh)
        alpha, p = chain.last.alpha, chain.last.rule.p
        L = linalg.cholesky_B(K, np.sqrt(p))
        D = linalg.column_squares(linalg.triangular_inverse(L))
        mean, var = marginals(gram, u, support, alpha, p, L, D)
        lam = var[u] / D
        # of the basis's labels
        log_Z = of_basis.log_tilted(y[u], mean[u] - lam * alpha, lam).sum()
        log_Z += 0.5 * (lam @ alpha**2 - alpha @ mean[u] - np.log(D).sum() - linalg.log_det(L))
        return SparsePosterior(
            gram=gram,
            y=y,
            likelihood=likelihood,
            alpha=alpha,
            mean=mean,
            precision=p,
            factor=L,
            log_evidence=float(log_Z),
            status=Status(True, u.size, "one pass through the basis", 1),
            basis=u,
            basis_gram=support,
            B_inverse_diagonal=D,
            variance=var,
            chain=chain,
        )


def marginals(
    gram: Gram,
    basis: np.ndarray,
    basis_gram: Gram,
    alpha: np.ndarray,
    precision: np.ndarray,
    factor: np.ndarray,
    B_inverse_diagonal: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances of all rows, block by block: O(n s²) time, O(n) memory."""
    mean, var = np.empty((2, gram.n))
    S, K = np.sqrt(precision), basis_gram.matrix
    for rows in blocks_of(np.setdiff1d(np.arange(gram.n), basis), basis.size):
        k = basis_gram.cross(gram.X[rows])
        v = linalg.half_solve(factor, S[:, None] * k)
        mean[rows], var[rows] = k.T @ alpha, gram.diagonal[rows] - (v * v).sum(0)
    # White noise is in a row's own variance, but not in its covariance with an identical row.
    mean[basis] = K @ alpha
    var[basis] = linalg.posterior_diagonal(K, B_inverse_diagonal, precision, S, factor)
    return mean, np.maximum(var, LEAST_VARIANCE * gram.diagonal)
