"""Average predictions along attributes, against predictions row by row and dense linear algebra."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy.stats import norm

import pmordinal as pmo
from pmordinal.results.effects import effects, typical_row
from tests.repeated import first_fast


@pytest.fixture(scope="module")
def wine():
    return pmo.datasets.wine()


@pytest.fixture(scope="module")
def fit(wine):
    columns = ["temperature", "contact", "judge"]
    return pmo.fit(pmo.gp_model(wine[columns], wine["rating"], "expquad"), progressbar=False)


@pytest.fixture(scope="module")
def numeric():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"dose": rng.uniform(0, 4, 40), "sex": rng.choice(["f", "m"], 40)})
    y = np.digitize(table["dose"] + 0.5 * rng.normal(size=40), [1.0, 2.5])
    return table, y


def test_means_are_average_predictions(fit, wine):
    table = fit.effects(["temperature", "contact"])
    moved = wine.assign(temperature="warm", contact="yes")
    part = table[(table["temperature"] == "warm") & (table["contact"] == "yes")].set_index("kind")
    np.testing.assert_allclose(part.loc["probs", "mean"], fit.predict(moved).mean("obs"), rtol=1e-9)
    exceed = 1 - fit.predict(moved, kind="cumulative").mean("obs")
    np.testing.assert_allclose(part.loc["exceedance", "mean"], exceed, rtol=1e-9)
    assert part.loc["exceedance", "class"].tolist() == ["2", "3", "4", "5"]
    rank = float(fit.predict(moved, kind="rank").mean())
    assert part.loc["rank", "mean"] == pytest.approx(rank)
    latent = float(fit.predict(moved, kind="latent")["mean"].mean())
    assert part.loc["latent", "mean"] == pytest.approx(latent)
    assert len(table) == 4 * (5 + 4 + 1 + 1)
    assert np.all((table["low"] < table["mean"]) & (table["mean"] < table["high"]))


@pytest.mark.parametrize("engine", ["ep", "plsor"])
def test_intervals_are_those_of_the_joint_posterior(numeric, engine):
    """Dense algebra and 20,000 draws at one value; white noise (plsor) is no uncertainty of P(Y = k)."""
    X, y = numeric
    fit = pmo.fit(pmo.gp_model(X, y, "expquad", engine=engine), progressbar=False)
    table = effects(fit, "sex", ("probs", "latent"), draws=4000, ci_prob=0.8)
    table = table[table["sex"] == "m"].set_index("kind")
    p, likelihood = fit.posterior, fit.posterior.likelihood
    kernel, values = p.gram.kernel, p.gram.values
    Z = fit.features.transform(X.assign(sex="m"))
    k = kernel.matrix(values, p.gram.X, Z)[0]
    noisy = p.gram.matrix + np.diag(1 / p.precision) if engine == "ep" else p.gram.matrix
    C = kernel.matrix(values, Z, Z)[0] - k.T @ np.linalg.solve(noisy, k)
    white = kernel.diagonal(values, Z)[0] - kernel.copy_diagonal(values, Z)
    assert (white > 0).all() == (engine == "plsor")
    rng = np.random.default_rng(5)
    f = rng.multivariate_normal(k.T @ p.alpha, C, 20_000, method="eigh")
    sd = np.sqrt(likelihood.noise**2 + white)
    cdf = norm.cdf((likelihood.edges[:, None, None] - f) / sd)
    sampled = np.diff(cdf, axis=0).mean(2).T
    spread = sampled.std(0)
    for i, name in enumerate(("low", "high")):
        truth = np.quantile(sampled, (0.1, 0.9)[i], axis=0)
        # quantiles of 4,000 draws: 0.03 standard deviations of error each
        assert np.abs((table.loc["probs", name] - truth) / spread).max() < 0.12
    np.testing.assert_allclose(table.loc["probs", "sd"], spread, rtol=0.06)
    np.testing.assert_allclose(table.loc["probs", "mean"], sampled.mean(0), atol=0.003)
    exact = np.sqrt(C.mean())
    assert table.loc["latent", "sd"] == pytest.approx(exact, rel=1e-6)
    ends = k.T.mean(0) @ p.alpha + exact * norm.ppf([0.1, 0.9])
    np.testing.assert_allclose(
        table.loc["latent", ["low", "high"]].to_numpy(float), ends, rtol=1e-6
    )


def test_differences(fit):
    plain = effects(fit, "temperature", "probs")
    gaps = effects(fit, "temperature", "probs", versus="cold")
    warm, cold = (plain[plain["temperature"] == t]["mean"].to_numpy() for t in ("warm", "cold"))
    np.testing.assert_allclose(gaps[gaps["temperature"] == "warm"]["mean"], warm - cold)
    same = gaps[gaps["temperature"] == "cold"][["mean", "sd", "low", "high"]]
    np.testing.assert_array_equal(same, 0.0)
    # judges differ more than the effect of temperature is unsure: the difference knows they are the same judges
    rank = effects(fit, "temperature", "rank", versus="cold").iloc[1]
    alone = effects(fit, "temperature", "rank")["sd"].to_numpy()
    assert rank["sd"] != pytest.approx(np.hypot(*alone), rel=0.02)


def test_grid_and_held_attributes(numeric):
    X, y = numeric
    fit = pmo.fit(pmo.gp_model(X, y, "expquad"), progressbar=False)
    held = effects(fit, "dose", "probs", at={"sex": "f"}, n_grid=7)
    grid = np.linspace(X["dose"].min(), X["dose"].max(), 7)
    np.testing.assert_allclose(held["dose"].unique(), grid)
    new = pd.DataFrame({"dose": grid, "sex": "f"})
    np.testing.assert_allclose(held["mean"], fit.predict(new).values.ravel(), rtol=1e-8)
    often = X["sex"].mode().item()
    typical = effects(fit, "dose", "probs", at="typical", n_grid=7)
    expected = fit.predict(new.assign(sex=often)).values.ravel()
    np.testing.assert_allclose(typical["mean"], expected, rtol=1e-8)
    row = typical_row(fit)[0]
    assert row[0] == pytest.approx(X["dose"].median())
    assert row[1:].tolist() == [float(often == "f"), float(often == "m")]
    few = effects(fit, "sex", "rank", rows=5)
    chosen = X.iloc[np.linspace(0, 39, 5).round().astype(int)]
    means = [fit.predict(chosen.assign(sex=s), kind="rank").mean() for s in "fm"]
    np.testing.assert_allclose(few["mean"], means)


@pytest.mark.parametrize("link", first_fast(pmo.LINKS, 2))
def test_every_link(numeric, link):
    X, y = numeric
    fit = pmo.fit(pmo.gp_model(X, y, "expquad", link=link), progressbar=False)
    kinds = ("probs", "latent")
    table = effects(fit, "sex", kinds, at="typical", draws=4000, ci_prob=0.8).set_index("kind")
    latent = table.loc["latent"]
    # one row: P(Y = 0) falls as f rises, so its quantiles are those of f, turned round
    cdf = fit.posterior.likelihood.link.cdf
    for end, other in (("low", "high"), ("high", "low")):
        exact = cdf((fit.thresholds[0] - latent[other]) / fit.noise)
        lowest = table[(table["class"] == "0").to_numpy()]
        np.testing.assert_allclose(lowest[end], exact, rtol=0.15, atol=1e-4)
    np.testing.assert_allclose(table.loc["probs"].groupby("sex")["mean"].sum(), 1.0)


def test_errors(fit, numeric):
    with pytest.raises(ValueError, match="feature must be one of"):
        effects(fit, "bottle")
    with pytest.raises(ValueError, match="kind must be one of"):
        effects(fit, "judge", "logits")
    with pytest.raises(ValueError, match="cannot be held fixed"):
        effects(fit, "judge", at={"judge": "1"})
    with pytest.raises(ValueError, match="temperature must be one of 'cold', 'warm'"):
        effects(fit, "temperature", versus="hot")
    with pytest.raises(ValueError, match="versus must have one value"):
        effects(fit, ["temperature", "contact"], versus="cold")
    X, y = numeric
    other = pmo.fit(
        pmo.gp_model(X.rename(columns={"dose": "mean"}), y, "expquad"), progressbar=False
    )
    with pytest.raises(ValueError, match="rename it"):
        effects(other, "mean")
    with pytest.raises(ValueError, match="only categorical"):
        effects(pmo.fit(pmo.gp_model(X, y, "expquad"), progressbar=False), ["dose", "sex"])


# formulas


def survey(seed, n=250):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"age": rng.uniform(20, 80, n), "f": rng.choice(["a", "b", "c"], n)})
    data["income"], data["k"] = np.exp(rng.normal(3, 0.5, n)), rng.integers(1, 5, n)
    data["judge"] = rng.integers(0, 6, n)
    latent = 1.5 * np.sin(data["age"] / 8) + (data["f"] == "b") + 0.3 * data["judge"]
    data["y"] = np.digitize(latent + rng.normal(size=n), [-0.5, 0.7, 1.8])
    return data


@pytest.mark.parametrize("seed", first_fast([1, 2, 3]))
def test_a_smooth_beside_a_factor_turns_where_the_truth_does(seed):
    """The sine has turning points at 8 (π/2 + m π) years: 37.7 and 62.8 are inside, by more than the error."""
    fit = pmo.fit(pmo.formula_model("y ~ f + gp(age)", survey(seed)), progressbar=False)
    curve = fit.effects("age", "latent", n_grid=121)
    age, mean = curve["age"].to_numpy(), curve["mean"].to_numpy()
    inside = (age > 28) & (age < 72)
    turns = np.flatnonzero(np.diff(np.sign(np.diff(mean[inside])))) + 1
    found = age[inside][turns]
    assert len(found) == 2
    np.testing.assert_allclose(found, 8 * np.pi * np.array([1.5, 2.5]), atol=3.0)
    assert mean[inside][turns[0]] < mean[inside][turns[1]]


@pytest.mark.parametrize("seed", first_fast([2, 0, 1, 3, 4]))
def test_the_default_finds_a_sine_beside_a_factor(seed):
    """One length-scale for all columns misses it; the rough term may add small bends, but turns nothing."""
    data = survey(seed)
    fit = pmo.fit(pmo.gp_model(data[["f", "age"]], data["y"]), progressbar=False)
    curve = fit.effects("age", "latent", n_grid=121)
    age, mean = curve["age"].to_numpy(), curve["mean"].to_numpy()
    assert np.corrcoef(mean, np.sin(age / 8))[0, 1] > 0.95
    low, high = (age > 28) & (age < 50), (age > 50) & (age < 72)
    assert age[low][mean[low].argmin()] == pytest.approx(8 * np.pi * 1.5, abs=4.0)
    assert age[high][mean[high].argmax()] == pytest.approx(8 * np.pi * 2.5, abs=4.0)
    assert fit.relevance().index[0] == "age"


@pytest.fixture(scope="module")
def formula_fit():
    formula = "y ~ f + np.log(income) + C(k) + gp(age) + (1 | judge)"
    model = pmo.formula_model(formula, survey(4, 60))
    return pmo.fit(model, optimize=False, progressbar=False)


def test_effects_of_formulas_are_those_of_their_terms(formula_fit):
    """The terms do not interact: differences of effects are differences of the terms themselves."""
    fit = formula_fit
    table = fit.coefficients().set_index("term")
    for name, term in (("f", "f"), ("k", "C(k)"), ("judge", "1|judge")):
        got = fit.effects(name, "latent")
        assert got[name].astype(str).tolist() == table.loc[term, "level"].tolist()
        np.testing.assert_allclose(np.diff(got["mean"]), np.diff(table.loc[term, "mean"]))
    got = fit.effects("income", "latent", n_grid=5)
    slope = np.diff(got["mean"]) / np.diff(np.log(got["income"]))
    np.testing.assert_allclose(slope, table.loc["np.log(income)", "mean"])


def test_numbers_that_are_levels_stay_levels(formula_fit):
    """No value in between, which would be a level that nobody saw, and a warning of it."""
    assert formula_fit.effects("k", "latent")["k"].tolist() == [1, 2, 3, 4]
    both = formula_fit.effects(["f", "k"], "rank")
    assert len(both) == 12
    apart = formula_fit.effects("k", "latent", versus=2, at={"judge": 3})
    assert apart["mean"].tolist()[1] == 0.0
    assert len(formula_fit.effects("f", "latent", at="typical")) == 3
    ax = pmo.plots.plot_effects(formula_fit, "k")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1", "2", "3", "4"]
    plt.close("all")
