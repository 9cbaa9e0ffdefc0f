"""The skeletons of docs/extending: each right by itself, and found by the contract tests once it is in the package."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from scipy import integrate, stats

import pmordinal as pmo
from pmordinal.engines import ENGINES
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood

ROOT = Path(__file__).parents[2]
PYTHON = Mode(linker="py", optimizer="merge")


@pytest.fixture(scope="module")
def skeletons():
    """Load the files as they are, and take the engine's name off the table again."""
    loaded = {}
    for name in ("link", "covariance", "engine"):
        path = ROOT / "docs" / "extending" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"skeleton_{name}", path)
        loaded[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded[name])
    yield loaded
    del ENGINES._items["newton"]


@pytest.mark.parametrize(
    ("lo", "hi"),
    [(-0.3, 0.8), (-np.inf, -1.0), (2.0, np.inf), (20.0, 21.0), (-4.0, -3.5), (1.0, 1.001)],
)
def test_link_against_multiprecision(lo, hi, skeletons):
    q = skeletons["link"].LogLog().interval(lo, hi, hi - lo)

    def cdf(z):
        return mpmath.exp(-mpmath.exp(-z))

    def L(t=0, d_hi=0, d_lo=0, log_s=0):
        s = mpmath.exp(log_s)
        ends = [(mpmath.mpf(e) + d) / s - t for e, d in ((hi, d_hi), (lo, d_lo))]
        return mpmath.log(cdf(ends[0]) - cdf(ends[1]))

    with mpmath.workdps(60):
        for k, field in enumerate(("log_prob", "slope", "curvature", "third", "fourth")):
            truth = float(mpmath.diff(L, 0, k)) * (-1 if k == 2 else 1)
            assert getattr(q, field) == pytest.approx(truth, rel=1e-9), field
        for field, by in (("upper", "d_hi"), ("lower", "d_lo"), ("log_scale", "log_s")):
            if (np.isinf(hi) and field == "upper") or (np.isinf(lo) and field == "lower"):
                assert [float(x) for x in getattr(q, field)] == [0.0] * 3
                continue
            for k in range(3):
                truth = mpmath.diff(lambda t, x, by=by: L(t, **{by: x}), (0, 0), (k, 1))
                assert getattr(q, field)[k] == pytest.approx(float(truth), rel=1e-8, abs=1e-13)


def test_link_is_a_distribution(skeletons, rng):
    link = skeletons["link"].LogLog()
    z = np.array([-1.5, 0.0, 4.0])
    np.testing.assert_allclose(link.quantile(link.cdf(z)), z)
    np.testing.assert_allclose(link.upper_quantile(1.0 - link.cdf(z)), z, rtol=1e-12)
    h = 1e-5
    slope = (link.cdf(z + h) - link.cdf(z - h)) / (2 * h)
    np.testing.assert_allclose(np.exp(link.logpdf(z)), slope, rtol=1e-8)
    np.testing.assert_allclose(
        link.score(z), -(link.logpdf(z + h) - link.logpdf(z - h)) / (2 * h), atol=1e-9
    )
    draws = link.draw(rng, 20000)
    assert abs(np.mean(draws <= 0.5) - link.cdf(0.5)) < 0.015  # four standard errors
    assert draws.std() == pytest.approx(link.noise_sd, rel=0.04)


def test_link_in_a_fit(skeletons):
    """As an argument, without being registered; the evidence of one row is an integral."""
    link = skeletons["link"].LogLog()
    model = pmo.gp_model(
        [[0.0]],
        [1],
        categories=[0, 1, 2],
        link=link,
        noise=0.7,
        lengthscale=1.0,
        thresholds=[-0.5, 0.4],
    )

    def integrand(f):
        low, high = link.cdf((np.array([-0.5, 0.4]) - f) / 0.7)
        return (high - low) * stats.norm.pdf(f)

    truth = np.log(integrate.quad(integrand, -10, 10, epsabs=1e-13)[0])
    assert model.compile_logp(mode=PYTHON)({}) == pytest.approx(truth, abs=1e-9)


def test_covariance_against_pymc(skeletons, rng):
    X, Z = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    c, offset = pt.constant(np.array([0.2, -0.1])), pt.constant(np.array(1.3))
    cov = pm.gp.cov.Polynomial(3, c=c, d=3, offset=offset, active_dims=[2, 0])
    ((kind, build),) = skeletons["covariance"].BUILDERS.items()
    assert kind is pm.gp.cov.Polynomial
    kernel = build(cov, lower)
    values = [p.data.astype(float) for p in kernel.parameters]
    np.testing.assert_allclose(kernel.matrix(values, X)[0], cov(X).eval(mode=PYTHON), rtol=1e-12)
    np.testing.assert_allclose(kernel.matrix(values, X, Z)[0], cov(X, Z).eval(mode=PYTHON))
    np.testing.assert_allclose(kernel.diagonal(values, X)[0], cov(X, diag=True).eval(mode=PYTHON))
    for arguments, shape in (((X,), (5, 5)), ((X, Z), (5, 4)), (None, (5,))):
        dK = rng.normal(size=shape)
        if shape == (5, 5):
            dK = dK + dK.T

        def at(values, arguments=arguments):
            return (
                kernel.diagonal(values, X)
                if arguments is None
                else kernel.matrix(values, *arguments)
            )

        found = np.concatenate([np.ravel(g) for g in at(values)[1](dK)])
        flat = np.concatenate([np.ravel(v) for v in values])
        for i in range(flat.size):
            ends = []
            for step in (1e-6, -1e-6):
                x = flat + step * (np.arange(flat.size) == i)
                ends.append(np.sum(dK * at([x[:2], x[2].reshape(())])[0]))
            assert found[i] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)
    again = type(kernel).from_form(kernel.form(), iter(values))
    np.testing.assert_array_equal(again.matrix(values, X)[0], kernel.matrix(values, X)[0])


def test_engine_against_the_packages_own(skeletons, rng):
    kernel = lower(pm.gp.cov.ExpQuad(1, ls=pt.constant(np.array(0.8))))
    X, y = rng.normal(size=(12, 1)), rng.integers(0, 3, 12)
    likelihood = OrdinalLikelihood([-0.4, 0.5], 0.6, "logit")
    gram = Gram(kernel, X, [np.array(0.8)])
    ours = skeletons["engine"].Newton()(gram, y, likelihood)
    theirs = pmo.Laplace(tol=1e-11)(gram, y, likelihood)
    assert ours.status.converged
    assert ours.log_evidence == pytest.approx(theirs.log_evidence, abs=1e-9)
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-8)
    a, b = ours.evidence_gradient(), theirs.evidence_gradient()
    np.testing.assert_allclose(a.parameters[0], b.parameters[0], rtol=1e-6)
    np.testing.assert_allclose(a.thresholds, b.thresholds, rtol=1e-6)
    assert a.log_noise == pytest.approx(b.log_noise, rel=1e-6)


STEPS = {  # what docs/extending.md says: where the file goes, and the lines that name it
    "link": (
        "links/loglog.py",
        "links/__init__.py",
        [
            (
                "from pmordinal.links.probit",
                "from pmordinal.links.loglog import LogLog\nfrom pmordinal.links.probit",
            ),
            ("(Probit(), Logit(), CLogLog())", "(Probit(), Logit(), CLogLog(), LogLog())"),
        ],
    ),
    "covariance": (
        "gram/polynomial.py",
        "gram/__init__.py",
        [
            ("    periodic,\n", "    periodic,\n    polynomial,\n"),
            (
                "    **periodic.BUILDERS,\n",
                "    **periodic.BUILDERS,\n    **polynomial.BUILDERS,\n",
            ),
        ],
    ),
    "engine": (
        "engines/newton.py",
        "engines/__init__.py",
        [
            (
                "from pmordinal.engines.plsor",
                "from pmordinal.engines.newton import Newton\nfrom pmordinal.engines.plsor",
            )
        ],
    ),
}
CONTRACT = {
    "link": (
        "engines/test_engine_contract.py",
        "loglog and (test_links or gradient_is or near_the_integral) and not sparse",
    ),
    "covariance": ("gram/test_gram.py", "polynomial or partly"),
    "engine": ("engines/test_engine_contract.py", "newton and not extreme and not conflicting"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", STEPS)
def test_skeleton_in_the_package_passes_the_contract(what, tmp_path):
    place, register, edits = STEPS[what]
    shutil.copytree(
        ROOT / "pmordinal", tmp_path / "pmordinal", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(
        ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "architecture.md", tmp_path / "docs")  # tests/house reads it
    shutil.copy(ROOT / "docs" / "extending" / f"{what}.py", tmp_path / "pmordinal" / place)
    file = tmp_path / "pmordinal" / register
    text = file.read_text()
    for old, new in edits:
        assert old in text, f"docs/extending.md speaks of a line that is gone: {old}"
        text = text.replace(old, new)
    file.write_text(text)
    if what == "link":
        with (tmp_path / "tests" / "links" / "test_links.py").open("a") as out:
            out.write((ROOT / "docs" / "extending" / "link_reference.py").read_text())
    tests, chosen = CONTRACT[what]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"tests/{tests}",
        "tests/links/test_links.py",
        "tests/house/test_rooms.py",
    ]
    command += ["-k", f"({chosen}) or rooms", "-x"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert place.split("/")[1].removesuffix(".py") in text
