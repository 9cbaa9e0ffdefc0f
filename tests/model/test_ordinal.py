"""`pmo.Ordinal`: the likelihood as a PyMC distribution, right where PyMC's own ones are not."""

import mpmath
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.blocking import DictToArrayBijection as Bijection
from pytensor.compile.mode import Mode

import pmordinal as pmo
from pmordinal.links import LINKS

PYTHON = Mode(linker="py", optimizer="fast_compile")
B = [-1.0, 0.2, 1.0]
each_link = pytest.mark.parametrize("link", LINKS)


def logp(y, eta, thresholds=B, noise=1.0, link="probit"):
    rv = pmo.Ordinal.dist(eta, thresholds, noise, link)
    return pm.logp(rv, np.asarray(y)).eval(mode=PYTHON)


@each_link
def test_logp_is_the_log_of_the_interval_probability(link, rng):
    eta, y = rng.normal(size=30), rng.integers(0, 4, 30)
    cdf = np.array([LINKS[link].cdf((b - eta) / 0.7) for b in [-np.inf, *B, np.inf]])
    expected = np.diff(cdf, axis=0)[y, np.arange(30)]  # a difference: good to 1e-16 absolute
    found = np.exp(logp(y, eta, noise=0.7, link=link))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def exact(link, y, eta):
    """Return log P(y) and d/dη for the thresholds −1, 1, with 800 digits."""
    with mpmath.workdps(800):
        eta = mpmath.mpf(eta)
        F, f = {
            "probit": (mpmath.ncdf, mpmath.npdf),
            "logit": (
                lambda z: 1 / (1 + mpmath.exp(-z)),
                lambda z: 1 / (2 + mpmath.exp(z) + mpmath.exp(-z)),
            ),
        }[link]
        edges = [(-mpmath.inf), mpmath.mpf(-1), mpmath.mpf(1), mpmath.inf]
        lo, hi = edges[y] - eta, edges[y + 1] - eta
        below = F(hi) if y < 2 else mpmath.mpf(1)
        above = F(lo) if y > 0 else mpmath.mpf(0)
        slope = (f(lo) if y > 0 else 0) - (f(hi) if y < 2 else 0)
        P = below - above
        return float(mpmath.log(P)), float(slope / P)


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_far_predictors_have_finite_and_right_gradients(link):
    cases = [(y, eta) for y in range(3) for eta in (-40.0, 40.0)]
    truth = np.array([exact(link, *case) for case in cases])
    y, at = np.array([c[0] for c in cases]), np.array([c[1] for c in cases])
    eta = pt.dvector("eta")

    def value_and_gradient(rv):
        value = pm.logp(rv, y)
        gradient = pytensor.grad(pt.sum(value), eta)
        return pytensor.function([eta], [value, gradient], mode=PYTHON)(at)

    ours = value_and_gradient(pmo.Ordinal.dist(eta, [-1.0, 1.0], link=link))
    np.testing.assert_allclose(ours[0], truth[:, 0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(ours[1], truth[:, 1], rtol=1e-10, atol=1e-15)
    theirs = {"probit": pm.OrderedProbit, "logit": pm.OrderedLogistic}[link]
    with np.errstate(all="ignore"):
        value, gradient = value_and_gradient(
            theirs.dist(eta=eta, cutpoints=np.array([-1.0, 1.0]), compute_p=False)
        )
    wrong = ~np.isclose(value, truth[:, 0], rtol=1e-6, atol=1e-12)
    wrong |= ~np.isclose(gradient, truth[:, 1], rtol=1e-6, atol=1e-12)
    assert wrong.any(), "PyMC has learned it: the comparison in the docs is out of date"


@each_link
def test_draws_have_the_right_frequencies(link):
    n = 20_000
    rv = pmo.Ordinal.dist(np.full(n, 0.3), B, 0.8, link)
    drawn = pm.draw(rv, random_seed=3, mode=PYTHON)
    assert drawn.dtype.kind == "i"
    frequencies = np.bincount(drawn, minlength=4) / n
    expected = np.exp(logp(np.arange(4), np.full(4, 0.3), noise=0.8, link=link))
    np.testing.assert_allclose(frequencies, expected, atol=5 * 0.5 / np.sqrt(n))  # five sigma


def test_thresholds_and_noise_by_row(rng):
    eta, y = rng.normal(size=5), np.array([0, 1, 2, 1, 0])
    rows = np.sort(rng.normal(size=(5, 2)), axis=1)
    noise = rng.uniform(0.5, 2, 5)
    together = logp(y, eta, rows, noise)
    single = [logp(y[i], eta[i], rows[i], noise[i]) for i in range(5)]
    np.testing.assert_allclose(together, single, rtol=1e-12)
    drawn = pm.draw(pmo.Ordinal.dist(eta, rows, noise), draws=3, random_seed=1, mode=PYTHON)
    assert drawn.shape == (3, 5)
    # one predictor for all, thresholds of five raters
    np.testing.assert_allclose(
        logp(y, 0.3, rows), [logp(k, 0.3, r) for k, r in zip(y, rows, strict=True)]
    )


def test_shapes_of_draws():
    assert pm.draw(pmo.Ordinal.dist(0.0, B), mode=PYTHON).shape == ()
    assert pm.draw(pmo.Ordinal.dist(0.0, B, shape=7), mode=PYTHON).shape == (7,)
    eta = np.zeros((3, 4))
    assert pm.draw(pmo.Ordinal.dist(eta, B), mode=PYTHON).shape == (3, 4)
    assert pmo.Ordinal.dist(eta, B).type.ndim == 2


@pytest.mark.parametrize("code", [-1, 4, 7])
def test_codes_that_are_no_class_are_impossible(code):
    assert logp(code, 0.0) == -np.inf
    np.testing.assert_array_equal(np.isfinite(logp([0, code, 3], np.zeros(3))), [True, False, True])


@pytest.mark.parametrize(("thresholds", "noise"), [([0.0, 0.0], 1.0), ([1.0, 0.0], 1.0), (B, -1.0)])
def test_bad_parameters_are_reported(thresholds, noise):
    with pytest.raises(ValueError, match=r"thresholds must increase|noise must be positive"):
        logp(0, 0.0, thresholds, noise)
    b, s = (pytensor.shared(np.asarray(value, dtype=float)) for value in (thresholds, noise))
    with pytest.raises(Exception, match="thresholds must increase and noise must be positive"):
        logp(0, 0.0, b, s)  # known only when it is computed


def test_unknown_link_lists_the_known():
    with pytest.raises(ValueError, match="unknown link 'cauchit': choose one of 'probit'"):
        pmo.Ordinal.dist(0.0, B, link="cauchit")


@each_link
def test_gradients_in_a_model_equal_differences(link, rng):
    x, y = rng.normal(size=12), rng.integers(0, 4, 12)
    with pm.Model() as model:
        slope = pm.Normal("slope")
        b = pmo.thresholds("b", 4, link=link)
        noise = pm.HalfNormal("noise")
        pmo.Ordinal("y", slope * x, b, noise, link, observed=y)
    f, df = model.compile_logp(mode=PYTHON), model.compile_dlogp(mode=PYTHON)
    start = model.initial_point()
    start["slope"] = np.array(0.7)
    flat = Bijection.map({v.name: start[v.name] for v in model.value_vars})
    h = 1e-5
    for i, g in enumerate(df(start)):
        ends = []
        for sign in (1, -1):
            moved = flat.data.copy()
            moved[i] += sign * h
            ends.append(f(Bijection.rmap(type(flat)(moved, flat.point_map_info))))
        assert g == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6, abs=1e-7)


@pytest.mark.slow
def test_sampling_and_predictive_draws_in_the_default_back_end(rng):
    x = rng.normal(size=60)
    truth = pmo.Ordinal.dist(1.5 * x, B, link="logit")
    y = pm.draw(truth, random_seed=2, mode=PYTHON)
    with pm.Model(coords={"row": np.arange(60)}) as model:
        slope = pm.Normal("slope", 0, 2)
        pmo.Ordinal("y", slope * x, B, link="logit", observed=y, dims="row")
        prior = pm.sample_prior_predictive(20, random_seed=1)
        tree = pm.sample(
            draws=60,
            tune=100,
            chains=1,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
        pm.sample_posterior_predictive(
            tree, random_seed=1, progressbar=False, extend_inferencedata=True
        )
    assert prior["prior_predictive"]["y"].dims == ("chain", "draw", "row")
    assert set(np.unique(prior["prior_predictive"]["y"])) <= {0, 1, 2, 3}
    mean = float(tree["posterior"]["slope"].mean())
    assert abs(mean - 1.5) < 1.0  # four posterior standard deviations
    predicted = tree["posterior_predictive"]["y"].values
    assert predicted.shape == (1, 60, 60)
    # replicated labels go with the predictor as the observed ones do
    assert np.corrcoef(predicted.mean((0, 1)), x)[0, 1] > 0.8
    assert model["y"].type.ndim == 1
