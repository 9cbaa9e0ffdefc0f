"""Offsets: a known shift of the latent function, against thresholds that are shifted instead."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy.stats import norm

import pmordinal as pmo
from pmordinal.engines import get_engine
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood, Rows

QUIET = {"progressbar": False}
B = np.array([-0.8, 0.1, 1.1])


def survey(n=40, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n) + 0.3})
    table["side"] = np.where(np.arange(n) % 2, "high", "low")
    table["c"] = np.where(table["side"] == "high", 0.7, -0.7)
    table["known"] = 0.7
    f = table["x"] + np.sin(2 * table["z"]) + table["c"]
    table["y"] = np.digitize(f + rng.normal(size=n), B) + 1
    return table


@pytest.fixture(scope="module")
def table():
    return survey()


def fitted(formula, table, **options):
    options = {"thresholds": B, "categories": [1, 2, 3, 4]} | options
    seeds = {"seed": 1} if options.get("engine") == "exact" else {}
    return pmo.fit(pmo.formula_model(formula, table, **options), **QUIET, **seeds)


@pytest.mark.parametrize(
    "engine, link",
    [
        ("ep", "probit"),
        ("laplace", "logit"),
        ("laplace", "cloglog"),
        pytest.param("sparse", "probit", marks=pytest.mark.slow),
    ],
)
def test_a_constant_offset_shifts_the_thresholds(table, engine, link):
    shifted = fitted("y ~ x + offset(known)", table, engine=engine, link=link)
    plain = fitted("y ~ x", table, engine=engine, link=link, thresholds=B - 0.7)
    np.testing.assert_allclose(shifted.log_evidence, plain.log_evidence, rtol=1e-9)
    for name, value in plain.point.items():
        if name != "thresholds":
            np.testing.assert_allclose(shifted.point[name], value, rtol=1e-6)
    np.testing.assert_allclose(shifted.predict(table), plain.predict(table), atol=1e-7)
    np.testing.assert_allclose(shifted.posterior.loo, plain.posterior.loo, rtol=1e-7)
    latent = shifted.predict(table, kind="latent") - plain.predict(table, kind="latent")
    np.testing.assert_allclose(latent["mean"], 0.7, atol=1e-7)


@pytest.mark.parametrize(
    "engine", ["ep", "laplace", "sparse", "plsor", pytest.param("exact", marks=pytest.mark.slow)]
)
def test_every_engine_shifts_rows_as_it_shifts_their_thresholds(table, engine):
    """Two groups with offsets ±c are two groups with thresholds b ∓ c: values and gradients."""
    rows, y = table[["x", "z"]].to_numpy(), table["y"].to_numpy() - 1
    with pm.Model():
        cov = 1.3**2 * pm.gp.cov.ExpQuad(2, ls=1.1)
        if engine == "plsor":
            cov += pm.gp.cov.WhiteNoise(0.4)
    kernel = lower(cov)
    gram = Gram(kernel, rows, [p.data for p in kernel.parameters])
    group = (table["side"] == "high").to_numpy().astype(int)
    c = table["c"].to_numpy()
    shifted = OrdinalLikelihood(B, 0.9, "probit", Rows(shift=c))
    grouped = OrdinalLikelihood([B + 0.7, B - 0.7], 0.9, "probit", Rows(thresholds=group))
    run = get_engine(engine)
    one, other = (run(gram, y, likelihood) for likelihood in (shifted, grouped))
    np.testing.assert_allclose(one.log_evidence, other.log_evidence, rtol=1e-9)
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-8)
    np.testing.assert_allclose(one.leave_one_out.value, other.leave_one_out.value, atol=1e-7)
    new = rows[:5] + 0.1
    at = [shifted.at_new(Rows(shift=c[:5])), grouped.at_new(Rows(thresholds=group[:5]))]
    probs = [
        p.probabilities(new, likelihood) for p, likelihood in zip((one, other), at, strict=True)
    ]
    np.testing.assert_allclose(*probs, atol=1e-7)
    draws = [a.draw(np.zeros((50, 5)), np.random.default_rng(0)) for a in at]
    np.testing.assert_array_equal(*draws)
    if engine in ("ep", "laplace"):
        gradients = [p.evidence_gradient() for p in (one, other)]
        np.testing.assert_allclose(
            gradients[0].thresholds, gradients[1].thresholds.sum(0), rtol=1e-5, atol=1e-8
        )


def test_new_rows_have_their_own_offset(table):
    fit = fitted("y ~ x + gp(z) + offset(c)", table)
    new = table.head(4).assign(c=[0.0, 1.0, -2.0, 0.5])
    none = fit.predict(new.assign(c=0.0), kind="latent")
    latent = fit.predict(new, kind="latent")
    np.testing.assert_allclose(latent["mean"] - none["mean"], new["c"])
    np.testing.assert_allclose(latent["sd"], none["sd"])
    mean, sd = latent["mean"].values, latent["sd"].values
    expected = OrdinalLikelihood(B).probabilities(mean, sd**2)
    np.testing.assert_allclose(fit.predict(new), expected, atol=1e-10)
    with pytest.raises(ValueError, match="'c'"):
        fit.predict(new.drop(columns="c"))
    with pytest.raises(ValueError, match="'c' has 1 missing"):
        fit.predict(new.assign(c=[0.0, np.nan, 0.0, 0.0]))


def test_terms_effects_and_shares_have_the_offset(table):
    fit = fitted("y ~ x + offset(c)", table)
    terms = fit.terms()
    assert terms["term"].values.tolist() == ["x", "offset(c)"]
    np.testing.assert_allclose(terms["mean"][1], table["c"])
    np.testing.assert_array_equal(terms["sd"][1], 0.0)
    latent = fit.predict(table, kind="latent")["mean"]
    np.testing.assert_allclose(terms["mean"].sum("term"), latent, atol=1e-10)
    assert fit.variance_shares().index.tolist() == ["x", "offset(c)", "noise"]
    assert [ax.get_title(loc="left").split(" ·")[0] for ax in pmo.plots.plot_terms(fit)] == ["x"]
    along = fit.effects("c", n_grid=3).query("kind == 'latent'")["mean"].to_numpy()
    np.testing.assert_allclose(np.diff(along), 0.7, atol=1e-10)
    # the average prediction over rows as they are, but for c
    probs = fit.predict(table.assign(c=0.7)).mean("obs")
    there = fit.effects("c", "probs", n_grid=2, rows=len(table)).query("c > 0")["mean"]
    np.testing.assert_allclose(there, probs, atol=1e-10)
    pmo.plots.plot_regions(fit, ["x", "c"], n_grid=5)


def test_draws_have_the_offset_in_the_latent_function(table):
    fit = fitted("y ~ x + gp(z) + offset(c)", table)
    tree = fit.to_datatree(draws=4000, seed=1)
    f = tree["posterior"]["f"]
    latent = fit.predict(table, kind="latent")
    np.testing.assert_allclose(f.mean(("chain", "draw")), latent["mean"], atol=0.1)
    assert tree["posterior"]["thresholds"].dims == ("chain", "draw", "threshold")
    y = table["y"].to_numpy() - 1
    b = np.array([-np.inf, *B, np.inf])
    by_hand = np.log(norm.cdf(b[y + 1] - f.values) - norm.cdf(b[y] - f.values))
    np.testing.assert_allclose(tree["log_likelihood"]["y"], by_hand, atol=1e-8)
    again = tree["posterior_predictive"]["y"].values
    shares = np.stack([(again == k).mean((0, 1)) for k in range(4)], axis=1)
    np.testing.assert_allclose(shares, fit.predict(table), atol=0.05)
    gaussian = fit.to_datatree(draws=50, hyper="gaussian", seed=1)
    assert abs(float(gaussian["posterior"]["f"].mean() - latent["mean"].mean())) < 0.1


def test_a_saved_fit_has_the_offset(table, tmp_path):
    fit = fitted("y ~ x + offset(np.log(c + 2))", table)
    fit.save(tmp_path / "fit.nc")
    again = pmo.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(again.predict(table), fit.predict(table))
    np.testing.assert_allclose(again.posterior.loo, fit.posterior.loo)
    assert again.terms()["term"].values.tolist() == ["x", "offset(np.log(c + 2))"]


def test_the_same_column_can_be_a_term_too(table):
    """An offset of one changes the coefficient by one."""
    table = table.assign(x=table["x"] - table["x"].mean())
    plain = fitted("y ~ x", table, priors={"x": {"sd": 50.0}})
    shifted = fitted("y ~ x + offset(x)", table, priors={"x": {"sd": 50.0}})
    slopes = [fit.coefficients()["mean"].iloc[0] for fit in (plain, shifted)]
    assert slopes[0] - slopes[1] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.slow
def test_sampled_models_have_the_offset(table):
    model = pmo.formula_model("y ~ x + offset(c)", table)
    options = {"sampling": "full", "categories": [1, 2, 3, 4]}
    full = pmo.formula_model("y ~ x + offset(c)", table, **options)
    new = table.head(3).assign(c=[0.0, 5.0, -5.0])
    for one in (model, full):
        prior = pm.sample_prior_predictive(20, model=one, random_seed=1)
        group = prior["prior"].to_dataset()
        tree = type(prior).from_dict({"posterior": group})
        result = pmo.sample_posterior(one, tree, Xnew=new, seed=2, **QUIET)
        f = result["predictions"]["f"].mean(("chain", "draw"))
        assert float(f[1]) > 2.5 and float(f[2]) < -2.5
        if one is full:
            np.testing.assert_allclose(result["posterior"]["f"], group["f"])
            twice = pmo.sample_posterior(one, result, seed=2, **QUIET)
            np.testing.assert_allclose(twice["posterior"]["f"], group["f"])
        b = result["posterior"]["thresholds"].values[..., None, :]
        noise = result["predictions"]["y"].values - (
            result["predictions"]["f"].values[..., None] > b
        ).sum(-1)
        assert abs(noise).mean() < 1.0


def test_labels_are_drawn_with_the_offset(table):
    far = table.assign(c=np.where(table["side"] == "high", 30.0, -30.0))
    model = pmo.formula_model("y ~ x + offset(c)", far, thresholds=B, priors={"x": {"sd": 1.0}})
    drawn = pm.draw(model["y"], random_seed=3)
    assert (drawn == np.where(far["side"] == "high", 3, 0)).mean() > 0.9


@pytest.mark.parametrize(
    "formula, message",
    [
        ("y ~ x + offset(side)", r"offset\(side\): 'side' is not a number"),
        ("y ~ x + offset(C(c))", "a known shift is a number"),
        ("y ~ x + offset(nowhere)", "no column 'nowhere'"),
        ("y ~ x + offset(np.log(c))", "is nan in 20 row"),
    ],
)
def test_offsets_that_are_refused(table, formula, message):
    with pytest.raises(ValueError, match=message):
        pmo.formula_model(formula, table)


def test_missing_offsets_are_refused_by_name(table):
    holes = table.assign(c=table["c"].where(table.index > 1))
    with pytest.raises(ValueError, match=r"missing in 'c' \(2\)"):
        pmo.formula_model("y ~ x + offset(c)", holes)
    with pytest.warns(UserWarning, match="2 of 40 rows are left out"):
        pmo.formula_model("y ~ x + offset(c)", holes, na="drop")


def test_an_offset_far_from_zero_is_mentioned(table):
    with pytest.warns(UserWarning, match="the offset is 50 on average"):
        pmo.formula_model("y ~ x + offset(c)", table.assign(c=50.0))


def test_offsets_with_groups_of_thresholds_and_weights(table):
    """A shift adds to what groups have, and repeated rows are weighted rows."""
    formula = "y ~ x + offset(c)"
    counts = np.arange(len(table)) % 3 + 1
    repeated = table.loc[table.index.repeat(counts)].reset_index(drop=True)
    by_weight = fitted(formula, table, weights=counts, engine="laplace")
    by_rows = fitted(formula, repeated, engine="laplace")
    np.testing.assert_allclose(by_weight.log_evidence, by_rows.log_evidence, rtol=1e-8)
    np.testing.assert_allclose(by_weight.predict(table), by_rows.predict(table), atol=1e-8)


@pytest.mark.slow
def test_a_semi_supervised_fit_knows_offsets(table):
    """A constant offset is a shift of the thresholds, also of rows without a label."""
    part = table.assign(y=table["y"].where(table.index % 4 > 0))
    options = {"engine": "laplace", "categories": [1, 2, 3, 4]}
    shifted = pmo.formula_model("y ~ x + offset(known)", part, thresholds=B, **options)
    plain = pmo.formula_model("y ~ x", part, thresholds=B - 0.7, **options)
    one, other = (pmo.fit(m, semisupervised=True, **QUIET) for m in (shifted, plain))
    np.testing.assert_array_equal(one.unlabeled_codes, other.unlabeled_codes)
    np.testing.assert_allclose(one.objective_value, other.objective_value, rtol=1e-7)
    np.testing.assert_allclose(one.predict_unlabeled(), other.predict_unlabeled(), atol=1e-6)
