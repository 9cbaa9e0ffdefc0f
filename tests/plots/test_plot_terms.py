"""A panel a term: curves, maps, points and sorted levels show the posterior of each term, in the user's units."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from matplotlib import pyplot as plt
from scipy.stats import norm

import pmordinal as pmo
from pmordinal.plots import plot_terms
from pmordinal.results.term_shapes import Moments, axes_of
from pmordinal.results.terms import parts

FORMULA = (
    "rating ~ income + region + sex:region + income:sex + gp(age) + gp(age, by=sex) + gp(age, income) "
    "+ (1 | judge) + (income | judge)"
)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()  # layouts and texts that cannot be drawn fail here
    plt.close("all")


@pytest.fixture(scope="module")
def survey():
    rng = np.random.default_rng(5)
    n = 60
    data = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, n),
            "income": np.exp(rng.normal(3, 0.5, n)),
            "sex": rng.choice(["f", "m"], n),
            "region": rng.choice(["$north$", "east", "west"], n),
            "judge": rng.integers(1, 6, n),
        }
    )
    f = np.sin(data["age"] / 8) + 0.5 * (data["sex"] == "m") + 0.3 * (data["judge"] - 3)
    data["rating"] = np.digitize(f + 0.5 * rng.normal(size=n), [-0.5, 0.8])
    return data


def fitted(formula, data):
    """Return a fit at its first hyperparameters: pictures need no optimum."""
    return pmo.fit(pmo.formula_model(formula, data), optimize=False, progressbar=False)


@pytest.fixture(scope="module")
def fit(survey):
    return fitted(FORMULA, survey)


def panel(fit, name, **options):
    return plot_terms(fit, name, **options)[0]


def curve(ax):
    return max(ax.lines, key=lambda line: len(line.get_xdata())).get_xydata()


def band(collection):
    points = pd.DataFrame(collection.get_paths()[0].vertices, columns=["x", "y"])
    edges = points.groupby("x")["y"].agg(["min", "max"])
    return edges["min"].to_numpy(), edges["max"].to_numpy()


def dots(ax):
    return [line.get_xydata() for line in ax.lines if line.get_marker() == "o"]


def moments(fit, name, **columns):
    """Return the term at rows with these values, and 0 or the first level elsewhere, by `fit.terms`."""
    m = len(next(iter(columns.values())))
    rows = {
        c.name: np.repeat(c.levels[0] if c.levels else 0.0, m).astype(object if c.levels else float)
        for c in fit.features.given
    }
    found = fit.terms(pd.DataFrame(rows | columns)).sel(term=name)
    return found["mean"].values, found["sd"].values


def test_a_smooth_is_a_curve_over_the_data(fit, survey):
    ax = panel(fit, "gp(age)", n_grid=7, ci_prob=0.9)
    x = np.linspace(survey["age"].min(), survey["age"].max(), 7)
    mean, sd = moments(fit, "gp(age)", age=x)
    drawn = next(line for line in ax.lines if len(line.get_xdata()) == 7)
    np.testing.assert_allclose(drawn.get_xdata(), x)
    np.testing.assert_allclose(drawn.get_ydata(), mean, atol=1e-10)
    low, high = band(ax.collections[0])
    q = norm.ppf(0.95)
    np.testing.assert_allclose(low, mean - q * sd, atol=1e-7)
    np.testing.assert_allclose(high, mean + q * sd, atol=1e-7)
    ticks = next(line for line in ax.lines if line.get_marker() == "|")
    np.testing.assert_allclose(np.sort(ticks.get_xdata()), np.sort(survey["age"]))
    share = fit.variance_shares()["gp(age)"]
    assert ax.get_title(loc="left").startswith("gp(age) · ")
    assert abs(float(ax.get_title(loc="left").split()[-2]) - 100 * share) < 0.5
    assert ax.get_xlabel() == "age"


def test_a_smooth_by_a_factor_is_a_curve_a_level(fit):
    ax = panel(fit, "gp(age, by=sex)", n_grid=5)
    drawn = [line for line in ax.lines if len(line.get_xdata()) == 5]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["f", "m"]
    for line, level in zip(drawn, "fm", strict=True):
        mean, _ = moments(fit, "gp(age, by=sex)", age=line.get_xdata(), sex=np.repeat(level, 5))
        np.testing.assert_allclose(line.get_ydata(), mean, atol=1e-10)


def test_a_linear_effect_is_a_line_with_its_slope(fit, survey):
    points = curve(panel(fit, "income"))
    table = fit.coefficients().set_index("term")
    slope = np.diff(points[:, 1]) / np.diff(points[:, 0])
    np.testing.assert_allclose(slope, table.loc["income", "mean"], rtol=1e-8)
    lines = panel(fit, "income:sex", n_grid=9).lines
    slopes = [np.polyfit(*line.get_data(), 1)[0] for line in lines if len(line.get_xdata()) == 9]
    np.testing.assert_allclose(slopes, table.loc["income:sex", "mean"], rtol=1e-6)


def test_factors_are_points(fit):
    table = fit.coefficients().set_index("term")
    ax = panel(fit, "region")
    np.testing.assert_allclose(dots(ax)[0][:, 1], table.loc["region", "mean"])
    bars = np.array([segment[:, 1] for segment in ax.collections[0].get_segments()])
    np.testing.assert_allclose(bars, table.loc["region", ["lower", "upper"]])
    assert [t.get_text() for t in ax.get_xticklabels()] == [r"\$north\$", "east", "west"]
    ax = panel(fit, "sex:region")
    drawn = np.stack([points[:, 1] for points in dots(ax)], axis=1)  # sex, region
    np.testing.assert_allclose(drawn.ravel(), table.loc["sex:region", "mean"])
    assert ax.get_xlabel() == "sex" and ax.get_legend().get_title().get_text() == "region"


@pytest.mark.parametrize("name", ["1|judge", "income|judge"])
def test_groups_are_sorted(fit, name):
    ax = panel(fit, name)
    table = fit.coefficients().query("term == @name").sort_values("mean")
    np.testing.assert_allclose(dots(ax)[0][:, 0], table["mean"])
    bars = np.array([segment[:, 0] for segment in ax.collections[0].get_segments()])
    np.testing.assert_allclose(bars, table[["lower", "upper"]])
    assert [t.get_text() for t in ax.get_yticklabels()] == table["level"].tolist()
    unit = ", for one unit of income" if name[0] != "1" else ""
    assert ax.get_ylabel() == "judge" + unit


def test_two_numbers_are_a_map(fit, survey):
    ax = panel(fit, "gp(age, income)", n_grid=8)
    part = next(p for p in parts(fit) if p[0].name == "gp(age, income)")
    first, second = axes_of(fit, part[0], 4)
    x, z = np.repeat(first.values, 4), np.tile(second.values, 4)
    rows = np.zeros((16, len(fit.features.names)))
    rows[:, first.where], rows[:, second.where] = (
        np.repeat(first.codes, 4)[:, None],
        np.tile(second.codes, (4, 1)),
    )
    mean, _ = moments(fit, "gp(age, income)", age=x, income=z)
    place = [term.name for term in fit.model_terms].index(part[0].name)
    np.testing.assert_allclose(Moments(fit, place, None).means(rows), mean, atol=1e-10)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "income")
    np.testing.assert_allclose(dots(ax)[0], survey[["age", "income"]])
    assert ax.collections  # filled contours


def test_the_largest_terms_come_first_and_the_others_are_named(fit):
    axes = plot_terms(fit, most=3, n_grid=8)
    shares = fit.variance_shares().iloc[:-1].sort_values(ascending=False)
    shown = [ax.get_title(loc="left").split(" · ")[0] for ax in axes]
    assert shown == shares.index[:3].tolist()
    said = axes[0].get_figure()._suptitle.get_text()
    assert said.startswith(f"The largest 3 of {len(shares)} terms") and shares.index[3] in said
    axes = plot_terms(fit, n_grid=8, most=20)
    assert len(axes) == len(shares) and axes[0].get_figure()._suptitle is None
    heights = {ax.get_ylim() for ax in axes if ax.get_ylabel().startswith("effect")}
    assert len(heights) == 1  # one scale for all curves and points
    with pytest.raises(ValueError, match="terms must be one of"):
        plot_terms(fit, "gp(wage)")


def test_a_term_of_many_columns_is_averaged_over_the_data(survey):
    """The mean and sd of an average come from the joint posterior of its rows, here computed in full."""
    fit = pmo.fit(
        pmo.gp_model(survey[["age", "income", "region"]], survey["rating"], "expquad"),
        optimize=False,
        progressbar=False,
    )
    (ax,) = plot_terms(fit, n_grid=5, ci_prob=0.9)
    name = ax.get_xlabel().removesuffix(", others as in the data")
    assert name in ("age", "income", "region")
    j = fit.features.names.index(name)
    K, W = fit.posterior.gram.matrix, fit.posterior.precision
    (line,) = (line for line in ax.lines if len(line.get_xdata()) == 5)
    low, high = band(ax.collections[0])
    for i, value in enumerate(line.get_xdata()):
        rows = fit.posterior.gram.X.copy()
        rows[:, j] = (value - fit.features.center[j]) / fit.features.scale[j]
        k = fit.posterior.gram.cross(rows)
        kernel, values = fit.posterior.gram.kernel, fit.posterior.gram.values
        prior = kernel.matrix(values, rows, rows)[0]
        posterior = prior - k.T @ np.linalg.solve(K + np.diag(1 / W), k)
        np.testing.assert_allclose(line.get_ydata()[i], (k.T @ fit.posterior.alpha).mean())
        sd = (high[i] - low[i]) / (2 * norm.ppf(0.95))
        np.testing.assert_allclose(sd, np.sqrt(posterior.mean()), rtol=1e-6)


def test_a_sum_of_covariances_has_terms_too(survey):
    cov = pm.gp.cov.Linear(1, c=0.0) + 2.0 * pm.gp.cov.ExpQuad(1, ls=0.5)
    model = pmo.gp_model(survey[["age"]], survey["rating"], cov)
    axes = plot_terms(pmo.fit(model, optimize=False, progressbar=False), n_grid=6)
    titles = sorted(ax.get_title(loc="left").split(" · ")[0] for ax in axes)
    assert titles == ["Linear 1", "Product 2"]
    with pytest.raises(TypeError, match="fit must be an OrdinalFit"):
        plot_terms(model)


def test_many_levels_are_counted_instead_of_named(survey):
    data = survey.assign(town=[f"town {i % 30}" for i in range(len(survey))])
    fit = fitted("rating ~ (1 | town) + age:town + anova(age, income) + (1 | town:sex)", data)
    axes = {ax.get_title(loc="left").split(" · ")[0]: ax for ax in plot_terms(fit, n_grid=8)}
    assert axes["1|town"].get_ylabel() == "30 levels of town"
    assert [t.get_text() for t in axes["age:town"].texts] == ["30 levels of town"]
    assert axes["age:town"].get_legend() is None
    there = len(data[["town", "sex"]].drop_duplicates())
    assert axes["1|town:sex"].get_ylabel() == f"{there} levels of town:sex"
    assert {"anova(age)", "anova(income)", "anova(age, income)"} < set(axes)


def test_products_of_three_columns_are_points(survey):
    fit = fitted("rating ~ sex:region:age + sex:age:income + judge:age:income", survey)
    axes = {ax.get_title(loc="left").split(" · ")[0]: ax for ax in plot_terms(fit)}
    labels = [axes[term.name].get_xlabel() for term in fit.model_terms]
    expected = ["sex:region, at one sd of age", "sex, at one sd of age, income"]
    assert labels == [*expected, "one sd of judge, age, income"]
    table = fit.coefficients().set_index("term").loc["sex:region:age"]
    sd = survey["age"].std(ddof=0)
    np.testing.assert_allclose(dots(axes["sex:region:age"])[0][:, 1], sd * table["mean"])


def test_a_column_may_be_called_noise(survey):
    data = survey.rename(columns={"income": "noise"})
    fit = fitted("rating ~ noise + sex", data)
    shares = fit.variance_shares()
    assert shares.index.tolist() == ["noise", "sex", "noise"]
    np.testing.assert_allclose(shares.sum(), 1.0)
    assert len(plot_terms(fit, n_grid=8)) == 2
