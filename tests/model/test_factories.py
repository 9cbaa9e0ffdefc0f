"""The factories and `MarginalOrdinal` build real PyMC models that PyMC's own functions run on."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from pymc.blocking import DictToArrayBijection as Bijection
from pytensor.compile.mode import Mode

import pmordinal as pmo
from pmordinal.engines import Laplace
from pmordinal.gram import Gram, lower
from pmordinal.inference.density import find_evidence
from pmordinal.likelihood import OrdinalLikelihood
from tests.repeated import first_fast

PYTHON = Mode(linker="py", optimizer="fast_compile")
N = 14


@pytest.fixture
def table(rng):
    """Return attributes with names and labels with an order."""
    X = pd.DataFrame(
        {"dose": rng.normal(size=N), "age": rng.normal(size=N)}, index=list("abcdefghijklmn")
    )
    latent = X["dose"] + 0.2 * rng.normal(size=N)
    codes = np.digitize(latent, [-0.4, 0.5])
    codes[:3] = [0, 1, 2]
    y = pd.Categorical.from_codes(codes, ["low", "mid", "high"], ordered=True)
    return X, y


def problem_of(model):
    return find_evidence(model.logp()).op.problem


def assert_dlogp(model, rtol=1e-5):
    """Compare dlogp with central differences of logp."""
    f, df = model.compile_logp(mode=PYTHON), model.compile_dlogp(mode=PYTHON)
    point = model.initial_point(random_seed=0)
    flat = Bijection.map({v.name: point[v.name] for v in model.value_vars})
    h = 1e-5
    for i, g in enumerate(df(point)):
        ends = []
        for sign in (1, -1):
            moved = flat.data.copy()
            moved[i] += sign * h
            ends.append(float(f(Bijection.rmap(type(flat)(moved, flat.point_map_info)))))
        assert g == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=rtol, abs=1e-5)


@pytest.mark.parametrize(
    "engine", [e for e, c in pmo.ENGINES.items() if "evidence" in c.objectives]
)
def test_logp_of_y_is_the_evidence(engine, table):
    X, y = table
    model = pmo.gp_model(X, y, engine=engine, lengthscale=1.2, noise=0.4, thresholds=[-0.5, 0.6])
    rows = problem_of(model).features.transform(X)
    kernel = lower(pm.gp.cov.ExpQuad(2, ls=1.2))
    post = pmo.ENGINES[engine]()(
        Gram(kernel, rows, [1.2]), y.codes.astype(int), OrdinalLikelihood([-0.5, 0.6], 0.4)
    )
    value = model.compile_logp(mode=PYTHON)({})
    assert value == pytest.approx(post.log_evidence, abs=1e-6)


@pytest.mark.parametrize("link", first_fast(pmo.LINKS))
def test_dlogp_of_the_gp_model(link, table):
    X, y = table
    assert_dlogp(pmo.gp_model(X, y, ard=True, link=link))


@pytest.mark.parametrize("link", first_fast(pmo.LINKS))
def test_dlogp_of_the_linear_model(link, table):
    X, y = table
    assert_dlogp(pmo.linear_model(X, y, link=link))


def test_names_of_dimensions_and_coordinates(table):
    X, y = table
    model = pmo.gp_model(X, y, ard=True)
    assert isinstance(model, pm.Model)
    assert [v.name for v in model.free_RVs] == ["lengthscale", "noise", "thresholds"]
    assert [v.name for v in model.observed_RVs] == ["y"]
    assert model.coords["obs"] == tuple("abcdefghijklmn")
    assert model.coords["feature"] == ("dose", "age")
    assert model.coords["threshold"] == ("low|mid", "mid|high")
    assert model.coords["class"] == ("low", "mid", "high")
    dims = model.named_vars_to_dims
    assert dims["y"] == ("obs",)
    assert dims["lengthscale"] == ("feature",)
    assert dims["thresholds"] == ("threshold",)
    linear = pmo.linear_model(X, y)
    assert linear.named_vars_to_dims["coefficients"] == ("feature",)
    assert linear.named_vars_to_dims["y"] == ("obs",)


def test_numbers_distributions_and_variables_replace_the_priors(table):
    X, y = table
    fixed = pmo.gp_model(X, y, lengthscale=[1.0, 2.0], noise=0.3, thresholds=[-1.0, 1.0])
    assert fixed.free_RVs == []
    dists = pmo.gp_model(
        X,
        y,
        lengthscale=pm.InverseGamma.dist(5, 5, shape=2),
        ard=True,
        noise=pm.HalfNormal.dist(0.5),
    )
    assert isinstance(dists["noise"].owner.op, type(pm.HalfNormal.dist().owner.op))
    assert isinstance(dists["lengthscale"].owner.op, type(pm.InverseGamma.dist(1, 1).owner.op))
    with pm.Model() as own:
        sigma = pm.Exponential("sigma", 1.0)
        cut = pmo.thresholds("cut", 3, kind="padded")
        same = pmo.gp_model(X, y, lengthscale=pm.Gamma("ell", 2, 1), noise=sigma, thresholds=cut)
    assert same is own
    assert {v.name for v in own.free_RVs} == {"sigma", "cut_first", "cut_gaps", "ell"}
    assert np.isfinite(own.compile_logp(mode=PYTHON)(own.initial_point()))
    mixed = pmo.gp_model(X, y, noise=pm.Truncated.dist(pm.Normal.dist(0.5, 1), lower=0.01))
    assert "noise" in [v.name for v in mixed.free_RVs]  # symbolic distributions count too


def test_a_covariance_of_ones_own(table):
    X, y = table
    with pm.Model() as model:
        ls = pm.InverseGamma("ls", 5, 5)
        cov = pm.gp.cov.Matern52(2, ls=ls) + 0.5 * pm.gp.cov.Linear(2, c=0.0)
        pmo.gp_model(X, y, cov)
    assert {v.name for v in model.free_RVs} == {"ls", "noise", "thresholds"}
    assert not np.any(problem_of(model).X - X.to_numpy())  # in the user's units
    by_class = pmo.gp_model(X, y, pm.gp.cov.Matern32)
    assert "lengthscale" in [v.name for v in by_class.free_RVs]
    with pytest.raises(ValueError, match="lengthscale belongs to the default covariance"):
        pmo.gp_model(X, y, cov, lengthscale=1.0)
    with pytest.raises(TypeError, match=r"cov_func must be a pm\.gp\.cov covariance, got ndarray"):
        pmo.MarginalOrdinal(np.eye(3))


def test_a_precomputed_matrix_is_a_covariance(table):
    _, y = table
    K = np.cov(np.random.default_rng(0).normal(size=(N, 30)))
    fixed = {"noise": 0.5, "thresholds": [-0.3, 0.4]}
    model = pmo.gp_model(np.arange(N), y, pmo.Precomputed(K), engine="laplace", **fixed)
    post = Laplace()(
        Gram(lower(pmo.Precomputed(K)), np.arange(N)[:, None], []),
        y.codes.astype(int),
        OrdinalLikelihood([-0.3, 0.4], 0.5),
    )
    assert model.compile_logp(mode=PYTHON)({}) == pytest.approx(post.log_evidence, abs=1e-6)


def test_missing_labels_are_marginalised_and_kept(table):
    X, y = table
    holes = pd.Categorical.from_codes(np.where(np.arange(N) % 5 == 1, -1, y.codes), dtype=y.dtype)
    options = {"lengthscale": 1.0, "noise": 0.4, "thresholds": [-0.5, 0.6], "standardize": False}
    with_holes = pmo.gp_model(X, holes, "expquad", **options)
    kept = holes.codes >= 0
    without = pmo.gp_model(X[kept], y[kept], "expquad", **options)
    assert with_holes.compile_logp(mode=PYTHON)({}) == pytest.approx(
        without.compile_logp(mode=PYTHON)({}), abs=1e-7
    )
    problem = problem_of(with_holes)
    np.testing.assert_array_equal(problem.unlabeled, X.to_numpy()[~kept])
    assert with_holes.coords["obs"] == tuple(X.index[kept])
    more = pmo.gp_model(X, holes, "expquad", unlabeled=X[:2] + 9, **options)
    np.testing.assert_allclose(problem_of(more).unlabeled[-2:], X[:2].to_numpy() + 9)
    linear = pmo.linear_model(X, holes)
    assert linear["y"].eval(mode=PYTHON).shape == (kept.sum(),)


def test_a_level_that_nobody_has_is_as_uncertain_as_one_without_labels():
    groups = pd.Categorical(np.repeat(list("abcd"), [9, 4, 3, 2]), categories=list("abcdef"))
    X = pd.DataFrame({"group": groups})
    y = np.r_[np.tile([1.0, 2.0, 3.0], 6)[:16], [np.nan] * 2]  # the rows of level d have none
    model = pmo.gp_model(X, y, lengthscale=3.0, noise=0.4, thresholds=[-0.5, 0.6])
    fit = pmo.fit(model, progressbar=False)
    at = fit.predict(pd.DataFrame({"group": list("def")}), kind="latent")
    np.testing.assert_allclose(at["sd"], at["sd"][0], rtol=1e-12)
    np.testing.assert_allclose(at["mean"], at["mean"][0], rtol=1e-9)
    # Three levels known exactly would leave this sd: all correlations are rho.
    gram, rows = fit.posterior.gram, fit.features.transform(pd.DataFrame({"group": list("ef")}))
    rho = gram.kernel.matrix(gram.values, rows)[0][0, 1]
    assert np.sqrt(1 - 3 * rho**2 / (1 + 2 * rho)) < at["sd"][0] < 1


def test_declared_classes_keep_their_place(table):
    X, y = table
    codes = y.codes.astype(int) + 1
    model = pmo.gp_model(X, codes, "expquad", categories=[0, 1, 2, 3, 4])
    assert model.coords["threshold"] == ("0|1", "1|2", "2|3", "3|4")
    assert model.initial_point()["thresholds_ordered__"].shape == (4,)
    assert np.isfinite(model.compile_logp(mode=PYTHON)(model.initial_point()))
    strings = pmo.linear_model(X, list(y), categories=["none", "low", "mid", "high"])
    assert strings.coords["class"] == ("none", "low", "mid", "high")


def test_prior_predictive_draws_are_class_codes_of_the_whole_model(table):
    """Default back end. Thresholds are uniform on the simplex: each class has a third of the mass."""
    X, y = table
    tree = pm.sample_prior_predictive(300, model=pmo.gp_model(X, y, "expquad"), random_seed=4)
    drawn = tree["prior_predictive"]["y"]
    assert drawn.dims == ("chain", "draw", "obs")
    assert list(drawn["obs"].values) == list(X.index)
    share = np.bincount(drawn.values.ravel(), minlength=3) / drawn.size
    assert share.size == 3
    # a draw of thresholds moves all rows together: sd of a share ≤ 0.24/√300, five sigma
    np.testing.assert_allclose(share, 1 / 3, atol=5 * 0.24 / np.sqrt(300))
    assert "thresholds" in tree["prior"]


def test_rows_of_one_prior_draw_share_a_latent_function():
    """Equal rows with next to no noise get equal labels, distant ones do not."""
    X = np.array([[0.0], [0.0], [50.0]])
    model = pmo.gp_model(
        X, [0, 1, 2], lengthscale=1.0, noise=1e-6, thresholds=[-0.4, 0.4], standardize=False
    )
    drawn = pm.draw(model["y"], draws=200, random_seed=1, mode=PYTHON)
    assert np.mean(drawn[:, 0] == drawn[:, 1]) > 0.98
    assert np.mean(drawn[:, 0] == drawn[:, 2]) < 0.6


@pytest.mark.slow
def test_find_map_on_the_gp_model_in_the_default_back_end(table):
    X, y = table
    model = pmo.gp_model(X, y, "expquad")
    point = pm.find_MAP(model=model, progressbar=False)
    assert np.all(np.diff(point["thresholds"]) > 0)
    fit = pmo.fit(model, progressbar=False)
    logp = model.compile_logp(jacobian=False, mode=PYTHON)
    start = {v.name: point[v.name] for v in model.value_vars}
    # find_MAP leaves the Jacobian out, fit has it in: each is best by its own measure
    assert float(logp(start)) > float(
        model.compile_logp(jacobian=False, mode=PYTHON)(model.initial_point())
    )
    assert fit.objective_value >= float(model.compile_logp(mode=PYTHON)(start)) - 1e-3


def test_sampling_the_gp_model_in_the_default_back_end(table):
    X, y = table
    model = pmo.gp_model(X, y, "expquad")
    tree = pm.sample(
        draws=15,
        tune=15,
        chains=1,
        cores=1,
        model=model,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
    )
    posterior = tree["posterior"]
    assert posterior["thresholds"].dims == ("chain", "draw", "threshold")
    assert list(posterior["threshold"].values) == ["low|mid", "mid|high"]
    assert np.all(np.diff(posterior["thresholds"], axis=-1) > 0)
    assert np.all(np.isfinite(posterior["noise"]))
    assert np.unique(posterior["noise"]).size > 3  # the chain moves


@pytest.mark.slow
def test_sampling_and_maximising_the_linear_model_in_the_default_back_end(table):
    X, y = table
    model = pmo.linear_model(X, y, link="logit")
    point = pm.find_MAP(model=model, progressbar=False)
    assert point["coefficients"][0] > 0
    tree = pm.sample(
        draws=50,
        tune=100,
        chains=1,
        cores=1,
        model=model,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
    )
    pm.sample_posterior_predictive(tree, model=model, extend_inferencedata=True, progressbar=False)
    assert tree["posterior_predictive"]["y"].dims == ("chain", "draw", "obs")
    assert list(tree["posterior"]["feature"].values) == ["dose", "age"]


def test_marginal_ordinal_in_the_manner_of_pymc(table):
    """The code of DESIGN section 6a, as written."""
    X, y = table
    with pm.Model() as model:
        ls = pm.InverseGamma("ls", 5, 5, shape=2)
        b = pmo.thresholds("thresholds", n_classes=3)
        s = pm.HalfNormal("noise", 1.0)
        gp = pmo.MarginalOrdinal(
            cov_func=pm.gp.cov.ExpQuad(2, ls=ls), engine="laplace", link="probit"
        )
        seen = gp.marginal_likelihood("y", X=X, y=y, thresholds=b, noise=s)
    assert seen in model.observed_RVs
    assert_dlogp(model)


def test_the_evidence_joins_other_parts_of_a_model(table):
    """A noise scale shared with a Gaussian likelihood: both terms are in the log density."""
    X, y = table
    with pm.Model() as model:
        s = pm.HalfNormal("noise", 1.0)
        pm.Normal("z", 0.0, s, observed=np.array([0.3, -0.2]))
        gp = pmo.MarginalOrdinal(pm.gp.cov.ExpQuad(2, ls=1.0))
        gp.marginal_likelihood("y", X, y, thresholds=[-0.5, 0.5], noise=s)
    assert_dlogp(model)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"y": [0, 1, 2]}, ValueError, "X has 14 rows and y has 3 labels: they must match"),
        ({"thresholds": [0.0]}, ValueError, "thresholds must be a vector of 2 for 3 classes"),
        ({"thresholds": [0.0, 1.0, 2.0]}, ValueError, "categories= with all labels in order"),
        ({"thresholds": [[0.0, 1.0]]}, ValueError, "thresholds must be a vector of 2"),
        ({"noise": [1.0, 2.0]}, ValueError, "noise must be a scalar, got 1 dimensions"),
        ({"objective": "evidens"}, ValueError, "objective must be one of 'evidence'"),
        ({"unlabeled": np.zeros((2, 3))}, ValueError, "2 column"),
    ],
)
def test_bad_arguments_of_marginal_ordinal(table, change, error, message):
    X, y = table
    arguments = {"X": X.to_numpy(), "y": y, "thresholds": [-0.5, 0.5], "noise": 1.0} | change
    with pm.Model(), pytest.raises(error, match=message):
        pmo.MarginalOrdinal(pm.gp.cov.ExpQuad(2, ls=1.0)).marginal_likelihood("y", **arguments)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"engine": "laplas"}, ValueError, "unknown engine 'laplas'"),
        ({"link": "cauchit"}, ValueError, "unknown link 'cauchit'"),
        ({"objective": "likelihood"}, ValueError, "objective must be one of"),
        ({"noise": -1.0}, ValueError, "noise must be positive, got -1.0"),
        ({"noise": np.nan}, ValueError, "noise must be finite"),
        ({"amplitude": 0.0}, ValueError, "amplitude must be positive"),
        ({"lengthscale": [1.0, -2.0]}, ValueError, "lengthscale must be positive"),
        (
            {"noise": 1e90},
            ValueError,
            r"noise must be between 1e-50 and 1e\+50, got 1e\+90: rescale",
        ),
        ({"amplitude": 1e60}, ValueError, "amplitude must be between 1e-50 and"),
        ({"lengthscale": 1e-60}, ValueError, "lengthscale must be between 1e-50 and"),
        ({"thresholds": [0.0, 1e60]}, ValueError, "thresholds must be between -1e.50 and"),
        (
            {"lengthscale": [1.0, 2.0, 3.0]},
            ValueError,
            "lengthscale must be one number for all 2 c",
        ),
        ({"lengthscale": pm.HalfNormal.dist(shape=3)}, ValueError, "one for each, got 3"),
        ({"lengthscale": [[1.0, 2.0]]}, ValueError, "lengthscale must be a number or a vector"),
        (
            {"lengthscale": pm.HalfNormal.dist(), "ard": True},
            ValueError,
            r"ard=True wants a lengthscale for each of 2 column\(s\): .*shape=2",
        ),
        ({"thresholds": [1.0, 0.0]}, ValueError, "thresholds must increase"),
        ({"thresholds": [1.0]}, ValueError, "thresholds must be a vector of 2 for 3 classes"),
        ({"categories": ["low", "high"]}, ValueError, "mid"),
    ],
)
def test_bad_arguments_of_the_gp_model(table, options, error, message):
    X, y = table
    with pytest.raises(error, match=message):
        pmo.gp_model(X, y, "expquad", **options)


@pytest.mark.parametrize("factory", [pmo.gp_model, pmo.linear_model])
def test_the_border(factory, table):
    X, y = table
    with pytest.raises(ValueError, match="X has 13 rows and y has 14 labels: they must match"):
        factory(X[:-1], y)
    with pytest.raises(ValueError, match="two or more"):
        factory(X, np.zeros(N, dtype=int))
    with pytest.raises(ValueError, match=r"nan|finite|missing"):
        factory(X.assign(dose=np.nan), y)
    with pytest.raises((TypeError, ValueError), match="categories="):
        factory(X, list(y))
    with pytest.raises(ValueError, match=r"categories=|ordered"):
        factory(X, pd.Categorical(list(y)))
    with pytest.raises(ValueError, match="row"):
        factory(X[:0], y[:0])


def test_rows_with_several_names_have_one_in_trees_and_files(table, tmp_path):
    X, y = table
    index = pd.MultiIndex.from_product([[1, 2], list("abcdefg")], names=["plot", "row"])
    names = [f"{plot}, {row}" for plot, row in index]
    fit = pmo.fit(pmo.gp_model(X.set_axis(index), y, "expquad"), progressbar=False)
    assert fit.index.tolist() == names
    assert fit.to_datatree(draws=2)["posterior"]["obs"].values.tolist() == names
    assert pmo.loo(fit).elpd_i["obs"].values.tolist() == names
    assert fit.predict(X.set_axis(index))["obs"].values.tolist() == names
    assert pmo.surrogate_residuals(fit)["obs"].tolist() == names
    fit.save(tmp_path / "fit.nc")
    assert pmo.load(tmp_path / "fit.nc").index.tolist() == names
