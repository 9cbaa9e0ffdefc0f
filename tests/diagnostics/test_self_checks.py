"""Statistical self-checks on data simulated from the model: ranks, intervals and probabilities of the engines.

The latent function is drawn from its prior, labels from it, and the engine sees the labels at the true hyperparameters.
Under the exact posterior the rank of the true f among posterior draws is uniform [Talts et al., 2018]; here draws are
not needed, since the engines' marginals are Gaussian: u = Φ((f − mean)/sd) is uniform. What remains is the error of the
approximation, and its size is stated in docs/engines.md.
"""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pmordinal.engines import ENGINES
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood

pytestmark = pytest.mark.slow

N, NEW, REPLICATIONS = 20, 5, 1500
KERNEL = lower(pm.gp.cov.ExpQuad(1, ls=np.float64(1.0)))
THRESHOLDS = np.array([-0.7, 0.0, 0.7])


def simulate(name, noise, replications=REPLICATIONS, seed=0, link="probit"):
    """Return u of training rows and of new rows, class probabilities of new rows, and their labels."""
    rng = np.random.default_rng(seed)
    engine = ENGINES[name]()
    likelihood = OrdinalLikelihood(THRESHOLDS, noise, link)
    u, u_new, probs, labels = [], [], [], []
    for _ in range(replications):
        X = rng.uniform(-3, 3, size=(N + NEW, 1))
        K = Gram(KERNEL, X, [np.float64(1.0)]).matrix
        f = np.linalg.cholesky(K + 1e-10 * np.eye(N + NEW)) @ rng.standard_normal(N + NEW)
        y = likelihood.draw(f, rng)
        posterior = engine(Gram(KERNEL, X[:N], [np.float64(1.0)]), y[:N], likelihood)
        assert posterior.status.converged
        mean, var = posterior.latent(X[N:])
        # one row of each set: rows of one set depend on each other
        u.append(stats.norm.cdf(f[0], posterior.mean[0], np.sqrt(posterior.variance[0])))
        u_new.append(stats.norm.cdf(f[N], mean[0], np.sqrt(var[0])))
        probs.append(posterior.probabilities(X[N:]))
        labels.append(y[N:])
    return np.array(u), np.array(u_new), np.concatenate(probs), np.concatenate(labels)


@pytest.fixture(scope="module")
def results():
    """Return what the engines do at much and at little noise, computed once."""
    return {
        (name, noise): simulate(name, noise) for name in ("ep", "laplace") for noise in (0.5, 0.1)
    }


def distance(u):
    """Return the Kolmogorov–Smirnov distance of ranks from uniform."""
    return stats.kstest(u, "uniform").statistic


# The 99.9 % quantile of that distance for a truly uniform sample of this size.
NULL = stats.kstwo(REPLICATIONS).ppf(0.999)


@pytest.mark.parametrize("noise", [0.5, 0.1])
def test_ranks_of_ep_are_uniform(results, noise):
    u, u_new, _, _ = results["ep", noise]
    assert distance(u) < NULL
    assert distance(u_new) < NULL


def test_ranks_of_laplace_are_nearly_uniform_where_noise_is_not_small(results):
    u, u_new, _, _ = results["laplace", 0.5]
    assert distance(u) < 1.5 * NULL
    assert distance(u_new) < 1.5 * NULL


def coverage(u, level):
    """Return how many standard errors the coverage of central intervals is off, and the coverage."""
    covered = np.mean(np.abs(u - 0.5) < level / 2)
    return (covered - level) / np.sqrt(level * (1 - level) / u.size), covered


@pytest.mark.parametrize(("name", "noise"), [("ep", 0.5), ("ep", 0.1), ("laplace", 0.5)])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_predictive_intervals_cover(results, name, noise, level):
    off, covered = coverage(results[name, noise][1], level)
    assert abs(off) < 4, covered


def test_predictive_intervals_of_laplace_are_too_short_where_noise_is_small(results):
    """Its Gaussian has the curvature at the mode, too sharp for a flat-topped posterior: docs/engines.md says so."""
    off, covered = coverage(results["laplace", 0.1][1], 0.9)
    assert off < -4
    assert covered > 0.75


def reliability(probs, labels):
    """Return, for each tenth of the predicted probabilities, their mean, how often the class came, and the count."""
    forecast = probs.ravel()
    happened = (labels[:, None] == np.arange(4)).ravel()
    bins = np.minimum((10 * forecast).astype(int), 9)
    parts = [(forecast[bins == k], happened[bins == k]) for k in range(10)]
    return [(p.mean(), h.mean(), p.size) for p, h in parts if p.size >= 200]


@pytest.mark.parametrize(("name", "noise"), [("ep", 0.5), ("ep", 0.1), ("laplace", 0.5)])
def test_class_probabilities_are_calibrated(results, name, noise):
    """In each tenth of the predicted probabilities the class comes as often as predicted."""
    for predicted, observed, size in reliability(*results[name, noise][2:]):
        # rows of one set depend on each other, five at most: errors up to √5 as large
        error = np.sqrt(NEW * predicted * (1 - predicted) / size)
        assert abs(observed - predicted) < 4 * error, predicted


def test_class_probabilities_of_laplace_are_off_where_noise_is_small(results):
    """The mode of a flat-topped posterior lies near an edge of the class: docs/engines.md gives the sizes."""

    def error(name):
        rows = reliability(*results[name, 0.1][2:])
        return np.average([abs(p - h) for p, h, _ in rows], weights=[n for *_, n in rows])

    assert error("ep") < 0.01
    assert 0.02 < error("laplace") < 0.06
