"""The ordinal likelihood and its Gaussian averages, against multiprecision integrals.

The reference integrates in mpmath over the latent value; its derivatives in the mean come from Hermite
polynomials, so neither the formulas of the links nor those of the mixtures are used.
"""

import functools
import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmordinal.likelihood import OrdinalLikelihood
from pmordinal.likelihood.smoothing import interval_terms, smooth
from pmordinal.links import LINKS

INF = np.inf
ORDERS = ("d1", "curvature", "d3", "d4")
TRIPLES = ("upper", "lower", "log_noise")
DIGITS = 32

# --- reference --------------------------------------------------------------------------------

CDF = {  # below, above, density
    "logit": (
        lambda z: 1 / (1 + mpmath.exp(-z)),
        lambda z: 1 / (1 + mpmath.exp(z)),
        lambda z: 1 / (2 + mpmath.exp(z) + mpmath.exp(-z)),
    ),
    "cloglog": (
        lambda z: -mpmath.expm1(-mpmath.exp(z)),
        lambda z: mpmath.exp(-mpmath.exp(z)),
        lambda z: mpmath.exp(z - mpmath.exp(z)),
    ),
    "probit": (mpmath.ncdf, lambda z: mpmath.ncdf(-z), mpmath.npdf),
}


@functools.cache
def gauss_legendre(n):
    rule = []
    for k in range(n):
        x = mpmath.mpf(math.cos(math.pi * (k + 0.75) / (n + 0.5)))
        for _ in range(8):
            p0, p1 = mpmath.mpf(1), x
            for j in range(2, n + 1):
                p0, p1 = p1, ((2 * j - 1) * x * p1 - (j - 1) * p0) / j
            slope = n * (x * p1 - p0) / (x * x - 1)
            x -= p1 / slope
        rule.append((x, 2 / ((1 - x * x) * slope**2)))
    return rule


def pieces(name, lower, upper, mean, noise, var):
    """Cut the line where the log-concave integrand lives into steps of its own width."""
    link = LINKS[name]

    def log_integrand(f):
        lo, hi, width = (lower - f) / noise, (upper - f) / noise, (upper - lower) / noise
        q = link.interval(lo, hi, width)
        value = float(q.log_prob) - 0.5 * (f - mean) ** 2 / var
        slope = float(q.slope) / noise - (f - mean) / var
        return value, slope, float(q.curvature) / noise**2 + 1 / var

    anchors = [b for b in (lower, upper) if math.isfinite(b)] + [mean]
    a, b = min(anchors) - 60 * noise, max(anchors) + 60 * noise
    for _ in range(100):
        middle = 0.5 * (a + b)
        a, b = (middle, b) if log_integrand(middle)[1] > 0 else (a, middle)
    top = log_integrand(a)[0]
    edges = [a]
    for sign in (1, -1):
        f = a
        while log_integrand(f)[0] > top - 60:
            f += sign * min(2.0 / math.sqrt(log_integrand(f)[2]), 2 * noise)
            edges.append(f)
    return sorted(edges)


def reference(name, lower, upper, mean, noise, var, n=16):
    """Return all fields of `Terms` for one datum, as floats."""
    below, above, density = CDF[name]
    zero, edges = mpmath.mpf(0), pieces(name, lower, upper, mean, noise, var)
    with mpmath.workdps(DIGITS):
        s, mu, sd = mpmath.mpf(noise), mpmath.mpf(mean), mpmath.sqrt(mpmath.mpf(var))
        moments = [[zero] * 5, [zero] * 3, [zero] * 3, [zero] * 3]
        for a, b in itertools.pairwise(map(mpmath.mpf, edges)):
            for x, w in gauss_legendre(n):
                f = ((a + b) + (b - a) * x) / 2
                u = (f - mu) / sd
                weight = w * (b - a) / 2 * mpmath.npdf(u) / sd
                lo, hi = (lower - f) / s, (upper - f) / s
                if mpmath.isinf(lo):
                    P = below(hi)
                elif mpmath.isinf(hi):
                    P = above(lo)
                else:
                    P = above(lo) - above(hi) if lo + hi > 0 else below(hi) - below(lo)
                at_hi = zero if mpmath.isinf(hi) else density(hi)
                at_lo = zero if mpmath.isinf(lo) else density(lo)
                by_noise = -(hi * at_hi if at_hi else zero) + (lo * at_lo if at_lo else zero)
                hermite = (1, u, u * u - 1, u**3 - 3 * u, u**4 - 6 * u * u + 3)
                for sums, g in zip(moments, (P, at_hi / s, -at_lo / s, by_noise), strict=True):
                    for k in range(len(sums)):
                        sums[k] += weight * g * hermite[k]
        Z = moments[0][0]
        p, *others = ([m / (Z * sd**k) for k, m in enumerate(sums)] for sums in moments)
        curvature = p[1] ** 2 - p[2]
        out = {
            "value": mpmath.log(Z),
            "d1": p[1],
            "curvature": curvature,
            "d3": p[3] - 3 * p[2] * p[1] + 2 * p[1] ** 3,
            "d4": p[4] - 4 * p[3] * p[1] - 3 * p[2] ** 2 + 12 * p[2] * p[1] ** 2 - 6 * p[1] ** 4,
            "shrink": 1 - sd**2 * curvature,
        }
        out = {key: float(value) for key, value in out.items()}
        for key, g in zip(TRIPLES, others, strict=True):
            first = g[1] - p[1] * g[0]
            second = g[2] - p[2] * g[0] - 2 * p[1] * first
            out[key] = tuple(map(float, (g[0], first, second)))
        return out


def errors(terms, i, exact, noise, var):
    """Return the error of each field of datum `i` in units of its natural scale.

    A derivative of order k is measured by the k-th power of the slope or of 1/√(noise² + var),
    whichever is larger, and by itself where it is larger than that.
    """
    unit = max(abs(exact["d1"]), (noise**2 + var) ** -0.5)
    out = {"value": abs(terms.value[i] - exact["value"]) / max(1.0, abs(exact["value"]))}
    out["shrink"] = abs(terms.shrink[i] / exact["shrink"] - 1.0)
    for k, key in enumerate(ORDERS, 1):
        error = abs(getattr(terms, key)[i] - exact[key])
        out[key] = error / max(unit**k, abs(exact[key]))
    for key in TRIPLES:
        for j in range(3):
            k = j if key == "log_noise" else j + 1
            error = abs(getattr(terms, key)[j][i] - exact[key][j])
            out[f"{key}[{j}]"] = error / max(unit**k, abs(exact[key][j]))
    return out


# Measured over the slow grid: value 2e-12, slope 2e-11, curvature 1e-10, d3 6e-10, the others below
# 8e-9, which is what 97 nodes give where the Gaussian is as wide as the noise. Two fields are worse
# (3e-9 and 4e-8) in one corner: cloglog, 30 units below, where log P itself is −1e9 and its rounding
# moves the weights. The limits leave a factor of about five.
LIMITS = {"value": 1e-11, "d1": 1e-10, "curvature": 5e-10, "shrink": 3e-8, "d3": 3e-9, "d4": 5e-8}
LIMITS |= {f"{key}[{j}]": 3e-9 for key in TRIPLES for j in range(3)}
LIMITS |= {"log_noise[1]": 3e-7, "log_noise[2]": 3e-8}

# (lower, upper, mean, var) in units of the noise and its square
FEW = [
    (-INF, 0.0, 0.5, 0.1),
    (0.0, INF, 0.0, 0.9),
    (-1.0, 2.0, 0.3, 1.1),
    (-1e-6, 1e-6, 10.0, 1.1),
    (-40.0, 5.0, -30.0, 1.1),
    (0.0, INF, -30.0, 1e-6),
    (-INF, 0.0, 30.0, 100.0),
    (0.0, INF, -30.0, 1e4),
    (-1e-6, 1e-6, 3.0, 1e4),
    (0.2, 0.4, -8.0, 1e-2),
]
GRID = [
    (lower, upper, mean, var)
    for (lower, upper), mean, var in itertools.product(
        [(-INF, 0.0), (0.0, INF), (-1e-6, 1e-6), (-1.0, 2.0), (-40.0, 5.0)],
        [-30.0, -8.0, -1.0, 0.0, 3.0, 30.0],
        [1e-6, 1e-2, 0.9, 1.1, 1e2, 1e4],
    )
]


def check_against_reference(name, cases):
    noise = 0.5
    lower, upper, mean, var = np.array(cases).T * np.array([[noise] * 3 + [noise**2]]).T
    terms = smooth(LINKS[name], lower, upper, mean, noise, np.sqrt(var))
    worst = dict.fromkeys(LIMITS, (0.0, ()))
    for i, case in enumerate(cases):
        exact = reference(name, lower[i], upper[i], mean[i], noise, var[i])
        for key, error in errors(terms, i, exact, noise, var[i]).items():
            worst[key] = max(worst[key], (error, case))
    bad = {key: found for key, found in worst.items() if not found[0] <= LIMITS[key]}
    assert not bad, f"beyond the limits: {bad}; all: {worst}"


OPEN_LINKS = [name for name, link in LINKS.items() if not link.closed_form_smoothing]


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("logit", FEW[::2]),
        pytest.param("logit", FEW[1::2], marks=pytest.mark.slow),
        pytest.param("cloglog", FEW, marks=pytest.mark.slow),
    ],
)
def test_averages_equal_multiprecision_integrals(name, cases):
    check_against_reference(name, cases)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPEN_LINKS)
def test_averages_equal_multiprecision_integrals_on_a_grid(name):
    check_against_reference(name, GRID)


def test_reference_equals_the_closed_form_of_the_probit():
    """The reference itself is checked where the answer is known."""
    exact = reference("probit", -0.3, 0.5, 2.0, 1.0, 3.0)
    terms = interval_terms(LINKS["probit"], *np.array([[-0.3], [0.5], [2.0]]), 1.0, 3.0)
    assert max(errors(terms, 0, exact, 1.0, 3.0).values()) < 1e-13


@pytest.mark.parametrize("noise", [1e-3, 1.0, 10.0])
def test_quadrature_equals_the_closed_form_of_the_probit(noise, rng):
    n = 2000
    edges = np.sort(rng.normal(size=(n, 2)) * 10.0 ** rng.integers(-3, 2, (n, 1)), axis=1) * noise
    kind = rng.integers(0, 3, n)
    lower = np.where(kind == 0, -INF, edges[:, 0])
    upper = np.where(kind == 2, INF, edges[:, 1])
    mean = edges[:, 0] + rng.uniform(-30, 30, n) * noise
    var = 10 ** rng.uniform(-6, 4, n) * noise**2
    probit = LINKS["probit"]
    closed = interval_terms(probit, lower, upper, mean, noise, var)
    terms = smooth(probit, lower, upper, mean, noise, np.sqrt(var))
    unit = np.maximum(np.abs(closed.d1), (noise**2 + var) ** -0.5)
    # 3e-12: rounding only, since Gaussian times Gaussian needs few nodes; the mixed derivatives of intervals
    # 1e-5 wide lose three digits.
    np.testing.assert_allclose(terms.value, closed.value, rtol=3e-14, atol=3e-14)
    np.testing.assert_allclose(terms.shrink, closed.shrink, rtol=1e-12)
    for k, key in enumerate(ORDERS, 1):
        error = np.abs(getattr(terms, key) - getattr(closed, key)) / unit**k
        assert error.max() < 3e-14, key
    for key, j in itertools.product(TRIPLES, range(3)):
        exact = getattr(closed, key)[j]
        scale = unit ** (j if key == "log_noise" else j + 1) + np.abs(exact)
        assert np.max(np.abs(getattr(terms, key)[j] - exact) / scale) < 3e-12, (key, j)


@pytest.mark.parametrize("name", LINKS)
def test_average_is_finite_everywhere(name, rng):
    """No NaN, no infinity, no warning (warnings are errors), variances from 1e-12 to 1e8."""
    n = 3000
    width = 10 ** rng.uniform(-8, 2, n)
    lower = rng.normal(size=n)
    upper = lower + width
    kind = rng.integers(0, 4, n)
    lower, upper = np.where(kind == 0, -INF, lower), np.where(kind == 1, INF, upper)
    mean = rng.uniform(-40, 40, n)
    var = 10 ** rng.uniform(-12, 8, n)
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        terms = smooth(LINKS[name], lower, upper, mean, 1.0, np.sqrt(var))
    for key in ("value", *ORDERS, "shrink"):
        assert np.isfinite(getattr(terms, key)).all(), key
    assert all(np.isfinite(x).all() for key in TRIPLES for x in getattr(terms, key))
    assert (terms.curvature >= 0).all()
    assert ((terms.shrink > 0) & (terms.shrink <= 1 + 1e-12)).all()
    sane = terms.value > -1e6  # below that the rounding of log P is seen in the weights
    shrink = (1 - var * terms.curvature)[sane]
    np.testing.assert_allclose(shrink, terms.shrink[sane], atol=1e-9)


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("var", [1.0, 1e-4, 5e-7, 1e-9])
def test_average_of_a_class_forty_thousand_noise_units_away(name, var):
    """The Gaussian pays: log Z is about −½ (distance)²/(var + …), also where F alone is −e^40000."""
    likelihood = OrdinalLikelihood([5.0, 5.001, 40.0], 1e-3, name)
    terms = likelihood.tilted(np.arange(4), np.zeros(4), np.full(4, var))
    distance = np.array([0.0, 5.0, 5.001, 40.0])
    assert np.all(terms.value <= 1e-12)
    # between the cost of a Gaussian alone and that of the noise's tail alone
    assert np.all(terms.value >= -0.5 * (distance + 0.1) ** 2 / var - 50.0)
    arrays = [getattr(terms, key) for key in (*ORDERS, "shrink")]
    arrays += [x for key in TRIPLES for x in getattr(terms, key)]
    assert np.isfinite(arrays).all()
    if name != "cloglog":  # there log Z = −8e8 is so large that its rounding moves the weights
        np.testing.assert_allclose(1 - var * terms.curvature, terms.shrink, atol=1e-7)


def likelihood_and_data(name, rng, n=40):
    likelihood = OrdinalLikelihood([-1.2, -1.0, 0.3, 2.0], 0.6, name)
    y = rng.integers(0, 5, n)
    return likelihood, y, rng.normal(size=n) * 2, 10 ** rng.uniform(-2, 1, n)


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("averaged", [False, True], ids=["log_prob", "tilted"])
def test_derivatives_in_the_mean_are_finite_differences(name, averaged, rng):
    likelihood, y, mean, var = likelihood_and_data(name, rng)

    def terms(mean):
        return likelihood.tilted(y, mean, var) if averaged else likelihood.log_prob(y, mean)

    here, h = terms(mean), 1e-5
    after, before = terms(mean + h), terms(mean - h)
    for key, of in zip(ORDERS, ("value", "d1", "curvature", "d3"), strict=True):
        slope = (getattr(after, of) - getattr(before, of)) / (2 * h)
        slope = -slope if key in ("curvature", "d3") else slope  # −L'' is stored
        # error of the difference: h² d⁵ ~ 1e-10 · 100, rounding 1e-16/h
        np.testing.assert_allclose(getattr(here, key), slope, rtol=1e-6, atol=2e-8, err_msg=key)


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("averaged", [False, True], ids=["log_prob", "tilted"])
def test_derivatives_in_thresholds_and_noise_are_finite_differences(name, averaged, rng):
    likelihood, y, mean, var = likelihood_and_data(name, rng)
    h = 1e-5

    def triple(thresholds, noise):
        moved = OrdinalLikelihood(thresholds, noise, name)
        terms = moved.tilted(y, mean, var) if averaged else moved.log_prob(y, mean)
        return np.array([terms.value, terms.d1, -terms.curvature])

    def centred(move):
        return (triple(*move(h)) - triple(*move(-h))) / (2 * h)

    b, s = likelihood.thresholds, likelihood.noise
    here = likelihood.tilted(y, mean, var) if averaged else likelihood.log_prob(y, mean)
    by_noise = centred(lambda t: (b, s * math.exp(t)))
    np.testing.assert_allclose(here.log_noise, by_noise, rtol=1e-6, atol=2e-8)
    for j in range(b.size):
        difference = centred(lambda t, j=j: (b + t * (np.arange(b.size) == j), s))
        expected = np.where(y == j, here.upper, 0.0) + np.where(y == j + 1, here.lower, 0.0)
        np.testing.assert_allclose(expected, difference, rtol=1e-6, atol=5e-8)
        total = likelihood.threshold_gradient(y, here.upper[0], here.lower[0])[j]
        np.testing.assert_allclose(total, difference[0].sum(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", LINKS)
def test_derivative_in_the_variance_is_half_of_the_second_one(name, rng):
    likelihood, y, mean, var = likelihood_and_data(name, rng)
    here, h = likelihood.tilted(y, mean, var), 1e-5
    after = likelihood.tilted(y, mean, var * (1 + h)).value
    before = likelihood.tilted(y, mean, var * (1 - h)).value
    slope = (after - before) / (2 * h * var)
    np.testing.assert_allclose(
        0.5 * (here.d1**2 - here.curvature), slope, rtol=1e-6, atol=1e-9 / var.min()
    )


@pytest.mark.parametrize("name", LINKS)
def test_probabilities_of_all_classes_sum_to_one(name, rng):
    likelihood = OrdinalLikelihood([-3.0, -2.999, 0.0, 5.0], 0.3, name)
    mean, var = rng.normal(size=50) * 10, 10 ** rng.uniform(-6, 4, 50)
    values = [likelihood.tilted(np.full(50, k), mean, var).value for k in range(5)]
    # before the normalisation in `probabilities`, which must only remove rounding
    np.testing.assert_allclose(np.exp(values).sum(0), 1.0, rtol=1e-11)
    table = likelihood.probabilities(mean, var)
    np.testing.assert_allclose(table, np.exp(values).T, rtol=1e-11)
    np.testing.assert_allclose(table.sum(1), 1.0, rtol=1e-15 * 5)


@pytest.mark.parametrize("name", ["probit", "logit"])  # the symmetric ones
def test_reflection(name, rng):
    likelihood, y, mean, var = likelihood_and_data(name, rng)
    mirror = OrdinalLikelihood(-likelihood.thresholds[::-1], likelihood.noise, name)
    a, b = likelihood.tilted(y, mean, var), mirror.tilted(4 - y, -mean, var)
    # mirrored nodes, summed in another order
    for key, sign in zip(("value", *ORDERS), (1, -1, 1, -1, 1), strict=True):
        np.testing.assert_allclose(
            getattr(a, key), sign * getattr(b, key), rtol=1e-9, atol=1e-11, err_msg=key
        )
    np.testing.assert_allclose(a.upper, np.array([-1, 1, -1])[:, None] * b.lower, atol=1e-10)


@pytest.mark.parametrize("name", LINKS)
def test_two_classes_are_binary(name, rng):
    likelihood = OrdinalLikelihood([0.4], 0.7, name)
    f = rng.normal(size=30)
    upper = 1.0 - LINKS[name].cdf((0.4 - f) / 0.7)
    np.testing.assert_allclose(
        np.exp(likelihood.log_prob(np.ones(30, int), f).value), upper, rtol=1e-12, atol=1e-15
    )
    tiny = likelihood.probabilities(f, np.full(30, 1e-14))
    np.testing.assert_allclose(tiny[:, 1], upper, rtol=1e-10, atol=1e-15)  # no Gaussian is left


@pytest.mark.parametrize("name", LINKS)
def test_draws_have_the_probabilities(name, rng):
    likelihood = OrdinalLikelihood([-0.5, 0.2, 1.0], 0.8, name)
    n = 40_000
    drawn = likelihood.draw(np.full((2, n), 0.3), rng)
    assert drawn.shape == (2, n)
    expected = likelihood.probabilities(np.array([0.3]), np.array([0.0]) + 1e-14)[0]
    counts = np.bincount(drawn.ravel(), minlength=4) / (2 * n)
    np.testing.assert_allclose(counts, expected, atol=5 * 0.5 / math.sqrt(2 * n))  # five sigma


@given(st.floats(-30, 30), st.floats(-6, 4), st.floats(-6, 1.5), st.sampled_from(sorted(LINKS)))
def test_a_wider_class_is_more_probable(mean, log_var, log_width, name):
    mean, var = np.array([mean]), np.array([10.0**log_var])
    values = []
    for factor in (1.0, 1.5):
        likelihood = OrdinalLikelihood([0.0, factor * 10.0**log_width], 1.0, name)
        values.append(likelihood.tilted(np.array([1]), mean, var).value[0])
    # never less by more than the quadrature's error
    assert values[1] >= values[0] - 1e-11 * (1 + abs(values[0]))


@pytest.mark.parametrize(
    ("thresholds", "noise", "message"),
    [
        ([0.0, 0.0], 1.0, "thresholds must be finite and increasing"),
        ([1.0, 0.0], 1.0, "thresholds must be finite and increasing"),
        ([np.nan], 1.0, "thresholds must be finite and increasing"),
        ([], 1.0, "thresholds must be a vector"),
        ([[0.0, 1.0]], 1.0, "thresholds must be a vector"),
        ([0.0], 0.0, "noise must be positive"),
        ([0.0], np.inf, "noise must be positive"),
    ],
)
def test_bad_parameters_are_refused(thresholds, noise, message):
    with pytest.raises(ValueError, match=message):
        OrdinalLikelihood(thresholds, noise)
    with pytest.raises(ValueError, match="unknown link 'prohibit': choose one of 'probit'"):
        OrdinalLikelihood([0.0], 1.0, "prohibit")
