"""Terms of a formula with the engine of inducing rows: linear and group terms are exact, smooth ones through rows."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pmordinal as pmo
from pmordinal.engines import EP, Inducing
from pmordinal.engines.inducing import carriers
from pmordinal.engines.objectives import OBJECTIVES
from pmordinal.gram import Gram, Levels, lower
from pmordinal.likelihood import OrdinalLikelihood

LINEAR = "y ~ x + c + c:x + (1 | judge) + (x | judge)"
SMOOTH = "y ~ x + gp(z) + (1 | judge)"


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    n = 90
    table = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "z": rng.uniform(-2, 2, n),
            "c": rng.choice(["a", "b", "d"], n),
            "judge": rng.choice([f"j{i:02d}" for i in range(20)], n),
        }
    )
    shifts = dict(zip(np.unique(table["judge"]), rng.normal(size=20), strict=False))
    f = table["x"] + np.sin(2 * table["z"]) + table["judge"].map(shifts) + (table["c"] == "a")
    table["y"] = np.searchsorted([-1.0, 0.0, 1.2], f + 0.7 * rng.normal(size=n))
    return table


def at_start(formula, data, engine):
    return pmo.fit(
        pmo.formula_model(formula, data, engine=engine), optimize=False, progressbar=False
    )


@pytest.mark.slow
@pytest.mark.parametrize(("formula", "m"), [(LINEAR, 2), (SMOOTH, 90)])
def test_fits_are_those_of_full_ep(data, formula, m):
    full = pmo.fit(pmo.formula_model(formula, data, engine=EP(tol=1e-10)), progressbar=False)
    fit = pmo.fit(pmo.formula_model(formula, data, engine=Inducing(m)), progressbar=False)
    # optimisers stop where they gain no more than this
    assert fit.objective_value == pytest.approx(full.objective_value, abs=1e-4)
    for name, value in full.point.items():
        np.testing.assert_allclose(fit.point[name], value, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("sites", ["ep", pytest.param("laplace", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("formula", "m"), [(LINEAR, 2), (SMOOTH, 90)])
def test_results_are_those_of_the_full_engine(data, formula, m, sites):
    other = EP(tol=1e-11) if sites == "ep" else pmo.Laplace(tol=1e-11)
    full, fit = (
        at_start(formula, data, engine) for engine in (other, Inducing(m, sites=sites, tol=1e-10))
    )
    p, q = fit.posterior, full.posterior
    assert p.log_evidence == pytest.approx(q.log_evidence, abs=1e-6)
    np.testing.assert_allclose(p.mean, q.mean, atol=1e-6)
    np.testing.assert_allclose(p.variance, q.variance, atol=1e-6)
    assert p.loo == pytest.approx(q.loo, abs=1e-5)
    a, b = p.evidence_gradient(), q.evidence_gradient()
    for mine, theirs in zip(a.parameters, b.parameters, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
    new = data.head(3).assign(x=[0.3, -1.0, 2.0], judge=["j05", "unseen", "j01"])
    np.testing.assert_allclose(fit.predict(new), full.predict(new), atol=1e-6)
    for mine, theirs in ((fit.terms(), full.terms()), (fit.terms(data[:9]), full.terms(data[:9]))):
        np.testing.assert_allclose(mine["mean"], theirs["mean"], atol=1e-5)
        np.testing.assert_allclose(mine["sd"], theirs["sd"], atol=1e-5)
    columns = ["mean", "sd", "lower", "upper"]
    np.testing.assert_allclose(fit.coefficients()[columns], full.coefficients()[columns], atol=1e-5)
    np.testing.assert_allclose(fit.variance_shares(), full.variance_shares(), atol=1e-5)
    effect = fit.effects("x", "latent", n_grid=4)["mean"]
    np.testing.assert_allclose(effect, full.effects("x", "latent", n_grid=4)["mean"], atol=1e-5)


@pytest.mark.slow
def test_draws_of_effects_go_with_those_of_the_latent_function(data):
    fit = at_start("y ~ x + gp(z) + (1 | judge)", data, Inducing(12))
    tree = fit.to_datatree(draws=4000, seed=1)
    table = fit.coefficients()
    judges = table[table["term"] == "1|judge"]
    drawn = tree["posterior"]["1|judge"].values[0]
    np.testing.assert_allclose(drawn.mean(0), judges["mean"], atol=0.06)
    np.testing.assert_allclose(drawn.std(0), judges["sd"], rtol=0.1)
    # f without the effects of judges is the same function of x and z for all of them
    codes = np.searchsorted(tree["posterior"]["judge"].values, data["judge"])
    both = np.array(
        [
            np.corrcoef(drawn[:, g], tree["posterior"]["f"].values[0, :, i])[0, 1]
            for i, g in enumerate(codes)
        ]
    )
    assert np.median(both) > 0.4


def test_a_fit_is_saved_and_loaded(data, tmp_path):
    fit = at_start(SMOOTH, data, Inducing(12))
    assert "12 rows, and 21 columns of linear and group terms, stand for all" in str(fit)
    fit.save(tmp_path / "fit.nc")
    again = pmo.load(tmp_path / "fit.nc")
    np.testing.assert_allclose(again.predict(data), fit.predict(data), rtol=1e-9)
    np.testing.assert_allclose(again.terms()["sd"], fit.terms()["sd"], atol=1e-9)
    assert again.status.notes["n_columns"] == 21


@pytest.mark.parametrize("sites", ["ep", "laplace"])
def test_gradient_is_that_of_finite_differences(sites):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(40, 2)), rng.integers(0, 5, 40)])
    y = rng.integers(0, 3, 40)
    cov = 0.7 * (
        pm.gp.cov.ExpQuad(3, ls=0.8, active_dims=[0]) + pm.gp.cov.Linear(3, c=0.2, active_dims=[1])
    )
    cov = cov + 0.5 * Levels(3, active_dims=[2]) + pmo.LinearARD(3, [0.4, 0.9], active_dims=[0, 1])
    cov = cov + 0.6 * pm.gp.cov.Matern32(3, ls=1.1, active_dims=[1]) + pm.gp.cov.Constant(0.3)
    cov = cov + pm.gp.cov.Linear(3, c=0.1, active_dims=[0]) * Levels(3, active_dims=[2]) * 0.8
    kernel = lower(cov)
    values = [np.array(p.eval(), dtype=float) for p in kernel.parameters]
    likelihood = OrdinalLikelihood([-0.5, 0.6], 0.5)
    gram = Gram(kernel, X, values)
    engine = Inducing(6, sites=sites, tol=1e-11).select(gram, y, likelihood)
    assert np.count_nonzero(np.array(engine.carrier) == 0) == 6
    assert len(engine.basis) == 6 + 1 + 5 + 2 + 1 + 5
    first = engine(gram, y, likelihood)
    found = OBJECTIVES["evidence"](first)[1].parameters
    h = 1e-4
    for k, value in enumerate(values):
        for index in np.ndindex(value.shape):
            ends = []
            for step in (h, -h):
                moved = [v.copy() for v in values]
                moved[k][index] += step
                ends.append(engine(Gram(kernel, X, moved), y, likelihood, first.start).log_evidence)
            expected = (ends[0] - ends[1]) / (2 * h)
            assert found[k][index] == pytest.approx(expected, rel=2e-6, abs=2e-6)


def test_a_term_that_vanishes_does_no_harm():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=30), rng.integers(0, 4, 30)])
    y, likelihood = rng.integers(0, 2, 30), OrdinalLikelihood([0.1], 0.5)
    smooth = pm.gp.cov.ExpQuad(2, ls=0.8, active_dims=[0])
    kernel = lower(smooth + 0.0 * Levels(2, active_dims=[1]))
    gram = Gram(kernel, X, [p.eval() for p in kernel.parameters])
    p = Inducing(30)(gram, y, likelihood)
    alone = lower(smooth)
    q = EP(tol=1e-11)(Gram(alone, X, [0.8]), y, likelihood)
    assert p.log_evidence == pytest.approx(q.log_evidence, abs=1e-6)
    assert np.isfinite(p.evidence_gradient().parameters[1])


def test_too_many_levels_are_refused(data, monkeypatch):
    monkeypatch.setattr(carriers, "MOST_COLUMNS", 15)
    message = "the linear and group terms have 1, 20 columns, and engine 'inducing' carries at most 15 in all"
    with pytest.raises(ValueError, match=message):
        at_start(SMOOTH, data, Inducing(12))


def test_a_wide_linear_function_goes_through_the_inducing_rows(monkeypatch):
    monkeypatch.setattr(carriers, "MOST_COLUMNS", 3)
    X = np.random.default_rng(0).normal(size=(50, 5))
    gram = Gram(lower(pm.gp.cov.Linear(5, c=0.0)), X, [0.0])
    engine = Inducing(4).select(gram, np.zeros(50, dtype=int), OrdinalLikelihood([0.0]))
    assert engine.carrier == (0,) * 4
