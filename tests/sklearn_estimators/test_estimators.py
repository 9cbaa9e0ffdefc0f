"""scikit-learn's own checks, and the estimators in its pipelines and searches."""

import copy
import pickle
import sys

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy.sparse import csr_array

pytest.importorskip("sklearn")
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import pmordinal as pmo
from pmordinal.sklearn import MODLDiscretizer, OrdinalGPClassifier, RankRegressor
from tests.repeated import first_fast

ORDER = ["low", "medium", "high"]

# each of these fits a second or less; the slow tests run all checks with every engine
QUICK = {
    "check_classifiers_one_label",
    "check_classifiers_regression_target",
    "check_dict_unchanged",
    "check_estimator_sparse_tag",
    "check_estimators_pickle",
    "check_estimators_unfitted",
    "check_fit1d",
    "check_n_features_in",
    "check_no_attributes_set_in_init",
    "check_supervised_y_no_nan",
}

# it asks for 1e-7, and optimisers stop 1e-5 apart: test_sample_weights_are_repeated_rows has it
INEXACT = {"check_sample_weight_equivalence_on_dense_data"}


def checks_of(estimator):
    """Yield scikit-learn's checks, all but the quick ones of EP marked slow."""
    for instance, check in estimator_checks_generator(estimator):
        name = getattr(check, "func", check).__name__
        if name in INEXACT:
            continue
        quick = estimator.engine == "ep" and name in QUICK
        yield pytest.param(
            instance,
            check,
            id=f"{estimator.engine}-{name}",
            marks=[] if quick else pytest.mark.slow,
        )


@pytest.mark.filterwarnings("ignore::pmordinal.ConvergenceWarning")  # some data are degenerate
@pytest.mark.filterwarnings("ignore::pmordinal.LabelOrderWarning")  # and some labels are text
@pytest.mark.parametrize(
    ("estimator", "check"), [p for e in pmo.ENGINES for p in checks_of(OrdinalGPClassifier(e))]
)
def test_classifier_conventions(estimator, check):
    check(estimator)


def test_the_named_checks_exist():
    found = estimator_checks_generator(OrdinalGPClassifier())
    assert {getattr(check, "func", check).__name__ for _, check in found} >= QUICK | INEXACT


@parametrize_with_checks([RankRegressor()])
def test_regressor_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    data = pmo.datasets.wine()
    return data[["temperature", "contact"]], data["rating"]


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return X, np.digitize(X[:, 0] + 0.3 * rng.normal(size=60), [-0.5, 0.5])


@pytest.fixture(scope="module")
def fitted(wine):
    return OrdinalGPClassifier().fit(*wine)


def test_prediction_sets_have_the_columns_of_the_probabilities(wine, fitted):
    X, y = wine
    sets = fitted.predict_set(X, coverage=0.8)
    expected = fitted.fit_.predict(X, kind="set", coverage=0.8)["included"].values
    np.testing.assert_array_equal(sets, expected)
    assert sets[np.arange(len(X)), fitted.predict_proba(X).argmax(1)].all()
    names = np.array(["e", "d", "c", "b", "a"])[y.astype(int) - 1]  # sorted in reverse
    other = OrdinalGPClassifier(categories=list("edcba")).fit(X, names)
    np.testing.assert_array_equal(other.predict_set(X, 0.8), sets[:, ::-1])
    given = other.predict_set(X, 0.8, calibration=(X, names))
    np.testing.assert_array_equal(given[:, ::-1], fitted.predict_set(X, 0.8, calibration=(X, y)))
    with pytest.raises(ValueError, match="calibration labels contain NaN"):
        fitted.predict_set(X, calibration=(X, [np.nan, *y[1:]]))


def test_it_is_the_fit_of_the_package(wine, fitted):
    X, y = wine
    direct = pmo.fit(pmo.gp_model(X, y), progressbar=False)
    np.testing.assert_array_equal(fitted.classes_, [1, 2, 3, 4, 5])
    np.testing.assert_allclose(fitted.predict_proba(X), direct.predict(X), rtol=1e-10)
    assert fitted.score(X, y) == np.mean(fitted.predict(X) == y.to_numpy())
    assert list(fitted.feature_names_in_) == ["temperature", "contact"]
    assert fitted.n_features_in_ == 2
    assert isinstance(fitted.fit_, pmo.OrdinalFit)


@pytest.mark.slow
def test_options_reach_the_model(wine):
    X, y = wine
    model = OrdinalGPClassifier(
        "laplace", cov_func=pm.gp.cov.Matern52, ard=True, link="logit", objective="loo", priors=True
    ).fit(X, y)
    assert model.fit_.engine == "laplace"
    assert model.fit_.posterior.likelihood.link.name == "logit"
    assert model.fit_.objective == "loo"
    assert model.fit_.point["lengthscale"].shape == (4,)
    by_instance = OrdinalGPClassifier(pmo.Laplace()).fit(X, y)
    assert by_instance.fit_.engine == "laplace"


def test_rules(wine):
    X, y = wine
    median = OrdinalGPClassifier("laplace", rule="median").fit(X, y)
    below = median.predict_proba(X).cumsum(1)
    np.testing.assert_array_equal(median.predict(X), 1 + (below < 0.5).sum(1))
    cost = np.zeros((5, 5))
    cost[:, 1:] = 1.0  # everything but the lowest class is dear
    assert set(median.set_params(rule=cost).predict(X)) == {1}
    with pytest.raises(ValueError, match="rule must be one of 'mode', 'median'"):
        OrdinalGPClassifier(rule="mean").fit(X, y)


@pytest.fixture(scope="module")
def words(numbers):
    return np.array(ORDER)[numbers[1]]


@pytest.fixture(scope="module")
def coded(numbers):
    return OrdinalGPClassifier("laplace", categories=range(3)).fit(*numbers)


@pytest.fixture(scope="module")
def ordered(numbers, words):
    return OrdinalGPClassifier("laplace", categories=ORDER).fit(numbers[0], words)


def test_order_of_the_classes(numbers, words, coded, ordered):
    X, _ = numbers
    said_order = "sorted alphabetically: 'high', 'low', 'medium'"
    with pytest.warns(pmo.LabelOrderWarning, match=said_order) as said:
        OrdinalGPClassifier("laplace").fit(X, words)
    assert said[0].filename == __file__
    assert ordered.categories_.tolist() == ORDER
    assert ordered.classes_.tolist() == sorted(ORDER)
    columns = [sorted(ORDER).index(word) for word in ORDER]
    probs = coded.predict_proba(X)
    np.testing.assert_allclose(ordered.predict_proba(X)[:, columns], probs, rtol=1e-8)
    upwards = ordered.fit_.predict(X)  # from lowest to highest
    np.testing.assert_allclose(upwards, probs, rtol=1e-8)
    assert pmo.scores(words, upwards, categories=ordered.categories_)["zero_one"] < 0.35
    np.testing.assert_array_equal(ordered.predict(X), np.array(ORDER)[coded.predict(X)])
    declared = pd.Categorical(words, [*ORDER, "extreme"], ordered=True)
    four = OrdinalGPClassifier("laplace").fit(X, declared)
    assert four.categories_.tolist() == [*ORDER, "extreme"]
    assert four.predict_proba(X).shape == (60, 4)
    assert set(four.predict(X)) <= set(words)
    dear = np.ones((3, 3)) - [1, 0, 0]  # a rule knows the order: everything but the lowest is dear
    dearly = copy.deepcopy(ordered).set_params(rule=dear)
    assert set(dearly.predict(X)) == {"low"}


@pytest.mark.parametrize("metric", ["neg_log_loss", "roc_auc_ovr", "d2_log_loss_score"])
def test_metrics_of_scikit_learn(numbers, words, coded, ordered, metric):
    """They read columns in sorted order, whatever `classes_` says."""
    X, y = numbers
    score = get_scorer(metric)
    assert score(ordered, X, words) == pytest.approx(score(coded, X, y), rel=1e-7)


def test_area_under_the_curve_of_two_classes(numbers):
    X, y = numbers
    words = np.where(y > 0, "high", "low")
    model = OrdinalGPClassifier("laplace", categories=["low", "high"]).fit(X, words)
    assert get_scorer("roc_auc")(model, X, words) > 0.9  # 0.1 if the columns were the other way


META = {
    "soft votes": lambda m: VotingClassifier([("m", m)], voting="soft"),
    "hard votes": lambda m: VotingClassifier([("m", m)]),
    "stacking": lambda m: StackingClassifier([("m", m)], LogisticRegression(), cv=2),
    "bagging": lambda m: BaggingClassifier(m, 2, random_state=0),
    "sigmoid calibration": lambda m: CalibratedClassifierCV(m, cv=2),
    "temperature calibration": lambda m: CalibratedClassifierCV(m, cv=2, method="temperature"),
    "pipeline": lambda m: make_pipeline(StandardScaler(), m),
    "search": lambda m: GridSearchCV(m, {"ard": [False]}, scoring="neg_log_loss", cv=2),
    "multiple outputs": lambda m: OneOutput(m),
}
NESTED = [
    pytest.param(k, marks=[] if k in ("soft votes", "pipeline") else pytest.mark.slow) for k in META
]


class OneOutput(MultiOutputClassifier):
    """With one output, to be compared with the others."""

    def fit(self, X, y):
        return super().fit(X, np.asarray(y)[:, None])

    def predict(self, X):
        return super().predict(X)[:, 0]

    def predict_proba(self, X):
        return super().predict_proba(X)[0]


@pytest.mark.parametrize("meta", NESTED)
def test_meta_estimators_keep_the_order(numbers, words, meta):
    """Text with an order does as well as integers, to the last digits."""
    X, y = numbers
    codes = META[meta](OrdinalGPClassifier("laplace", categories=range(3))).fit(X, y)
    ordered = META[meta](OrdinalGPClassifier("laplace", categories=ORDER)).fit(X, words)
    np.testing.assert_array_equal(ordered.predict(X), np.array(ORDER)[codes.predict(X)])
    if meta != "hard votes":
        columns = [sorted(ORDER).index(word) for word in ORDER]
        probs = codes.predict_proba(X)
        np.testing.assert_allclose(ordered.predict_proba(X)[:, columns], probs, atol=1e-6)


def test_cross_validated_probabilities(numbers, words):
    X, y = numbers
    model = OrdinalGPClassifier("laplace", categories=range(3))
    expected = cross_val_predict(model, X, y, cv=2, method="predict_proba")
    model = OrdinalGPClassifier("laplace", categories=ORDER)
    probs = cross_val_predict(model, X, pd.Series(words), cv=2, method="predict_proba")
    columns = [sorted(ORDER).index(word) for word in ORDER]
    np.testing.assert_allclose(probs[:, columns], expected, rtol=1e-6)
    assert np.mean(np.array(sorted(ORDER))[probs.argmax(1)] == words) > 0.65


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pmordinal.ConvergenceWarning")  # two classes are separable
def test_folds_without_a_class(numbers, words):
    """With all levels declared a fold may lack any; codes of which nobody knows the labels are refused."""
    X, y = numbers
    first = [(np.flatnonzero(y != k), np.flatnonzero(y == k)) for k in (0, 1, 2)]
    model = OrdinalGPClassifier("laplace", categories=range(3))
    probs = cross_val_predict(model, X, y, cv=first, method="predict_proba")
    assert probs.shape == (60, 3)
    labels = cross_val_predict(
        OrdinalGPClassifier("laplace"),
        X,
        pd.Series(pd.Categorical(words, ORDER, ordered=True)),
        cv=first,
    )
    assert set(labels) <= set(ORDER)
    with pytest.raises(ValueError, match="it is not known which of them did not occur"):
        ordered = OrdinalGPClassifier("laplace", categories=ORDER)
        cross_val_predict(ordered, X, words, cv=first, method="predict_proba")
    with pytest.raises(ValueError, match="0, 1, the codes of a label encoder, and there are 3"):
        OneVsRestClassifier(ordered).fit(X, words)


def test_codes_with_categories_of_text_are_refused(numbers):
    X, y = numbers
    with pytest.raises(ValueError, match="y holds the integers 0, 1, 2, but the categories are"):
        OrdinalGPClassifier(categories=ORDER).fit(X, y)


@pytest.mark.slow
def test_declared_levels_go_through_splits(numbers):
    """Ordered categoricals keep levels that nobody chose."""
    X, y = numbers
    labels = pd.Series(pd.Categorical.from_codes(y, [*ORDER, "extreme"], ordered=True))
    X1, X2, y1, y2 = train_test_split(X, labels, random_state=0)
    model = OrdinalGPClassifier("laplace").fit(X1, y1)
    assert model.categories_.tolist() == [*ORDER, "extreme"]
    assert model.score(X2, y2) > 0.6
    assert np.isfinite(cross_val_score(OrdinalGPClassifier("laplace"), X, labels, cv=2)).all()


@pytest.mark.slow
def test_pipeline_and_search(numbers):
    X, y = numbers
    pipe = make_pipeline(StandardScaler(), OrdinalGPClassifier("laplace"))
    assert cross_val_score(pipe, X, y, cv=2).mean() > 0.65
    grid = {"ordinalgpclassifier__cov_func": [None, pm.gp.cov.Matern32]}
    search = GridSearchCV(pipe, grid, cv=2, scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(X[:3]).shape == (3,)


@pytest.mark.slow
def test_tables_in_pipelines(wine):
    X, y = wine
    codes = y.to_numpy()
    hot = make_column_transformer((OneHotEncoder(sparse_output=False), ["temperature", "contact"]))
    one = OrdinalGPClassifier("laplace", cov_func="expquad")  # the default knows what a factor is
    outside = make_pipeline(hot, one).fit(X, codes)
    inside = OrdinalGPClassifier("laplace", cov_func="expquad").fit(X, codes)
    np.testing.assert_allclose(outside.predict_proba(X), inside.predict_proba(X), rtol=1e-6)
    probs = cross_val_predict(inside, X, codes, cv=2, method="predict_proba")
    np.testing.assert_allclose(probs.sum(1), 1.0)


def test_pickles_predict_the_same(wine, fitted):
    X, _ = wine
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_refusals(wine, fitted):
    X, y = wine
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        OrdinalGPClassifier().fit(csr_array(np.eye(4)), [0, 1, 0, 1])
    holes = y.copy()
    holes.iloc[3] = None
    with pytest.raises(ValueError, match=r"y contains NaN: drop the rows .* semisupervised=True"):
        OrdinalGPClassifier().fit(X, holes)
    with pytest.raises(ValueError, match="y has 1 class, 7: declare the others"):
        OrdinalGPClassifier().fit(np.eye(3), [7, 7, 7])
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(X.rename(columns={"contact": "touch"}))
    with pytest.raises(ValueError, match="unknown engine 'magic'"):
        OrdinalGPClassifier("magic").fit(X, y)


def test_rank_regressor_predicts_quantiles():
    rng = np.random.default_rng(0)
    X = rng.random((400, 2))
    y = 3 * X[:, 0] + rng.normal(size=400) * 0.2
    low, middle, high = (RankRegressor(quantile=q).fit(X, y) for q in (0.1, 0.5, 0.9))
    assert middle.score(X, y) > 0.9
    shares = [np.mean(y <= m.predict(X)) for m in (low, middle, high)]
    np.testing.assert_allclose(shares, [0.1, 0.5, 0.9], atol=0.06)
    np.testing.assert_array_equal(middle.predict(X), pmo.modl.RankRegressor().fit(X, y).predict(X))
    assert not hasattr(middle, "predict_proba")
    labels = pd.Categorical.from_codes(np.digitize(y, [1, 2]), ["a", "b", "c"], ordered=True)
    ordered = RankRegressor().fit(X, labels)
    np.testing.assert_allclose(ordered.predict_proba(X).sum(1), 1.0)
    assert set(ordered.predict(X)) == {"a", "b", "c"}
    grid = GridSearchCV(RankRegressor(), {"kind": ["univariate", "snb"]}, cv=2).fit(X, y)
    assert grid.best_score_ > 0.8


def test_discretizer_feeds_the_classifier(numbers):
    X, y = numbers
    pipe = make_pipeline(MODLDiscretizer(), OrdinalGPClassifier("laplace")).fit(X, y)
    assert pipe.score(X, y) > 0.6
    names = pipe[0].get_feature_names_out()
    assert len(names) == pipe[1].n_features_in_ == 2


def test_without_scikit_learn(monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "pmordinal.sklearn")
    with pytest.raises(ModuleNotFoundError, match="needs scikit-learn: pip install scikit-learn"):
        __import__("pmordinal.sklearn")


@pytest.mark.slow
def test_sample_weights_are_repeated_rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=20), "kind": rng.choice(["a", "b"], 20)})
    y = np.digitize(X["x"] + rng.normal(size=20), [-0.6, 0.6])
    w = np.arange(20) % 4
    again = np.repeat(np.arange(20), w)
    by_weight = OrdinalGPClassifier("laplace").fit(X, y, sample_weight=w)
    by_rows = OrdinalGPClassifier("laplace").fit(X.iloc[again], y[again])
    assert by_weight.fit_.log_evidence == pytest.approx(by_rows.fit_.log_evidence, abs=1e-3)
    np.testing.assert_allclose(by_weight.predict_proba(X), by_rows.predict_proba(X), atol=2e-3)
    ones = OrdinalGPClassifier("laplace").fit(X, y, sample_weight=np.ones(20))
    assert ones.fit_.by_row.weights is None
    for wrong, message in ((np.zeros(20), "zero"), (-np.ones(20), "[Nn]egative")):
        with pytest.raises(ValueError, match=message):
            OrdinalGPClassifier().fit(X, y, sample_weight=wrong)


def partly_labelled():
    """Two clouds for each of three classes; one row in six has a label."""
    rng = np.random.default_rng(3)
    truth = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 2)) * 0.4 + 1.5 * truth[:, None]
    labelled = rng.permutation(60) < 12
    labelled[[0, 20, 40]] = True
    return X, truth, labelled


@pytest.mark.parametrize("kind", first_fast(["minus one", "categorical", "nan", "none", "NA"], 2))
def test_unlabelled_rows_are_minus_one_or_missing(kind):
    X, truth, labelled = partly_labelled()
    names = np.array(ORDER, dtype=object)[truth]
    y, categories = {
        "minus one": (np.where(labelled, truth, -1), None),
        "nan": (np.where(labelled, truth, np.nan), None),
        "none": (np.where(labelled, names, None), ORDER),
        "NA": (pd.Series(truth, dtype="Int64").where(labelled), None),
        "categorical": (
            pd.Series(pd.Categorical(names, ORDER, ordered=True)).where(labelled),
            None,
        ),
    }[kind]
    model = OrdinalGPClassifier("ep", categories=categories, semisupervised=True).fit(X, y)
    labels = names if kind in ("none", "categorical") else truth
    assert list(model.categories_) == (ORDER if labels is names else [0, 1, 2])
    np.testing.assert_array_equal(model.transduction_[labelled], labels[labelled])
    assert np.mean(model.transduction_ == labels) > 0.9
    data = pmo.gp_model(X[labelled], truth[labelled], engine="ep", unlabeled=X[~labelled])
    whole = pmo.fit(data, semisupervised=True, progressbar=False)
    np.testing.assert_allclose(model.fit_.log_evidence, whole.log_evidence, rtol=1e-6)
    np.testing.assert_array_equal(model.fit_.unlabeled_codes, whole.unlabeled_codes)


def test_unlabelled_rows_are_refused_where_nobody_asked_for_them():
    X, truth, labelled = partly_labelled()
    with pytest.raises(ValueError, match="semisupervised=True"):
        y = pd.Series(pd.Categorical(truth, ordered=True)).where(labelled)
        OrdinalGPClassifier("laplace").fit(X, y)
    with pytest.raises(ValueError, match="y has no label"):
        OrdinalGPClassifier(semisupervised=True).fit(X, np.full(60, -1))
    with pytest.raises(ValueError, match="no sample_weight"):
        OrdinalGPClassifier(semisupervised=True).fit(X, truth, np.ones(60))


def test_minus_one_is_a_label_where_it_is_a_category():
    X, truth, labelled = partly_labelled()
    y = np.where(labelled, truth - 1.0, np.nan)
    model = OrdinalGPClassifier("laplace", categories=[-1, 0, 1], semisupervised=True).fit(X, y)
    assert model.fit_.posterior.y.size == labelled.sum()
    assert np.mean(model.transduction_ == truth - 1) > 0.9


def test_proportions_of_the_unlabelled_rows_reach_the_fit():
    X, truth, labelled = partly_labelled()
    y = np.where(labelled, truth, -1)
    gamma = np.bincount(truth[~labelled]) / np.sum(~labelled)
    model = OrdinalGPClassifier("ep", semisupervised=True, proportions=gamma).fit(X, y)
    np.testing.assert_array_equal(np.bincount(model.transduction_), np.bincount(truth))
