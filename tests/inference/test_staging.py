"""Fits to many rows go through stages."""

import numpy as np
import pytest

import pmordinal as pmo
from pmordinal.engines.inducing import engine as inducing
from pmordinal.inference import staging
from pmordinal.inference.landscape import Landscape


@pytest.fixture
def staged(monkeypatch):
    monkeypatch.setattr(inducing, "STAGES", (60,))


def table(n=240):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    f = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)
    return X, np.digitize(f, [-0.4, 0.4])


def model_of(X, y, **options):
    return pmo.gp_model(X, y, "expquad", engine=pmo.Inducing(40), **options)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_stages_end_where_a_single_fit_does(weighted, monkeypatch):
    X, y = table()
    options = {"weights": 1.0 + np.arange(y.size) % 2} if weighted else {}
    whole = pmo.fit(model_of(X, y, **options), progressbar=False)
    assert whole.status.stages == ()
    monkeypatch.setattr(inducing, "STAGES", (60,))
    monkeypatch.setattr(staging, "FEW", 30)
    monkeypatch.setattr(staging, "NEARLY", 1e-8)
    fit = pmo.fit(model_of(X, y, **options), progressbar=False)
    assert [stage.split(":")[0] for stage in fit.status.stages] == ["60 rows", "240 rows"]
    assert fit.status.converged
    assert fit.objective_value == pytest.approx(whole.objective_value, abs=0.05)
    assert fit.posterior.y.size == 240
    assert fit.status.notes["n_inducing"] == fit.posterior.support.size


def test_the_objective_of_some_rows_is_that_of_a_model_of_them():
    X, y = table(60)
    some = np.sort(np.random.default_rng(1).permutation(60)[:25])
    fixed = {"lengthscale": 1.2, "thresholds": [-0.5, 0.6]}
    part = Landscape(
        pmo.gp_model(X, y, "expquad", engine="laplace", standardize=False, **fixed)
    ).of_rows(some)
    own = Landscape(
        pmo.gp_model(X[some], y[some], "expquad", engine="laplace", standardize=False, **fixed)
    )
    x = np.array([-0.7])
    assert part.problem.n_labels == 25
    value, gradient = part.value_and_gradient(x)
    again, same = own.value_and_gradient(x)
    assert value == pytest.approx(again, abs=1e-8)
    np.testing.assert_allclose(gradient, same, atol=1e-6)


@pytest.mark.slow
def test_the_progress_says_stage_evaluations_and_speed(staged):
    X, y = table()
    said = []
    landscape = Landscape(model_of(X, y))
    x = landscape.density.ravel(landscape.density.initial).data.astype(float)
    staging.climb_stages(landscape, x, 100, said.append)
    assert any(
        text.startswith("stage 1 of 2, 60 rows: ") and "rows/s" in text and "evaluations" in text
        for text in said
    )
    assert any(text.startswith("stage 2 of 2, 240 rows: ") for text in said)


@pytest.mark.parametrize("stage", [60, 240])
def test_ctrl_c_keeps_the_best_so_far(staged, stage, monkeypatch):
    """In the fifth evaluation of a stage; `stage` is how many rows that has."""
    X, y = table()
    count = 0
    call = pmo.Inducing.__call__

    def counted(self, *arguments):
        nonlocal count
        count += len(arguments[1]) == stage
        if count == 5:
            count += 1
            raise KeyboardInterrupt
        return call(self, *arguments)

    monkeypatch.setattr(pmo.Inducing, "__call__", counted)
    with pytest.warns(pmo.ConvergenceWarning, match="the best so far is kept"):
        fit = pmo.fit(model_of(X, y), progressbar=False)
    assert fit.status.interrupted
    assert fit.status.stages
    assert fit.posterior.y.size == 240
    assert np.isfinite(fit.log_evidence)


def test_few_inducing_rows_are_advised_against():
    X, y = table(80)
    with pytest.warns(UserWarning, match=r"2 inducing rows are few: .*n_inducing=4"):
        fit = pmo.fit(
            pmo.gp_model(X, y, engine=pmo.Inducing(2), lengthscale=0.5), progressbar=False
        )
    assert "n_inducing=4" in fit.status.advice
    assert fit.status.notes["residual_over_noise"] > 0.1
