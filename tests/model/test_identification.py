"""Amplitude, noise and thresholds share one scale: both free is refused unless priors hold it."""

import numpy as np
import pymc as pm
import pytest

import pmordinal as pmo
from pmordinal.gram import lower
from pmordinal.inference.landscape import Landscape
from pmordinal.inference.starting_points import starting_points

X = np.linspace(0, 1, 12)
Y = (X * 2.99).astype(int)


@pytest.mark.parametrize(
    ("cov", "count"),
    [
        (pm.gp.cov.ExpQuad(1, ls=1.0), 0),
        (2.0 * pm.gp.cov.ExpQuad(1, ls=1.0), 1),
        (2.0 * pm.gp.cov.ExpQuad(1, ls=1.0) + pm.gp.cov.Linear(1, c=0.0), 0),
        (2.0 * pm.gp.cov.ExpQuad(1, ls=1.0) + 3.0 * pm.gp.cov.Linear(1, c=0.0), 2),
        ((2.0 * pm.gp.cov.ExpQuad(1, ls=1.0)) ** 2, 1),
        (pm.gp.cov.Constant(2.0), 1),
    ],
)
def test_scale_parameters(cov, count):
    assert len(lower(cov).scale) == count


def test_both_free_needs_proper_priors():
    with pytest.raises(ValueError, match="'amplitude' has an improper prior"):
        pmo.gp_model(X, Y, amplitude=pm.HalfFlat.dist())
    with pytest.raises(ValueError, match="'noise' has an improper prior"):
        pmo.gp_model(X, Y, amplitude=pm.HalfNormal.dist(1), noise=pm.HalfFlat.dist())
    model = pmo.gp_model(X, Y, amplitude=pm.HalfNormal.dist(1))
    assert {v.name for v in model.free_RVs} == {"amplitude", "lengthscale", "noise", "thresholds"}
    Landscape(model)
    with pytest.raises(ValueError, match="only their priors fix the scale"):
        Landscape(model, priors=False)


@pytest.mark.parametrize(
    "options",
    [
        {"noise": pm.HalfFlat.dist()},
        {"amplitude": pm.HalfFlat.dist(), "noise": 1.0},
        {"amplitude": pm.HalfFlat.dist(), "thresholds": [-0.5, 0.5]},
    ],
)
def test_one_fixed_is_enough(options):
    landscape = Landscape(pmo.gp_model(X, Y, "expquad", **options), priors=False)
    (start,) = starting_points(landscape, 1, {}, np.random.default_rng(0))
    assert np.isfinite(landscape.gradient(start)).all() and landscape.log_prior(start) == 0.0


def test_labels_as_numbers_have_a_scale():
    """So regression on the labels can be fitted without priors, as published."""
    model = pmo.gp_model(X, Y, cov_func="expquad", engine="plsor")
    found = pmo.fit(model, priors=False, progressbar=False)
    assert found.status.converged
    loo = [
        Landscape(
            pmo.gp_model(
                X,
                Y,
                cov_func="expquad",
                engine="plsor",
                lengthscale=0.7,
                amplitude=0.8 * scale,
                noise_fraction=0.3,
                noise=0.3 * scale,
                thresholds=[-0.5 * scale, 0.5 * scale],
            )
        ).value_and_gradient(np.zeros(0))[0]
        for scale in (0.25, 1.0, 4.0)
    ]
    assert loo[1] > max(loo[0], loo[2]) + 1.0


def test_the_scale_direction_really_is_flat():
    """Multiplying amplitude, noise and thresholds together leaves the evidence as it is."""
    small = pmo.gp_model(X, Y, lengthscale=0.7, amplitude=1.0, noise=0.4, thresholds=[-0.5, 0.6])
    large = pmo.gp_model(X, Y, lengthscale=0.7, amplitude=3.0, noise=1.2, thresholds=[-1.5, 1.8])
    values = [float(m.point_logps(round_vals=12)["y"]) for m in (small, large)]
    assert values[0] == pytest.approx(values[1], abs=1e-9)
