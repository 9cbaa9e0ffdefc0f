"""Points of hyperparameters to integrate over: a central composite design, or draws with known densities.

Both live in coordinates z in which the log density is about −½ zᵀz. Its axes are those of the curvature at the mode;
each side of an axis is stretched by its own factor, found where the density really is down by a factor e (the split
normal distribution of [Rue2009, section 6.5; Martins2013]).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from pmordinal.results.curvature import Gaussian

RADIUS = 1.1  # of the sphere of design points, in units of √p [Rue2009]
MOST_FACTORIAL = (
    11  # hyperparameters with corner points: 128 runs; more have points on the axes alone
)
FREEDOM = 5.0  # of the Student-t draws: their tails must be heavier than the density's
DROP = 1.0  # nats that the density falls by where the stretch is measured
NARROWEST, WIDEST = 0.2, 5.0  # stretches
PSEUDO = 2.0  # for each hyperparameter, draws that a fitted covariance is shrunk by
TRIES = 4  # evaluations for a stretch, at most
TAIL = 3.0  # standard deviations of a hyperparameter at which its tails are looked at
# of an interpolated density, in units of √p: far from all points the split normal remains
REACH = 1.5
MOST_BEYOND = 6.0  # nats: more is no shape to interpolate, but the end of the density
NUGGET = 1e-6  # of the interpolation, relative to its variance


@dataclass(frozen=True, eq=False)
class SplitNormal:
    """A Gaussian whose axes have a scale of their own on each side of the mode.

    Attributes
    ----------
    gaussian : Gaussian
    below, above : ndarray, shape (p,)
        Stretches of the sides, 1 for the Gaussian itself.
    rises : float
        By how many nats the density was above the mode's where stretches were measured; 0 if nowhere.
    """

    gaussian: Gaussian
    below: np.ndarray
    above: np.ndarray
    rises: float = 0.0

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """Return the coordinates z of hyperparameters, shape (K, p)."""
        u = np.linalg.solve(self.gaussian.root, (x - self.gaussian.mode).T).T
        return u / np.where(u > 0, self.above, self.below)

    def at(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the hyperparameters at coordinates z, shape (K, p), and the log volumes dx/dz there."""
        q = self.gaussian
        stretch = np.where(z > 0, self.above, self.below)
        stretch[z == 0] = np.broadcast_to(0.5 * (self.above + self.below), z.shape)[z == 0]
        return q.mode + (z * stretch) @ q.root.T, q.log_det + np.log(stretch).sum(1)


def split_normal(
    gaussian: Gaussian, log_density: Callable[[np.ndarray], float | None], top: float
) -> SplitNormal:
    """Return the Gaussian with its sides stretched to where the density is down by one nat.

    Parameters
    ----------
    gaussian : Gaussian
    log_density : callable
        None where the engine breaks down.
    top : float
        The log density at the mode.
    """
    p = gaussian.mode.size
    sides, rises = np.ones((2, p)), 0.0
    for side, sign in enumerate((-1.0, 1.0)):
        for j in range(p):
            scale = 1.0
            for _ in range(TRIES):
                distance = np.sqrt(2.0 * DROP) * scale
                there = log_density(gaussian.mode + sign * distance * gaussian.root[:, j])
                if there is None:
                    scale *= 0.5
                    continue
                drop = top - there
                rises = max(rises, -drop)
                # where it hardly falls, the step doubles
                better = distance / np.sqrt(2.0 * max(drop, distance**2 / (8.0 * scale**2)))
                settled = abs(np.log(better / scale)) < 0.1
                scale = float(np.clip(better, NARROWEST, WIDEST))
                if settled or scale in (NARROWEST, WIDEST):
                    break
            sides[side, j] = scale
    return SplitNormal(gaussian, sides[0], sides[1], rises)


def composite_design(p: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of a central composite design in p dimensions, and their weights under N(0, I).

    They are the centre, two points on each axis and, for at most eleven dimensions, the corners of a two-level
    factorial design of resolution V, all at one distance. The weights give N(0, I) its mass and its second moments.

    Returns
    -------
    z : ndarray, shape (K, p)
        The centre comes first.
    weights : ndarray, shape (K,)

    Examples
    --------
    >>> z, weights = composite_design(2)
    >>> len(z), weights.sum().round(12), np.diag((z.T * weights) @ z).round(12)
    (9, np.float64(1.0), array([1., 1.]))
    """
    radius = RADIUS * np.sqrt(p)
    axes = radius * np.eye(p)
    blocks = [np.zeros((1, p)), axes, -axes]
    if 1 < p <= MOST_FACTORIAL:
        blocks.append(RADIUS * factorial(p))
    z = np.concatenate(blocks)
    weights = np.full(len(z), 1.0 / (RADIUS**2 * (len(z) - 1)))
    weights[0] = 1.0 - 1.0 / RADIUS**2
    return z, weights


def factorial(p: int) -> np.ndarray:
    """Return a two-level factorial design of resolution V, shape (runs, p), with entries ±1.

    Column j is a Walsh function whose index is no exclusive or of up to three earlier ones, so that no interaction of
    two columns is that of two others, or a column [Sanchez2005].

    Examples
    --------
    >>> [len(factorial(p)) for p in (2, 3, 4, 5, 6, 8, 11)]
    [4, 8, 16, 16, 32, 64, 128]
    """
    indices: list[int] = []
    sums = [{0}, set(), set(), set()]  # exclusive ors of 0 to 3 indices
    candidate = 0
    while len(indices) < p:
        candidate += 1
        if any(candidate in of for of in sums):
            continue
        for few in (2, 1, 0):
            sums[few + 1] |= {candidate ^ other for other in sums[few]}
        indices.append(candidate)
    runs = 1 << max(indices).bit_length()
    both = np.arange(runs)[:, None] & np.array(indices)
    return 1.0 - 2.0 * (np.bitwise_count(both) % 2)


def student_draws(
    q: SplitNormal, draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws z of a split Student-t distribution, evenly spread, and their log densities in x.

    They are scrambled Sobol points, so that averages over them vary less than over independent draws.

    Returns
    -------
    z : ndarray, shape (draws, p)
    log_q : ndarray, shape (draws,)
    """
    p, nu = q.below.size, FREEDOM
    # a whole power of two, or Sobol points are not balanced
    from scipy.stats import (  # here: a fit does without it, and it takes long to import
        chi2,
        norm,
        qmc,
    )

    u = qmc.Sobol(p + 1, rng=rng).random_base2(int(np.ceil(np.log2(draws))))[:draws]
    u = np.clip(u, 1e-12, 1.0 - 1e-12)
    share = q.below / (q.below + q.above)  # probability of the lower side
    v = u[:, :p]
    half = np.where(v < share, 0.5 * v / share, 1.0 - 0.5 * (1.0 - v) / (1.0 - share))
    z = norm.ppf(half) / np.sqrt(chi2.ppf(u[:, p:], nu) / nu)
    return z, log_student(q, z)


def log_student(q: SplitNormal, z: np.ndarray) -> np.ndarray:
    """Return the log density in x of the split Student-t distribution at coordinates z, shape (K,)."""
    p, nu = q.below.size, FREEDOM
    log_t = gammaln(0.5 * (nu + p)) - gammaln(0.5 * nu) - 0.5 * p * np.log(nu * np.pi)
    # each side has the probability of its stretch, and the density is continuous at the mode
    log_volume = q.gaussian.log_det + np.log(0.5 * (q.below + q.above)).sum()
    return log_t - 0.5 * (nu + p) * np.log1p((z * z).sum(1) / nu) - log_volume


def fitted_to(x: np.ndarray, weights: np.ndarray, before: SplitNormal) -> SplitNormal:
    """Return the Gaussian with mean and covariance of weighted points, shrunk a little towards the one before.

    Parameters
    ----------
    x : ndarray, shape (K, p)
    weights : ndarray, shape (K,)
        They sum to one.
    before : SplitNormal
    """
    p, root = x.shape[1], before.gaussian.root
    trust = 1.0 / float((weights**2).sum())
    share = trust / (trust + PSEUDO * p)
    mean = weights @ x
    covariance = share * ((x - mean).T * weights) @ (x - mean) + (1.0 - share) * root @ root.T
    factor = np.linalg.cholesky(covariance)
    log_det = float(np.log(np.diagonal(factor)).sum())
    return SplitNormal(Gaussian(mean, factor, log_det, 0), np.ones(p), np.ones(p))


def tail_points(gaussian: Gaussian) -> np.ndarray:
    """Return two points in the tails of each hyperparameter, the others where the Gaussian then expects them."""
    covariance = gaussian.root @ gaussian.root.T
    steps = TAIL * covariance / np.sqrt(np.diagonal(covariance))
    return gaussian.mode + np.concatenate([-steps.T, steps.T])


def interpolated(
    q: SplitNormal, x: np.ndarray, log_density: np.ndarray, z: np.ndarray
) -> np.ndarray:
    """Return the log density at coordinates z, up to a constant, from its values at some points.

    What it has above the split normal is interpolated by a Gaussian process, which goes back to zero away from the
    points.

    Parameters
    ----------
    q : SplitNormal
    x : ndarray, shape (K, p)
        Points where the density is known, the mode first.
    log_density : ndarray, shape (K,)
    z : ndarray, shape (S, p)
    """
    known = q.coordinates(x)
    beyond = log_density - log_density[0] + 0.5 * (known * known).sum(1)
    beyond = np.clip(beyond, -MOST_BEYOND, MOST_BEYOND)
    reach = REACH * np.sqrt(z.shape[1])

    def covariance(a: np.ndarray) -> np.ndarray:
        squares = (a * a).sum(1)[:, None] + (known * known).sum(1) - 2.0 * a @ known.T
        return np.exp(-0.5 * squares / reach**2)

    K = covariance(known)
    K[np.diag_indices_from(K)] += NUGGET
    return covariance(z) @ np.linalg.solve(K, beyond) - 0.5 * (z * z).sum(1)
