"""Thresholds and noise by group, and weights, in the factories and all that follows from them."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from pytensor.compile.mode import Mode

import pmordinal as pmo
from pmordinal.cli import main
from pmordinal.data.by_row import ByRow, read
from pmordinal.data.groups import Groups
from pmordinal.inference.density import Density
from pmordinal.likelihood import OrdinalLikelihood, Rows
from tests.repeated import first_fast

PYTHON = Mode(linker="py", optimizer="fast_compile")  # one evaluation each: no compilation
FIXED = {"lengthscale": 0.8, "noise": 0.6}


@pytest.fixture(scope="module")
def survey():
    rng = np.random.default_rng(4)
    n = 60
    raters = pd.Categorical(rng.choice(list("abc"), n), categories=list("abcd"))
    X = pd.DataFrame({"x": rng.normal(size=n), "rater": raters, "site": rng.choice([1, 2], n)})
    shift = np.array([0.0, 0.9, -0.7])[raters.codes]
    scale = np.where(X["site"] == 1, 0.3, 1.2)
    z = np.sin(2 * X["x"]) * 1.5 + scale * rng.normal(size=n)
    y = (z.to_numpy()[:, None] > np.array([-0.7, 0.5]) + shift[:, None]).sum(1)
    return X, y


@pytest.fixture(scope="module")
def grouped(survey):
    X, y = survey
    return pmo.fit(
        pmo.gp_model(X, y, "expquad", thresholds_by="rater", noise_by="site"), progressbar=False
    )


@pytest.fixture(scope="module")
def counted(survey):
    """Distinct rows with a count, and the rows repeated."""
    X, y = survey
    w = np.random.default_rng(1).integers(1, 4, len(y))
    again = np.repeat(np.arange(len(y)), w)
    return X.assign(count=w), y, X.iloc[again].reset_index(drop=True), y[again], w


def value_and_gradient(model, x=None):
    density = Density(model)
    function = density.with_gradient(density.problem)
    x = density.ravel(density.initial).data.astype(float) if x is None else x
    return function, x


@pytest.mark.parametrize("engine", first_fast(["ep", "exact", "sparse", "laplace", "plsor"], 3))
def test_gradient_of_the_whole_model(survey, engine):
    X, y = survey
    if engine == "sparse":
        engine = pmo.SparseADF(basis=tuple(range(0, 60, 4)))
    elif engine == "exact":
        engine = pmo.Exact(draws=100, standard_error=np.inf)
    else:
        engine = {"ep": pmo.EP(tol=1e-10), "laplace": pmo.Laplace(tol=1e-10)}.get(engine, engine)
    model = pmo.gp_model(X, y, "expquad", engine=engine, thresholds_by="rater", noise_by="site")
    function, x = value_and_gradient(model)
    rng = np.random.default_rng(0)
    x, direction, h = x + 0.2 * rng.normal(size=x.size), rng.normal(size=x.size), 1e-5
    function(x)  # what the engine holds fixed is chosen here
    up, down = function(x + h * direction)[0], function(x - h * direction)[0]
    assert function(x)[1] @ direction == pytest.approx((up - down) / (2 * h), rel=2e-4, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ep", "laplace", "plsor", "sparse"])
def test_all_fits_find_the_severe_and_the_noisy(survey, engine):
    X, y = survey
    model = pmo.gp_model(X, y, "expquad", engine=engine, thresholds_by="rater", noise_by="site")
    fit = pmo.fit(model, progressbar=False)
    assert fit.status.converged
    means = fit.thresholds.mean(1)
    assert means[1] > means[0] > means[2]
    assert fit.noise[1] > fit.noise[0]
    assert fit.thresholds.shape == (4, 2)
    assert fit.noise.shape == (2,)
    # nobody has seen d: at the mode she is of the population
    np.testing.assert_allclose(fit.thresholds[3], fit.point["thresholds_population"], atol=1e-3)


def test_predictions_take_the_group_of_each_row(grouped):
    new = pd.DataFrame({"site": [1, 2, 1, 7], "rater": ["b", "a", "new", "d"], "x": 0.3})
    probs = grouped.predict(new).values
    mean, sd = (grouped.predict(new, "latent")[k].values for k in ("mean", "sd"))
    population = grouped.point["thresholds_population"]
    b = [grouped.thresholds[1], grouped.thresholds[0], population, grouped.thresholds[3]]
    s = [*grouped.noise, grouped.noise[0], grouped.point["noise_population"]]
    for i in range(4):
        one = OrdinalLikelihood(b[i], s[i])
        np.testing.assert_allclose(
            probs[i], one.probabilities(mean[i : i + 1], sd[i : i + 1] ** 2)[0], atol=1e-12
        )
    as_float = new.assign(site=new["site"].astype(float))
    np.testing.assert_array_equal(grouped.predict(as_float).values, probs)
    with pytest.raises(ValueError, match="noise_by: 'site' must be a column of the table Xnew"):
        grouped.predict(new[["x", "rater"]])
    with pytest.raises(ValueError, match="Xnew column 'rater' has 1 missing"):
        grouped.predict(new.assign(rater=["b", None, "a", "a"]))


def test_names_of_groups_do_not_matter(survey):
    X, y = survey
    other = X.assign(
        rater=pd.Categorical(X["rater"].map({"a": "Z", "b": "K", "c": "A"}).astype(str))
    )
    names = {"rater": pd.Categorical(X["rater"].astype(str))}
    fits = [
        pmo.fit(pmo.gp_model(t, y, "expquad", thresholds_by="rater", **FIXED), progressbar=False)
        for t in (X.assign(**names), other)
    ]
    assert fits[0].objective_value == pytest.approx(fits[1].objective_value, abs=1e-4)
    np.testing.assert_allclose(
        fits[0].predict(X.assign(**names).head(5)), fits[1].predict(other.head(5)), atol=1e-3
    )


def test_one_group_is_none(survey):
    X, y = survey
    one = X[["x"]].assign(all="same")
    model = pmo.gp_model(one, y, "expquad", thresholds_by="all", noise_by="all")
    plain = pmo.gp_model(X[["x"]], y, "expquad")
    at = {
        "lengthscale_log__": np.log(0.7),
        "noise_population_log__": np.log(0.5),
        "thresholds_population_ordered__": np.array([0.1, 0.3]),
        "thresholds_z": np.zeros((1, 2)),
        "noise_z": np.zeros(1),
        "thresholds_shift_sd_log__": 0.0,
        "thresholds_gap_sd_log__": 0.0,
        "noise_sd_log__": 0.0,
    }
    same = {
        k.replace("_population", ""): v
        for k, v in at.items()
        if k in ("lengthscale_log__", "noise_population_log__", "thresholds_population_ordered__")
    }
    a = model.compile_logp(vars=[model["y"]])(at)
    b = plain.compile_logp(vars=[plain["y"]])(same)
    assert a == pytest.approx(b, abs=1e-9)


@pytest.mark.parametrize(
    "engine", ["ep", *(pytest.param(name, marks=pytest.mark.slow) for name in ("laplace", "plsor"))]
)
def test_weights_are_repeated_rows(counted, engine):
    X, y, X_again, y_again, w = counted
    engine = {"ep": pmo.EP(tol=1e-12), "laplace": pmo.Laplace(tol=1e-12)}.get(engine, engine)
    options = {"engine": engine, "thresholds_by": "rater", "noise_by": "site"}
    a = pmo.gp_model(X, y, "expquad", weights="count", **options)
    b = pmo.gp_model(X_again, y_again, "expquad", **options)
    f, x = value_and_gradient(a)
    g, _ = value_and_gradient(b)
    x = x + 0.1 * np.random.default_rng(0).normal(size=x.size)
    (value, gradient), (again, gradient_again) = f(x), g(x)
    assert value == pytest.approx(again, abs=1e-8)
    np.testing.assert_allclose(gradient, gradient_again, atol=1e-6)
    by_array = pmo.gp_model(X.drop(columns="count"), y, "expquad", weights=w, **options)
    assert value_and_gradient(by_array)[0](x)[0] == value


def test_fits_and_checks_with_weights(counted, tmp_path):
    X, y, X_again, y_again, w = counted
    options = {"thresholds_by": "rater", **FIXED}
    a = pmo.fit(pmo.gp_model(X, y, "expquad", weights="count", **options), progressbar=False)
    b = pmo.fit(pmo.gp_model(X_again, y_again, "expquad", **options), progressbar=False)
    # the objectives agree to rounding; the optimiser stops within 1e-7 of n of their optimum
    assert a.log_evidence == pytest.approx(b.log_evidence, abs=2e-3)
    np.testing.assert_allclose(a.predict(X.head(6)), b.predict(X.head(6)), atol=5e-3)
    left, right = pmo.loo(a), pmo.loo(b)
    for name in ("elpd", "se", "p"):
        assert getattr(left, name) == pytest.approx(getattr(right, name), rel=1e-2)
    assert left.n_data_points == right.n_data_points == w.sum()
    assert f"{w.sum()} in all" in repr(a)
    tables = [pmo.calibration(f).drop(columns=["low", "high"]) for f in (a, b)]  # of random draws
    pd.testing.assert_frame_equal(*tables, atol=2e-2, rtol=2e-2)
    one, two = (f.effects("x", "rank", n_grid=3, rows=1000)["mean"] for f in (a, b))
    np.testing.assert_allclose(one, two, atol=1e-2)
    tree = a.to_datatree(20, seed=1)
    assert tree["constant_data"]["weights"].values.tolist() == w.tolist()
    log_lik = tree["log_likelihood"]["y"].values
    stats = tree["sample_stats"]
    # log_q is N(f; 0, K) times Gaussian sites: what is left of log_p is the weighted likelihood
    prior = stats["log_p"].values - log_lik @ w
    assert np.all(np.isfinite(prior))
    a.save(tmp_path / "fit.nc")
    again = pmo.load(tmp_path / "fit.nc")
    assert again.posterior.loo == pytest.approx(a.posterior.loo, abs=1e-8)
    half = pmo.fit(
        pmo.gp_model(X, y, "expquad", weights=0.5 * w, **{**options, "thresholds_by": None}),
        progressbar=False,
    )
    with pytest.raises(ValueError, match="not whole numbers"):
        pmo.calibration(half)
    with pytest.raises(ValueError, match="a report counts rows"):
        pmo.write_report(half, tmp_path / "report.html")


def test_fits_with_groups_on_disk_and_in_trees(survey, grouped, tmp_path):
    X, y = survey
    for name in ("fit.nc", "fit.zarr"):
        if name.endswith("zarr"):
            pytest.importorskip("zarr")
        grouped.save(tmp_path / name)
        again = pmo.load(tmp_path / name)
        new = X.head(5).assign(rater=["a", "b", "c", "d", "new"])
        np.testing.assert_array_equal(again.predict(new), grouped.predict(new))
        np.testing.assert_array_equal(again.thresholds, grouped.thresholds)
        assert again.posterior.loo == pytest.approx(grouped.posterior.loo, abs=1e-7)
    tree = grouped.to_datatree(50, seed=1)
    posterior = tree["posterior"]
    assert posterior["thresholds"].dims == ("chain", "draw", "rater", "threshold")
    assert posterior["noise"].dims == ("chain", "draw", "site")
    assert posterior["rater"].values.tolist() == list("abcd")
    f = posterior["f"].values[0]
    b = grouped.thresholds[X["rater"].cat.codes.to_numpy()]
    s = grouped.noise[(X["site"] == 2).to_numpy().astype(int)]
    rows = Rows(np.arange(60), np.arange(60))
    truth = OrdinalLikelihood(b, s, "probit", rows).log_prob(y[:, None], f.T).value.T
    np.testing.assert_allclose(tree["log_likelihood"]["y"].values[0], truth, atol=1e-10)
    shape = tree["posterior_predictive"]["y"].shape
    assert shape == (1, 50, 60)
    at_rows = pmo.calibration(tree, leave_one_out=False, seed=0)
    assert at_rows["observed"].between(0, 1).all()
    assert len(pmo.calibration(grouped)) > 0
    assert "rater=b: " in repr(grouped)
    gaussian = grouped.to_datatree(5, hyper="gaussian", seed=1)
    assert gaussian["posterior"]["thresholds"].shape == (1, 5, 4, 2)


def test_command_line_predicts_by_group(survey, grouped, tmp_path):
    X, _ = survey
    grouped.save(tmp_path / "fit.nc")
    new = X.head(4).assign(rater=["a", "b", "new", "d"])
    new.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    assert not main(
        ["predict", str(tmp_path / "fit.nc"), str(tmp_path / "new.csv"), "--out", str(out)]
    )
    found = pd.read_csv(out).filter(like="P(").to_numpy()
    np.testing.assert_allclose(found, grouped.predict(new).values, atol=1e-6)


def test_effects_and_plots_are_those_of_the_population(grouped):
    import matplotlib.pyplot as plt

    table = grouped.effects("x", "rank", n_grid=3, at="typical")
    row = pd.DataFrame({"x": table["x"], "rater": "nobody", "site": "nowhere"})
    np.testing.assert_allclose(table["mean"], grouped.predict(row, "rank"), atol=1e-10)
    assert pmo.plots.plot_latent(grouped, "x") is not None
    plt.close("all")


def test_sampled_hyperparameters(survey):
    X, y = survey
    model = pmo.gp_model(X, y, thresholds_by="rater", noise_by="site", lengthscale=0.8)
    prior = pm.sample_prior_predictive(4, model=model, random_seed=1)
    assert prior["prior_predictive"]["y"].shape == (1, 4, 60)
    given = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    new = X.head(3).assign(rater=["d", "new", "a"])
    tree = pmo.sample_posterior(model, given, Xnew=new, seed=2, progressbar=False)
    assert tree["predictions"]["y"].shape == (1, 4, 3)
    assert tree["posterior"]["thresholds"].dims == ("chain", "draw", "rater", "threshold")
    assert list(tree["posterior"]["site"].values) == [1, 2]
    draw = given["posterior"].isel(chain=0, draw=2)
    b = draw["thresholds"].values[X["rater"].cat.codes.to_numpy()]
    s = draw["noise"].values[(X["site"] == 2).to_numpy().astype(int)]
    f = tree["posterior"]["f"].values[0, 2]
    rows = Rows(np.arange(60), np.arange(60))
    truth = OrdinalLikelihood(b, s, "probit", rows).log_prob(y, f).value
    np.testing.assert_allclose(tree["log_likelihood"]["y"].values[0, 2], truth, atol=1e-10)


def test_linear_and_latent_models(counted):
    X, y, X_again, y_again, w = counted
    options = {"thresholds_by": "rater", "noise_by": "site", "standardize": False}
    for factory in (pmo.linear_model, pmo.latent_model):
        a, b = factory(X, y, weights="count", **options), factory(X_again, y_again, **options)
        rng = np.random.default_rng(0)
        shared = {k: v + 0.1 * rng.normal(size=np.shape(v)) for k, v in a.initial_point().items()}
        if factory is pmo.linear_model:
            found = [m.compile_logp(vars=[m["y"]], mode=PYTHON)(shared) for m in (a, b)]
            assert found[0] == pytest.approx(found[1], abs=1e-8)
        else:
            rows = np.repeat(np.arange(len(y)), w)
            values = [pm.logp(m["y"], m.rvs_to_values[m["y"]]) for m in (a, b)]
            known = [v for v in a.free_RVs if v.name != "f_white"]
            draws = pm.draw(known, random_seed=1, mode=PYTHON)
            given = dict(zip([v.name for v in known], draws, strict=True))
            f = rng.normal(size=len(y))
            found = []
            for model, value, latent in zip((a, b), values, (f, f[rows]), strict=True):
                inputs = {model[k]: v for k, v in given.items()} | {model["f"]: latent}
                found.append(value.eval(inputs, on_unused_input="ignore", mode=PYTHON))
            assert found[0].sum() == pytest.approx(found[1].sum(), abs=1e-8)
    assert list(a.named_vars_to_dims["noise"]) == ["site"]


def test_by_hand(survey):
    X, y = survey
    with pm.Model(coords={"rater": list("abcd")}) as model:
        b = pmo.thresholds("b", 3, by="rater")
        s = pm.LogNormal("s", -0.5, 0.5, shape=2)
        gp = pmo.MarginalOrdinal(pm.gp.cov.ExpQuad(1, ls=0.8))
        gp.marginal_likelihood("y", X, y, b, s, thresholds_by="rater", noise_by="site")
    fit = pmo.fit(model, progressbar=False)
    assert fit.noise[1] > fit.noise[0]
    assert fit.predict(X.head(3)).shape == (3, 3)
    with pytest.raises(ValueError, match="rater 'new' is not known, and the model has no popul"):
        fit.predict(X.head(3).assign(rater="new"))
    with pytest.raises(ValueError, match="have no population here"):
        fit.effects("x")
    assert fit.to_datatree(5, seed=1)["posterior"]["f"].shape == (1, 5, 60)
    with pm.Model(), pytest.raises(ValueError, match=r"noise must have shape \(2,\) for"):
        gp.marginal_likelihood(
            "y", X[["x", "site"]], y, [0.0, 1.0], [1.0, 1, 1, 1], noise_by="site"
        )


def test_refusals(survey):
    X, y = survey
    with pytest.raises(ValueError, match="weights must be positive, got 0 in row 2"):
        pmo.gp_model(X, y, "expquad", weights=np.where(np.arange(60) == 2, 0, 1))
    with pytest.raises(ValueError, match="one number for each of the 60 rows, got 3"):
        pmo.gp_model(X, y, "expquad", weights=[1, 1, 1])
    with pytest.raises(ValueError, match="weights: 'count' must be a column of the table X"):
        pmo.gp_model(X, y, "expquad", weights="count")
    with pytest.raises(ValueError, match="'exact' has one latent value a label"):
        pmo.gp_model(X, y, "expquad", engine="exact", weights=np.ones(60))
    with pytest.raises(TypeError, match="noise_by must be the name of a column"):
        pmo.gp_model(X, y, "expquad", noise_by=["site"])
    y_part = np.where(np.arange(60) < 5, np.nan, y)
    with pytest.raises(ValueError, match="semi-supervised fit knows neither"):
        pmo.fit(
            pmo.gp_model(X, y_part, "expquad", noise_by="site"),
            semisupervised=True,
            progressbar=False,
        )
    cov = pm.gp.cov.ExpQuad(1, ls=1.0) + pm.gp.cov.WhiteNoise(0.3)
    with pytest.raises(ValueError, match="white noise of their own"):
        pmo.fit(pmo.gp_model(X[["x"]], y, cov, weights=np.full(60, 2.0)), progressbar=False)


def test_missing_labels_take_their_groups_along(survey):
    X, y = survey
    missing = np.arange(60) % 5 == 0
    options = {"thresholds_by": "rater", "noise_by": "site", "standardize": False, **FIXED}
    w = np.arange(60) % 3 + 1.0
    a = pmo.gp_model(X, np.where(missing, np.nan, y), "expquad", weights=w, **options)
    b = pmo.gp_model(X[~missing], y[~missing], "expquad", weights=w[~missing], **options)
    assert a.compile_logp()(a.initial_point()) == b.compile_logp()(b.initial_point())


def test_groups_of_a_column():
    table = pd.DataFrame({"x": [1.0, 2.0], "g": ["u", "v"], "w": [1, 2]})
    rest, by_row = read(table, noise_by="g", weights="w")
    assert list(rest.columns) == ["x"]
    again = ByRow.from_json(by_row.to_json(), by_row.arrays())
    assert again.noise.levels == ("u", "v")
    assert again.codes()[1].tolist() == [0, 1]
    with pytest.raises(ValueError, match="levels that read the same"):
        Groups.of("g", np.array([1, "1"], dtype=object))
    with pytest.raises(ValueError, match="is the column of the groups"):
        read(table, noise_by="g", weights="g")
