"""scikit-learn's own checks, and the discretizer."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from pmordinal.modl import MODLDiscretizer, RankRegressor

EXPECTED = {
    "check_regressors_no_decision_function": "class probabilities over given cuts are part of the API",
}


def expected(estimator):
    return EXPECTED if isinstance(estimator, RankRegressor) else {}


@parametrize_with_checks([MODLDiscretizer(encode="onehot")])
def test_scikit_learn_conventions(estimator, check):
    """Those of a `RankRegressor` are tested with the other estimators."""
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [RankRegressor("univariate"), RankRegressor("snb"), MODLDiscretizer()],
    expected_failed_checks=expected,
)
def test_scikit_learn_conventions_of_other_kinds(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.random(300)
    X = pd.DataFrame({"x": x, "c": np.where(x > 0.6, "hi", "lo"), "noise": rng.random(300)})
    return X, np.sin(6 * x) + 0.1 * rng.normal(size=300)


@pytest.mark.slow
def test_discretizer_encodings(data):
    X, y = data
    ordinal = MODLDiscretizer().fit(X, y)
    parts = ordinal.transform(X)
    np.testing.assert_array_equal(parts[:, 0], ordinal.grids_["x"].part_of(X["x"]))
    assert ordinal.get_feature_names_out().tolist() == ["x", "c", "noise"]
    hot = MODLDiscretizer(encode="onehot").fit(X, y)
    out = hot.transform(X)
    assert out.shape[1] == sum(g.I for g in hot.grids_.values()) == len(hot.get_feature_names_out())
    np.testing.assert_allclose(out.sum(1), 3.0)
    new = X.head(2).assign(c="never seen")
    assert (ordinal.transform(new)[:, 1] == -1).all()
    np.testing.assert_allclose(hot.transform(new).sum(1), 2.0)
    mean = MODLDiscretizer(encode="mean_rank").fit(X, y).transform(X)
    assert np.corrcoef(mean[:, 0], y)[0, 1] > 0.9
    with pytest.raises(ValueError, match="unknown encode 'x'"):
        MODLDiscretizer(encode="x").fit(X, y)


def test_pipelines_and_pandas_output(data):
    X, y = data[0].head(150), data[1][:150]
    pipe = make_pipeline(MODLDiscretizer(encode="onehot"), Ridge())
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.8
    assert cross_val_score(RankRegressor(), X, y, cv=3).mean() > 0.8
    frame = MODLDiscretizer().set_output(transform="pandas").fit_transform(X, y)
    assert list(frame.columns) == ["x", "c", "noise"]


def test_missing_target_rows_are_left_out(data):
    X, y = data
    holes = y.copy()
    holes[::10] = np.nan
    with pytest.warns(UserWarning, match="30 of 300 rows") as said:
        model = RankRegressor("nb").fit(X, holes)
    assert said[0].filename == __file__
    again = RankRegressor("nb").fit(X[~np.isnan(holes)], y[~np.isnan(holes)])
    np.testing.assert_allclose(model.predict(X), again.predict(X))


def test_columns_with_numbers_for_names_keep_their_order():
    """scikit-learn compares names only where they are text; going by position would mix columns up."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)))
    model = RankRegressor().fit(X, X[0])
    assert model.predict(X).shape == (80,)
    for wrong in (X[[1, 0]], X.rename(columns={0: 5})):
        with pytest.raises(ValueError, match=r"columns of X must be those of fit, \['0', '1'\]"):
            model.predict(wrong)


@pytest.mark.parametrize("estimator", [RankRegressor, MODLDiscretizer])
def test_target_in_a_table_of_one_column(estimator):
    x = np.linspace(0.0, 1.0, 60)[:, None]
    words = pd.Categorical.from_codes(np.arange(60) // 20, ["low", "medium", "high"], ordered=True)
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        table = estimator().fit(x, pd.DataFrame({"y": words}))
    column = estimator().fit(x, words)
    np.testing.assert_array_equal(
        table.grids_["x0"].probabilities(), column.grids_["x0"].probabilities()
    )
