"""Naive Bayes on segments against the product over elementary ranks; the search over subsets."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from scipy.stats import rankdata

from pmordinal.modl import RankRegressor, fit_grids
from pmordinal.modl.regression.density import RankDensity, Segments
from pmordinal.modl.regression.subsets import Candidate, SubsetSearch, select, subset_prior


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    n = 200
    z = rng.normal(size=n)
    X = {f"x{k}": z + 0.6 * (k + 1) * rng.normal(size=n) for k in range(5)}
    X["noise"] = rng.normal(size=n)
    y = np.round(z + 0.3 * rng.normal(size=n), 1)  # with ties
    grids = {k: g for k, g in fit_grids(X, y, progressbar=False).items() if not g.is_null}
    return X, y, grids


def elementary(grids, X, y, smoothing, weights):
    """Density on all N elementary intervals, by the N × N product of [HB2007, eq. 5]."""
    n = len(y)
    ranks = (np.arange(n) + 0.5) / n
    total = np.zeros((n, n))
    for k, g in grids.items():
        j = np.searchsorted(g.y_ranks, ranks, side="right")
        total += weights[k] * np.log(g.rank_density(smoothing)[g.part_of(X[k])][:, j])
    p = np.exp(total)
    return p / p.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("smoothing", [1.0, 0.005])
def test_segments_equal_elementary_intervals(problem, smoothing):
    X, y, grids = problem
    weights = dict(zip(grids, (1.0, 1.0, 0.3, 0.7, 0.5), strict=False))
    density = RankDensity(grids, weights, smoothing)
    parts = {k: g.part_of(X[k]) for k, g in grids.items()}
    on_segments = np.exp(density.log_density(parts, len(y)))
    ranks = (np.arange(len(y)) + 0.5) / len(y)
    expanded = on_segments[:, density.segments.find(ranks)]
    np.testing.assert_allclose(expanded, elementary(grids, X, y, smoothing, weights), rtol=1e-10)
    np.testing.assert_allclose(on_segments @ density.segments.widths, 1.0)


def test_naive_bayes_of_one_predictor_is_its_grid(problem):
    X, y, grids = problem
    k, g = next(iter(grids.items()))
    density = RankDensity({k: g}, {k: 1.0}, 1.0)
    found = np.exp(density.log_density({k: g.part_of(X[k])}, len(y)))
    np.testing.assert_allclose(found, g.rank_density()[g.part_of(X[k])])


def test_subset_prior_counts_subsets_with_repetition():
    for k, m in ((5, 1), (5, 3), (4, 4)):
        n = sum(1 for _ in itertools.combinations_with_replacement(range(k), m))
        assert subset_prior(k, m) == pytest.approx(math.log(k + 1) + math.log(n))


def candidates_of(problem, joint):
    X, y, grids = problem
    segments = Segments.of(list(grids.values()))
    segment = segments.find((rankdata(y) - 0.5) / len(y))
    made = [
        Candidate.of(g, g.part_of(X[k]), segments, segment, 1.0, joint) for k, g in grids.items()
    ]
    return made, segment, segments


def score_of_the_paper(problem, chosen, segment, segments):
    """Return the likelihood of the product of the chosen predictors."""
    X, y, grids = problem
    density = elementary(grids, X, y, 1.0, {k: float(k in chosen) for k in grids})
    own = np.ceil(rankdata(y)).astype(int) - 1
    return np.log(density[np.arange(len(y)), own]).sum()


def joint_score(problem, chosen, segment, segments):
    """Return the same where each row is left out of its own tables."""
    X, y, grids = problem
    middle = 0.5 * (segments.edges[:-1] + segments.edges[1:])
    log_d = np.zeros((len(y), len(middle)))
    for k in chosen:
        g = grids[k]
        j = np.searchsorted(g.y_ranks, middle, side="right")
        for n, i in enumerate(g.part_of(X[k])):
            counts = g.counts[i].astype(float)
            counts[j[segment[n]]] -= 1
            p = (counts + 1) / (counts.sum() + g.J)
            log_d[n] += np.log(p * g.n / g.counts.sum(0))[j]
    log_d -= np.log(np.exp(log_d) @ segments.widths)[:, None]
    return log_d[np.arange(len(y)), segment].sum()


@pytest.fixture(scope="module", params=[True, False], ids=["joint", "paper"])
def searched(problem, request):
    """Return the arguments of a search, and the costs of all subsets by their definition."""
    joint = request.param
    made, segment, segments = candidates_of(problem, joint)
    score, names, n = joint_score if joint else score_of_the_paper, list(problem[2]), len(segment)
    costs = {}
    for mask in itertools.product([False, True], repeat=len(made)):
        chosen = list(itertools.compress(names, mask))
        prior = subset_prior(6, len(chosen)) + sum(c.prior for c in itertools.compress(made, mask))
        costs[mask] = prior - score(problem, chosen, segment, segments) + n * math.log(n)
    return (made, segment, segments.widths), costs


def test_every_visited_subset_has_its_cost(searched):
    """Predictors enter and leave on the way; the paper's score, and each row left out of its tables."""
    arguments, costs = searched
    search = SubsetSearch(*arguments, 6)
    rng = np.random.default_rng(0)
    for _ in range(5):
        search.run(rng.permutation(len(arguments[0])))
    assert len(search.visited) > 5
    for masks, found in search.subsets():
        for mask, cost in zip(masks.tolist(), found, strict=True):
            assert cost == pytest.approx(costs[tuple(mask)], rel=1e-10)


def test_search_finds_the_best_of_all_subsets(searched):
    arguments, costs = searched
    found = select(*arguments, n_predictors=6, rng=np.random.default_rng(0))
    assert found.cost == pytest.approx(min(costs.values()), rel=1e-12)
    assert ((found.weights >= 0) & (found.weights <= 1)).all()
    assert found.weights[found.best].min() >= found.weights[~found.best].max(initial=0.0) - 0.3


def test_many_predictors_need_little_memory(problem):
    """A matrix of all visited subsets takes twice as much here."""
    made, segment, segments = candidates_of(problem, joint=True)
    many, rng = made * 60, np.random.default_rng(0)
    select(made, segment, segments.widths, n_predictors=6, rng=rng)  # compiles
    tracemalloc.start()
    try:
        found = select(many, segment, segments.widths, n_predictors=len(many), rng=rng)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.visited > 4000 and 0.0 < found.weights.max() <= 1.0
    assert peak < 8e6


def test_duplicated_predictor_is_not_selected_twice():
    rng = np.random.default_rng(1)
    x = rng.random(300)
    y = x + 0.1 * rng.normal(size=300)
    model = RankRegressor("snb").fit({"a": x, "b": x, "c": rng.random(300)}, y)
    assert len(model.weights_) == 1
    assert RankRegressor("nb").fit({"a": x, "b": x}, y).nlrpd({"a": x, "b": x}, y) != model.nlrpd(
        {"a": x, "b": x, "c": x}, y
    )
