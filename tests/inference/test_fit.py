"""`pmo.fit` and what it returns: the optimum is one, and labels come back as they came."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from pytensor.graph.replace import graph_replace
from scipy import optimize
from scipy.stats import norm

import pmordinal as pmo
from pmordinal.engines import Laplace
from pmordinal.gram import Gram, lower
from pmordinal.inference.density import PLAIN
from pmordinal.inference.landscape import Landscape
from pmordinal.inference.starting_points import starting_points
from pmordinal.likelihood import OrdinalLikelihood
from tests.repeated import first_fast

# Engines that draw estimate the evidence anew at every call.
WITH_EVIDENCE = [
    name
    for name, engine in pmo.ENGINES.items()
    if "evidence" in engine.objectives and not engine.is_monte_carlo
]


def data(n=30, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.digitize(np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n), [-0.4, 0.4])
    return X, y


def fit(model, **options):
    return pmo.fit(model, progressbar=False, **options)


@pytest.fixture(scope="module")
def fitted():
    X, y = data()
    return fit(pmo.gp_model(X, y, "expquad", engine="laplace"))


@pytest.mark.parametrize("engine", WITH_EVIDENCE)
def test_the_optimum_beats_its_surroundings(engine):
    X, y = data()
    model = pmo.gp_model(X, y, ard=True, engine=engine)
    landscape = Landscape(model)
    found = fit(model)
    logp = landscape.model.compile_logp()
    point = {}
    for rv in model.free_RVs:
        slot, transform = model.rvs_to_values[rv], model.rvs_to_transforms[rv]
        others = {v: pt.constant(found.point[v.name]) for v in model.free_RVs if v is not rv}
        inputs = graph_replace(rv.owner.inputs, others, strict=False)
        value = transform.forward(found.point[rv.name], *inputs)
        point[slot.name] = np.asarray(value.eval(mode=PLAIN))
    best = float(logp(point))
    assert found.objective_value == pytest.approx(best, abs=1e-4)
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved = {k: v + 0.1 * rng.normal(size=v.shape) for k, v in point.items()}
        assert float(logp(moved)) < best + 1e-6


def test_without_priors_the_evidence_is_maximised():
    """Against SciPy on a hand-written function of the log parameters, without gradients."""
    X, y = data()
    found = fit(pmo.gp_model(X, y, "expquad", engine="laplace"), priors=False)
    rows = (X - X.mean(0)) / X.std(0)
    ours = found.features.transform(X)
    assert np.allclose(ours, rows) or np.allclose(ours, (X - X.mean(0)) / X.std(0, ddof=1))
    kernel = lower(pm.gp.cov.ExpQuad(2, ls=1.0))

    def negative(theta):
        ls, noise, gap = np.exp(theta[:3])
        likelihood = OrdinalLikelihood([theta[3], theta[3] + gap], noise)
        return -Laplace()(Gram(kernel, ours, [ls]), y, likelihood).log_evidence

    start = [0.5 * np.log(2), 0.0, np.log(2 / 3), -1.0]  # the papers' start
    best = optimize.minimize(
        negative,
        start,
        method="Nelder-Mead",
        options={"maxiter": 2000, "xatol": 1e-5, "fatol": 1e-8},
    )
    # fit stops when a step gains less than 1e-7 per row
    assert found.log_evidence == pytest.approx(-best.fun, abs=1e-3)
    assert found.objective_value == pytest.approx(found.log_evidence, abs=1e-6)
    assert found.point["lengthscale"] == pytest.approx(np.exp(best.x[0]), rel=0.05)
    assert found.noise == pytest.approx(np.exp(best.x[1]), rel=0.05)
    np.testing.assert_allclose(found.thresholds[0], best.x[3], atol=0.05)


def test_the_first_start_is_that_of_the_papers():
    X, y = data()
    landscape = Landscape(pmo.gp_model(X, y, ard=True))
    (start,) = starting_points(landscape, 1, {}, np.random.default_rng(0))
    values = landscape.named_values(start)
    np.testing.assert_allclose(values["lengthscale"], np.sqrt(2))  # κ = 1/d
    assert values["noise"] == pytest.approx(1.0)
    np.testing.assert_allclose(values["thresholds"], [-1.0, -1.0 + 2 / 3])  # Δ = 2/r


@pytest.mark.slow
def test_start_and_starts():
    X, y = data()
    model = pmo.gp_model(X, y, "expquad")
    one = fit(model)
    elsewhere = fit(model, start={"noise": 0.1, "thresholds": [-2.0, 2.0]})
    assert elsewhere.objective_value == pytest.approx(one.objective_value, abs=1e-2)
    many = fit(model, starts=2, seed=5)
    assert len(many.status.objectives) == 2
    assert many.status.objectives[0] == pytest.approx(one.objective_value, abs=1e-6)
    assert many.objective_value == max(many.status.objectives)
    assert many.status.evaluations > one.status.evaluations
    again = fit(model, starts=2, seed=5)
    np.testing.assert_allclose(again.status.objectives, many.status.objectives, atol=1e-6)
    other = fit(model, starts=2, seed=6)
    assert other.status.objectives[1] != many.status.objectives[1]


def test_a_default_start_outside_the_support_is_not_used():
    """Noise 1 is the end of Uniform(0.1, 1): the fit once stopped there and called it converged."""
    X, y = data()
    found = fit(pmo.gp_model(X, y, noise=pm.Uniform.dist(0.1, 1)))
    assert found.status.converged
    assert found.status.evaluations > 3
    assert 0.1 < found.noise < 1


def test_nothing_free_is_a_fit_too():
    X, y = data()
    found = fit(pmo.gp_model(X, y, lengthscale=1.0, noise=0.5, thresholds=[-0.5, 0.5]))
    assert found.point == {}
    assert (found.status.converged, found.status.evaluations) == (True, 1)
    assert found.noise == 0.5


def test_status(fitted):
    status = fitted.status
    assert status.converged
    assert status.evaluations >= status.iterations >= 1
    assert status.seconds > 0
    assert "CONVERGENCE" in status.message
    assert status.objectives == (fitted.objective_value,)
    assert fitted.engine == "laplace"
    assert fitted.objective == "evidence"
    assert fitted.posterior.status.converged
    assert set(fitted.point) == {"lengthscale", "noise", "thresholds"}
    assert fitted.noise == fitted.point["noise"]
    np.testing.assert_array_equal(fitted.thresholds, fitted.point["thresholds"])


def test_repr_says_what_was_learned(fitted):
    text = repr(fitted)
    for part in (
        "laplace",
        "probit",
        "30 rows",
        "2 features",
        "log evidence",
        "0|1",
        "lengthscale",
    ):
        assert part in text
    assert "not converged" not in text


def test_non_convergence_warns():
    X, y = data()
    with pytest.warns(pmo.ConvergenceWarning, match="fit did not converge"):
        found = fit(pmo.gp_model(X, y, "expquad"), max_evaluations=1)
    assert not found.status.converged
    assert "(not converged)" in repr(found)


def test_an_engine_that_gives_up_warns():
    X, y = data()
    model = pmo.gp_model(X, y, engine=pmo.Laplace(max_iterations=1), noise=0.05)
    with pytest.warns(pmo.ConvergenceWarning, match="laplace: no convergence in 1 Newton steps"):
        fit(model)


@pytest.fixture(scope="module")
def small_model():
    return pmo.gp_model(*data(12), "expquad", engine="laplace")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"objective": "likelihood"}, ValueError, "objective must be one of 'evidence'"),
        ({"starts": 0}, ValueError, "starts must be an integer of at least 1"),
        ({"max_evaluations": 0}, ValueError, "max_evaluations must be an integer of at least 1"),
        ({"start": {"sigma": 1.0}}, ValueError, "no free variable 'sigma'; there are lengthscale"),
        ({"start": {"noise": -1.0}}, ValueError, "start: 'noise' cannot be -1.0"),
        ({"start": {"thresholds": [1, 0]}}, ValueError, "start: 'thresholds' cannot be"),
        ({"start": {"thresholds": [0, 1, 2]}}, ValueError, r"'thresholds' has shape \(2,\), got"),
        (
            {"start": {"noise": 1e-200}},
            ValueError,
            "the evidence is not finite where the fit starts",
        ),
    ],
)
def test_bad_arguments(small_model, options, error, message):
    with pytest.raises(error, match=message):
        fit(small_model, **options)


def test_models_without_a_marginal_gp_are_refused():
    X, y = data(12)
    with pytest.raises(ValueError, match="0 MarginalOrdinal likelihoods and fit needs one"):
        fit(pmo.linear_model(X, y))
    with pm.Model() as model:
        pm.Normal("x")
    with pytest.raises(ValueError, match="0 MarginalOrdinal likelihoods"):
        fit(model)


def test_probabilities(fitted):
    X, _ = data()
    probs = fitted.predict(X)
    assert isinstance(probs, xr.DataArray)
    assert probs.dims == ("obs", "class")
    assert list(probs["class"].values) == ["0", "1", "2"]
    np.testing.assert_allclose(probs.sum("class"), 1.0)
    cumulative = fitted.predict(X, kind="cumulative")
    assert cumulative.dims == ("obs", "threshold")
    assert list(cumulative["threshold"].values) == ["0|1", "1|2"]
    np.testing.assert_allclose(cumulative, probs.values.cumsum(1)[:, :-1])
    rank = fitted.predict(X, kind="rank")
    np.testing.assert_allclose(rank, probs.values @ [0, 1, 2])
    assert rank.dims == ("obs",)


def test_latent_and_probabilities_agree(fitted):
    X, _ = data()
    latent = fitted.predict(X, kind="latent")
    assert set(latent.data_vars) == {"mean", "sd"}
    spread = np.sqrt(fitted.noise**2 + latent["sd"].values ** 2)
    first = norm.cdf((fitted.thresholds[0] - latent["mean"].values) / spread)
    np.testing.assert_allclose(fitted.predict(X).values[:, 0], first, rtol=1e-10)


def test_most_training_labels_are_found(fitted):
    X, y = data()
    assert np.mean(fitted.predict(X, kind="class") == y) > 0.8


def test_one_row_and_unknown_kinds(fitted):
    assert fitted.predict(np.zeros((1, 2))).shape == (1, 3)
    with pytest.raises(ValueError, match="kind must be one of 'probs', 'class'"):
        fitted.predict(np.zeros((1, 2)), kind="prob")
    with pytest.raises(ValueError, match=r"Xnew must have 2 column\(s\), got 3"):
        fitted.predict(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="Xnew"):
        fitted.predict([[np.nan, 0.0]])


WORDS = ["bad", "fair", "good"]


def encodings(codes):
    """Return the same labels in every form that is allowed, with the categories needed."""
    yield "int", codes + 1, None
    yield "int8", codes.astype(np.int8), None
    yield "float", codes.astype(float), None
    yield "str", np.array(WORDS)[codes], WORDS
    yield "object", np.array(WORDS, dtype=object)[codes], WORDS
    yield "categorical", pd.Categorical.from_codes(codes, WORDS, ordered=True), None
    yield "series", pd.Series(pd.Categorical.from_codes(codes, WORDS, ordered=True)), None
    yield "enum", pl.Series(np.array(WORDS)[codes], dtype=pl.Enum(WORDS)), None


@pytest.mark.parametrize("which", [name for name, *_ in encodings(np.arange(3))])
def test_labels_come_back_as_they_came(which):
    X, codes = data(15)
    y, categories = next((y, c) for name, y, c in encodings(codes) if name == which)
    model = pmo.gp_model(
        X, y, categories=categories, lengthscale=1.0, noise=0.3, thresholds=[-0.4, 0.4]
    )
    found = fit(model)
    back = found.predict(X, kind="class")
    expected = found.predict(X).values.argmax(1)
    if which == "enum":
        assert back.dtype == y.dtype
        assert back.to_list() == [WORDS[k] for k in expected]
    elif which in ("categorical", "series"):
        assert isinstance(back, pd.Categorical)
        assert back.dtype == y.dtype
        np.testing.assert_array_equal(back.codes, expected)
    else:
        assert back.dtype == y.dtype
        levels = WORDS if categories else np.unique(y)
        np.testing.assert_array_equal(back, np.asarray(levels)[expected])


def test_a_table_with_categorical_columns():
    X, y = data()
    table = pd.DataFrame({"size": X[:, 0], "kind": np.where(X[:, 1] > 0, "red", "blue")})
    table["kind"] = table["kind"].astype("category")
    table.index = [f"row{i}" for i in range(len(table))]
    found = fit(pmo.gp_model(table, y, ard=True))
    assert found.point["lengthscale"].shape == (len(found.features.names),)
    assert {"size"} < set(found.features.names)
    assert any("red" in name for name in found.features.names)
    probs = found.predict(table[::-1])
    assert list(probs["obs"].values) == list(table.index[::-1])
    shuffled = found.predict(table[["kind", "size"]])  # columns go by name
    np.testing.assert_allclose(shuffled, found.predict(table))
    with pytest.raises(ValueError, match="green"):
        found.predict(table.assign(kind=pd.Categorical(["green"] * len(table))))


def test_missing_labels_stay_as_unlabelled_rows():
    X, y = data()
    holes = np.where(np.arange(30) < 4, np.nan, y)
    found = fit(pmo.gp_model(X, holes, "expquad"))
    assert found.posterior.y.size == 26
    assert found.unlabeled.shape == (4, 2)
    assert "26 rows, 4 unlabelled" in repr(found)
    assert found.index.tolist() == list(range(4, 30))


def test_a_class_nobody_has_seen_keeps_its_place():
    X, y = data()
    found = fit(pmo.gp_model(X, y, "expquad", categories=[0, 1, 2, 3]))
    assert found.thresholds.shape == (3,)
    probs = found.predict(X)
    assert probs.shape == (30, 4)
    assert np.all(probs.values[:, 3] > 0)
    assert np.all(np.isfinite(found.thresholds))
    assert found.labels.counts.tolist()[3] == 0


@pytest.mark.parametrize("link", first_fast(pmo.LINKS, 2))
def test_every_link_fits(link):
    X, y = data()
    found = fit(pmo.gp_model(X, y, "expquad", link=link))
    assert found.status.converged
    assert found.posterior.likelihood.link is pmo.LINKS[link]
    assert np.mean(found.predict(X, kind="class") == y) > 0.8


def test_units_of_the_attributes_do_not_matter():
    X, y = data()
    a = fit(pmo.gp_model(X, y, ard=True))
    b = fit(pmo.gp_model(X * [1000.0, 0.01] + [5e4, -3.0], y, ard=True))
    assert b.log_evidence == pytest.approx(a.log_evidence, abs=1e-4)
    np.testing.assert_allclose(b.predict(X * [1000.0, 0.01] + [5e4, -3.0]), a.predict(X), atol=1e-3)


def test_the_progress_bar_shows_and_goes(capsys):
    X, y = data(12)
    pmo.fit(pmo.gp_model(X, y, "expquad"), progressbar=True)
    pmo.fit(pmo.gp_model(X, y, "expquad"), progressbar=False)
    assert "Traceback" not in capsys.readouterr().err


def test_a_tolerance_that_misleads_the_line_search_is_tightened(monkeypatch, rng):
    """With sites that hardly converge the gradient is not that of the value: the fit goes on with the user's own."""
    X = rng.normal(size=(30, 2))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=30), [-0.5, 0.5])
    exact = pmo.fit(pmo.gp_model(X, y, "expquad"), progressbar=False)
    runs, minimize = [], optimize.minimize

    def first_is_lost(function, x, **options):
        found = minimize(function, x, **options)
        runs.append(x)
        if len(runs) == 1:
            found.status, found.success, found.x = 2, False, x
        return found

    monkeypatch.setattr("pmordinal.inference.optimise.minimize", first_is_lost)
    fit = pmo.fit(pmo.gp_model(X, y, "expquad"), progressbar=False)
    assert len(runs) == 2
    assert fit.status.converged
    assert fit.objective_value == pytest.approx(exact.objective_value, abs=1e-5)
    runs.clear()
    with pytest.warns(pmo.ConvergenceWarning):
        pmo.fit(pmo.gp_model(X, y, engine="plsor"), progressbar=False)  # has no wider tolerance
    assert len(runs) == 1


@pytest.mark.parametrize("engine", ["ep", "plsor"])
def test_a_fit_can_be_pickled_whatever_its_priors(engine, rng):
    """Variables of PyMC cannot: those of the covariance stay behind, with the model."""
    X = rng.normal(size=(20, 2))
    y = np.digitize(X[:, 0], [-0.4, 0.4])
    with pm.Model() as model:
        ls, size = pm.LogNormal("ls", 0.0, 0.5), pm.Deterministic("size", pm.HalfNormal("s", 1.0))
        cov = size**2 * pm.gp.cov.ExpQuad(2, ls=ls) + pm.gp.cov.WhiteNoise(0.1)
        known, by_graph = cov, pm.gp.cov.Polynomial(2, c=ls, d=2, offset=0.1)
        gp = pmo.MarginalOrdinal(known + by_graph, engine)
        gp.marginal_likelihood("y", X, y, pmo.thresholds("b", 3), 0.5)
    fit = pmo.fit(model, progressbar=False)
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.predict(X), fit.predict(X))


@pytest.mark.parametrize("model", [None, "model", 3])
def test_what_is_no_model(model):
    match = r"model must be a pm.Model, such as pmo.gp_model\(X, y\) returns, got "
    for function in (pmo.fit, pmo.sample_exact):
        with pytest.raises(TypeError, match=match):
            function(model, progressbar=False)
    with pytest.raises(TypeError, match=match):
        pmo.fit(model, semisupervised=True)
    with pytest.raises(TypeError, match=match):
        pmo.sample_posterior(model, None)


def test_warnings_point_at_the_line_outside_of_the_package():
    X, y = data(12)
    model = pmo.gp_model(X, y, "expquad", engine="laplace")
    with pytest.warns(pmo.ConvergenceWarning, match="did not converge") as caught:
        fit(model, max_evaluations=2)
    with pytest.warns(UserWarning, match="no unlabelled rows") as more:
        fit(model, semisupervised=True)
    assert {warning.filename for warning in [*caught, *more]} == {__file__}
