"""Prediction sets of models and fits: coverage, labels of the user's kind, groups, weights, few rows."""

import numpy as np
import pandas as pd
import pytest

import pmordinal as pmo


def simulate(seed, n, names=("low", "mid", "high", "top")):
    """Return rows and labels of a smooth function with noise; the last rows are as good as any."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    f = np.sin(2 * X["a"]) + 0.5 * X["b"] + 0.5 * rng.normal(size=n)
    return X, pd.Categorical.from_codes(np.searchsorted([-0.7, 0.0, 0.8], f), list(names), True)


@pytest.fixture(scope="module")
def data():
    return simulate(0, 80)


@pytest.fixture(scope="module")
def fit(data):
    X, y = data
    return pmo.fit(pmo.gp_model(X[:50], y[:50], "expquad"), progressbar=False)


@pytest.fixture(scope="module")
def held_out(data):
    return pmo.conformal(pmo.gp_model(*data, "expquad"), 0.4, seed=1, progressbar=False)


def codes(labels):
    return pd.Categorical(labels, ["low", "mid", "high", "top"]).codes


@pytest.mark.parametrize("score", ["window", "rps"])
@pytest.mark.parametrize("by_class", [False, True])
def test_sets_of_a_fit(data, fit, score, by_class):
    X, y = data
    conformal = pmo.conformal(fit, (X[50:], y[50:]), score=score, by_class=by_class)
    assert conformal.source == "given" and conformal.scores.size == 30
    sets = conformal.predict(X, coverage=0.7)
    lower, upper = codes(sets["lower"].values), codes(sets["upper"].values)
    np.testing.assert_array_equal(sets["size"], upper - lower + 1)
    expected = (lower[:, None] <= np.arange(4)) & (np.arange(4) <= upper[:, None])
    np.testing.assert_array_equal(sets["included"], expected)
    rule = {"window": "mode", "rps": "median"}[score]
    said = codes(conformal.predict(X, "class", rule=rule))
    assert np.all((lower <= said) & (said <= upper))
    larger = conformal.predict(X, coverage=0.8)["included"]
    assert bool((larger | ~sets["included"]).all())
    # the calibration rows themselves are covered, by the choice of the cut
    inside = expected[np.arange(80), y.codes][50:]
    if by_class:
        assert pd.Series(inside).groupby(y.codes[50:]).mean().min() >= 0.7
    else:
        assert inside.mean() >= 0.7


def test_predict_of_a_fit_is_the_same(data, fit):
    X, y = data
    given = fit.predict(X, kind="set", coverage=0.8, calibration=(X[50:], y[50:]))
    expected = pmo.conformal(fit, (X[50:], y[50:])).predict(X, coverage=0.8)
    assert given.identical(expected)
    assert given.attrs["calibration"] == "given" and given.attrs["coverage"] == 0.8
    alone = fit.predict(X, kind="set")
    assert alone.attrs["calibration"] == "leave-one-out" and alone.attrs["n_calibration"] == 50
    assert alone.identical(pmo.conformal(fit).predict(X, coverage=0.9))
    scores = pmo.conformal(fit, score="rps").scores
    P = fit.posterior.left_out_probabilities()
    rps = ((P.cumsum(1)[:, :-1] - (fit.posterior.y[:, None] <= np.arange(3))) ** 2).sum(1)
    assert np.all(scores <= rps + 1e-12)


def test_held_out_rows_have_no_part_in_the_fit(data, held_out):
    X, y = data
    rows = held_out.rows
    assert held_out.source == "held out" and rows.size == 32
    rest = np.setdiff1d(np.arange(80), rows)
    np.testing.assert_array_equal(held_out.fit.index, rest)
    np.testing.assert_array_equal(held_out.fit.posterior.y, y.codes[rest])
    np.testing.assert_array_equal(held_out.codes, y.codes[rows])
    features = held_out.fit.features  # of all rows: the scale of the attributes
    direct = pmo.fit(
        pmo.gp_model(features.transform(X.iloc[rest]), y[rest], "expquad", standardize=False),
        progressbar=False,
    )
    np.testing.assert_allclose(held_out.fit.log_evidence, direct.log_evidence, rtol=1e-6)
    again = pmo.conformal(held_out.fit, (X.iloc[rows], y[rows]))
    np.testing.assert_allclose(held_out.scores, again.scores, atol=1e-10)
    assert held_out.predict(X, "probs").shape == (80, 4)
    assert held_out.fit.to_datatree(5, "gaussian", seed=0)["posterior"]["f"].sizes["obs"] == 48
    assert "32 calibration rows, held out" in repr(held_out)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1, 2, 3]),
        pd.Categorical(["lo", "mid", "hi"], ["lo", "mid", "hi"], ordered=True),
        pd.array([1, 2, 3], dtype="Int64"),
    ],
    ids=["int", "categorical", "nullable"],
)
def test_ends_are_labels_of_the_users_kind(labels):
    y = labels[np.repeat([0, 1, 2], 10)]
    X = np.linspace(0, 3, 30)[:, None]
    categories = None if isinstance(labels, pd.Categorical) else list(labels)
    model = pmo.gp_model(X, y, "expquad", categories=categories)
    sets = pmo.fit(model, progressbar=False, optimize=False).predict([[0.0], [3.0]], kind="set")
    assert set(np.concatenate([sets["lower"], sets["upper"]])) <= set(np.asarray(labels))
    assert sets["lower"].values[0] == labels[0] and sets["upper"].values[-1] == labels[2]
    if isinstance(labels, np.ndarray):
        assert sets["lower"].dtype == labels.dtype


def test_row_names_and_missing_labels_are_kept(fit, data):
    X, y = data
    new = X[50:].set_index(pd.Index([f"r{k}" for k in range(30)]))
    labels = y[50:].copy()
    labels[:4] = np.nan  # rows without a label do not count
    sets = fit.predict(new, kind="set", coverage=0.8, calibration=(new, labels))
    assert sets["obs"].values[0] == "r0" and sets.attrs["n_calibration"] == 26
    assert sets["class"].values.tolist() == ["low", "mid", "high", "top"]


def test_groups_have_their_own_thresholds(data):
    X, y = data
    X = X.assign(rater=np.where(np.arange(80) % 3, "u", "v"))
    model = pmo.gp_model(X, y, "expquad", thresholds_by="rater")
    found = pmo.conformal(model, 0.3, seed=2, progressbar=False)
    again = pmo.conformal(found.fit, (X.iloc[found.rows], y[found.rows]))
    np.testing.assert_allclose(found.scores, again.scores, atol=1e-10)
    assert found.predict(X, coverage=0.8)["included"].shape == (80, 4)


@pytest.mark.parametrize("hyper", ["point", "ccd"])
def test_held_out_rows_are_predicted_as_new_rows_are(data, hyper):
    """With what shifts each of them, and with hyperparameters that are integrated over."""
    X, y = data
    table = X.assign(y=y, known=np.linspace(-2, 2, 80), rater=np.where(np.arange(80) % 3, "u", "v"))
    model = pmo.formula_model("y ~ a + offset(known)", table, noise_by="rater")
    found = pmo.conformal(model, 0.3, hyper=hyper, seed=2, progressbar=False)
    assert (found.fit.integral is not None) == (hyper == "ccd")
    again = pmo.conformal(found.fit, (table.iloc[found.rows], y[found.rows]))
    np.testing.assert_allclose(found.scores, again.scores, atol=1e-10)


def test_weights_are_refused_where_rows_are_not_exchangeable(data):
    X, y = data
    model = pmo.gp_model(X[:30], y[:30], "expquad", weights=np.repeat([1.0, 2.0], 15))
    with pytest.raises(ValueError, match=r"weights.*repeat the rows"):
        pmo.conformal(model, 0.3, progressbar=False)
    fit = pmo.fit(model, progressbar=False, optimize=False)
    with pytest.raises(ValueError, match=r"weights.*calibration=\(X, y\)"):
        fit.predict(X, kind="set")
    assert fit.predict(X, kind="set", calibration=(X[30:], y[30:]))["size"].size == 80


def test_few_rows_give_all_classes_with_a_warning(fit, data):
    X, y = data
    few = X[50:58], y[50:58]
    with pytest.warns(UserWarning, match=r"every set has all classes: there are 8, .* needs 9"):
        sets = fit.predict(X, kind="set", calibration=few)
    assert int(sets["size"].min()) == 4
    fit.predict(X, kind="set", coverage=0.8, calibration=few)  # is possible
    with pytest.warns(
        UserWarning, match=r"in every set: there are \d+ of 'low'.* needs 19 of each"
    ):
        sets = pmo.conformal(fit, by_class=True).predict(X, coverage=0.95)


def test_wrong_arguments_are_refused(fit, data):
    X, y = data
    with pytest.raises(ValueError, match=r"coverage must be between 0 and 1, got 1.5"):
        fit.predict(X, kind="set", coverage=1.5)
    with pytest.raises(TypeError, match="calibration must be a tuple of rows and labels"):
        fit.predict(X, kind="set", calibration=X)
    with pytest.raises(ValueError, match="80 rows and 30 labels"):
        fit.predict(X, kind="set", calibration=(X, y[50:]))
    with pytest.raises(ValueError, match="calibration labels"):
        fit.predict(X, kind="set", calibration=(X, ["what"] * 80))
    with pytest.raises(ValueError, match="calibration is for kind='set'"):
        fit.predict(X, calibration=(X, y))
    with pytest.raises(ValueError, match=r"kind must be one of .*'set'"):
        fit.predict(X, kind="sets")
    with pytest.raises(ValueError, match="score must be one of"):
        pmo.conformal(fit, score="aps")
    with pytest.raises(TypeError, match="by_class must be True or False"):
        pmo.conformal(fit, by_class="yes")
    with pytest.raises(TypeError, match="starts, seed: a fit is not fitted again"):
        pmo.conformal(fit, starts=2, seed=1)
    with pytest.raises(TypeError, match="to hold rows out pass the model"):
        pmo.conformal(fit, 0.2)
    model = pmo.gp_model(X, y, "expquad")
    with pytest.raises(ValueError, match="a share between 0 and 1"):
        pmo.conformal(model, 2.0)
    with pytest.raises(ValueError, match="semi-supervised fit would know"):
        pmo.conformal(model, semisupervised=True)


@pytest.mark.slow
def test_coverage_over_simulated_tables():
    """200 tables: 90 % sets hold 90 % of the new labels within binomial error, and not many more."""
    tables, new = 200, 20
    covered = {
        "window": np.empty(tables),
        "rps": np.empty(tables),
        "leave-one-out": np.empty(tables),
    }
    sizes = {name: np.empty(tables) for name in covered}
    for k in range(tables):
        X, y = simulate(1000 + k, 78 + new)
        model = pmo.gp_model(X[:-new], y[:-new], "expquad")
        held_out = pmo.conformal(model, 0.5, seed=k, progressbar=False)
        rows = held_out.rows
        found = {
            "window": held_out,
            "rps": pmo.conformal(held_out.fit, (X.iloc[rows], y[rows]), score="rps"),
            "leave-one-out": pmo.conformal(held_out.fit),
        }
        for name, conformal in found.items():
            sets = conformal.predict(X[-new:], coverage=0.9)
            covered[name][k] = sets["included"].values[np.arange(new), y.codes[-new:]].mean()
            sizes[name][k] = sets["size"].mean()
    for name, share in covered.items():
        error = share.std() / np.sqrt(tables)  # rows of a table share their cut
        approximate = 0.03 if name == "leave-one-out" else 0.0
        assert 0.9 - approximate - 3 * error < share.mean() < 0.95, name
        assert sizes[name].mean() < 3.5, name
