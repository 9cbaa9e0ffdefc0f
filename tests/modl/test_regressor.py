"""Rank predictions, their projection to values, scores, and what ArviZ makes of them."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm

from pmordinal.modl import RankRegressor, nlrpd_of_cdf, ranked_probability_score
from pmordinal.modl.regression.kinds import KINDS
from pmordinal.modl.regression.projection import ValueDistribution

from .oracles import heteroscedastic


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n = 400
    z = rng.normal(size=n)
    X = pd.DataFrame(
        {
            "a": z + 0.5 * rng.normal(size=n),
            "b": z + rng.normal(size=n),
            "c": np.where(z + rng.normal(size=n) > 0, "up", "down"),
            "noise": rng.normal(size=n),
        }
    )
    y = np.round(2 * z + 0.5 * rng.normal(size=n), 1)
    return X[:300], y[:300], X[300:], y[300:]


@pytest.fixture(scope="module", params=list(KINDS))
def model(request, data):
    return RankRegressor(request.param).fit(*data[:2])


def test_contract_of_every_kind(model, data):
    X, y = data[2:]
    cdf = model.rank_cdf(X)
    assert cdf.shape == (100, len(model.rank_edges_))
    assert (np.diff(cdf, axis=1) > 0).all()
    assert (cdf[:, 0] == 0).all() and np.allclose(cdf[:, -1], 1.0)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1.0)
    np.testing.assert_allclose(model.predict_proba(X, [-1.0, 0.0, 2.0]).sum(1), 1.0)
    assert model.nlrpd(X, y) < -0.2  # informative predictors
    assert model.nlrpd(X, y) >= -np.log(300)  # [HB2007, theorem 8]
    rank = model.predict_rank(X)
    assert ((rank > 0) & (rank < 1)).all() and np.corrcoef(rank, y)[0, 1] > 0.5
    q = model.predict_quantile(X, [0.1, 0.5, 0.9])
    assert q.shape == (100, 3) and (np.diff(q, axis=1) >= 0).all()
    np.testing.assert_allclose(model.predict(X), q[:, 1])
    ranks = model.predict_quantile(X, 0.25, scale="rank")
    np.testing.assert_allclose(
        [np.interp(r, model.rank_edges_, row) for r, row in zip(ranks, cdf, strict=True)], 0.25
    )
    assert 0.05 < np.mean(y < q[:, 0]) + np.mean(y > q[:, 2]) < 0.45  # nominal 0.2


def test_mean_rank_is_the_integral_of_the_survival_function(model, data):
    X = data[2]
    grid = np.linspace(0, 1, 20001)
    mean = trapezoid(1 - model.rank_cdf(X[:5], grid), grid, axis=1)
    np.testing.assert_allclose(model.predict_rank(X[:5]), mean, atol=1e-6)


def test_nlrpd_is_the_score_of_its_own_cdf(model, data):
    """Equation 9 through `rank_cdf` at the elementary intervals, ties sharing their mass."""
    X, y = data[2:]
    values, counts = np.unique(data[1], return_counts=True)
    cum = np.concatenate(([0.0], np.cumsum(counts) / 300))
    cell = np.searchsorted((values[1:] + values[:-1]) / 2, y, side="right")
    cdf = model.rank_cdf(X, cum)
    rows = np.arange(len(y))
    mass = (cdf[rows, cell + 1] - cdf[rows, cell]) / counts[cell]
    np.testing.assert_allclose(model.log_score(X, y), np.log(mass * 300), rtol=1e-9)
    assert model.nlrpd(X, y) == pytest.approx(-np.log(mass * 300).mean())


def distribution(model, X):
    """Return the distribution of the values that belongs to the cdf of the ranks."""
    density = np.diff(model.rank_cdf(X), axis=1) / np.diff(model.rank_edges_)
    return ValueDistribution(model.scale_, model.rank_edges_, density)


def density_at(model, row, points):
    d = distribution(model, row)
    many = ValueDistribution(d.scale, d.edges, np.repeat(d.density, len(points), axis=0))
    return np.exp(many.log_density(points))


def test_value_density_cdf_quantiles_and_crps_agree(model, data):
    row = data[2].iloc[[3]]
    points = np.linspace(-40, 40, 800_001)
    density = density_at(model, row, points)
    step = points[1] - points[0]
    cdf = np.cumsum(density) * step
    # the density jumps at knots: the Riemann sum errs by about jumps × step
    assert cdf[-1] == pytest.approx(1.0, abs=2e-3)
    upper = 1.0 - np.cumsum(density[::-1])[::-1] * step
    low, high = np.array([0.0004, 0.05, 0.5]), np.array([0.5, 0.95, 0.9996])
    np.testing.assert_allclose(
        model.predict_quantile(row, low)[0], np.interp(low, cdf, points), atol=0.02
    )
    np.testing.assert_allclose(
        model.predict_quantile(row, high)[0], np.interp(high, upper, points), atol=0.02
    )
    assert model.predict_quantile(row, [0.0, 1.0])[0].tolist() == [-np.inf, np.inf]
    for y in (-30.0, -1.23, 0.0, 2.5, 25.0):
        by_sum = ((cdf - (points >= y)) ** 2).sum() * step
        assert model.crps(row, [y]) == pytest.approx(by_sum, abs=2e-2 * max(1.0, by_sum))


def test_tails_hold_half_an_instance_each(model, data):
    y = data[1]
    row = data[2].iloc[[0]]
    low = np.linspace(y.min() - 60, y.min(), 600_001)[:-1]
    density = density_at(model, row, low)
    assert trapezoid(density, low) == pytest.approx(1 / 600, rel=1e-3)


def test_nlpd_and_nlrpd_differ_by_the_width_of_the_cell(model, data):
    """The relation after theorem 8, for a target inside the training range."""
    X, y = data[:2]
    inner = (y > y.min()) & (y < y.max())
    values, counts = np.unique(y, return_counts=True)
    edges = (values[1:] + values[:-1]) / 2
    cell = np.searchsorted(edges, y[inner], side="right")
    width = edges[cell] - edges[cell - 1]
    gap = np.log(counts[cell] / (300 * width)) + np.log1p(-1 / 300)
    expected = model.log_score(X, y)[inner] + gap
    found = distribution(model, X[inner]).log_density(y[inner])
    np.testing.assert_allclose(found, expected)
    assert model.nlpd(X[inner], y[inner]) == pytest.approx(-expected.mean())


def test_smoothing_of_the_paper(data):
    X, y = data[:2]
    paper = RankRegressor("univariate", smoothing="paper").fit(X, y)
    assert paper.density_.smoothing == pytest.approx(1 / 300)
    k, g = next(iter(paper.density_.grids.items()))
    i, j = g.part_of(X[k])[0], g.interval_of(y)[0]
    p = (g.counts[i, j] + 1 / 300) / (g.counts[i].sum() + g.J / 300)
    assert paper.log_score(X, y)[0] == pytest.approx(np.log(p * 300 / g.counts[:, j].sum()))


def test_without_information_the_score_is_zero():
    """[HB2007, theorem 7]."""
    rng = np.random.default_rng(1)
    X, y = rng.random((80, 2)), rng.random(80)
    for kind in KINDS:
        model = RankRegressor(kind).fit(X, y)
        assert model.weights_ == {}
        assert model.nlrpd(X, y) == 0.0
        np.testing.assert_allclose(model.rank_cdf(X, [0.3]), 0.3)
        assert np.isfinite(model.crps(X, y))
    with pytest.raises(ValueError, match="no predictor is informative"):
        model.to_datatree()


def test_unseen_labels_and_missing_values_say_nothing(data):
    X, y = data[:2]
    model = RankRegressor("nb").fit(X, y)
    row = X.iloc[[0]].copy()
    row["c"], row["a"] = "sideways", np.nan
    rest = {k: g for k, g in model.density_.grids.items() if k == "b"}
    np.testing.assert_allclose(
        np.interp(
            0.4,
            np.r_[0, rest["b"].y_ranks, 1],
            rest["b"].rank_cdf()[rest["b"].part_of(row["b"])[0]],
        ),
        model.rank_cdf(row, [0.4])[0, 0],
    )


def test_true_nlrpd_of_the_synthetic_set():
    """Section 5.1: about −0.945, from the true cdf."""
    rng = np.random.default_rng(2)
    scores = []
    for _ in range(10):
        _, y_train = heteroscedastic(384, rng)
        x, y = heteroscedastic(2000, rng)
        mean = np.sin(2.5 * x) * np.sin(1.5 * x)
        sd = np.sqrt(0.01 + 0.25 * (1 - np.sin(2.5 * x)) ** 2)

        def log_p(low, high, mean=mean, sd=sd):
            p, q = norm.cdf((low - mean) / sd), norm.cdf((high - mean) / sd)
            upper = norm.sf((low - mean) / sd) - norm.sf((high - mean) / sd)
            return np.log(np.where(p > 0.5, upper, q - p))

        scores.append(nlrpd_of_cdf(log_p, y_train, y).mean())
    assert np.mean(scores) == pytest.approx(-0.945, abs=0.03)


def test_ordered_labels():
    rng = np.random.default_rng(3)
    z = rng.normal(size=300)
    levels = ["bad", "fair", "good", "unused"]
    y = pd.Categorical.from_codes(np.digitize(z, [-0.5, 0.7]), levels, ordered=True)
    X = {"z": z + 0.2 * rng.normal(size=300)}
    model = RankRegressor("univariate").fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (300, 4) and (p[:, 3] == 0).all()
    assert set(model.predict(X)) == {"bad", "fair", "good"}
    assert np.mean(model.predict(X) == np.asarray(y)) > 0.8
    assert model.rps(X, y) == pytest.approx(ranked_probability_score(p, y.codes).mean())
    assert model.rps(X, y) < 0.1
    with pytest.raises(ValueError, match="labels unseen in fit: awful"):
        model.nlrpd({"z": [0.0]}, ["awful"])


def test_classes_by_cuts_count_training_values_exactly(data):
    y = data[1]
    rng = np.random.default_rng(0)
    model = RankRegressor("snb").fit(rng.random((300, 1)), y)  # uniform ranks
    p = model.predict_proba(rng.random((1, 1)), [0.0, 1.5])[0]
    np.testing.assert_allclose(
        p, [np.mean(y < 0), np.mean((y >= 0) & (y < 1.5)), np.mean(y >= 1.5)]
    )


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"kind": "tree"}, "unknown kind of rank regressor 'tree': choose one of 'univariate'"),
        ({"smoothing": 0}, "smoothing must be positive"),
        ({"selection": "aic"}, "unknown selection 'aic'"),
        ({"starts": 0}, "starts must be a positive integer"),
    ],
)
def test_bad_options(options, match):
    with pytest.raises(ValueError, match=match):
        RankRegressor(**options).fit([[1.0], [2.0]], [1.0, 2.0])


def test_a_constant_target_is_predicted_and_has_no_value_density():
    for n in (1, 5):
        X = np.arange(float(n))[:, None]
        model = RankRegressor().fit(X, np.full(n, 3.0))
        assert (model.predict(X) == 3.0).all() and model.nlrpd(X, np.full(n, 3.0)) == 0.0


def test_bad_calls(data):
    X, y = data[:2]
    model = RankRegressor("univariate").fit(X, y)
    with pytest.raises(ValueError, match=r"q must lie in \[0, 1\]"):
        model.predict_quantile(X, 1.5)
    with pytest.raises(ValueError, match="unknown scale"):
        model.predict_quantile(X, 0.5, scale="log")
    with pytest.raises(ValueError, match="cuts must be one increasing sequence"):
        model.predict_proba(X, [2.0, 1.0])
    with pytest.raises(ValueError, match="X has 300 rows and y has 2"):
        model.nlrpd(X, [1.0, 2.0])
    with pytest.raises(ValueError, match="missing values"):
        model.nlrpd(X, np.full(300, np.nan))
    with pytest.raises(ValueError, match="pass both X and y"):
        model.to_datatree(X)
    with pytest.raises(ValueError, match="target is constant"):
        RankRegressor().fit(X, np.ones(300)).nlpd(X, y)
