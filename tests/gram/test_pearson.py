"""The covariance from ratings: the paper's formula, and a fill that is the best of its rank."""

import numpy as np
import pandas as pd
import pytest

import pmordinal as pmo
from pmordinal.gram import Gram, lower, revive
from pmordinal.gram.pearson import filled_by_rank


def ratings(n_items=12, n_users=30, seen=0.6, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n_items, 2)) @ rng.normal(size=(2, n_users)) + 3.0
    return np.where(rng.uniform(size=table.shape) < seen, table, np.nan), table


def test_mean_imputation_is_equation_20():
    holes, _ = ratings()
    K = np.zeros((12, 12))
    for v in range(12):
        for w in range(12):
            for u in range(30):
                if not np.isnan(holes[v, u] + holes[w, u]):  # else a z-score is zero
                    z = [(holes[i, u] - np.nanmean(holes[i])) / np.nanstd(holes[i]) for i in (v, w)]
                    K[v, w] += z[0] * z[1]
    np.testing.assert_allclose(pmo.PearsonRatings(holes, "mean").table, K, atol=1e-12)


def test_a_full_table_gives_correlations():
    _, full = ratings()
    correlations = np.corrcoef(full)
    for missing in ("mean", "low-rank"):
        for scale, size in {"sum": 30, "mean": 1, "unit": 1}.items():
            found = pmo.PearsonRatings(full, missing, scale=scale).table
            np.testing.assert_allclose(found, size * correlations, atol=1e-12)


def test_unit_variances_where_there_are_holes():
    holes, _ = ratings()
    found = pmo.PearsonRatings(holes, "mean", scale="unit").table
    np.testing.assert_allclose(found.diagonal(), 1.0)
    assert pmo.PearsonRatings(holes, "mean", scale="mean").table.diagonal().max() < 1.0


def test_the_fill_finds_a_table_of_its_rank():
    holes, full = ratings(seen=0.8)
    np.testing.assert_allclose(filled_by_rank(holes, 3, 1e-10, 20000), full, atol=1e-4)
    np.testing.assert_array_equal(filled_by_rank(full, 2), full)


@pytest.mark.parametrize(("shape", "rank"), [((12, 30), 12), ((30, 12), 40)])
def test_a_rank_that_leaves_the_fill_open(shape, rank):
    holes, full = ratings(*shape)
    with pytest.raises(ValueError, match=rf"rank must be below .* got {rank} for {shape[0]} items"):
        pmo.PearsonRatings(holes, rank=rank)
    pmo.PearsonRatings(full, rank=rank)  # nothing to fill


@pytest.mark.parametrize("shape", [(12, 30), (30, 12)])
def test_every_round_of_the_fill_fits_the_ratings_better(shape):
    holes, _ = ratings(*shape)
    holes += np.random.default_rng(1).normal(size=shape)
    seen, errors = ~np.isnan(holes), []
    for rounds in (1, 2, 5, 20, 100):
        with pytest.warns(pmo.ConvergenceWarning, match="still changed"):
            full = filled_by_rank(holes, 2, 0.0, rounds)
        U, s, V = np.linalg.svd(full, full_matrices=False)
        best = (U[:, :2] * s[:2]) @ V[:2]
        errors.append(((best - holes)[seen] ** 2).sum())
    assert np.all(np.diff(errors) < 0.0)
    np.testing.assert_allclose(full[seen], holes[seen])


def test_users_are_centred_on_request_and_those_without_a_rating_left_out():
    holes, _ = ratings()
    shifted = holes + np.random.default_rng(2).normal(size=30)
    options = {"missing": "mean", "centre_users": True}
    a, b = (pmo.PearsonRatings(table, **options).table for table in (holes, shifted))
    np.testing.assert_allclose(a, b, atol=1e-10)
    more = np.column_stack([holes, np.full(12, np.nan)])
    np.testing.assert_array_equal(pmo.PearsonRatings(more, **options).table, a)
    frame = pd.DataFrame(holes, index=[f"film {i}" for i in range(12)])
    np.testing.assert_array_equal(pmo.PearsonRatings(frame, **options).table, a)


def test_it_is_a_covariance_like_the_others(tmp_path):
    holes, full = ratings(24, 40)
    y = np.digitize(full[:, 0], np.quantile(full[:, 0], [0.3, 0.7]))
    cov_func = pmo.PearsonRatings(holes[:, 1:])
    kernel = lower(0.1 * cov_func)
    gram = Gram(kernel, np.arange(5.0)[:, None], [0.1])
    np.testing.assert_allclose(gram.matrix, 0.1 * cov_func.table[:5, :5])
    again = revive(kernel.form(), iter([np.array(0.1)]))
    np.testing.assert_allclose(Gram(again, np.arange(5.0)[:, None], [0.1]).matrix, gram.matrix)
    seen = np.arange(18)[:, None]
    model = pmo.gp_model(seen, y[:18], cov_func, amplitude=39**-0.5, engine="laplace")
    fit = pmo.fit(model, progressbar=False)
    probs = fit.predict(np.arange(18, 24)[:, None])
    fit.save(tmp_path / "fit.nc")
    np.testing.assert_allclose(
        pmo.load(tmp_path / "fit.nc").predict(np.arange(18, 24)[:, None]), probs
    )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1.0, 2.0]], "two items or more"),
        ([["a", "b"], ["c", "d"]], "table of numbers"),
        ([[1.0, np.inf], [1.0, 2.0]], "finite"),
        ([[np.nan, np.nan], [1.0, 2.0]], "nobody has rated item 0"),
        ([[1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [1.0, 2.0, 1.0]], "item 1 are all alike"),
    ],
)
def test_what_is_no_table_of_ratings(table, message):
    with pytest.raises((ValueError, TypeError), match=message):
        pmo.PearsonRatings(table)
    with pytest.raises(ValueError, match="missing must be"):
        pmo.PearsonRatings(table, "zero")
