"""Amplitude and noise of a regression on labels: a prior of two, sampled in coordinates of their own."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

import pmordinal as pmo
from pmordinal.inference.density import PLAIN
from pmordinal.inference.landscape import Landscape
from pmordinal.inference.starting_points import starting_points
from pmordinal.model.label_scales import TotalNoise, label_scales
from pmordinal.results.summary import parameters


@pytest.fixture
def data(rng):
    X = rng.normal(size=(40, 2))
    y = np.digitize(X[:, 0] + 0.4 * rng.normal(size=40), [-0.7, 0.0, 0.6])
    return X, y


def test_coordinates_are_total_noise_and_ratio_with_the_volume_of_logarithms():
    """What goes forward comes back; log_jac_det against the determinant of differences."""
    value, share = pt.dvector("value"), pt.dscalar("share")
    inputs = (None, None, None, share)
    both = TotalNoise().backward(value, *inputs)
    run = pytensor.function(
        [value, share],
        [both, TotalNoise().forward(both, *inputs), TotalNoise().log_jac_det(value, *inputs)],
        mode=PLAIN,
    )
    for x in np.array([[0.3, -0.7], [-1.0, 2.5], [0.0, -20.0], [0.5, 20.0]]):
        (amplitude, noise), again, volume = run(x, 0.3)
        np.testing.assert_allclose(again, x, rtol=1e-10, atol=1e-14)
        white = amplitude * np.sqrt(0.3)
        assert np.hypot(white, noise) == pytest.approx(np.exp(x[0]))
        assert noise / white == pytest.approx(np.exp(x[1]))
        jacobian = [(run(x + e, 0.3)[0] - run(x - e, 0.3)[0]) / 2e-6 for e in 1e-6 * np.eye(2)]
        expected = np.log(amplitude) + np.log(noise)
        assert volume == pytest.approx(expected)
        if abs(x[1]) < 5:  # where differences have digits
            assert volume == pytest.approx(np.linalg.slogdet(jacobian)[1], abs=1e-6)


def test_draws_are_independent_and_lognormal():
    with pm.Model():
        both = label_scales([0.3, -1.0], [0.5, 1.0], pm.Beta("share", 2.0, 2.0))
        draws = np.log(pm.draw(list(both), 4000, random_seed=1, mode=PLAIN))
    for draw, mean, sd in zip(draws, [0.3, -1.0], [0.5, 1.0], strict=True):
        assert stats.kstest((draw - mean) / sd, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(draws)[0, 1]) < 0.08  # five standard errors


@pytest.mark.slow
def test_density_is_that_of_two_separate_variables(data):
    """In the unconstrained space too, so that a fit finds the same optimum."""
    X, y = data
    together = Landscape(pmo.gp_model(X, y, engine="plsor"))
    spread = np.log(y.std())
    separate = Landscape(
        pmo.gp_model(
            X,
            y,
            engine="plsor",
            amplitude=pm.LogNormal.dist(spread, 0.5),
            noise=pm.LogNormal.dist(-1.0, 1.0),
        )
    )
    for start in (
        {"amplitude": 0.8, "noise": 0.3, "noise_fraction": 0.2},
        {"amplitude": 2.0, "noise": 1.5, "lengthscale": 3.0},
        {"noise": 0.01},
        {},
    ):
        a, b = (
            t.value_and_gradient(starting_points(t, 1, start, np.random.default_rng(0))[0])[0]
            for t in (together, separate)
        )
        assert a == pytest.approx(b, rel=1e-10)


@pytest.mark.slow
def test_gradient(data):
    landscape = Landscape(pmo.gp_model(*data, engine="plsor"))
    start = {"amplitude": 0.9, "noise": 0.6, "noise_fraction": 0.3}
    x = starting_points(landscape, 1, start, np.random.default_rng(0))[0]
    gradient = landscape.gradient(x)
    for slope, e in zip(gradient, 1e-5 * np.eye(x.size), strict=True):
        up, down = landscape.value_and_gradient(x + e)[0], landscape.value_and_gradient(x - e)[0]
        assert slope == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-6)


@pytest.mark.slow
def test_users_see_amplitude_and_noise(data):
    model = pmo.gp_model(*data, engine="plsor")
    fit = pmo.fit(model, progressbar=False)
    np.testing.assert_allclose(fit.point["scales"], [fit.point["amplitude"], fit.noise])
    assert fit.point["noise"] == pytest.approx(fit.noise)
    for shown in (repr(fit), " ".join(parameters(fit))):
        assert "amplitude" in shown
        assert "scales" not in shown
    again = pmo.fit(model, start=fit.point, optimize=False, progressbar=False)
    assert again.objective_value == pytest.approx(fit.objective_value, rel=1e-8)


def test_trees_of_fits_have_all_that_the_model_samples(data):
    """PyMC would draw from the prior what is missing."""
    model = pmo.gp_model(*data, engine="plsor")
    tree = pmo.fit(model, progressbar=False).to_datatree(draws=3, seed=0)
    options = {"model": model, "random_seed": 1, "progressbar": False}
    options |= {"var_names": ["noise"], "compile_kwargs": {"mode": PLAIN}}
    found = pm.sample_posterior_predictive(tree, **options)["posterior_predictive"]["noise"]
    np.testing.assert_allclose(found, tree["posterior"]["noise"])


@pytest.mark.slow
def test_starts(data):
    model = pmo.gp_model(*data, engine="plsor")
    options = {"optimize": False, "progressbar": False}
    whole = pmo.fit(model, start={"scales": [0.7, 0.2]}, **options)
    parts = pmo.fit(model, start={"amplitude": 0.7, "noise": 0.2}, **options)
    assert whole.objective_value == pytest.approx(parts.objective_value)
    assert parts.point["amplitude"] == pytest.approx(0.7)
    assert pmo.fit(model, start={"noise": 0.2}, **options).noise == pytest.approx(0.2)
    with pytest.raises(ValueError, match="outside its prior's support"):
        pmo.fit(model, start={"noise": -1.0}, **options)
    with pytest.raises(TypeError, match="start: 'scales' must be an array of numbers"):
        pmo.fit(model, start={"noise": [1.0, 2.0]}, **options)


@pytest.mark.slow
def test_names_that_are_taken_and_models_with_a_name(data):
    with pm.Model(coords={"scale": ["a", "b", "c"]}):
        pmo.gp_model(*data, engine="plsor", lengthscale=pm.HalfNormal("ls", dims="scale")[0])
    with pm.Model(name="sub") as named:
        pmo.gp_model(*data, engine="plsor")
    start = {"sub::noise": 0.3}
    fit = pmo.fit(named, start=start, optimize=False, progressbar=False)
    assert fit.noise == pytest.approx(0.3)


def test_a_users_own_scales_are_kept(data):
    X, y = data
    with pm.Model() as model:
        scales = pm.LogNormal("scales", 0.0, 0.5, shape=2)
        thresholds = pmo.thresholds("thresholds", 4)
        gp = pmo.MarginalOrdinal(pm.gp.cov.ExpQuad(2, ls=scales[0]))
        gp.marginal_likelihood("y", X, y, thresholds, scales[1])
    start = {"scales": [1.0, 0.5]}
    fit = pmo.fit(model, start=start, optimize=False, progressbar=False)
    np.testing.assert_allclose(fit.point["scales"], [1.0, 0.5])


@pytest.mark.slow
def test_a_sampler_finds_its_way(data):
    """Before, in log amplitude and log noise: 452 effective of 2000 draws with four divergences."""
    import arviz as az

    X, y = data
    model = pmo.gp_model(X, y, engine="plsor")
    options = {"progressbar": False, "random_seed": 1, "nuts_sampler": "pymc"}
    tree = pm.sample(model=model, chains=2, cores=1, **options)
    assert int(tree["sample_stats"]["diverging"].sum()) <= 2
    assert min(float(v.min()) for v in az.ess(tree).values()) > 700
