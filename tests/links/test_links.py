"""Every link against multiprecision arithmetic, and the identities that hold between its parts.

The reference is independent of the code: P and its derivatives in the shift from the derivatives of
the density, combined as P''''/P … with enough digits that their cancellation does not matter.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from pmordinal.links import LINKS, Link, get_link

INF = np.inf

# --- reference --------------------------------------------------------------------------------


def _probit_density(z):
    return [mpmath.npdf(z) * p for p in (mpmath.mpf(1), -z, z**2 - 1, -(z**3) + 3 * z)]


def _logit_density(z):
    e = mpmath.exp(-abs(z))
    phi = e / (1 + e) ** 2
    u = mpmath.sign(z) * (e - 1) / (1 + e)  # 1 − 2σ(z)
    return [phi * p for p in (1, u, 1 - 6 * phi, u * (1 - 12 * phi))]


def _cloglog_density(z):
    G = mpmath.exp(z)
    phi = G * mpmath.exp(-G)
    return [phi * p for p in (1, 1 - G, 1 - 3 * G + G**2, 1 - 7 * G + 6 * G**2 - G**3)]


def _probit_below(z):
    return mpmath.erfc(-z / mpmath.sqrt(2)) / 2


def _logit_below(z):
    return 1 / (1 + mpmath.exp(-z))


REFERENCE = {
    "probit": (_probit_density, _probit_below, lambda z: _probit_below(-z)),
    "logit": (_logit_density, _logit_below, lambda z: _logit_below(-z)),
    "cloglog": (
        _cloglog_density,
        lambda z: -mpmath.expm1(-mpmath.exp(z)),
        lambda z: mpmath.exp(-mpmath.exp(z)),
    ),
}


def reference(name, lo, hi, width, digits):
    """Return all fields of the interval as exact numbers, with their natural scales."""
    density, below, above = REFERENCE[name]
    with mpmath.workdps(digits):
        zero = [mpmath.mpf(0)] * 4
        if lo > -INF and hi < INF:
            lo, w = mpmath.mpf(lo), mpmath.mpf(width)
            hi = lo + w
            # Differences of the smaller tails, so that digits are lost only to the width.
            P = above(lo) - above(hi) if lo + hi > 0 else below(hi) - below(lo)
            at_lo, at_hi = density(lo), density(hi)
        elif lo > -INF:
            lo, hi, w = mpmath.mpf(lo), mpmath.mpf(0), mpmath.mpf(0)
            P, at_lo, at_hi = above(lo), density(lo), zero
        elif hi < INF:
            lo, hi, w = mpmath.mpf(0), mpmath.mpf(hi), mpmath.mpf(0)
            P, at_lo, at_hi = below(hi), zero, density(hi)
        else:
            lo = hi = w = mpmath.mpf(0)
            P, at_lo, at_hi = mpmath.mpf(1), zero, zero
        p1, p2, p3, p4 = (
            (-1) ** k * (b - a) / P for k, a, b in zip((1, 2, 3, 4), at_lo, at_hi, strict=True)
        )
        L2 = p2 - p1**2
        L3 = p3 - 3 * p1 * p2 + 2 * p1**3
        L4 = p4 - 4 * p1 * p3 - 3 * p2**2 + 12 * p1**2 * p2 - 6 * p1**4
        ends = []
        for derivatives, sign in ((at_hi, 1), (at_lo, -1)):
            a0, a1, a2 = (sign * (-1) ** k * derivatives[k] / P for k in range(3))
            q1 = a1 - a0 * p1
            ends.append((a0, q1, a2 - 2 * q1 * p1 - a0 * p2))
        upper, lower = ends
        if P > 0.5:  # log of the complement, to keep its digits
            rest = (below(lo) if at_lo is not zero else 0) + (above(hi) if at_hi is not zero else 0)
            L = mpmath.log1p(-rest)
        else:
            L = mpmath.log(P)
        scale = tuple(-(hi * u + lo * v) for u, v in zip(upper, lower, strict=True))
        curvature = -L2

        # Natural scales. A difference is measured by the smaller of the ways to write it.
        gaussian = name == "probit"
        V = 1 - curvature if gaussian else mpmath.mpf(1)
        r1, r2 = upper[0], -lower[0]
        # An end within one unit of zero counts as one unit away: scaling has its zero there.
        u_lo, u_hi = max(abs(lo), 1), max(abs(hi), 1)
        by_ends = u_hi * r1 + u_lo * r2
        by_width = min(u_lo * abs(p1) + w * r1, u_hi * abs(p1) + w * r2) if w else by_ends
        reach = [
            min(mpmath.mpf(1), abs(q[1] / q[0])) if gaussian and q[0] else mpmath.mpf(1)
            for q in ends
        ]
        values = {
            "log_prob": (L, abs(L), 1e-12),
            # The slope crosses zero. r2 − r1 measures it there; in narrow intervals, where those
            # are of size 1/width, one unit of noise does.
            "slope": (p1, abs(p1) + min(r1 + r2, 1), 1e-12),
            "curvature": (curvature, curvature, 1e-12),
            # κ3 and κ4 are measured by sd³ and sd⁴ of the truncated noise (probit; the others have
            # no such factor: their third and fourth are sums over ends like the curvature), times
            # the curvature, because all of them vanish together in wide intervals.
            "third": (L3, abs(L3) + curvature * V**1.5, 1e-10),
            "fourth": (L4, abs(L4) + curvature * V**2, 1e-7),
            "upper0": (upper[0], upper[0], 1e-11),
            "lower0": (lower[0], -lower[0], 1e-11),
            "upper1": (upper[1], upper[1], 1e-11),
            "lower1": (lower[1], lower[1], 1e-11),
            # From (mixed second) × the distance of the end from the mean.
            "upper2": (upper[2], abs(upper[2]) + upper[1] * reach[0], 1e-9),
            "lower2": (lower[2], abs(lower[2]) + lower[1] * reach[1], 1e-9),
            "log_scale0": (scale[0], abs(scale[0]) + min(by_ends, by_width), 1e-11),
            "log_scale1": (scale[1], u_hi * upper[1] + u_lo * lower[1], 1e-9),
            "log_scale2": (
                scale[2],
                u_hi * abs(upper[2]) + u_lo * abs(lower[2]),
                1e-9,
            ),
        }
        if gaussian:
            values["variance"] = (V, V, 1e-12)
    return values


def field(terms, name):
    """Return a field of the interval by the reference's name, such as ``upper1``."""
    if name[-1].isdigit():
        return getattr(terms, name[:-1])[int(name[-1])]
    return getattr(terms, name)


def errors(name, lo, hi, width, digits=150):
    """Return the greatest error of every field over its tolerance, with where it occurs."""
    terms = LINKS[name].interval(lo, hi, width)
    worst = {}
    for i, ends in enumerate(zip(lo.tolist(), hi.tolist(), width.tolist(), strict=True)):
        for key, (value, scale, tolerance) in reference(name, *ends, digits).items():
            # Less than the smallest normal double may underflow.
            gap = mpmath.mpf(float(field(terms, key)[i])) - value
            error = 0.0 if abs(gap) < 1e-300 else float(abs(gap) / scale)
            if error / tolerance >= worst.get(key, (0.0,))[0]:
                worst[key] = (error / tolerance, error, *ends)
    return worst


def grid(starts, widths):
    """Return all intervals within ±40, with the half-lines at every start and the whole line."""
    rows = [(a, a + w, w) for a in starts for w in widths if a + w <= 40.5]
    rows += [(a, INF, INF) for a in starts] + [(-INF, a, INF) for a in starts]
    return np.array([*rows, (-INF, INF, INF)]).T


def assert_accurate(worst):
    failed = {key: value for key, value in worst.items() if not value[0] <= 1}
    assert not failed, failed


# --- accuracy ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINKS)
def test_against_multiprecision(name):
    starts = [-40, -25.3, -8, -3.1, -1.2, -0.5, 0, 0.3, 1.7, 2.49, 2.51, 6, 17.3, 33, 40]
    widths = [1e-8, 1e-4, 0.03, 0.6, 0.99, 1.01, 2.5, 9, 40, 80]
    assert_accurate(errors(name, *grid(starts, widths)))


@pytest.mark.slow
@pytest.mark.parametrize("name", LINKS)
def test_against_multiprecision_densely(name):
    rng = np.random.default_rng(1)
    starts = np.concatenate([np.linspace(-40, 40, 41), rng.uniform(-4, 4, 60)])
    widths = np.concatenate([10.0 ** np.arange(-8, 2), rng.uniform(0, 8, 12), [80.0]])
    assert_accurate(errors(name, *grid(starts, widths)))


@pytest.mark.parametrize(
    ("name", "far", "digits"), [("probit", 1e5, 150), ("logit", 700, 800), ("cloglog", 690, 2000)]
)
def test_extreme_ends_against_multiprecision(name, far, digits):
    ends = [(far, 1e-8), (far, 0.5), (far, 10.0), (-far, 1e-8), (-far, 0.5), (-far, 2 * far)]
    rows = [(a, a + w, w) for a, w in ends]
    rows += [(far, INF, INF), (-INF, -far, INF), (-INF, far, INF), (-far, INF, INF)]
    worst = errors(name, *np.array(rows).T, digits=digits)
    # The rounding of the ends themselves is amplified: by far·ulp(far) in log P's exponent.
    keys = ("log_prob", "slope", "curvature", "upper0", "lower0", "log_scale0")
    assert_accurate({key: worst[key] for key in keys})


@pytest.mark.parametrize("name", LINKS)
def test_extreme_input_keeps_a_gradient(name):
    far, score = np.array([50.0, 700.0, 1e5, 1e12]), LINKS[name].score
    with np.errstate(over="ignore"):  # log_scale is as large as this product
        far = far[np.isfinite(far * score(far)) & np.isfinite(far * score(-far))]
    lo = np.concatenate([far, far, -far, np.full_like(far, -INF)])
    hi = np.concatenate([far + 1, np.full_like(far, INF), -far + 1, -far])
    terms = LINKS[name].interval(lo, hi, np.where(np.isinf(lo) | np.isinf(hi), INF, 1.0))
    sign = np.repeat([1, 1, -1, -1], far.size)
    assert np.all(np.isfinite(terms.log_prob)) and np.all(terms.log_prob < -49)
    assert np.all(np.isfinite(terms.slope)) and np.all(terms.slope * sign > 0.9)
    for values in (terms.curvature, terms.third, terms.fourth, *terms.log_scale):
        assert np.all(np.isfinite(values))
    for values in (*terms.upper, *terms.lower):
        assert np.all(np.isfinite(values))


@pytest.mark.parametrize("name", LINKS)
def test_infinitesimal_width_is_the_density(name):
    z, w = np.linspace(-5, 5, 21), 1e-200
    terms = LINKS[name].interval(z, z, w)
    np.testing.assert_allclose(terms.log_prob, LINKS[name].logpdf(z) + math.log(w), rtol=1e-14)
    np.testing.assert_allclose(terms.upper[0], 1 / w, rtol=1e-13)


# --- identities -------------------------------------------------------------------------------


@pytest.fixture
def random_intervals(rng_links):
    """Return 200 intervals, one in five with an infinite end."""
    lo = rng_links.normal(0, 3, 200)
    width = rng_links.exponential(2, 200)
    hi = lo + width
    hi[:20], lo[20:40] = INF, -INF
    width[:40] = INF
    return lo, hi, width


@pytest.fixture
def rng_links():
    return np.random.default_rng(20050101)


@pytest.mark.parametrize("name", LINKS)
def test_derivatives_agree_with_differences(name, random_intervals):
    lo, hi, width = random_intervals
    link = LINKS[name]
    terms = link.interval(lo, hi, width)
    h = 1e-5

    def levels(at):
        return np.stack([at.log_prob, at.slope, -at.curvature, at.third])

    def difference(lo_step, hi_step):
        """Central difference of L, L', L'', L''' for the given steps of the ends."""
        values = [
            levels(
                link.interval(lo + s * lo_step, hi + s * hi_step, width + s * (hi_step - lo_step))
            )
            for s in (h, -h)
        ]
        return (values[0] - values[1]) / (2 * h)

    # Rounding eps/h = 2e-11 and truncation h² = 1e-10, times higher derivatives of the link.
    close = {"rtol": 1e-6, "atol": 2e-8}
    shift = np.stack([terms.slope, -terms.curvature, terms.third, terms.fourth])
    np.testing.assert_allclose(difference(-1.0, -1.0), shift, **close)
    zero, one = np.zeros_like(lo), np.ones_like(lo)
    np.testing.assert_allclose(difference(zero, one)[:3], terms.upper, **close)
    np.testing.assert_allclose(difference(one, zero)[:3], terms.lower, **close)
    lo_step, hi_step = (-np.where(np.isinf(end), 0, end) for end in (lo, hi))
    np.testing.assert_allclose(difference(lo_step, hi_step)[:3], terms.log_scale, **close)


@pytest.mark.parametrize("name", LINKS)
def test_shift_is_minus_both_ends(name, random_intervals):
    terms = LINKS[name].interval(*random_intervals)
    sums = [-(u + v) for u, v in zip(terms.upper, terms.lower, strict=True)]
    for total, direct in zip(sums, (terms.slope, -terms.curvature, terms.third), strict=True):
        # Narrow intervals cancel in the sum, not in the direct value: 1/width times rounding.
        np.testing.assert_allclose(total, direct, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["probit", "logit"])
def test_reflection(name, random_intervals):
    lo, hi, width = random_intervals
    terms = LINKS[name].interval(lo, hi, width)
    mirror = LINKS[name].interval(-hi, -lo, width)
    for key, sign in (
        ("log_prob", 1),
        ("slope", -1),
        ("curvature", 1),
        ("third", -1),
        ("fourth", 1),
    ):
        np.testing.assert_allclose(field(mirror, key), sign * field(terms, key), rtol=1e-13)
    for mirrored, direct, sign in zip(mirror.lower, terms.upper, (-1, 1, -1), strict=True):
        np.testing.assert_allclose(mirrored, sign * direct, rtol=1e-13)
    for mirrored, direct, sign in zip(mirror.log_scale, terms.log_scale, (1, -1, 1), strict=True):
        np.testing.assert_allclose(mirrored, sign * direct, rtol=1e-13)


@pytest.mark.parametrize("name", LINKS)
def test_partition_sums_to_one(name):
    b = np.array([-INF, -1.5, -0.2, -0.2 + 1e-9, 0.4, 3.0, INF])
    f = np.linspace(-6, 6, 25)[:, None]
    terms = LINKS[name].interval(b[:-1] - f, b[1:] - f, np.diff(b))
    probability = np.exp(terms.log_prob)
    assert probability.shape == (25, 6)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=4e-15)
    # Hence the slopes, weighted, sum to nothing, and so do the second derivatives of P.
    np.testing.assert_allclose((probability * terms.slope).sum(axis=1), 0, atol=1e-14)
    second = probability * (terms.slope**2 - terms.curvature)
    np.testing.assert_allclose(second.sum(axis=1), 0, atol=1e-14)


@pytest.mark.parametrize("name", LINKS)
def test_whole_line_has_no_information(name):
    terms = LINKS[name].interval(-INF, INF, INF)
    assert terms.log_prob == 0
    for values in (terms.slope, terms.curvature, terms.third, terms.fourth):
        assert values == 0
    for triple in (terms.upper, terms.lower, terms.log_scale):
        assert all(value == 0 for value in triple)
    if terms.variance is not None:
        assert terms.variance == 1


@pytest.mark.parametrize("name", LINKS)
def test_infinite_end_has_no_derivative(name):
    z = np.linspace(-8, 8, 33)
    assert not np.any(LINKS[name].interval(z, INF, INF).upper)
    assert not np.any(LINKS[name].interval(-INF, z, INF).lower)


@pytest.mark.parametrize("name", LINKS)
def test_half_line_is_the_distribution_function(name):
    link, z = LINKS[name], np.linspace(-8, 3, 23)
    np.testing.assert_allclose(
        np.exp(link.interval(-INF, z, INF).log_prob), link.cdf(z), rtol=1e-13
    )


@pytest.mark.parametrize("name", LINKS)
def test_rows_do_not_depend_on_the_batch(name, random_intervals):
    together = LINKS[name].interval(*random_intervals)
    for i in (0, 30, 100, 150):
        alone = LINKS[name].interval(*(values[i] for values in random_intervals))
        # Not equality: the quadrature takes as many nodes as the worst row of the batch needs.
        np.testing.assert_allclose(alone.third, together.third[i], rtol=1e-11)
        np.testing.assert_allclose(alone.curvature, together.curvature[i], rtol=1e-13)


@pytest.mark.parametrize("name", LINKS)
def test_variance_only_where_it_is_the_curvature_s_complement(name, random_intervals):
    terms = LINKS[name].interval(*random_intervals)
    assert (terms.variance is not None) == LINKS[name].closed_form_smoothing
    assert LINKS[name].is_normal == np.allclose(LINKS[name].cdf([-3, 1]), stats.norm.cdf([-3, 1]))
    if terms.variance is not None:
        np.testing.assert_allclose(terms.variance + terms.curvature, 1, rtol=1e-13)
        assert np.all(terms.variance > 0)


# --- the distribution -------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINKS)
def test_quantile_inverts_the_distribution_function(name):
    link, z = LINKS[name], np.linspace(-6, 2, 41)
    # The density at 2 under cloglog, 5e-3, divides the rounding of a probability near one.
    np.testing.assert_allclose(link.quantile(link.cdf(z)), z, rtol=1e-12, atol=1e-12)
    assert link.quantile(0.0) == -INF and link.quantile(1.0) == INF
    assert link.cdf(-INF) == 0 and link.cdf(INF) == 1


@pytest.mark.parametrize("name", LINKS)
def test_density_is_the_derivative(name):
    link, z, h = LINKS[name], np.linspace(-6, 2, 41), 1e-5
    numerical = (link.cdf(z + h) - link.cdf(z - h)) / (2 * h)
    np.testing.assert_allclose(np.exp(link.logpdf(z)), numerical, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("name", LINKS)
def test_draws_have_the_distribution(name, rng_links):
    link = LINKS[name]
    draws = link.draw(rng_links, (100, 200))
    assert draws.shape == (100, 200)
    assert stats.kstest(draws.ravel(), link.cdf).pvalue > 1e-3
    # 20,000 draws: the sd's own error is below 1.2 %, three of them for these kurtoses.
    assert abs(draws.std() / link.noise_sd - 1) < 0.03


# --- the registry -----------------------------------------------------------------------------


def test_get_link():
    assert all(get_link(name) is link and link.name == name for name, link in LINKS.items())
    assert all(isinstance(link, Link) and get_link(link) is link for link in LINKS.values())
    with pytest.raises(ValueError, match="unknown link 'cauchit': choose one of 'probit', 'logit'"):
        get_link("cauchit")
