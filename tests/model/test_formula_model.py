"""Models from formulas: agreement with other software, with brute force, and with themselves."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy.optimize import minimize

import pmordinal as pmo
from pmordinal.inference.landscape import Landscape
from pmordinal.inference.starting_points import starting_points
from pmordinal.links import LINKS
from tests.repeated import first_fast

QUIET = {"progressbar": False}


@pytest.fixture(scope="module")
def wine():
    return pmo.datasets.wine()


def survey(n=120, seed=0, sine=1.5):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n),
            "income": rng.lognormal(3, 0.5, n),
            "group": pd.Categorical(rng.choice(["a", "b", "c"], n)),
            "judge": rng.integers(0, 8, n),
        }
    )
    shift = {"a": -0.7, "b": 0.0, "c": 0.7}
    f = sine * np.sin(table["age"] / 8) + table["group"].map(shift).astype(float)
    f += 0.8 * rng.normal(size=8)[table["judge"]] + rng.normal(size=n)
    table["rating"] = np.digitize(f, [-1.0, 0.0, 1.0]) + 1
    return table


def contrast(fit, term):
    """Return the difference between the second level and the first of a factor of two, with its sd."""
    table = fit.coefficients().query("term == @term")
    return table["mean"].iloc[1] - table["mean"].iloc[0], 2 * table["sd"].iloc[1]


# other software


def test_mixed_model_of_r(wine):
    """ordinal::clmm(rating ~ temp + contact + (1|judge), link="probit"), version 2022.11."""
    model = pmo.formula_model("rating ~ temperature + contact + (1 | judge)", wine)
    fit = pmo.fit(model, priors=False, **QUIET)
    warm, contact = contrast(fit, "temperature")[0], contrast(fit, "contact")[0]
    assert warm == pytest.approx(1.800, abs=0.1)  # a third of a standard error
    assert contact == pytest.approx(1.048, abs=0.1)
    assert fit.point["1|judge_sd"] == pytest.approx(0.663, abs=0.03)
    treatment = fit.thresholds + (warm + contact) / 2
    np.testing.assert_allclose(treatment, [-0.926, 0.889, 2.468, 3.537], atol=0.1)


def test_mixed_model_of_r_with_logistic_noise(wine):
    model = pmo.formula_model("rating ~ temperature + contact + (1 | judge)", wine, link="logit")
    fit = pmo.fit(model, priors=False, **QUIET)
    warm, contact = contrast(fit, "temperature")[0], contrast(fit, "contact")[0]
    assert warm == pytest.approx(3.063, abs=0.595 / 3)
    assert contact == pytest.approx(1.835, abs=0.513 / 3)
    assert fit.point["1|judge_sd"] == pytest.approx(1.131, abs=0.05)
    treatment = fit.thresholds + (warm + contact) / 2
    np.testing.assert_allclose(treatment, [-1.624, 1.513, 4.229, 6.089], atol=0.25)


@pytest.mark.parametrize("link", ["probit", "logit", "cloglog"])
def test_cumulative_link_model_by_maximum_likelihood(wine, link):
    x = np.column_stack([wine["temperature"] == "warm", wine["contact"] == "yes"]).astype(float)
    y = wine["rating"].cat.codes.to_numpy()

    def negative(theta):
        b = np.concatenate([[-np.inf], np.cumsum([theta[2], *np.exp(theta[3:])]), [np.inf]])
        F = LINKS[link].cdf
        p = F(b[y + 1] - x @ theta[:2]) - F(b[y] - x @ theta[:2])
        return -np.log(np.maximum(p, 1e-300)).sum()

    best = minimize(negative, [1.0, 1.0, -1.0, 0.5, 0.5, 0.5], method="BFGS")
    errors = np.sqrt(np.diagonal(best.hess_inv))[:2]
    model = pmo.formula_model("rating ~ temperature + contact", wine, link=link)
    fit = pmo.fit(model, priors=False, **QUIET)
    ours = [contrast(fit, "temperature")[0], contrast(fit, "contact")[0]]
    np.testing.assert_allclose(ours, best.x[:2], atol=errors.min() / 3)


# terms


def test_terms_of_a_joint_gaussian_by_brute_force():
    """Given sites, the terms and the latent function are jointly Gaussian."""
    table = survey(60)
    formula = "rating ~ income + group + gp(age) + (1 | judge)"
    fit = pmo.fit(pmo.formula_model(formula, table, engine="laplace"), **QUIET)
    posterior, gram = fit.posterior, fit.posterior.gram
    new = table.head(7)
    rows = fit.features.transform(new)
    W = np.diag(1.0 / posterior.precision)
    C_inverse = np.linalg.inv(gram.matrix + W)
    targets = gram.matrix @ posterior.alpha + W @ posterior.alpha  # the sites' means
    found = fit.terms(new)
    for i, (kernel, values) in enumerate(gram.kernel.parts(gram.values)):
        k = kernel.matrix(values, gram.X, rows)[0]
        np.testing.assert_allclose(
            found["mean"][i], k.T @ C_inverse @ targets, rtol=1e-7, atol=1e-9
        )
        S = kernel.matrix(values, rows, rows)[0] - k.T @ C_inverse @ k
        np.testing.assert_allclose(found["sd"][i] ** 2, np.diagonal(S), rtol=1e-6, atol=1e-9)
    total = fit.predict(new, kind="latent")["mean"]
    np.testing.assert_allclose(found["mean"].sum("term"), total, atol=1e-10)
    assert found["term"].values.tolist() == ["income", "group", "gp(age)", "1|judge"]


def test_coefficients_are_in_the_users_units():
    table = survey()
    fit = pmo.fit(pmo.formula_model("rating ~ income + group", table), **QUIET)
    one = fit.coefficients().query("term == 'income'").iloc[0]
    step = pd.concat([table.head(1)] * 2, ignore_index=True)
    step["income"] = [30.0, 31.0]
    latent = fit.predict(step, kind="latent")["mean"].values
    assert one["mean"] == pytest.approx(latent[1] - latent[0], rel=1e-8)
    rescaled = table.assign(income=table["income"] * 1000)
    other = pmo.fit(pmo.formula_model("rating ~ income + group", rescaled), **QUIET)
    again = other.coefficients().query("term == 'income'").iloc[0]
    assert again["mean"] == pytest.approx(one["mean"] / 1000, rel=1e-5)
    levels = fit.coefficients().query("term == 'group'")
    assert levels["level"].tolist() == ["a", "b", "c"]
    assert levels["mean"].sum() == pytest.approx(0.0, abs=1e-9)


def test_a_scaled_column_has_the_coefficient_of_a_standard_deviation(tmp_path):
    table = survey()
    plain = pmo.fit(pmo.formula_model("rating ~ income + gp(age)", table), **QUIET)
    scaled = pmo.fit(pmo.formula_model("rating ~ scale(income) + gp(center(age))", table), **QUIET)
    one, other = plain.coefficients()["mean"][0], scaled.coefficients()["mean"][0]
    assert other == pytest.approx(one * table["income"].std(ddof=0), rel=1e-6)
    new = table.head(3).assign(income=[0.0, 30.0, 50.0])  # scaled by the rows that were fitted
    np.testing.assert_allclose(scaled.predict(new), plain.predict(new), atol=1e-8)
    scaled.save(tmp_path / "fit.nc")
    np.testing.assert_array_equal(pmo.load(tmp_path / "fit.nc").predict(new), scaled.predict(new))


def test_shares_add_up_and_single_out_the_term_that_matters():
    fit = pmo.fit(pmo.formula_model("rating ~ income + gp(age)", survey(200, sine=3.0)), **QUIET)
    shares = fit.variance_shares()
    assert shares.sum() == pytest.approx(1.0)
    assert shares.drop("noise").idxmax() == "gp(age)"
    assert shares["gp(age)"] > 5 * shares["income"]


def test_renamed_and_permuted_levels_predict_the_same():
    table = survey()
    formula = "rating ~ group + (1 | judge)"
    fit = pmo.fit(pmo.formula_model(formula, table), **QUIET)
    renamed = {"a": "zebra", "b": "ant", "c": "middle"}
    other = table.assign(
        group=pd.Categorical(
            table["group"].map(renamed).astype(str), categories=["middle", "zebra", "ant"]
        ),
        judge=100 - table["judge"],
    )
    again = pmo.fit(pmo.formula_model(formula, other), **QUIET)
    np.testing.assert_allclose(fit.predict(table), again.predict(other), atol=1e-6)


@pytest.mark.parametrize("formula", ["rating ~ income + group", "rating ~ income + (1 | group)"])
def test_a_level_that_nobody_has_knows_the_prior_alone(formula):
    table = survey()
    table["group"] = table["group"].cat.add_categories(["d"])
    fit = pmo.fit(pmo.formula_model(formula, table), **QUIET)
    new = table.head(1).assign(group=pd.Categorical(["d"], categories=["a", "b", "c", "d"]))
    sd = float(fit.point.get("1|group_sd", 5.0))
    name = formula.split("+ ")[1].replace("(", "").replace(")", "").replace(" ", "")
    term = fit.terms(new).sel(term=name)
    assert term["sd"].item() == pytest.approx(sd, abs=1e-10)
    assert term["mean"].item() == pytest.approx(0.0, abs=1e-10)


def test_new_raters_are_welcome_and_new_levels_of_a_factor_are_mentioned():
    table = survey()
    fit = pmo.fit(pmo.formula_model("rating ~ group + (1 | judge)", table), **QUIET)
    new = table.head(2).assign(judge=[77, 77])
    sd = fit.terms(new).sel(term="1|judge")["sd"]
    np.testing.assert_allclose(sd, float(fit.point["1|judge_sd"]), atol=1e-10)
    with pytest.warns(UserWarning, match="All that is known of their effects is the prior"):
        fit.predict(table.head(1).assign(group="unheard"))


def test_saved_fits_predict_the_same(tmp_path):
    table = survey()
    formula = "rating ~ np.log(income) + gp(age, by=group) + (1 | judge) + anova(age, income)"
    fit = pmo.fit(pmo.formula_model(formula, table), **QUIET)
    fit.save(tmp_path / "fit.nc")
    again = pmo.load(tmp_path / "fit.nc")
    new = table.head(5).assign(judge=99)
    np.testing.assert_array_equal(again.predict(new), fit.predict(new))
    np.testing.assert_array_equal(again.terms(new)["mean"], fit.terms(new)["mean"])
    assert again.coefficients().equals(fit.coefficients())


@pytest.mark.parametrize("engine", first_fast(["laplace", "sparse", "ep", "exact"], 2))
def test_every_engine(engine):
    table = survey(40)
    fit = pmo.fit(pmo.formula_model("rating ~ income + (1 | judge)", table, engine), **QUIET)
    found = fit.terms()
    mean = fit.predict(table, kind="latent")["mean"]
    np.testing.assert_allclose(found["mean"].sum("term"), mean, atol=1e-8)
    assert np.isfinite(fit.coefficients()["sd"]).all()


def test_hyperparameters_can_be_sampled(wine):
    model = pmo.formula_model("rating ~ temperature + (1 | judge)", wine)
    options = {"draws": 20, "tune": 20, "chains": 1, "compute_convergence_checks": False}
    tree = pm.sample(model=model, random_seed=1, quiet=True, **options, **QUIET)
    assert "1|judge_sd" in tree["posterior"]


def test_gradients_of_hyperparameters():
    table = survey(40)
    formula = "rating ~ income*group + gp(age, income) + (income | judge) + anova(age, income)"
    model = pmo.formula_model(formula, table, pmo.EP(tol=1e-11))
    function = model.logp_dlogp_function(ravel_inputs=True)
    x = pm.blocking.DictToArrayBijection.map(model.initial_point())
    x = pm.blocking.RaveledVars(x.data + 0.1 * np.sin(np.arange(x.data.size)), x.point_map_info)
    _, gradient = function(x)
    for i in range(x.data.size):
        step = np.zeros(x.data.size)
        step[i] = 1e-4
        up, down = (
            function(pm.blocking.RaveledVars(x.data + s * step, x.point_map_info))[0]
            for s in (1, -1)
        )
        assert gradient[i] == pytest.approx((up - down) / 2e-4, rel=1e-4, abs=1e-5)


# what a user says of priors


def test_priors_can_be_said(wine):
    priors = {"temperature": {"sd": 2.0}, "1|judge": {"sd": pm.Exponential.dist(1.0)}}
    formula = "rating ~ temperature + (1 | judge)"
    model = pmo.formula_model(formula, wine, priors=priors)
    assert "exponential" in str(model["1|judge_sd"].owner.op)
    new = wine.head(1).assign(temperature="tepid")
    fit = pmo.fit(model, **QUIET)
    with pytest.warns(UserWarning, match="tepid"):
        assert fit.terms(new)["sd"][0].item() == pytest.approx(2.0)
    fixed = pmo.formula_model(formula, wine, priors={"1|judge": {"sd": 1.0}})
    assert [v.name for v in fixed.free_RVs] == ["thresholds"]


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ({"1|jury": {"sd": 1.0}}, r"priors: term must be one of"),
        ({"1|judge": {"sigma": 1.0}}, "'sd'"),
        ({"1|judge": {"sd": -1.0}}, "positive"),
        ({"1|judge": {"sd": [1.0, 2.0]}}, "one number"),
    ],
)
def test_priors_that_cannot_be(wine, priors, message):
    with pytest.raises(ValueError, match=message):
        pmo.formula_model("rating ~ temperature + (1 | judge)", wine, priors=priors)


# tables


@pytest.mark.parametrize(
    ("formula", "change", "message"),
    [
        ("rating ~ agee", {}, "data has no column 'agee'"),
        ("rating ~ age", {"age": 1.0}, "'age' is constant"),
        ("rating ~ gp(age)", {"age": 1.0}, "'age' is constant"),
        ("rating ~ group", {"group": "a"}, "only one level of 'group'"),
        ("rating ~ (1 | group)", {"group": "a"}, "only one level of 'group'"),
        ("rating ~ gp(group)", {}, "a smooth needs numbers"),
        ("rating ~ np.log(group)", {}, "is not a number"),
        ("rating ~ np.log(age)", {"age": -1.0}, r"np.log\(age\) is nan in 120 row"),
        ("rating ~ rating", {}, "cannot be a predictor"),
        ("group ~ age", {"group": "a"}, "order is not known"),
        ("age ~ income", {}, "not whole"),
        ("rating ~ gp(age, cov='nonsense')", {}, "'matern52'"),
    ],
)
def test_what_a_table_cannot_give(formula, change, message):
    with pytest.raises(ValueError, match=message):
        pmo.formula_model(formula, survey().assign(**change))


def test_collinear_terms_are_mentioned():
    table = survey().assign(months=lambda t: 12 * t["age"])
    with pytest.warns(UserWarning, match="months is a linear combination of 'age'"):
        pmo.formula_model("rating ~ age + months", table)


def test_missing_predictors_are_refused_by_name_and_count_or_left_out_on_request():
    table = survey()
    table.loc[[3, 5], "age"] = np.nan
    table.loc[[5, 7, 9], "income"] = np.nan
    with pytest.raises(ValueError, match=r"'age' \(2\), 'income' \(3\), in 4 of 120 rows"):
        pmo.formula_model("rating ~ age + income", table)
    with pytest.warns(UserWarning, match="4 of 120 rows are left out"):
        model = pmo.formula_model("rating ~ age + income", table, na="drop")
    assert len(model.coords["obs"]) == 116
    assert 3 not in model.coords["obs"]
    assert pmo.formula_model("rating ~ group", table)  # columns that are not named don't matter


@pytest.mark.parametrize(
    "plain, marked",
    [
        ("group + (1 | judge)", "C(group) + (1 | C(judge))"),
        ("gp(age, by=group)", "gp(age, by=C(group))"),
        ("group:judge", "C(group):judge"),
    ],
)
def test_levels_may_be_marked_as_such(plain, marked):
    table = survey(60).assign(judge=lambda t: t["judge"].map(lambda j: f"judge {j}"))
    one, other = (
        pmo.fit(pmo.formula_model(f"rating ~ {f}", table), **QUIET) for f in (plain, marked)
    )
    assert other.log_evidence == pytest.approx(one.log_evidence, abs=1e-9)
    np.testing.assert_allclose(other.predict(table), one.predict(table), atol=1e-8)


def test_one_term_in_two_spellings_is_refused():
    with pytest.raises(ValueError, match=r"'group' and 'C\(group\)' are the same term"):
        pmo.formula_model("rating ~ group + C(group)", survey(30))


def test_missing_labels_are_marginalised():
    table = survey().astype({"rating": float})
    table.loc[[0, 1], "rating"] = np.nan
    fit = pmo.fit(pmo.formula_model("rating ~ age", table), **QUIET)
    assert len(fit.index) == 118
    assert len(fit.unlabeled) == 2


def test_interactions_follow_marginality():
    """x:f without x has a slope for each level; beside x it has deviations that sum to zero."""
    table = survey()
    alone = pmo.fit(pmo.formula_model("rating ~ income:group", table), **QUIET)
    beside = pmo.fit(pmo.formula_model("rating ~ income*group", table), **QUIET)
    slopes = alone.coefficients()["mean"]
    deviations = beside.coefficients().query("term == 'income:group'")["mean"]
    assert abs(deviations.sum()) < 1e-9
    assert abs(slopes.sum()) > 1e-6


def test_polars_tables():
    polars = pytest.importorskip("polars")
    table = survey().astype({"group": str})
    ours = pmo.fit(pmo.formula_model("rating ~ age + group", table), **QUIET)
    theirs = pmo.fit(pmo.formula_model("rating ~ age + group", polars.from_pandas(table)), **QUIET)
    np.testing.assert_allclose(ours.predict(table), theirs.predict(table), atol=1e-12)


# rows that differ


def test_weights_are_repeated_rows():
    table = survey(40)
    counts = np.random.default_rng(0).integers(1, 4, 40)
    repeated = table.loc[table.index.repeat(counts)].reset_index(drop=True)
    formula = "rating ~ income + group + (1 | judge)"
    weighted = pmo.formula_model(formula, table.assign(n=counts), pmo.EP(tol=1e-11), weights="n")
    plain = pmo.formula_model(formula, repeated, pmo.EP(tol=1e-11))
    one, other = (pmo.fit(model, optimize=False, **QUIET) for model in (weighted, plain))
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=1e-8)
    np.testing.assert_allclose(one.predict(table), other.predict(table), atol=1e-8)
    ours, theirs = one.coefficients(), other.coefficients()
    np.testing.assert_allclose(ours["mean"], theirs["mean"], atol=1e-8)
    np.testing.assert_allclose(ours["sd"], theirs["sd"], atol=1e-8)


def test_weights_go_with_their_rows():
    table = survey(40)
    table.loc[0, "income"] = np.nan
    counts = np.arange(1.0, 41.0)
    with pytest.warns(UserWarning, match="1 of 40 rows"):
        model = pmo.formula_model("rating ~ income", table, weights=counts, na="drop")
    fit = pmo.fit(model, **QUIET)
    np.testing.assert_array_equal(fit.by_row.weights, counts[1:])
    with pytest.raises(ValueError, match="one for each of 40 rows"):
        pmo.formula_model("rating ~ group", table, weights=counts[1:])


def test_thresholds_and_noise_of_raters(wine):
    formula = "rating ~ temperature + contact + (1 | judge)"
    model = pmo.formula_model(formula, wine, thresholds_by="judge", noise_by="judge")
    fit = pmo.fit(model, **QUIET)
    assert fit.thresholds.shape == (9, 4)
    assert fit.noise.shape == (9,)
    one = wine.head(1)
    known, new = fit.predict(one), fit.predict(one.assign(judge="new"))
    assert np.abs(known.values - new.values).max() > 1e-3


@pytest.mark.parametrize("by", [None, "judge"])
def test_thresholds_start_where_classes_are_as_frequent_as_they_are(wine, by):
    model = pmo.formula_model("rating ~ temperature", wine, thresholds_by=by)
    landscape = Landscape(model)
    first = starting_points(landscape, 1, {}, np.random.default_rng(0))[0]
    point = landscape.density.named_values(first)
    shares = (wine["rating"].value_counts(sort=False) + 0.5).to_numpy()
    expected = LINKS["probit"].quantile(np.cumsum(shares / shares.sum())[:-1])
    name = "thresholds" if by is None else "thresholds_population"
    np.testing.assert_allclose(point[name], expected, rtol=1e-6)


def test_an_anova_of_many_columns_says_which_pairs_it_leaves_out():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 13)), columns=[f"x{j}" for j in range(13)])
    f = 2 * table["x3"] * table["x11"] + 0.3 * rng.normal(size=80)
    table["y"] = np.digitize(f, [-1, 1])
    with pytest.warns(UserWarning, match="66 most promising of 78 pairs; left out are"):
        model = pmo.formula_model(f"y ~ anova({', '.join(table.columns[:-1])})", table)
    (pairs,) = (v for k, v in model.coords.items() if k.endswith("pair_term"))
    assert "anova(x3, x11)" in pairs
    assert len(pairs) == 66
