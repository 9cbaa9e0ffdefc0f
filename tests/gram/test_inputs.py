"""Covariances of one's own meet the columns of a table: what does not fit is said by name."""

import warnings

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from pymc.gp import cov

import pmordinal as pmo
from pmordinal.gram import Gram, check_columns, lower

Y = np.tile([0, 1, 2], 5)
X = pd.DataFrame(np.random.default_rng(1).normal(size=(15, 2)), columns=["age", "dose"])
FACTORIES = [pmo.gp_model, pmo.latent_model]


class Mine(cov.ExpQuad):
    """A subclass, which may read any of the columns that it was made for."""


def quad(d, ls=1.0, **options):
    return cov.ExpQuad(d, ls=ls, **options)


REFUSED = [
    (quad(1), r"is for 1 column\(s\) and does not read 'dose': set input_dim=2, or drop"),
    (2.0 * quad(1) + cov.Linear(1, c=0.0), r"does not read 'dose'"),
    (Mine(1, ls=1.0), r"does not read 'dose'"),
    (quad(3), r"ExpQuad is for 3 columns \(input_dim\), but the table has 2: 'age', 'dose'"),
    (quad(3, active_dims=[0, 1]), "ExpQuad is for 3 columns"),
    (quad(2) * cov.Linear(2, c=0.0, active_dims=[-1]), r"Linear reads the columns \[-1\]"),
    (quad(2, active_dims=[2]), r"ExpQuad reads the columns \[2\] .active_dims, counted from 0"),
    (quad(2, active_dims=[0, 0]), r"reads a column twice, active_dims=\[0, 0\]"),
    (quad(2, ls=[1.0, 2.0, 3.0]), r"ls of ExpQuad must be one number for all 2 col.*got 3"),
    (quad(2) + quad(2, ls=[1.0, 2.0], active_dims=[0]), r"ls of ExpQuad must be .* 1 column"),
    ((quad(2) * cov.Linear(2, c=[0.0] * 3)) ** 2, "c of Linear must be one number"),
    (cov.Periodic(2, period=[1.0] * 4, ls=1.0), "period of Periodic must be one number"),
    (cov.WrappedPeriodic(quad(2, ls=[1.0] * 3), period=2.0), "ls of ExpQuad must be one number"),
    (cov.WarpedInput(2, quad(1, ls=[1.0, 2.0]), lambda x: x[:, :1]), "ls of ExpQuad must be one"),
]


@pytest.mark.parametrize(("covariance", "match"), REFUSED)
def test_covariances_that_do_not_fit_the_table(covariance, match):
    with pytest.raises(ValueError, match=match):
        check_columns(covariance, X.columns)


@pytest.mark.parametrize("factory", FACTORIES)
def test_the_factories_refuse_them(factory):
    with pytest.raises(ValueError, match="does not read 'dose'"):
        factory(X, Y, quad(1))
    with pm.Model(), pytest.raises(ValueError, match="does not read 'dose'"):
        pmo.MarginalOrdinal(quad(1)).marginal_likelihood("y", X, Y, [0.0, 1.0], 1.0)
    table = X.assign(dose=np.where(X["dose"] > 0, "high", "low"))
    with pytest.raises(ValueError, match="does not read 'dose=low': set input_dim=3"):
        factory(table, Y, quad(2))


@pytest.mark.parametrize(
    "covariance",
    [
        quad(2),
        quad(2, ls=[1.0, 2.0]),
        quad(2, ls=[1.0]),
        quad(2, active_dims=[0]) + quad(2, active_dims=[1]),
        quad(1) * quad(1, active_dims=[1]),  # as PyMC allows it
        2.0 * quad(2, active_dims=[1, 0]) ** 2 + cov.WhiteNoise(0.1) + 1.0,
        Mine(2, ls=1.0, active_dims=[0]),
        cov.WarpedInput(2, cov.Linear(3, c=0.0), lambda x: pm.math.concatenate([x, x[:, :1]], 1)),
        pmo.LinearARD(2, [1.0, 2.0]),
    ],
)
def test_covariances_that_fit(covariance):
    check_columns(covariance, X.columns)


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize(
    ("covariance", "names"),
    [
        (quad(2, active_dims=[1]), "'age'"),
        (quad(2, active_dims=[0]) + cov.WhiteNoise(1.0), "'dose'"),
        (cov.Constant(1.0), "'age', 'dose'"),
    ],
)
def test_columns_that_are_left_out_are_said(factory, covariance, names):
    with pytest.warns(UserWarning, match=f"no part of the covariance reads {names}: check") as said:
        factory(X, Y, covariance)
    assert said[0].filename == __file__  # the user's line, not one of the package


def test_lengths_that_are_known_only_at_run_time():
    for covariance in (quad(1, ls=np.ones(2)), cov.Linear(1, c=np.zeros(2))):
        kernel = lower(covariance)
        with pytest.raises(ValueError, match=r"must be one number for all 1 column\(s\).*got 2"):
            _ = Gram(kernel, [[0.0], [1.0]], [np.ones(2)]).matrix
    kernel = lower(cov.Periodic(1, period=1.0, ls=1.0))
    with pytest.raises(ValueError, match="period must be one number"):
        _ = Gram(kernel, [[0.0], [1.0]], [np.ones(1), np.ones(2)]).matrix


# ---- units

INCOME = pd.DataFrame({"income": 20_000 + 8_000 * X["age"], "age": X["age"]})


def linear():
    return pm.HalfNormal("slope") ** 2 * cov.Linear(2, c=0.0)


def smooth():
    return cov.Matern52(2, ls=pm.LogNormal("ls", 0.0, 1.0))


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize(
    ("covariance", "table", "match"),
    [
        (linear, INCOME, "in their units, which makes the latent function's standard deviation"),
        (smooth, INCOME, r"'income' has a standard deviation of 7.*so that no row says anything"),
        (smooth, 1e-5 * X, "'age' has a standard deviation of .*so that it is flat there"),
        (lambda: cov.Polynomial(2, c=0.0, d=2, offset=1.0), INCOME, "will be in one class or two"),
    ],
)
def test_units_that_the_prior_does_not_suit(factory, covariance, table, match):
    with pm.Model():
        mine = covariance()
        with pytest.warns(UserWarning, match=f"(?s){match}.*pass standardize=True, or"):
            factory(table, Y, mine)


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize(
    ("covariance", "table", "options"),
    [
        (linear, INCOME, {"standardize": True}),
        (linear, X, {}),
        (linear, INCOME, {"thresholds": [10_000.0, 20_000.0], "noise": 1_000.0}),
        (lambda: 1e-8 * cov.Linear(2, c=0.0), INCOME, {}),
        (lambda: cov.ExpQuad(2, ls=pm.LogNormal("ls", [9.0, 0.0], 1.0)), INCOME, {}),
        (lambda: cov.ExpQuad(2, ls=pm.HalfFlat("ls")), INCOME, {}),
        (smooth, 2000 + 10 * X, {}),  # years: far from zero, and near to each other
        (lambda: None, INCOME, {}),
        (lambda: cov.Matern32, INCOME, {}),
    ],
)
def test_units_that_it_suits(factory, covariance, table, options):
    with pm.Model(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        factory(table, Y, covariance(), **options)


def test_a_rare_level_is_no_small_unit():
    table = pd.DataFrame({"level": ["rare"] + ["common"] * 1499, "x": np.linspace(0, 100, 1500)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        mine = quad(3, ls=50.0)
        pmo.gp_model(table, np.tile([0, 1, 2], 500), mine)
