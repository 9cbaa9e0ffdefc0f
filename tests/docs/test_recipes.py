"""Composition: thresholds by rater, noise as a variable, linear predictors and mean functions, against brute force."""

import arviz as az
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pymc as pm
import pytest
from pytensor.compile.mode import Mode
from scipy import stats

import pmordinal as pmo
from pmordinal.model.marginal import MarginalOrdinal
from tests.repeated import first_fast

PYTHON = Mode(linker="py", optimizer="merge")


@pytest.fixture
def ratings(rng):
    n = 24
    X = pd.DataFrame({"dose": rng.normal(size=n), "rater": np.tile(["Bob", "Ann", "Cy"], 8)})
    y = pd.Series(
        pd.Categorical.from_codes(rng.integers(0, 4, n), ["a", "b", "c", "d"], ordered=True)
    )
    return X, y


def by_hand(population, z, shift_sd, gap_sd, scale=1.0):
    """Return the thresholds of each group, one at a time."""
    rows = []
    for row in z:
        gaps = np.diff(population) * np.exp(gap_sd * row[1:])
        b = np.concatenate([[0.0], np.cumsum(gaps)])
        rows.append(b - b.mean() + population.mean() + scale * shift_sd * row[0])
    return np.array(rows)


def prob(y, eta, b, noise=1.0):
    """Return the ordinal probit likelihood of each row from its own thresholds."""
    edges = np.column_stack([np.full(len(y), -np.inf), b, np.full(len(y), np.inf)])
    cdf = stats.norm.cdf((edges - eta[:, None]) / np.reshape(noise, (-1, 1)))
    return cdf[np.arange(len(y)), y + 1] - cdf[np.arange(len(y)), y]


POPULATION = np.array([-0.9, 0.2, 0.8])


def test_thresholds_by_group(rng):
    with pm.Model(coords={"rater": ["Ann", "Bob"], "threshold": ["a|b", "b|c", "c|d"]}) as model:
        b = pmo.thresholds("b", 4, dims="threshold", by="rater", scale=1.7)
    assert model.named_vars_to_dims["b"] == ("rater", "threshold")
    z = rng.normal(size=(2, 3))
    given = {"b_population": POPULATION, "b_z": z, "b_shift_sd": 0.6, "b_gap_sd": 0.3}
    found = b.eval({model[k]: v for k, v in given.items()}, mode=PYTHON)
    np.testing.assert_allclose(found, by_hand(POPULATION, z, 0.6, 0.3, 1.7))
    given |= {"b_shift_sd": 0.0, "b_gap_sd": 0.0}
    same = b.eval({model[k]: v for k, v in given.items()}, mode=PYTHON)
    np.testing.assert_allclose(same, [POPULATION, POPULATION])  # complete pooling
    draws = pm.draw(b, 200, random_seed=1, mode=PYTHON)
    assert np.all(np.diff(draws, axis=-1) > 0)


def test_two_classes_have_a_shift_only():
    with pm.Model(coords={"item": range(3)}) as model:
        b = pmo.thresholds("b", 2, by="item", kind="padded")
    assert "b_gap_sd" not in model.named_vars
    assert pm.draw(b, mode=PYTHON).shape == (3, 1)


def test_refusals_of_groups(ratings):
    X, y = ratings
    with pm.Model(), pytest.raises(ValueError, match="no dimension 'rater'"):
        pmo.thresholds("b", 3, by="rater")
    with pm.Model(coords={"rater": [1]}), pytest.raises(ValueError, match="leave by= out"):
        pmo.thresholds("b", values=[0.0, 1.0], by="rater")
    for factory in (pmo.linear_model, pmo.latent_model, pmo.gp_model):
        with pytest.raises(ValueError, match=r"'judge' must be a column of the table X.*dose"):
            factory(X, y, thresholds_by="judge")
        with pytest.raises(ValueError, match="no column names"):
            factory(X[["dose"]].to_numpy(), y, thresholds_by="rater")
        with pytest.raises(ValueError, match="no columns besides 'rater'"):
            factory(X[["rater"]], y, thresholds_by="rater")
        with pytest.raises(ValueError, match="leave thresholds= out"):
            factory(X, y, thresholds_by="rater", thresholds=[-1.0, 0.0, 1.0])
        with pytest.raises(
            ValueError, match=r"'rater' has 1 missing value\(s\), the first in row 2"
        ):
            factory(X.assign(rater=X["rater"].mask(X.index == 2)), y, thresholds_by="rater")
    with pytest.raises(ValueError, match="say with thresholds_by= which column"):
        with pm.Model(coords={"rater": ["Ann", "Bob", "Cy"]}):
            b = pmo.thresholds("b", 4, by="rater")
            gp = MarginalOrdinal(pm.gp.cov.ExpQuad(1, ls=1.0))
            gp.marginal_likelihood("y", X[["dose"]], y, b, 1.0)


@pytest.mark.parametrize("table", [pd.DataFrame, pl.from_pandas])
def test_likelihood_of_the_linear_model(table, ratings, rng):
    X, y = ratings
    model = pmo.linear_model(table(X), y.cat.codes, thresholds_by="rater", standardize=False)
    assert model.coords["rater"] == ("Ann", "Bob", "Cy")
    assert model.coords["feature"] == ("dose",)
    assert model.named_vars_to_dims["thresholds"] == ("rater", "threshold")
    z = rng.normal(size=(3, 3))
    given = {
        "coefficients": np.array([0.7]),
        "thresholds_population": POPULATION,
        "thresholds_z": z,
        "thresholds_shift_sd": 0.4,
        "thresholds_gap_sd": 0.2,
    }
    code = X["rater"].map({"Ann": 0, "Bob": 1, "Cy": 2}).to_numpy()
    b = by_hand(POPULATION, z, 0.4, 0.2)[code]
    expected = prob(y.cat.codes.to_numpy(), 0.7 * X["dose"].to_numpy(), b)
    logp = pm.logp(model["y"], y.cat.codes.to_numpy())
    found = logp.eval({model[k]: v for k, v in given.items()}, mode=PYTHON)
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-10)


def sampled(model, seed, draws):
    """Return a tree as pm.sample makes it, of prior draws."""
    names = [*(v.name for v in model.free_RVs), "f", "thresholds"]
    values = pm.draw(
        [model[name] for name in names],
        draws,
        random_seed=seed,
        mode=PYTHON,
    )
    arrays = dict(zip(names, values, strict=True))
    dims = {k: list(model.named_vars_to_dims.get(k) or []) for k in arrays}
    coords = {k: list(v) for k, v in model.coords.items() if any(k in d for d in dims.values())}
    return az.from_dict(
        {"posterior": {k: v[None] for k, v in arrays.items()}}, dims=dims, coords=coords
    )


@pytest.mark.parametrize("approx", first_fast(["full", "hsgp"]))
def test_latent_model_by_group_predicts(approx, ratings, rng):
    X, y = ratings
    options = {} if approx == "full" else {"approx": "hsgp", "m": 4, "c": 2.0}
    X = X.assign(rater=pd.Categorical(X["rater"], categories=["Ann", "Bob", "Cy", "Dee"]))
    model = pmo.latent_model(X, y, "expquad", thresholds_by="rater", **options)
    tree = sampled(model, 3, 40)
    new = pd.DataFrame({"dose": [0.1, 0.1, -0.3], "rater": ["Cy", "Dee", "Ann"]})
    result = pmo.sample_posterior(model, tree, Xnew=new, seed=1, progressbar=False)
    posterior = result["posterior"]
    assert posterior["thresholds"].dims == ("chain", "draw", "rater", "threshold")
    assert list(posterior["rater"].values) == ["Ann", "Bob", "Cy", "Dee"]
    assert list(posterior["threshold"].values) == ["a|b", "b|c", "c|d"]
    # the log likelihood of a draw, from that draw's own thresholds
    b = tree["posterior"]["thresholds"].values[0, 7][X["rater"].cat.codes.to_numpy()]
    f, noise = (tree["posterior"][name].values[0, 7] for name in ("f", "noise"))
    np.testing.assert_allclose(
        np.exp(result["log_likelihood"]["y"].values[0, 7]),
        prob(y.cat.codes.to_numpy(), f, b, noise),
        atol=1e-13,
    )
    # labels of new rows: how often f + noise exceeds the thresholds of the row's own rater
    many = pmo.sample_posterior(model, sampled(model, 4, 150), Xnew=new, seed=2, progressbar=False)
    latent, labels = many["predictions"]["f"].values[0], many["predictions"]["y"].values[0]
    b = many["posterior"]["thresholds"].values[0][:, [2, 3, 0]]
    noise = many["posterior"]["noise"].values[0][:, None, None]
    expected = stats.norm.sf((b - latent[..., None]) / noise)
    above = labels[..., None] > np.arange(3)
    deviation = (above - expected).sum(0) / np.sqrt((expected * (1 - expected)).sum(0))
    assert np.abs(deviation).max() < 4.0
    # a rater that nobody knows has the thresholds of the population
    many = pmo.sample_posterior(
        model, sampled(model, 4, 150), Xnew=new.assign(rater="Eve"), seed=2, progressbar=False
    )
    latent, labels = many["predictions"]["f"].values[0], many["predictions"]["y"].values[0]
    b = many["posterior"]["thresholds_population"].values[0][:, None]
    expected = stats.norm.sf((b - latent[..., None]) / noise)
    above = labels[..., None] > np.arange(3)
    deviation = (above - expected).sum(0) / np.sqrt((expected * (1 - expected)).sum(0))
    assert np.abs(deviation).max() < 4.0


@pytest.mark.parametrize(
    "name", ["obs", "threshold", "class", "feature", "chain", "y", "f", "noise"]
)
@pytest.mark.parametrize("factory", [pmo.latent_model, pmo.linear_model])
def test_a_group_cannot_have_the_name_of_a_dimension_or_variable(factory, name):
    X = pd.DataFrame({"dose": np.arange(6.0), name: list("ababab")})
    with pytest.raises(ValueError, match=f"thresholds_by: .*{name!r} is that of another.*rename"):
        factory(X, [1, 1, 2, 2, 3, 3], thresholds_by=name)


def test_columns_that_cannot_give_groups():
    X, y = pd.DataFrame({"dose": np.arange(6.0), "rater": list("ababab")}), [1, 1, 2, 2, 3, 3]
    with pytest.raises(TypeError, match="thresholds_by must be the name of a column of X, got 1"):
        pmo.linear_model(X, y, thresholds_by=1)
    with pytest.raises(ValueError, match="X has more than one column named 'rater': rename it"):
        pmo.linear_model(pd.concat([X, X["rater"]], axis=1), y, thresholds_by="rater")
    with pm.Model():
        pm.Normal("rater")
        with pytest.raises(ValueError, match="'rater' is that of another dimension or variable"):
            pmo.linear_model(X, y, thresholds_by="rater")


def test_groups_of_other_tables():
    levels = ["b", "a", "new"]
    X = pl.DataFrame(
        {"dose": np.arange(6.0), "rater": pl.Series(list("ababab"), dtype=pl.Enum(levels))}
    )
    column = pa.DictionaryArray.from_arrays([1, 0, 1, 0, 1, 0], levels)
    for table in (X, pa.table({"dose": np.arange(6.0), "rater": column})):
        model = pmo.linear_model(table, [1, 1, 2, 2, 3, 3], thresholds_by="rater")
        assert list(model.coords["rater"]) == levels
        assert list(model.coords["feature"]) == ["dose"]


def test_checks_know_thresholds_by_group(ratings):
    X, y = ratings
    model = pmo.latent_model(X, y, "expquad", thresholds_by="rater")
    tree = pmo.sample_posterior(model, sampled(model, 3, 5), seed=1, progressbar=False)
    table = pmo.calibration(tree, leave_one_out=False)
    assert table["threshold"].nunique() == len(tree["posterior"]["threshold"])


def test_noise_of_each_row(rng):
    n = 12
    x, y, group = rng.normal(size=n), rng.integers(0, 3, n), rng.integers(0, 2, n)
    with pm.Model() as model:
        log_noise = pm.Normal("log_noise", shape=2)
        b = pmo.thresholds("b", 3)
        pmo.Ordinal("y", 0.8 * x, b, pm.math.exp(log_noise)[group], observed=y)
    at = {"log_noise": np.array([0.5, -0.7]), "b": np.array([-0.4, 0.6])}
    found = pm.logp(model["y"], y).eval({model[k]: v for k, v in at.items()}, mode=PYTHON)
    expected = prob(y, 0.8 * x, np.tile(at["b"], (n, 1)), np.exp(at["log_noise"])[group])
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-9, atol=1e-15)  # the truth cancels


def test_noise_of_a_process_as_an_expression(rng):
    """The evidence at a noise that is a function of another variable, and its gradient through it."""
    X, y = rng.normal(size=(8, 1)), [0, 1, 2, 1, 0, 2, 2, 1]
    fixed = {"lengthscale": 0.9, "thresholds": [-0.5, 0.5]}
    with pm.Model() as model:
        precision = pm.Gamma("precision", 2.0, 1.0)
        pmo.gp_model(X, y, noise=pm.Deterministic("noise", precision**-0.5), **fixed)
    logp = model.compile_logp(vars=[model["y"]], mode=PYTHON)
    plain = pmo.gp_model(X, y, noise=0.5, **fixed).compile_logp(mode=PYTHON)
    assert logp({"precision_log__": np.log(4.0)}) == pytest.approx(plain({}), abs=1e-7)
    gradient = model.compile_dlogp(mode=PYTHON)({"precision_log__": np.log(4.0)})
    total, h = model.compile_logp(mode=PYTHON), 1e-4
    ends = [total({"precision_log__": np.log(4.0) + step}) for step in (h, -h)]
    assert gradient[0] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5)


def test_process_and_linear_predictor(rng):
    """Weights in the covariance are integrated out: the same as averaging over them by quadrature."""
    X, y, s, tau = np.array([[-1.0], [0.3], [1.4]]), np.array([0, 1, 2]), 0.5, 1.3
    b = np.array([-np.inf, -0.4, 0.9, np.inf])
    cov = pm.gp.cov.ExpQuad(1, ls=0.8) + tau**2 * pm.gp.cov.Linear(1, c=0.0)
    model = pmo.gp_model(X, y, cov, noise=s, thresholds=b[1:-1], amplitude=1.0)
    K = np.exp(-0.5 * (X - X.T) ** 2 / 0.8**2) + s**2 * np.eye(3)
    beta, weights = np.polynomial.hermite_e.hermegauss(40)
    given = [
        stats.multivariate_normal(tau * t * X[:, 0], K, seed=1).cdf(b[y + 1], lower_limit=b[y])
        for t in beta
    ]
    truth = np.log(weights @ given / weights.sum())
    # expectation propagation errs by less than a hundredth of a nat here, the average by 1e-4
    assert model.compile_logp(mode=PYTHON)({}) == pytest.approx(truth, abs=0.01)


def test_mean_function_of_basis_functions(rng):
    """A quadratic mean with Gaussian weights is the covariance x x' + x² x'²."""
    X, y = rng.normal(size=(6, 1)), [0, 1, 2, 1, 0, 2]
    fixed = {"noise": 0.6, "thresholds": [-0.5, 0.5]}

    def features(x):
        return pm.math.concatenate([x, x**2], axis=1)

    warped = pm.gp.cov.WarpedInput(1, pm.gp.cov.Linear(2, c=0.0), warp_func=features)
    smooth = pm.gp.cov.ExpQuad(1, ls=0.8)
    model = pmo.gp_model(X, y, smooth + warped, **fixed)
    K = np.exp(-0.5 * (X - X.T) ** 2 / 0.8**2) + X * X.T + (X * X.T) ** 2
    rows = np.arange(6.0)[:, None]
    matrix = pmo.gp_model(rows, y, pmo.Precomputed(K), **fixed)
    values = [m.compile_logp(mode=PYTHON)({}) for m in (model, matrix)]
    assert values[0] == pytest.approx(values[1], abs=1e-8)


@pytest.mark.slow
def test_severity_and_use_of_the_scale_are_recovered(rng):
    """One rater is severe, another shuns the ends of the scale: sampling finds both."""
    n, raters = 400, np.array(["typical", "severe", "middling", "plain"])
    rater, x = rng.integers(0, 4, n), rng.normal(size=n)
    b = np.array([[-1.0, 0.0, 1.0], [0.2, 1.2, 2.2], [-2.2, 0.0, 2.2], [-1.0, 0.0, 1.0]])
    y = ((x + rng.normal(size=n))[:, None] > b[rater]).sum(-1)
    table = pd.DataFrame({"x": x, "rater": raters[rater]})
    model = pmo.linear_model(table, y, thresholds_by="rater")
    tree = pm.sample(
        500, tune=500, chains=2, cores=1, model=model, random_seed=1, progressbar=False
    )
    found = tree["posterior"]["thresholds"].sel(rater=raters)
    mean, sd = (found.mean(("chain", "draw")), found.std(("chain", "draw")))
    assert np.all(np.abs(mean - b) < 3.5 * sd)
    assert np.all(sd < 0.5)
    widths = mean.isel(threshold=-1) - mean.isel(threshold=0)
    assert widths.sel(rater="middling") > 1.4 * widths.sel(rater="typical")
    assert int(tree["sample_stats"]["diverging"].sum()) <= 5
