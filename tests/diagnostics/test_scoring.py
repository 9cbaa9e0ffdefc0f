"""Scores against hand-made numbers, scikit-learn and the papers' own statistics."""

import arviz as az
import numpy as np
import pandas as pd
import pytest

import pmordinal as pmo
from pmordinal.diagnostics.scoring import pointwise
from pmordinal.results.decisions import decide


@pytest.fixture
def predictions():
    rng = np.random.default_rng(2)
    probs = rng.dirichlet([1.0, 2.0, 1.5, 0.7], size=60)
    truth = np.array([rng.choice(4, p=p) for p in probs]) + 1
    return truth, probs


def test_against_scikit_learn(predictions):
    metrics = pytest.importorskip("sklearn.metrics")
    truth, probs = predictions
    ours = pmo.scores(truth, probs)
    guess = probs.argmax(1) + 1
    assert ours["zero_one"] == pytest.approx(np.mean(guess != truth))
    assert ours["absolute"] == pytest.approx(metrics.mean_absolute_error(truth, guess))
    assert ours["nlp"] == pytest.approx(metrics.log_loss(truth, probs, labels=[1, 2, 3, 4]))
    kappa = metrics.cohen_kappa_score(truth, guess, weights="quadratic")
    assert ours["kappa"] == pytest.approx(kappa)
    by_class = [np.abs(guess - truth)[truth == k].mean() for k in (1, 2, 3, 4)]
    assert ours["macro_absolute"] == pytest.approx(np.mean(by_class))


def test_ranked_probability_score_by_hand():
    probs = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]
    by_hand = ((0.5 - 1) ** 2 + (0.8 - 1) ** 2 + 0.1**2 + 0.3**2) / 2
    assert pmo.scores([1, 3], probs, categories=[1, 2, 3])["rps"] == pytest.approx(by_hand)
    divided = pmo.modl.ranked_probability_score(probs, [0, 2])  # by r − 1
    assert 2 * divided.mean() == pytest.approx(by_hand)
    with pytest.raises(ValueError, match=r"Pass categories=\[1, 2, 3\]"):
        pmo.scores([1, 3], probs)


def test_calibration(predictions):
    """Probabilities that are right have a small gap; sure and wrong ones have a large one."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1.0, 2.0, 1.5], size=20_000)
    truth = (rng.uniform(size=(20_000, 1)) > probs.cumsum(1)).sum(1)
    assert pmo.scores(truth, probs)["calibration"] < 0.01
    shifted = np.roll(probs, 1, axis=1)
    assert pmo.scores(truth, shifted)["calibration"] > 0.1


def test_labels_come_from_the_prediction():
    data = pmo.datasets.wine()
    fit = pmo.fit(pmo.gp_model(data[["temperature"]], data["rating"], "expquad"), progressbar=False)
    probs = fit.predict(data[["temperature"]])
    score = pmo.scores(data["rating"], probs)
    assert pmo.scores(data["rating"].astype(int), probs)["nlp"] == pytest.approx(score["nlp"])
    only_some = data["rating"].astype(int) <= 3
    part = pmo.scores(data["rating"].astype(int)[only_some], probs[only_some.to_numpy()])
    assert np.isfinite(part["nlp"])


def test_rows_average_to_the_scores(predictions):
    truth, probs = predictions
    rows = pointwise(truth, probs)
    pd.testing.assert_series_equal(
        rows.mean(), pmo.scores(truth, probs)[rows.columns], check_names=False
    )


def test_bad_probabilities():
    with pytest.raises(ValueError, match="sum to one"):
        pmo.scores([0, 1], [[0.5, 0.1], [0.5, 0.5]])
    with pytest.raises(ValueError, match="one label for each"):
        pmo.scores([0, 1, 1], [[0.5, 0.5], [0.5, 0.5]])


PUBLISHED = pd.DataFrame(  # [Srijith2012, Table 3], zero-one error, 5 bins
    {
        "MAP": [54.23, 52.91, 65.00, 16.53, 23.78, 24.88, 11.99, 21.50],
        "EP": [54.23, 52.62, 65.16, 16.78, 23.75, 24.49, 12.00, 21.56],
        "LOO": [49.62, 54.36, 64.06, 16.61, 25.78, 24.85, 10.60, 21.85],
        "sparse": [52.69, 56.74, 64.06, 16.61, 25.44, 26.75, 13.69, 22.41],
    }
)


def test_ranks_and_friedman_of_the_paper():
    table = pmo.rank_methods(PUBLISHED)
    ranks = table["rank"].to_dict()
    assert ranks == {"MAP": 2.1875, "LOO": 2.25, "EP": 2.4375, "sparse": 3.125}  # Table 2
    assert table.attrs["friedman_F"] == pytest.approx(0.8735, abs=5e-5)  # Table 2
    reverse = pmo.rank_methods(-PUBLISHED, higher_is_better=True)
    assert reverse["rank"].to_dict() == ranks


def test_paired_t_test_is_scipys():
    from scipy.stats import ttest_rel

    table = pmo.rank_methods(PUBLISHED)
    expected = ttest_rel(PUBLISHED["sparse"], PUBLISHED["MAP"])
    assert table.loc["sparse", "t"] == pytest.approx(expected.statistic)
    assert table.loc["sparse", "p"] == pytest.approx(expected.pvalue)
    with pytest.raises(ValueError, match="two methods"):
        pmo.rank_methods(PUBLISHED[["EP"]])


def test_decision_rules():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(5), size=200)
    distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    np.testing.assert_array_equal(decide(probs, "median"), decide(probs, distance))
    np.testing.assert_array_equal(decide(probs, "mode"), decide(probs, 1 - np.eye(5)))
    lopsided = distance * np.where(np.subtract.outer(np.arange(5), np.arange(5)) > 0, 10, 1)
    assert decide(probs, lopsided).mean() > decide(probs, "median").mean() + 0.5
    with pytest.raises(ValueError, match="shape"):
        decide(probs, np.eye(4))
    with pytest.raises(ValueError, match="rule"):
        decide(probs, "best")


def test_loo_object_enters_az_compare():
    data = pmo.datasets.wine()
    fits = {
        "temperature": pmo.fit(
            pmo.gp_model(data[["temperature"]], data["rating"], "expquad"), progressbar=False
        ),
        "both": pmo.fit(
            pmo.gp_model(data[["temperature", "contact"]], data["rating"], "expquad"),
            progressbar=False,
        ),
    }
    results = {name: pmo.loo(fit) for name, fit in fits.items()}
    assert results["both"].elpd == pytest.approx(fits["both"].posterior.leave_one_out.value.sum())
    assert 1 < results["both"].p < 15
    assert az.compare(results).index[0] == "both"


def test_paired_differences_cancel_what_is_common():
    """The bootstrap error of a difference is the paired one, and that of a mean is sd/√m."""
    rng = np.random.default_rng(3)
    m = 400
    y = rng.integers(3, size=m)
    P = rng.dirichlet([1, 1, 1], size=m)
    Q = 0.95 * P + 0.05 / 3
    table = pmo.compare_scores(y, {"p": P, "q": Q}, resamples=1000, seed=1)
    rows = {name: pointwise(y, x)["nlp"] for name, x in (("p", P), ("q", Q))}
    assert table.loc[("p", "nlp"), "value"] == pytest.approx(pmo.scores(y, P)["nlp"])
    assert table.loc[("p", "nlp"), "se"] == pytest.approx(rows["p"].std() / np.sqrt(m), rel=0.1)
    gap = rows["q"] - rows["p"]
    row = table.loc[("q", "nlp")]
    assert row["difference"] == pytest.approx(gap.mean())
    assert row["difference_se"] == pytest.approx(gap.std() / np.sqrt(m), rel=0.1)
    assert row["low"] < row["difference"] < row["high"]
    assert row["difference_se"] < 0.5 * row["se"]
    assert (table.loc["p", "difference"] == 0).all()
    assert set(table.loc["p"].index) == set(pmo.scores(y, P).index)


def test_compare_scores_errors():
    with pytest.raises(ValueError, match="probs is empty"):
        pmo.compare_scores([0, 1], {})
    with pytest.raises(ValueError, match="reference"):
        pmo.compare_scores([0, 1], {"a": [[1, 0], [0, 1]]}, reference="b")
    with pytest.raises(ValueError, match="level"):
        pmo.compare_scores([0, 1], {"a": [[1, 0], [0, 1]]}, level=95)
