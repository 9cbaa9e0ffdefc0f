"""`pmo.thresholds`: draws are ordered, and the density is that of the draws."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from scipy import integrate, stats

import pmordinal as pmo
from pmordinal.links import LINKS

PYTHON = Mode(linker="py", optimizer="fast_compile")
each_link = pytest.mark.parametrize("link", LINKS)


def prior(r, **options):
    """Return the density of the thresholds as a function, and draws of them."""
    with pm.Model() as model:
        b = pmo.thresholds("b", r, **options)
    value = pt.dvector("value")
    density = pm.logp(b, value) if b in model.free_RVs else None
    return b, value, density


def draws(b, n):
    return pm.draw(b, draws=n, random_seed=11, mode=PYTHON)


@each_link
@pytest.mark.parametrize("r", [2, 3, 10])
def test_draws_are_ordered(link, r):
    b, _, _ = prior(r, link=link)
    drawn = draws(b, 200)
    assert drawn.shape == (200, r - 1)
    assert np.all(np.diff(drawn, axis=1) > 0)
    assert np.all(np.isfinite(drawn))


@each_link
def test_probabilities_of_the_draws_are_dirichlet(link):
    a = np.array([0.8, 2.0, 3.5])
    b, _, _ = prior(3, concentration=a, scale=1.7, link=link)
    edges = LINKS[link].cdf(draws(b, 4000) / 1.7)
    p = np.diff(np.concatenate([np.zeros((4000, 1)), edges, np.ones((4000, 1))], axis=1), axis=1)
    for k in range(3):  # the margins of a Dirichlet are Beta(a_k, Σa − a_k)
        assert stats.kstest(p[:, k], stats.beta(a[k], a.sum() - a[k]).cdf).pvalue > 1e-4


@each_link
@pytest.mark.parametrize("r", [2, 4])
def test_density_is_the_dirichlet_with_its_jacobian(link, r):
    """The log density is log Dirichlet(p(b)) + Σ log φ(b_j/scale)/scale, by SciPy's Dirichlet."""
    a = np.linspace(0.7, 2.5, r)
    b, value, density = prior(r, concentration=a, scale=0.6, link=link)
    for point in draws(b, 5):
        p = np.diff(LINKS[link].cdf(np.concatenate([[-np.inf], point / 0.6, [np.inf]])))
        expected = stats.dirichlet(a).logpdf(p / p.sum())
        expected += np.sum(LINKS[link].logpdf(point / 0.6) - np.log(0.6))
        assert density.eval({value: point}, mode=PYTHON) == pytest.approx(expected, rel=1e-8)


def test_density_integrates_to_one_and_has_the_moments_of_the_draws():
    a = np.array([1.5, 2.0, 1.0])
    b, value, density = prior(3, concentration=a, scale=1.3)
    f = pytensor.function([value], density, mode=PYTHON)
    x, w = np.polynomial.legendre.leggauss(40)
    x, w = 8.0 * x, 8.0 * w  # beyond six scales the density is below 1e-8
    total, first = 0.0, np.zeros(2)
    for i in range(40):  # b_1 = x_i, b_2 from there to 8
        half = 0.5 * (8.0 - x[i])
        for u, v in zip(x / 8.0, w / 8.0, strict=True):
            point = np.array([x[i], x[i] + half * (1 + u)])
            mass = w[i] * v * half * np.exp(f(point))
            total += mass
            first += mass * point
    assert total == pytest.approx(1.0, abs=1e-5)
    sample = draws(b, 4000)
    error = 5 * sample.std(0) / np.sqrt(4000)
    assert np.all(np.abs(sample.mean(0) - first) < error)


def test_density_of_one_threshold_integrates_to_one():
    for link in LINKS:
        _, value, density = prior(2, concentration=[2.0, 0.9], scale=0.8, link=link)
        f = pytensor.function([value], density, mode=PYTHON)
        total = integrate.quad(lambda x, f=f: float(np.exp(f(np.array([x])))), -40, 40, limit=200)[
            0
        ]
        assert total == pytest.approx(1.0, abs=1e-6), link


def test_disorder_has_no_density():
    _, value, density = prior(4)
    assert density.eval({value: np.array([0.5, 0.0, 1.0])}, mode=PYTHON) == -np.inf
    assert density.eval({value: np.array([0.5, 0.5, 1.0])}, mode=PYTHON) == -np.inf


@each_link
def test_density_far_out_is_finite_with_a_gradient(link):
    _, value, density = prior(4, link=link)
    far = np.array([-30.0, -29.0, 25.0]) if link != "cloglog" else np.array([-30.0, -29.0, 3.0])
    f = pytensor.function([value], [density, pytensor.grad(density, value)], mode=PYTHON)
    found, gradient = f(far)
    assert np.isfinite(found)
    h = 1e-5
    for j in range(3):
        unit = h * (np.arange(3) == j)
        slope = (f(far + unit)[0] - f(far - unit)[0]) / (2 * h)
        assert gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_scale_may_be_a_random_variable():
    with pm.Model() as model:
        noise = pm.HalfNormal("noise")
        b = pmo.thresholds("b", 3, scale=pt.sqrt(1 + noise**2))
    drawn = pm.draw([noise, b], draws=2000, random_seed=1, mode=PYTHON)
    z = drawn[1] / np.sqrt(1 + drawn[0][:, None] ** 2)
    assert stats.kstest(stats.norm.cdf(z[:, 0]), stats.beta(1, 2).cdf).pvalue > 1e-4
    start = model.initial_point()
    value, gradient = (
        model.compile_logp(mode=PYTHON)(start),
        model.compile_dlogp(mode=PYTHON)(start),
    )
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient))
    assert gradient.size == 3


def test_start_is_the_mean_category_probability():
    with pm.Model() as model:
        pmo.thresholds("b", 4, concentration=[1.0, 2.0, 3.0, 4.0])
    slot = model.initial_point(random_seed=0)["b_ordered__"]
    above = np.concatenate([[0.0], np.cumsum(np.exp(slot[1:]))])
    start = slot[0] + above - above.mean()  # the coordinates are the mean and the logs of the gaps
    np.testing.assert_allclose(start, stats.norm.ppf([0.1, 0.3, 0.6]), rtol=1e-6)


def test_padded_form():
    with pm.Model() as model:
        b = pmo.thresholds("b", 5, kind="padded")
    assert [v.name for v in model.free_RVs] == ["b_first", "b_gaps"]
    drawn, first, gaps = pm.draw(
        [b, model["b_first"], model["b_gaps"]], 50, random_seed=1, mode=PYTHON
    )
    np.testing.assert_allclose(drawn[:, 0], first)
    np.testing.assert_allclose(np.diff(drawn, axis=1), gaps)
    assert np.all(gaps > 0)
    with pm.Model() as model:
        own = pmo.thresholds(
            "b", 3, kind="padded", first=-1.0, gaps=pm.Exponential("gap", 1.0, shape=1)
        )
    assert [v.name for v in model.free_RVs] == ["gap"]
    assert draws(own, 3)[:, 0].tolist() == [-1.0] * 3
    with pm.Model() as model:
        two = pmo.thresholds("b", 2, kind="padded")
    assert draws(two, 2).shape == (2, 1)


def test_fixed_values():
    with pm.Model() as model:
        b = pmo.thresholds("b", values=[-1, 0, 2])
    assert model.free_RVs == []
    np.testing.assert_array_equal(b.eval(mode=PYTHON), [-1.0, 0.0, 2.0])


def test_dims_label_the_thresholds():
    with pm.Model(coords={"cut": ["low|mid", "mid|high"]}) as model:
        pmo.thresholds("b", 3, dims="cut")
        pmo.thresholds("c", 3, kind="padded", dims="cut")
        pmo.thresholds("d", values=[0.0, 1.0], dims="cut")
    assert all(model.named_vars_to_dims[name] == ("cut",) for name in "bcd")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ValueError, "n_classes: say how many classes there are"),
        ({"n_classes": 1}, ValueError, "n_classes must be an integer of at least 2, got 1"),
        ({"n_classes": 3.0}, TypeError, "n_classes must be an integer of at least 2.*pass 3"),
        ({"n_classes": 3, "kind": "pad"}, ValueError, "kind must be one of 'dirichlet', 'padded'"),
        ({"n_classes": 3, "concentration": 0.0}, ValueError, "concentration must be at least 0.05"),
        (
            {"n_classes": 3, "concentration": [1, np.nan, 1]},
            ValueError,
            "concentration must be finite",
        ),
        ({"n_classes": 3, "link": "cauchit"}, ValueError, "unknown link 'cauchit'"),
        ({"values": [1.0, 0.0]}, ValueError, "fixed thresholds must increase"),
        ({"values": []}, ValueError, "fixed thresholds must increase"),
        ({"values": [0.0, np.inf]}, ValueError, "values must be finite"),
        ({"n_classes": 3, "values": [0.0]}, ValueError, "3 classes have 2 thresholds, got 1"),
    ],
)
def test_bad_arguments(options, error, message):
    with pm.Model(), pytest.raises(error, match=message):
        pmo.thresholds("b", **options)


def test_wrong_number_of_concentrations():
    with pm.Model(), pytest.raises(ValueError, match="concentration"):
        pmo.thresholds("b", 3, concentration=[1.0, 2.0])


def test_coordinates_have_the_volume_of_log_gaps_whatever_the_unit():
    """log_jac_det against the determinant of differences, and forward undoes backward."""
    from pmordinal.model.thresholds import Gaps

    value, unit = pt.dvector("value"), pt.dscalar("unit")
    inputs = (None, pt.constant(np.ones(4)), None, None, unit)
    b = Gaps().backward(value, *inputs)
    back = pytensor.function(
        [value, unit],
        [b, Gaps().forward(b, *inputs), Gaps().log_jac_det(value, *inputs)],
        mode="FAST_COMPILE",
    )
    x, h = np.array([0.3, -0.7, 0.4, -1.2]), 1e-6
    thresholds, again, volume = back(x, 0.37)
    np.testing.assert_allclose(again, x, rtol=1e-12)
    assert thresholds.mean() == pytest.approx(0.3)
    jacobian = [(back(x + h * e, 0.37)[0] - back(x - h * e, 0.37)[0]) / (2 * h) for e in np.eye(4)]
    assert volume == pytest.approx(np.linalg.slogdet(jacobian)[1], abs=1e-8)
    assert volume == pytest.approx(np.log(np.diff(thresholds)).sum())
