"""Every plot draws the numbers it is given, with the labels of the data."""

from functools import partial

import arviz as az
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from arviz_plots import PlotCollection
from matplotlib import pyplot as plt
from matplotlib.cbook import is_math_text
from matplotlib.colors import to_hex, to_rgb
from matplotlib.text import Text
from scipy.stats import beta, norm

import pmordinal as pmo
from pmordinal import plots
from pmordinal.modl.plots import plot_ranking
from pmordinal.plots.base import (
    class_colours,
    class_legend,
    ink_on,
    label_right,
    name_axis,
    spread,
)
from pmordinal.report import training_table
from pmordinal.results.effects import effects

LEVELS = ["mild", "light", "medium", "strong", "harsh"]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()  # layouts and texts that cannot be drawn fail here
    plt.close("all")


@pytest.fixture(scope="module")
def wine():
    data = pmo.datasets.wine()
    data["rating"] = data["rating"].cat.rename_categories(LEVELS)
    return data


@pytest.fixture(scope="module")
def fit(wine):
    columns = ["temperature", "contact", "judge"]
    return pmo.fit(pmo.gp_model(wine[columns], wine["rating"], "expquad"), progressbar=False)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"dose": rng.uniform(0, 4, 60), "age": rng.uniform(20, 60, 60)})
    X["sex"] = rng.choice(["f", "m"], 60)
    f = X["dose"] - 2 + (X["age"] - 40) / 20
    y = np.digitize(f + 0.5 * rng.normal(size=60), [-0.8, 0.8])
    return X, pd.Categorical.from_codes(y, ["low", "middle", "high"], ordered=True)


@pytest.fixture(scope="module")
def numeric(table):
    return pmo.fit(pmo.gp_model(*table, ard=True), progressbar=False)


@pytest.fixture(scope="module")
def sampled(numeric):
    """Return a tree whose hyperparameters vary, as those of MCMC do."""
    tree = numeric.to_datatree(draws=200, seed=1)
    rng = np.random.default_rng(3)
    posterior = tree["posterior"].to_dataset()
    for name, scale in (("thresholds", 0.05), ("lengthscale", 0.3)):
        factor = np.exp(scale * rng.normal(size=posterior[name].shape))
        posterior[name] = posterior[name] * factor
    tree["posterior"] = posterior
    return tree


def lines(ax, style="-"):
    return [
        line for line in ax.lines if line.get_linestyle() == style and line.get_marker() == "None"
    ]


def band(collection):
    """Lower and upper edge of a filled band, by x."""
    points = pd.DataFrame(collection.get_paths()[0].vertices, columns=["x", "y"])
    edges = points.groupby("x")["y"].agg(["min", "max"])
    return edges.index.to_numpy(), edges["min"].to_numpy(), edges["max"].to_numpy()


def segments(collection):
    """Sorted (x, low, high) of vertical lines."""
    return np.array([[s[0][0], s[0][1], s[1][1]] for s in collection.get_segments()])


def texts(ax):
    return [text.get_text() for text in ax.texts]


# palette


def test_palette_is_ordered_and_readable():
    """Luminance rises from class to class, which every kind of colour vision sees; text contrasts by 3 at least."""

    def luminance(colour):
        c = np.array(to_rgb(colour))
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    shades = [luminance(colour) for colour in class_colours(7)]
    assert np.all(np.diff(shades) > 0.015)
    for colour, shade in zip(class_colours(7), shades, strict=True):
        ink = luminance(ink_on(colour))
        assert (max(ink, shade) + 0.05) / (min(ink, shade) + 0.05) > 4.5


def test_labels_are_pushed_apart():
    placed = spread(np.array([0.5, 0.1, 0.51, 0.9, 0.5]), gap=0.1)
    assert np.all(np.diff(np.sort(placed)) > 0.0999)
    np.testing.assert_allclose(placed[[1, 3]], [0.1, 0.9])
    np.testing.assert_allclose(np.mean(placed[[0, 2, 4]]), (0.5 + 0.51 + 0.5) / 3)
    np.testing.assert_allclose(spread(np.zeros(3), gap=0.1), [0.0, 0.1, 0.2])
    np.testing.assert_allclose(spread(np.ones(3), gap=0.1), [0.8, 0.9, 1.0])


# along attributes


def test_categories_stacked(fit):
    by = ["temperature", "contact"]
    data = effects(fit, by, "probs")
    ax = plots.plot_categories(fit, by)
    heights = np.array([[bar.get_height() for bar in bars] for bars in ax.containers])
    np.testing.assert_allclose(heights, data["mean"].to_numpy().reshape(-1, 5).T)
    bottoms = np.array([[bar.get_y() for bar in bars] for bars in ax.containers])
    np.testing.assert_allclose((heights + bottoms)[-1], 1.0)
    ticks = [tick.get_text() for tick in ax.get_xticklabels()]
    assert ticks == ["cold, no", "cold, yes", "warm, no", "warm, yes"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == LEVELS[::-1]
    shown = data["mean"][data["mean"] > 0.06]
    assert sorted(texts(ax)) == sorted(f"{p:.2f}" for p in shown)
    assert ax.get_xlabel() == "temperature, contact" and ax.get_title(loc="left")


def test_categories_with_intervals(fit, numeric):
    data = effects(numeric, "dose", "probs", n_grid=9, at={"sex": "m"})
    ax = plots.plot_categories(numeric, "dose", n_grid=9, at={"sex": "m"})
    for k, name in enumerate(["low", "middle", "high"]):
        part = data[data["class"] == name]
        np.testing.assert_allclose(lines(ax)[k].get_ydata(), part["mean"])
        assert to_hex(lines(ax)[k].get_color()) == class_colours(3)[k]
        x, low, high = band(ax.collections[k])
        np.testing.assert_allclose(x, part["dose"])
        np.testing.assert_allclose(low, part["low"], atol=1e-12)
        np.testing.assert_allclose(high, part["high"], atol=1e-12)
    assert texts(ax) == ["low", "middle", "high"]
    ax = plots.plot_categories(fit, "temperature", stacked=False)
    part = effects(fit, "temperature", "probs").query("`class` == 'light'")
    np.testing.assert_allclose(segments(ax.collections[1])[:, 1:], part[["low", "high"]])


def test_latent_of_a_fit(fit, numeric, sampled):
    ax = plots.plot_latent(fit, "temperature")
    np.testing.assert_allclose([line.get_ydata()[0] for line in lines(ax, "--")], fit.thresholds)
    assert texts(ax) == LEVELS
    heights = [text.get_position()[1] for text in ax.texts]
    assert heights == sorted(heights)
    ax = plots.plot_latent(numeric, "dose", tree=sampled, ci_prob=0.5, n_grid=9)
    data = effects(numeric, "dose", "latent", n_grid=9, ci_prob=0.5)
    np.testing.assert_allclose(lines(ax)[0].get_ydata(), data["mean"])
    _, low, high = band(ax.collections[0])
    np.testing.assert_allclose(low, data["low"])
    np.testing.assert_allclose(high, data["high"])
    b = sampled["posterior"]["thresholds"].values[0]
    drawn = np.concatenate([segments(bar) for bar in ax.collections[1:]])
    np.testing.assert_allclose(drawn[:, 1:], np.quantile(b, [0.25, 0.75], axis=0).T)
    assert np.all(np.diff(drawn[:, 0]) > 0) and drawn[-1, 0] < 1


def test_latent_of_a_tree(sampled, table):
    ax = plots.plot_latent(sampled, "dose")
    points = next(line for line in ax.lines if line.get_marker() == "o")
    np.testing.assert_allclose(points.get_xdata(), table[0]["dose"])
    np.testing.assert_allclose(points.get_ydata(), sampled["posterior"]["f"].values[0].mean(0))
    assert texts(ax) == ["low", "middle", "high"]
    ax = plots.plot_latent(sampled, "sex")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["f", "m"]
    places = next(line for line in ax.lines if line.get_marker() == "o").get_xdata()
    assert np.round(places).tolist() == (table[0]["sex"] == "m").astype(float).tolist()
    with pytest.raises(ValueError, match="not in the tree"):
        plots.plot_latent(sampled, "weight")


def test_regions(numeric, table):
    ax = plots.plot_regions(numeric, ("dose", "age"), at={"sex": "m"}, n_grid=30)
    mesh, contours, points = ax.collections
    x, y = np.meshgrid(np.linspace(*ax.get_xlim(), 30), np.linspace(*ax.get_ylim(), 30))
    grid = pd.DataFrame({"dose": x.ravel(), "age": y.ravel(), "sex": "m"})
    expected = pd.Categorical(numeric.predict(grid, kind="class")).codes
    np.testing.assert_array_equal(np.ravel(mesh.get_array()), expected)
    np.testing.assert_allclose(contours.levels, numeric.thresholds)
    # On the first contour the latent mean is the threshold.
    corner = contours.get_paths()[0].vertices[:5]
    latent = numeric.predict(
        pd.DataFrame(corner, columns=["dose", "age"]).assign(sex="m"), "latent"
    )
    np.testing.assert_allclose(latent["mean"], numeric.thresholds[0], atol=0.02)
    np.testing.assert_allclose(points.get_offsets(), table[0][["dose", "age"]])
    own = [class_colours(3)[k] for k in table[1].codes]
    assert [to_hex(c) for c in points.get_facecolors()] == own
    assert {"low|middle", "middle|high", "at sex = m"} >= set(texts(ax))
    with pytest.raises(ValueError, match="name two of"):
        plots.plot_regions(numeric)
    with pytest.raises(ValueError, match="categorical"):
        plots.plot_regions(numeric, ("dose", "sex"))


def test_effects_per_category(fit, numeric):
    ax = plots.plot_effects(fit, "temperature")
    data = effects(fit, "temperature", "probs", versus="cold").query("temperature == 'warm'")
    drawn = np.concatenate([segments(c) for c in ax.collections])
    np.testing.assert_allclose(drawn[:, 1:], data[["low", "high"]])
    means = [line.get_ydata()[0] for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(means, data["mean"])
    assert abs(sum(means)) < 1e-12
    assert "temperature = cold" in ax.get_ylabel()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == LEVELS
    ax = plots.plot_effects(numeric, "dose", versus=1.0, n_grid=9)
    data = effects(numeric, "dose", "probs", versus=1.0, n_grid=9)
    curves = [line for line in lines(ax) if len(line.get_ydata()) == 9]
    np.testing.assert_allclose(curves[2].get_ydata(), data[data["class"] == "high"]["mean"])


def test_relevance(fit, numeric, sampled):
    ax = plots.plot_relevance(numeric, tree=sampled, ci_prob=0.5)
    expected = numeric.relevance().iloc[::-1]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), expected)
    assert [t.get_text() for t in ax.get_yticklabels()] == list(expected.index)
    ends = np.array([[s[0][0], s[1][0]] for s in ax.collections[1].get_segments()])
    scale = sampled["posterior"]["lengthscale"].values[0]
    bounds = np.quantile(1 / scale**2, [0.25, 0.75], axis=0).T  # standardised attributes
    order = [list(numeric.features.names).index(name) for name in expected.index]
    np.testing.assert_allclose(ends, bounds[order])
    with pytest.raises(ValueError, match="ard=True"):
        plots.plot_relevance(fit)


# engines, annealing, grids


def test_engines():
    columns = {"engine": ["ep", "mcmc"], "elpd_loo": [-80.0, -82.0], "se": [3.0, 4.0]}
    data = pd.DataFrame(
        columns | {"seconds": [0.1, 30.0], "k_hat": [0.2, np.nan]}, index=["ep", "nuts"]
    )
    axes = plots.plot_engines(data)
    assert len(axes) == 3  # without a reference there are no distances
    assert [t.get_text() for t in axes[1].texts] == ["–"]  # NUTS has no k-hat
    np.testing.assert_allclose(axes[0].lines[0].get_xdata(), data["elpd_loo"])
    ends = [[s[0][0], s[1][0]] for s in axes[0].collections[0].get_segments()]
    np.testing.assert_allclose(ends, [[-83, -77], [-86, -78]])
    assert [t.get_text() for t in axes[0].get_yticklabels()] == ["ep", "nuts"]
    assert axes[0].lines[0].get_ydata().tolist() == [1, 0]  # the first on top
    assert axes[2].get_xscale() == "log"
    distrusted = plots.plot_engines(data.assign(k_hat=[9.0, np.nan]))[1]
    filled = [line.get_markerfacecolor() for line in distrusted.lines[:2]]
    assert filled == ["0.1", "white"] and distrusted.lines[1].get_xdata().tolist() == [9.0]
    assert distrusted.lines[2].get_xdata()[0] == 0.7
    below = distrusted.figure.get_supxlabel()
    assert below == "hollow: not converged, or draws whose k-hat is above 0.7"
    assert not axes[0].figure.get_supxlabel()
    kinds = plots.plot_engines(data.assign(loo_hyper=["fixed", "integrated"]))
    assert "log score of 'nuts': hyperparameters are integrated" in kinds[0].figure.get_supxlabel()
    axes = plots.plot_engines(data, ["k_hat"])
    assert axes[0].get_title().startswith("Pareto k-hat")
    with pytest.raises(ValueError, match="columns must be one of"):
        plots.plot_engines(data, ["khat"])
    with pytest.raises(ValueError, match=r"pmo\.compare"):
        plots.plot_engines(pd.DataFrame({"a": [1.0]}))


def test_engines_from_compare(fit):
    table = pmo.compare({"ep": fit, "again": fit}, reference="ep")
    axes = plots.plot_engines(table)
    titles = [ax.get_title() for ax in axes]
    assert len(titles) >= 4 and any("change of a" in t for t in titles)


def test_annealing(fit):
    x = np.linspace(0, 3, 12)
    y = [1, np.nan, 1, 1, np.nan, np.nan, 2, 2, np.nan, 3, 3, np.nan]
    other = pmo.fit(pmo.gp_model(x, y, "expquad"), semisupervised=True, progressbar=False)
    axes = plots.plot_annealing(other)
    for ax, column in zip(axes, ("log_evidence", "match", "switches"), strict=True):
        np.testing.assert_allclose(ax.lines[0].get_xdata(), other.path["weight"])
        np.testing.assert_allclose(ax.lines[0].get_ydata(), other.path[column])
        assert ax.get_xscale() == "log"
    with pytest.raises(TypeError, match="semisupervised=True"):
        plots.plot_annealing(fit)


def test_grid(rng):
    x = rng.uniform(size=300)
    grid = pmo.modl.fit_grid(x, np.where(x < 0.4, x, 1 - x) + 0.05 * rng.normal(size=300))
    assert grid.I > 1 and grid.J > 1
    ax = plots.plot_grid(grid)
    assert texts(ax) == [f"{count:.0f}" for count in np.ravel(grid.counts)]
    share = grid.counts / grid.counts.sum(1, keepdims=True)
    np.testing.assert_allclose(np.reshape(ax.collections[0].get_array(), (grid.J, grid.I)), share.T)
    assert [t.get_text() for t in ax.get_xticklabels()] == [f"{b:.4g}" for b in grid.x_boundaries]
    kinds = np.where(x < 0.4, "a", "b")
    grid = pmo.modl.fit_grid(kinds, x)
    ticks = [t.get_text() for t in plots.plot_grid(grid, counts=False).get_xticklabels()]
    assert ticks == [str(name) for name in grid.part_names()]


# checks


def test_prior(wine):
    model = pmo.gp_model(wine[["temperature"]], wine["rating"], "expquad")
    ax = plots.plot_prior(model, draws=60, seed=1, ci_prob=0.9)
    data = pmo.prior_categories(model, draws=60, seed=1, ci_prob=0.9)
    np.testing.assert_allclose(segments(ax.collections[0])[:, 1:], data[["low", "high"]])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), data["observed"])
    assert [t.get_text() for t in ax.get_xticklabels()] == LEVELS


def test_prior_of_hyperparameters(wine, fit):
    model = pmo.gp_model(wine[["temperature", "contact"]], wine["rating"], ard=True)
    fit = pmo.fit(model, progressbar=False)
    axes = plots.plot_prior(model, fit=fit, draws=60, seed=1)
    titles = [ax.get_title(loc="left") for ax in axes]
    assert titles == ["Class shares under the prior", "lengthscale", "noise", "thresholds"]
    scale, noise, thresholds = axes[1:]
    assert scale.get_xscale() == noise.get_xscale() == "log"
    assert thresholds.get_xscale() == "linear"
    marks = [line.get_xdata()[0] for line in thresholds.lines if line.get_linestyle() == "--"]
    np.testing.assert_allclose(marks, fit.thresholds)
    assert noise.lines[-1].get_xdata()[0] == pytest.approx(float(fit.noise))
    assert scale.get_legend().get_texts()[0].get_text() == "temperature=cold"
    one = plots.plot_prior(model, parameters="noise", draws=60, seed=1)
    assert [ax.get_title(loc="left") for ax in one][1:] == ["noise"]
    assert len(one[1].lines) == 1  # nothing is marked
    with pytest.raises(ValueError, match="lengthscale"):
        plots.plot_prior(model, parameters="nothing", draws=4)
    with pytest.raises(ValueError, match="leave ax out"):
        plots.plot_prior(model, one[0], parameters=True, draws=4)


def test_bars(fit):
    collection = plots.plot_bars(fit, "temperature", seed=2, draws=100)
    assert isinstance(collection, PlotCollection)
    data = pmo.predictive_bars(fit, "temperature", seed=2, draws=100)
    for group in ("cold", "warm"):
        part = data[data["group"] == group]
        ax = collection.get_target("count", {"group": group})
        assert ax.get_title() == group
        np.testing.assert_allclose([bar.get_height() for bar in ax.patches], part["observed"])
        ends = np.array([s for c in ax.collections for s in getattr(c, "get_segments", list)()])
        drawn = ends[:, :, 1] if len(ends) else np.array([line.get_ydata() for line in ax.lines])
        np.testing.assert_allclose(drawn, part[["low", "high"]])
        assert [t.get_text() for t in ax.get_xticklabels()] == LEVELS
    assert plots.plot_bars(fit, seed=2, draws=20).data.sizes["group"] == 1


def test_calibration(fit):
    collection = plots.plot_calibration(fit, seed=2)
    data = pmo.calibration(fit, seed=2)
    assert isinstance(collection, PlotCollection)
    for name, part in data.groupby("threshold", observed=True):
        ax = collection.get_target("probability", {"threshold": name})
        assert ax.get_title() == name
        curve = next(line for line in lines(ax) if len(line.get_xdata()) > 2)
        drawn = np.column_stack([curve.get_xdata(), curve.get_ydata()])
        drawn = drawn[np.isfinite(drawn).all(1)]
        np.testing.assert_allclose(drawn, part[["predicted", "observed"]])
        (diagonal,) = lines(ax, "--")
        np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())


def test_calibration_of_many_rows_draws_some(rng):
    probs, y = rng.dirichlet(np.ones(2), size=1200), rng.integers(0, 2, 1200)
    data = plots.plot_calibration(probs, y, replicates=2).data["probability"]
    drawn = data.sel(plot_axis="x").values.ravel()
    assert drawn.size == 1000 and (np.diff(drawn) > 0).all()
    whole = pmo.calibration(probs, y, replicates=2)["predicted"]
    assert drawn[[0, -1]].tolist() == [whole.min(), whole.max()]


def test_residuals(fit):
    ax = plots.plot_residuals(fit, replicates=3, seed=4, ci_prob=0.9)
    points = next(line for line in ax.lines if line.get_marker() == "o")
    data = pmo.surrogate_residuals(fit, replicates=3, seed=4)
    first = data[data["replicate"] == 0]["residual"]
    np.testing.assert_allclose(points.get_ydata(), np.sort(first))
    np.testing.assert_allclose(points.get_xdata(), norm.ppf((np.arange(72) + 0.5) / 72))
    _, low, high = band(ax.collections[0])
    order = np.arange(1, 73)
    np.testing.assert_allclose(low, norm.ppf(beta.ppf(0.05, order, 73 - order)))
    np.testing.assert_allclose(high, norm.ppf(beta.ppf(0.95, order, 73 - order)))
    assert len(lines(ax)) == 2  # the other replicates
    probs = xr.DataArray(np.full((4, 2), 0.5), dims=("obs", "class"))
    ax = plots.plot_residuals(probs.values, [0, 1, 0, 1], link="logit")
    assert "logit" in ax.get_xlabel()


def test_axes_of_the_user_keep_their_title(fit):
    _, ax = plt.subplots()
    ax.set_title("mine")
    assert plots.plot_latent(fit, "temperature", ax=ax) is ax
    assert ax.get_title() == "mine" and not ax.get_title(loc="left")


# awkward data


AWKWARD = ["$5–$10", r"$\undefined$", "_a^b{"]


@pytest.fixture(scope="module")
def awkward():
    """Return names that look like mathematics, a constant column, an only level, rows with two names."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(
        {r"$\frac$": rng.normal(size=12), "<b>$c$</b>": 3.0, "$g_{$": [r"$\a_{$", ""] * 6},
        index=pd.MultiIndex.from_product([range(4), list("abc")]),
    ).assign(only="o")
    y = pd.Categorical.from_codes(np.arange(12) // 4, AWKWARD, ordered=True)
    model = pmo.gp_model(X, y, ard=True)
    return model, pmo.fit(model, progressbar=False)


def drawn_texts():
    figures = [plt.figure(number) for number in plt.get_fignums()]
    for figure in figures:
        figure.canvas.draw()
    return {t.get_text() for figure in figures for t in figure.findobj(Text) if t.get_text()}


def as_written(names):
    return {name.replace("$", r"\$") for name in names}


def each_plot(model, fit, tree, features):
    numeric, constant, factor, only = (column.name for column in fit.features.columns)
    for feature in features:
        for stacked in (True, False):
            yield partial(plots.plot_categories, fit, feature, stacked=stacked)
        yield partial(plots.plot_effects, fit, feature)
        yield partial(plots.plot_latent, fit, feature)
        yield partial(plots.plot_latent, tree, feature)
    yield partial(plots.plot_categories, fit, [factor, only])
    yield partial(plots.plot_regions, fit, (numeric, constant), n_grid=5)
    yield partial(plots.plot_relevance, fit, tree=tree)
    yield partial(plots.plot_bars, tree, factor)
    yield partial(plots.plot_calibration, fit, replicates=5)
    yield partial(plots.plot_residuals, fit, replicates=2)
    yield partial(plots.plot_prior, model, draws=4)
    yield partial(plots.plot_engines, pmo.compare({"$a$": fit, "$b_{$": fit}, reference="$a$"))
    for feature in (numeric, factor):
        values = training_table(fit)[feature].to_numpy()
        grid = pmo.modl.fit_grid(values, fit.posterior.y, x_name=feature, y_name=r"$\y$")
        yield from (partial(plots.plot_grid, grid), grid.plot, grid.plot_cdf)
    ranking = pmo.modl.rank_predictors(training_table(fit), fit.posterior.y, progressbar=False)
    yield partial(plot_ranking, ranking)


@pytest.mark.parametrize(
    "features",
    [["$g_{$"], pytest.param([r"$\frac$", "<b>$c$</b>", "only"], marks=pytest.mark.slow)],
)
def test_every_plot_of_awkward_data(awkward, features):
    model, fit = awkward
    tree = fit.to_datatree(draws=20, seed=1)
    for draw in each_plot(model, fit, tree, features):
        draw()
        found = drawn_texts()
        assert found and not any(is_math_text(text) for text in found), draw
        plt.close("all")


def test_names_are_shown_as_they_are(awkward):
    fit = awkward[1]
    ax = plots.plot_categories(fit, "$g_{$")
    assert {t.get_text() for t in ax.get_legend().get_texts()} == as_written(AWKWARD)
    assert {t.get_text() for t in ax.get_xticklabels()} == as_written([r"$\a_{$", ""])
    ax = plots.plot_latent(fit, r"$\frac$")
    assert set(texts(ax)) == as_written(AWKWARD)
    assert ax.get_xlabel() == r"\$\frac\$"
    with plt.rc_context({"text.parse_math": False}):
        assert plots.plot_latent(fit, r"$\frac$").get_xlabel() == r"$\frac$"


def test_a_constant_attribute_is_one_place(awkward):
    fit = awkward[1]
    data = effects(fit, "<b>$c$</b>", "probs")
    assert data["<b>$c$</b>"].tolist() == [3.0] * 3
    ax = plots.plot_categories(fit, "<b>$c$</b>")
    heights = [bars[0].get_height() for bars in ax.containers]
    np.testing.assert_allclose(heights, data["mean"])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["3"]
    ax = plots.plot_effects(fit, "only")
    drawn = np.concatenate([segments(c) for c in ax.collections])
    np.testing.assert_allclose(drawn[:, 1:], 0.0, atol=1e-12)


def test_one_row():
    X = pd.DataFrame({"x": [2.5], "g": ["a"]})
    y = pd.Categorical.from_codes([1], ["low", "mid", "high"], ordered=True)
    fit = pmo.fit(pmo.gp_model(X, y, "expquad"), progressbar=False)
    for feature in X:
        for draw in (plots.plot_categories, plots.plot_latent, plots.plot_effects):
            assert draw(fit, feature).get_xlabel() == feature
    plots.plot_calibration(fit, replicates=5)
    plots.plot_residuals(fit, replicates=2)


def test_more_classes_than_there_is_room_for():
    names = [f"class {k}" for k in range(45)]
    _, ax = plt.subplots(layout="constrained")
    label_right(ax, np.linspace(0, 1, 45), names)
    assert texts(ax)[0] == "class 0" and texts(ax)[-1] == "class 44" and len(texts(ax)) < 20
    name_axis(ax, np.arange(45), names, "rating")
    ticks = [t.get_text() for t in ax.get_xticklabels()]
    assert ticks[0] == "class 0" and ticks[-1] == "class 44"
    assert ax.get_xlabel() == f"rating ({len(ticks)} of 45 named)"
    _, ax = plt.subplots(layout="constrained")
    handles = [ax.plot([0, 1], color=colour)[0] for colour in class_colours(45)]
    class_legend(ax, handles, names, reverse=True)
    legend = ax.get_legend()
    said = [t.get_text() for t in legend.get_texts()]
    assert said[0] == "class 44" and said[-1] == "class 0"
    assert legend.get_title().get_text() == f"{len(said)} of 45 classes"
    assert to_hex(legend.get_lines()[0].get_color()) == class_colours(45)[-1]


def test_more_panels_than_arviz_draws(rng):
    probs = rng.dirichlet(np.ones(6), size=12)
    with az.rc_context({"plot.max_subplots": 2}):
        collection = plots.plot_calibration(probs, np.arange(12) % 6, replicates=2)
    assert collection.data["threshold"].values.tolist() == ["0|1", "4|5"]
    assert collection.viz["figure"].item().get_suptitle().endswith("2 of 5 thresholds")


def test_long_names_leave_room():
    _, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
    long = [f"{'very ' * 40}{end}" for end in ("bad", "good")]
    label_right(ax, [0.2, 0.8], long)
    name_axis(ax, np.arange(2), long, "x " * 100)
    assert all(text.endswith("bad") or text.endswith("good") for text in texts(ax))
    drawn_texts()  # matplotlib warns where the axes have no room
    alike = [f"{'very ' * 20}{k}{' long' * 20}" for k in range(2)]
    ranking = pd.DataFrame({"level": [0.3, 0.1], "kind": "numeric"}, index=alike)
    bars = plot_ranking(ranking).patches
    assert [bar.get_width() for bar in bars] == [0.1, 0.3]
    assert len({bar.get_y() for bar in bars}) == 2


def test_regions_where_no_threshold_is():
    X = pd.DataFrame({"a": [1e9] * 4, "b": [1.0, 2.0, 1.0, 2.0]})
    y = pd.Categorical.from_codes([0, 0, 0, 0], ["low", "high"], ordered=True)
    fit = pmo.fit(pmo.gp_model(X, y, "expquad"), progressbar=False)
    ax = plots.plot_regions(fit, n_grid=5)
    assert np.diff(ax.get_xlim()) > 0 and texts(ax) == []
    with pytest.raises(ValueError, match="one for each axis, got"):
        plots.plot_regions(fit, ("a", "a"))
    with pytest.raises(ValueError, match="n_grid"):
        plots.plot_regions(fit, n_grid=1)
    with pytest.raises(TypeError, match="at must map"):
        plots.plot_regions(fit, at="typical")
    fit = pmo.fit(pmo.gp_model(X[["b"]], y, "expquad"), optimize=False, progressbar=False)
    with pytest.raises(ValueError, match="the fit has only"):
        plots.plot_regions(fit)


def test_what_is_no_fit_is_refused(fit, sampled):
    stack = pmo.stack({"a": fit, "b": fit})
    for draw in (plots.plot_categories, plots.plot_effects):
        with pytest.raises(TypeError, match="OrdinalFit, got DataTree"):
            draw(sampled, "dose")
        with pytest.raises(TypeError, match="got Stack: pass one of its fits"):
            draw(stack, "temperature")
    for draw in (plots.plot_regions, plots.plot_relevance):
        with pytest.raises(TypeError, match="OrdinalFit, got DataTree"):
            draw(sampled)
    with pytest.raises(TypeError, match="must be a DataTree or a fit"):
        plots.plot_bars(stack)
    with pytest.raises(TypeError, match=r"must be a pm.Model, or a DataTree by .*, got .*Stack"):
        plots.plot_prior(stack)
    with pytest.raises(TypeError, match=r"table must be what pmo.compare returned, got None"):
        plots.plot_engines(None)
    with pytest.raises(TypeError, match=r"grid must be a Grid, .*, got None"):
        plots.plot_grid(None)
    with pytest.raises(ValueError, match="combinations need a fit"):
        plots.plot_latent(sampled, ["dose", "age"])
    with pytest.raises(ValueError, match="lacks constant_data/X"):
        plots.plot_latent(sampled.drop_nodes("constant_data"), "dose")


def test_engines_without_times():
    data = pd.DataFrame({"engine": ["ep", "b"], "seconds": [np.nan, np.nan]}, index=["ep", "b"])
    assert plots.plot_engines(data)[0].get_xscale() == "linear"
    assert plots.plot_engines(data.assign(seconds=[0.0, 2.0]))[0].get_xscale() == "linear"


@pytest.fixture(scope="module")
def many():
    """Twenty raters, seven classes: what crowds a picture."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"rater": [f"rater {k}" for k in range(20)] * 4, "dose": rng.normal(size=80)})
    X["age"] = rng.uniform(20, 80, 80)
    y = np.digitize(X["dose"], [-1.2, -0.7, -0.2, 0.2, 0.7, 1.2])
    fixed = {"lengthscale": 2.0, "noise": 0.5, "thresholds": [-1.5, -0.9, -0.3, 0.2, 0.8, 1.4]}
    return pmo.fit(pmo.gp_model(X, y, engine="laplace", **fixed), progressbar=False)


def test_many_levels_stay_readable(many):
    ax = plots.plot_categories(many, "rater")
    assert not ax.texts  # no numbers that collide
    assert ax.figure.get_size_inches()[0] > 8 and len(ax.get_xticklabels()) == 20
    assert plots.plot_effects(many, "rater").figure.get_size_inches()[0] > 12


def test_axes_of_any_figure_say_the_level_of_the_bands_and_where_the_data_are(many):
    dose = many.features.untransform(many.posterior.gram.X)[:, many.features.names.index("dose")]
    for draw in (plots.plot_categories, plots.plot_effects, plots.plot_latent):
        own = plt.subplots()[1]
        ax = draw(many, "dose", ax=own, ci_prob=0.8)
        assert "80 % intervals" in ax.get_ylabel()
        (rug,) = [line for line in ax.lines if line.get_gid() == "rug"]
        assert sorted(rug.get_xdata()) == pytest.approx(sorted(dose))
    stacked = plots.plot_categories(many, "rater")
    assert "intervals" not in stacked.get_ylabel()  # it has none
    assert not [line for line in stacked.lines if line.get_gid() == "rug"]
    title = plots.plot_bars(many, draws=20, ci_prob=0.8).viz["figure"].item().get_suptitle()
    assert "80 % intervals" in title
    title = plots.plot_calibration(many, ci_prob=0.8).viz["figure"].item().get_suptitle()
    assert "80 % intervals" in title
    text = plots.plot_residuals(many, ci_prob=0.8).get_legend().get_texts()[0].get_text()
    assert text.startswith("80 % intervals")


def test_long_names_that_differ_in_the_middle_are_told_apart():
    names = [f"rater number {k} of the panel of this year" for k in range(1, 22)]
    ax = plt.subplots()[1]
    name_axis(ax, np.arange(21), names, "rater")
    said = [label.get_text() for label in ax.get_xticklabels()]
    assert len(set(said)) == len(said) and said[0] == "…1" and said[-1] == "…21"


def test_numbers_in_bars_are_left_out_where_they_would_collide(many):
    wide, narrow = (plt.subplots(figsize=(width, 3))[1] for width in (30, 5))
    assert plots.plot_categories(many, "rater", ax=wide).texts
    assert not plots.plot_categories(many, "rater", ax=narrow).texts


def test_regions_say_what_they_hold_fixed(many):
    ax = plots.plot_regions(many, ("dose", "age"), at={"rater": "rater 3"}, n_grid=10)
    assert [t.get_text() for t in ax.texts if t.get_text().startswith("at ")] == [
        "at rater = rater 3"
    ]
