"""Checks of a model, on data whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest, norm

import pmordinal as pmo
from pmordinal.diagnostics.predictive import link_of, predictions
from pmordinal.links import get_link


@pytest.fixture(scope="module")
def wine():
    return pmo.datasets.wine()


@pytest.fixture(scope="module")
def fit(wine):
    return pmo.fit(
        pmo.gp_model(wine[["temperature", "contact", "judge"]], wine["rating"], "expquad"),
        progressbar=False,
    )


@pytest.fixture(scope="module")
def tree(fit):
    return fit.to_datatree(draws=2000, seed=2)


def truth(rng, link, n=2000, scale=1.0):
    """Probabilities of four classes, and labels drawn from them; `scale` makes the claim too sure."""
    f = rng.normal(size=(n, 1)) * 1.5
    edges = np.array([-np.inf, -1.0, 0.2, 1.5, np.inf])
    y = np.searchsorted(edges[1:-1], f[:, 0] + get_link(link).draw(rng, n))
    return np.diff(get_link(link).cdf((edges - scale * f) * scale), axis=1), y


# prior


def test_prior_shares():
    """With everything fixed a row's class has the probability of a normal with variance 1 + noise²."""
    x = np.arange(30.0)
    model = pmo.gp_model(
        x, np.arange(30) % 2, categories=[0, 1, 2], lengthscale=0.02, noise=1.0, thresholds=[-0.5, 1.0]
    )  # fmt: skip
    table = pmo.prior_categories(model, draws=400, ci_prob=0.8, seed=4)
    expected = np.diff(norm.cdf([-np.inf, -0.5 / np.sqrt(2), 1 / np.sqrt(2), np.inf]))
    np.testing.assert_allclose(table["mean"], expected, atol=0.02)  # 12,000 nearly independent rows
    assert table["class"].tolist() == ["0", "1", "2"]
    np.testing.assert_allclose(table["observed"], [0.5, 0.5, 0.0])
    binomial = np.sqrt(expected * (1 - expected) / 30)
    np.testing.assert_allclose(table["high"] - table["low"], 2 * 1.2816 * binomial, rtol=0.25)


def test_prior_of_a_tree():
    import pymc as pm

    model = pmo.gp_model(
        [[0.0], [1.0], [2.0]], ["a", "b", "b"], "expquad", categories=["a", "b", "c"]
    )
    mode = {"mode": "FAST_COMPILE"}
    tree = pm.sample_prior_predictive(50, model=model, random_seed=0, compile_kwargs=mode)
    table = pmo.prior_categories(tree)
    y = tree["prior_predictive"]["y"].values[0]
    np.testing.assert_allclose(table["mean"], [(y == k).mean() for k in range(3)])
    with pytest.raises(ValueError, match="lacks prior_predictive/y"):
        pmo.prior_categories(tree.drop_nodes("prior_predictive"))
    with pytest.raises(
        TypeError, match=r"source must be a pm.Model, or a DataTree by .*, got None"
    ):
        pmo.prior_categories(None)


# bars


def test_bars(fit, tree, wine):
    table = pmo.predictive_bars(tree, "temperature", ci_prob=0.5)
    y = tree["posterior_predictive"]["y"].values[0]
    cold = (wine["temperature"] == "cold").to_numpy()
    counts = (y[:, cold] == 1).sum(1)
    row = table[(table["group"] == "cold") & (table["class"] == "2")].iloc[0]
    assert row["observed"] == (wine["rating"][cold] == 2).sum()
    assert row["mean"] == pytest.approx(counts.mean())
    assert (row["low"], row["high"]) == tuple(np.quantile(counts, [0.25, 0.75]))
    by_array = pmo.predictive_bars(tree, wine["temperature"], ci_prob=0.5)
    pd.testing.assert_frame_equal(table, by_array)
    assert pmo.predictive_bars(fit, seed=1)["observed"].tolist() == [5, 22, 26, 12, 7]


def test_bars_find_a_missing_attribute(wine):
    """Without the judges, judge 5, who gives nearly only 3s, is not understood."""
    fit = pmo.fit(pmo.gp_model(wine[["temperature"]], wine["rating"], "expquad"), progressbar=False)
    table = pmo.predictive_bars(fit, wine["judge"], seed=0)
    row = table[(table["group"] == "5") & (table["class"] == "3")].iloc[0]
    assert row["observed"] == 6 and row["observed"] > row["high"]


def test_bars_with_unlabelled_rows():
    y = [1, 1, None, 2, 2, 3, None, 3]
    fit = pmo.fit(pmo.gp_model(np.arange(8.0), y, "expquad"), progressbar=False)
    table = pmo.predictive_bars(fit, list("aabbbbbb"), seed=0)
    assert table.groupby("group", observed=True)["observed"].sum().tolist() == [2, 4]
    with pytest.raises(ValueError, match="one value for each of the 6 rows"):
        pmo.predictive_bars(fit, ["a"])
    with pytest.raises(ValueError, match=r"by has 2 missing .* the first in labelled row 1: give"):
        pmo.predictive_bars(fit, ["a", None, None, "b", np.nan, "a", "b", "b"])
    with pytest.raises(ValueError, match="no categorical column"):
        pmo.predictive_bars(fit, "x0")


# predictions


def test_leave_one_out_predictions(fit, tree):
    ours = predictions(fit)
    own = ours.probs[np.arange(72), ours.codes]
    np.testing.assert_allclose(np.log(own), fit.posterior.leave_one_out.value, rtol=1e-8)
    assert ours.threshold_names == ["1|2", "2|3", "3|4", "4|5"]
    sampled = predictions(tree)
    assert np.abs(sampled.probs - ours.probs).mean() < 0.01  # importance sampling of 2,000 draws
    inside, drawn = predictions(fit, None, False), predictions(tree, None, False)
    np.testing.assert_allclose(drawn.probs, inside.probs, atol=0.02)
    assert np.log(own).sum() < np.log(inside.probs[np.arange(72), ours.codes]).sum() - 1


def test_tree_with_its_own_thresholds(tree):
    """Every draw has its thresholds and noise, as MCMC has."""
    tree = tree.isel(draw=slice(0, 40))
    rng = np.random.default_rng(0)
    posterior = tree["posterior"].to_dataset()
    posterior["thresholds"] = posterior["thresholds"] + 0.3 * rng.normal(size=(1, 40, 1))
    posterior["noise"] = posterior["noise"] * np.exp(rng.normal(size=(1, 40)))
    tree["posterior"] = posterior
    f, b, s = (posterior[name].values[0] for name in ("f", "thresholds", "noise"))
    by_hand = np.mean([norm.cdf((b[t] - f[t][:, None]) / s[t]) for t in range(40)], axis=0)
    probs = predictions(tree, None, False).probs
    np.testing.assert_allclose(probs.cumsum(1)[:, :-1], by_hand)


@pytest.mark.parametrize("link", list(pmo.LINKS))
def test_link_of_a_tree_that_does_not_name_it(wine, link):
    fixed = {"lengthscale": 2.0, "noise": 0.5, "thresholds": [-1.3, -0.3, 0.5, 1.1]}
    model = pmo.gp_model(wine[["temperature"]], wine["rating"], "expquad", link=link, **fixed)
    tree = pmo.fit(model, progressbar=False).to_datatree(draws=20, seed=0)
    del tree.attrs["link"]
    assert link_of(tree).name == link
    with pytest.raises(ValueError, match="does not say its link"):
        link_of(tree.drop_nodes("log_likelihood"))


def test_prediction_errors(fit, tree):
    with pytest.raises(ValueError, match="y comes with the fit"):
        pmo.calibration(fit, [1, 2])
    with pytest.raises(ValueError, match="together with y"):
        pmo.calibration(np.eye(3))
    bare = tree.copy()
    bare["posterior"] = bare["posterior"].to_dataset().drop_vars("f")
    with pytest.raises(ValueError, match="lacks posterior/f"):
        pmo.surrogate_residuals(bare)


# calibration


def test_calibration_is_isotonic_regression(rng):
    """The min–max formula of isotonic regression, on ties too."""
    P, y = truth(rng, "probit", n=60)
    P = np.diff(P.cumsum(1).round(1), prepend=0.0)  # ties
    table = pmo.calibration(P, y, seed=0)
    for k, (_, part) in enumerate(table.groupby("threshold", observed=True)):
        claim, event = P.cumsum(1)[:, k].round(12), (y <= k).astype(float)
        np.testing.assert_allclose(part["predicted"], np.unique(claim))
        x = part["predicted"].to_numpy()
        pooled = [
            max(
                min(event[(claim >= a) & (claim <= b)].mean() for b in x[i:])
                for a in x[: i + 1]
            )
            for i in range(len(x))
        ]  # fmt: skip
        np.testing.assert_allclose(part["observed"], pooled)
        assert part["rows"].sum() == 60


@pytest.mark.parametrize("scale, inside", [(1.0, True), (2.0, False)])
def test_band_holds_the_truth_and_not_the_overconfident(rng, scale, inside):
    P, y = truth(rng, "logit", scale=scale)
    table = pmo.calibration(P, y, ci_prob=0.9, seed=1)
    share = ((table["low"] <= table["observed"]) & (table["observed"] <= table["high"])).mean()
    assert share > 0.8 if inside else share < 0.5


def test_calibration_of_fit_and_tree(fit, tree):
    a, b = pmo.calibration(fit, seed=0), pmo.calibration(tree, seed=0)
    assert a["threshold"].cat.categories.tolist() == ["1|2", "2|3", "3|4", "4|5"]
    assert np.all(a.groupby("threshold", observed=True)["observed"].diff().fillna(0) >= 0)
    assert a.groupby("threshold", observed=True)["rows"].sum().tolist() == [72] * 4
    assert a["threshold"].cat.categories.tolist() == b["threshold"].cat.categories.tolist()


# residuals


@pytest.mark.parametrize("link", list(pmo.LINKS))
def test_residuals_have_the_links_distribution(rng, link):
    P, y = truth(rng, link)
    table = pmo.surrogate_residuals(P, y, link=link, seed=2)
    assert table.attrs["link"] == link
    assert kstest(table["residual"], get_link(link).cdf).pvalue > 0.01
    assert kstest(table["probability"], "uniform").pvalue > 0.01
    np.testing.assert_allclose(get_link(link).cdf(table["residual"]), table["probability"])
    edges = np.concatenate([np.zeros((len(P), 1)), P.cumsum(1)], axis=1)
    rows = np.arange(len(P))
    assert np.all(
        (edges[rows, y] <= table["probability"]) & (table["probability"] <= edges[rows, y + 1])
    )
    sure, y = truth(rng, link, scale=2.0)
    wrong = pmo.surrogate_residuals(sure, y, link=link, seed=2)["residual"]
    assert kstest(wrong, get_link(link).cdf).pvalue < 1e-6


def test_a_wrong_link_shows(rng):
    P, y = truth(rng, "cloglog", n=5000)
    residual = pmo.surrogate_residuals(P, y, link="cloglog", seed=0)["residual"]
    assert kstest(residual, get_link("logit").cdf).pvalue < 1e-6


def test_a_fit_of_the_true_model_and_one_without_its_attribute(rng):
    X = rng.uniform(-2, 2, size=(250, 2))
    y = np.digitize(2 * X[:, 0] + 0.5 * rng.normal(size=250), [-1.0, 1.0])
    good, bad = (
        pmo.surrogate_residuals(
            pmo.fit(pmo.gp_model(X[:, [j]], y, "expquad"), progressbar=False), seed=0
        )
        for j in (0, 1)
    )
    assert kstest(good["residual"], "norm").pvalue > 0.01
    assert abs(np.corrcoef(good["residual"], X[:, 0])[0, 1]) < 0.15
    assert np.corrcoef(bad["residual"], X[:, 0])[0, 1] > 0.7  # what the model lacks


def test_residuals_in_the_tails():
    P = np.array([[1.0, 1e-30], [1e-30, 1.0]])
    far = pmo.surrogate_residuals(P, [1, 0], seed=0)["residual"].to_numpy()
    assert 11 < far[0] < 14 and -14 < far[1] < -11


def test_replicates(fit):
    table = pmo.surrogate_residuals(fit, replicates=3, seed=0)
    assert len(table) == 3 * 72
    assert table["obs"].tolist() == fit.index.tolist() * 3
    first, second = (table[table["replicate"] == k]["residual"].to_numpy() for k in (0, 1))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(table["class"].to_numpy()[:72].astype(int) - 1, fit.posterior.y)


def test_bars_by_a_group_of_a_formula():
    wine = pmo.datasets.wine()
    model = pmo.formula_model("rating ~ temperature + (1 | judge)", wine)
    fit = pmo.fit(model, optimize=False, progressbar=False)
    table = pmo.predictive_bars(fit, "judge", draws=20, seed=1)
    observed = table.groupby(["group", "class"], observed=False)["observed"].sum()
    expected = pd.crosstab(wine["judge"].astype(str), wine["rating"].astype(str))
    assert observed.to_numpy().tolist() == expected.to_numpy().ravel().tolist()
    with pytest.raises(ValueError, match=r"those are \['judge', 'temperature'\]"):
        pmo.predictive_bars(fit, "bottle", draws=20)
