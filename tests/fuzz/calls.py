"""Every public function with options: how to call it on small data, and values of its options, right and wrong."""

import inspect
from functools import cache

import numpy as np
import pandas as pd
import pymc as pm

import pmordinal as pmo
from pmordinal.inference.semisupervised.fit import fit_semisupervised

from .outcome import assert_finite, assert_probabilities
from .strategies import COUNTS, NAMES, NUMBERS, SEEDS

X = np.linspace(-2, 2, 12)[:, None]
Y = np.array([0, 0, 1, 0, 1, 1, 2, 1, 2, 2, 1, 2])
PROBS = np.tile([0.2, 0.3, 0.5], (12, 1))
SCHEDULES = [[-1.0], ["a"], [np.nan], 3, None, [0.5], []]
PROPORTIONS = [[0.2, 0.3, 0.5], [1.0, 1.0, 1.0], [0.5, 0.5], "even", [np.nan, 0.5, 0.5], 1.0]
FLAGS = [True, False]
THRESHOLDS = [
    [-1.0, 1.0],
    [1.0, -1.0],
    [0.0, 0.0],
    [0.0],
    [],
    0.0,
    [np.nan, 1.0],
    [0.0, np.inf],
    "low",
    [[0.0, 1.0]],
]
MATRICES = [
    np.eye(2), np.ones((2, 3)), [[1.0, np.nan], [np.nan, 1.0]], [[1.0, 0.5], [0.4, 1.0]], [], "matrix", None,
    [[1.0, 2.0], [2.0, 1.0]], 1.0, [["a"]], np.zeros((2, 2)), np.eye(2) * 1j, [[1.0], [1.0, 2.0]], np.eye(12),
    -np.eye(12), np.zeros((12, 12)), np.ones((12, 12)),
]  # fmt: skip
STARTS = [
    {"noise": 0.5}, {"noise": -1.0}, {"nothing": 1.0}, {"noise": [1.0, 2.0]}, {"noise": np.nan}, {"noise": "a"}, [1],
    "noise", {"noise": None}, {1: 2.0}, {},
]  # fmt: skip
CLASSES = [np.eye(3), np.eye(2), [[np.nan] * 3] * 3, 1.0, "median", "mode"]


def covariances():
    """Return covariances, right and wrong; made anew, because PyMC writes into them."""
    c = pm.gp.cov
    return [
        c.ExpQuad, c.ExpQuad(1, ls=1.0), c.ExpQuad(2, ls=[1.0, 2.0]), np.eye(12), "rbf", 3, pmo.Precomputed(np.eye(3)),
        c.Matern52(1, ls=1e-300), c.Linear(1, c=1e200), int, pm.Normal, c.ExpQuad(1, ls=-1.0), c.ExpQuad(1, ls=np.nan),
        0.0 * c.ExpQuad(1, ls=1.0), c.Constant(1.0), 1e300 * c.ExpQuad(1, ls=1.0), c.WhiteNoise(1e-10),
    ]  # fmt: skip


@cache
def model(free: bool = True, **options) -> pm.Model:
    """Return a small model, by default with one free hyperparameter."""
    fixed = {"lengthscale": 1.0, "thresholds": [-0.5, 0.5]} | ({} if free else {"noise": 0.5})
    return pmo.gp_model(X, Y, "expquad", engine="laplace", **fixed, **options)


@cache
def fit() -> pmo.OrdinalFit:
    """Return a small fit."""
    return pmo.fit(model(free=False), progressbar=False)


@cache
def tree():
    """Return posterior draws of the hyperparameters, as a sampler gives them."""
    return fit().to_datatree(draws=3, seed=0)


def _gp_model(**options):
    made = pmo.gp_model(X, Y, **{"cov_func": "expquad"} | options)
    free = {rv.name for rv in made.free_RVs}
    start = {"noise": 0.7} if "noise" in free else {}
    found = pmo.fit(made, progressbar=False, optimize=False, start=start)
    assert_probabilities(found.predict(X))
    assert_finite(found.log_evidence)


def _fit(**options):
    found = pmo.fit(model(), progressbar=False, **({"max_evaluations": 3} | options))
    assert_finite(found.log_evidence, found.noise)


def _annealing(**options):
    found = fit_semisupervised(
        model(unlabeled=((0.1,), (0.2,))), progressbar=False, **({"weights": [0.5]} | options)
    )
    assert_probabilities(found.predict_unlabeled())


def _thresholds(**options):
    with pm.Model(coords={"threshold": [0, 1]}):
        b = pmo.thresholds("b", **({"n_classes": 3} | options))
        draw = pm.draw(b, random_seed=0)
    assert_finite(draw)
    assert np.all(np.diff(draw) > 0)


def _ordinal(**options):
    with pm.Model() as made:
        pmo.Ordinal("y", np.zeros(3), **({"thresholds": [-0.5, 0.5]} | options), observed=[0, 1, 1])
    assert_finite(made.compile_logp(mode="FAST_COMPILE")({}))


def _matrix(K):
    rows = np.arange(12)[:, None]
    made = pmo.gp_model(
        rows, Y, pmo.Precomputed(K), engine="laplace", noise=0.5, thresholds=[-0.5, 0.5]
    )
    assert_finite(pmo.fit(made, progressbar=False).log_evidence)


def _weights(weights):
    made = pmo.gp_model(
        X, Y, pmo.LinearARD(1, weights), engine="laplace", noise=0.5, thresholds=[-0.5, 0.5]
    )
    assert_finite(pmo.fit(made, progressbar=False).log_evidence)


def _effects(**options):
    table = fit().effects(**({"feature": "x0", "draws": 5, "n_grid": 3} | options))
    assert_finite(table[["mean", "sd", "low", "high"]])


def _estimator(**options):
    from pmordinal.sklearn import OrdinalGPClassifier

    known = {"engine": "laplace", "max_evaluations": 3}
    assert_probabilities(OrdinalGPClassifier(**(known | options)).fit(X, Y).predict_proba(X))


def _rank_regressor(**options):
    from pmordinal.sklearn import RankRegressor

    assert_finite(RankRegressor(**options).fit(X, Y).predict(X))


def _discretizer(**options):
    from pmordinal.sklearn import MODLDiscretizer

    assert_finite(MODLDiscretizer(**options).fit(X, Y).transform(X))


QUIET = {"progressbar": False}
FEW = {"draws": [*COUNTS], "seed": SEEDS}
CALLS = {
    "gp_model": (
        _gp_model,
        {
            "engine": [*NAMES, "laplace", "plsor", "sparse", pmo.EP, pmo.Laplace()],
            "link": [*NAMES, "logit", "cloglog"],
            "objective": [*NAMES, "loo", "evidence"],
            "lengthscale": NUMBERS,
            "amplitude": NUMBERS,
            "noise": NUMBERS,
            "noise_fraction": NUMBERS,
            "thresholds": THRESHOLDS,
            "ard": FLAGS,
            "standardize": FLAGS,
            "cov_func": covariances(),
            "unlabeled": [
                [[0.0]],
                [],
                [[0.0, 1.0]],
                [["a"]],
                [[np.nan]],
                3.0,
                "rows",
                np.zeros((2, 1)),
            ],
            "categories": [[0, 1, 2], [0, 1], [2, 1, 0], "ab", 3, [], [0, 1, 2, 3, 4], [0, 0, 1]],
        },
    ),
    "fit": (
        _fit,
        {
            "objective": NAMES,
            "starts": COUNTS,
            "priors": FLAGS,
            "start": STARTS,
            "seed": SEEDS,
            "max_evaluations": [-1, 0, 1, 2, 5.0, "3", None, np.nan],
            "optimize": FLAGS,
            "semisupervised": FLAGS,
            "proportions": PROPORTIONS,
            "weights": SCHEDULES,
            "max_rounds": COUNTS,
        },
    ),
    "fit_semisupervised": (
        _annealing,
        {
            "weights": SCHEDULES,
            "max_rounds": COUNTS,
            "proportions": PROPORTIONS,
        },
    ),
    "thresholds": (
        _thresholds,
        {
            "n_classes": COUNTS,
            "kind": [*NAMES, "padded"],
            "concentration": NUMBERS,
            "scale": NUMBERS,
            "unit": NUMBERS,
            "link": NAMES,
            "values": THRESHOLDS,
            "dims": [None, "threshold"],
        },
    ),
    "Ordinal": (_ordinal, {"thresholds": THRESHOLDS, "noise": NUMBERS, "link": NAMES}),
    "Precomputed": (_matrix, {"K": MATRICES}),
    "LinearARD": (_weights, {"weights": [*MATRICES, *NUMBERS]}),
    "latent_model": (
        lambda **o: pmo.latent_model(X, Y, **{"cov_func": "expquad"} | o),
        {
            "approx": [*NAMES, "hsgp"],
            "m": COUNTS,
            "c": NUMBERS,
            "link": NAMES,
            "lengthscale": NUMBERS,
            "noise": NUMBERS,
            "thresholds": THRESHOLDS,
        },
    ),
    "linear_model": (
        lambda **o: pmo.linear_model(X, Y, **o),
        {"link": NAMES, "thresholds": THRESHOLDS, "coefficients": NUMBERS, "standardize": FLAGS},
    ),
    "predict": (
        lambda **o: fit().predict(X, **o),
        {
            "kind": [*NAMES, "probs", "class", "latent", "rank", "cumulative"],
            "rule": [*NAMES, *CLASSES],
        },
    ),
    "to_datatree": (
        lambda **o: fit().to_datatree(**({"draws": 4} | o)),
        FEW | {"hyper": [*NAMES, "point"]},
    ),
    "effects": (
        _effects,
        {
            "feature": [*NAMES, "x0", ["x0", "x0"], []],
            "kind": [*NAMES, "probs", "latent", "rank", "exceedance", []],
            "draws": COUNTS,
            "seed": SEEDS,
            "ci_prob": NUMBERS,
            "n_grid": COUNTS,
            "rows": COUNTS,
            "at": [None, "typical", "mean", {"x0": 1.0}, {"z": 1.0}, 3, {"x0": "a"}],
            "versus": [None, 0.0, "a", (1.0, 2.0), np.nan],
        },
    ),
    "calibration": (
        lambda **o: pmo.calibration(fit(), **({"replicates": 3} | o)),
        {"replicates": COUNTS, "ci_prob": NUMBERS, "seed": SEEDS, "leave_one_out": FLAGS},
    ),
    "predictive_bars": (
        lambda **o: pmo.predictive_bars(fit(), **({"draws": 5} | o)),
        FEW | {"by": [None, "x0", "nothing", np.zeros(3), np.zeros(12), 3], "ci_prob": NUMBERS},
    ),
    "surrogate_residuals": (
        lambda **o: pmo.surrogate_residuals(fit(), **o),
        {"link": [*NAMES, "logit"], "replicates": COUNTS, "seed": SEEDS, "leave_one_out": FLAGS},
    ),
    "prior_categories": (
        lambda **o: pmo.prior_categories(model(free=False), **({"draws": 3} | o)),
        FEW | {"ci_prob": NUMBERS},
    ),
    "compare": (
        lambda **o: pmo.compare({"a": fit(), "b": fit()}, **({"draws": 30} | o)),
        {
            "reference": NAMES,
            "seed": SEEDS,
            "draws": [*COUNTS, 20, 30],
            "test": [3, (X,), (X, Y), (X, Y[1:]), "rows", (Y, X)],
        },
    ),
    "conformal": (
        lambda **o: pmo.conformal(fit(), **o).predict(X[:2], coverage=0.5),
        {
            "calibration": [None, 0.5, (X, Y), (X,), (X, Y[1:]), "rows", (Y, X)],
            "score": [*NAMES, "rps"],
            "by_class": FLAGS,
            "seed": SEEDS,
        },
    ),
    "compare_scores": (
        lambda **o: pmo.compare_scores(Y, {"a": PROBS, "b": PROBS}, **({"resamples": 3} | o)),
        {
            "reference": NAMES,
            "resamples": [-1, 0, 2, 3, 2.5, "many", None],
            "level": NUMBERS,
            "seed": SEEDS,
        },
    ),
    "rank_methods": (
        lambda **o: pmo.rank_methods(**o),
        {"table": [*MATRICES, pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 2.0]}), {"a": [1, 2]}]},
    ),
    "sample_exact": (
        lambda **o: pmo.sample_exact(model(), **({"draws": 3, "tune": 3, "chains": 1} | QUIET | o)),
        {
            "draws": COUNTS,
            "tune": COUNTS,
            "chains": [*COUNTS],
            "proposals": COUNTS,
            "seed": SEEDS,
        },
    ),
    "sample_posterior": (
        lambda **o: pmo.sample_posterior(model(free=False), **({"tree": tree()} | QUIET | o)),
        {
            "thin": COUNTS,
            "seed": SEEDS,
            "tree": [3, None, "tree", pd.DataFrame()],
            "Xnew": [X[:2], [[np.nan]], "rows", 3.0, np.zeros((2, 2))],
        },
    ),
    "select_features": (
        lambda **o: pmo.select_features(X, Y, engine="laplace", progressbar=False, **o),
        {"keep": NUMBERS, "smallest": COUNTS, "link": NAMES},
    ),
    "fit_grid": (
        lambda **o: pmo.modl.fit_grid(X[:, 0], Y, **o),
        {"starts": COUNTS, "seed": SEEDS, "categorical": [True, False, None]},
    ),
    "fit_grids": (
        lambda **o: pmo.modl.fit_grids(X, Y, **({"n_jobs": 1} | QUIET | o)),
        {"starts": COUNTS, "seed": SEEDS, "n_jobs": [1, 2, 0, "all", 1.5]},
    ),
    "sample_grids": (
        lambda **o: pmo.modl.sample_grids(
            X[:, 0], Y, **({"draws": 3, "tune": 3, "thin": 1, "chains": 1, "n_jobs": 1} | QUIET | o)
        ),
        {
            "draws": COUNTS,
            "tune": COUNTS,
            "chains": COUNTS,
            "thin": COUNTS,
            "seed": SEEDS,
            "n_jobs": [1, 0, "all", 1.5],
        },
    ),
    "OrdinalGPClassifier": (
        _estimator,
        {
            "engine": NAMES,
            "link": NAMES,
            "rule": [*NAMES, *CLASSES],
            "starts": COUNTS,
            "max_evaluations": COUNTS,
            "random_state": SEEDS,
        },
    ),
    "RankRegressor": (
        _rank_regressor,
        {
            "kind": [*NAMES, "univariate", "nb"],
            "quantile": NUMBERS,
            "smoothing": [*NUMBERS, "paper"],
            "selection": [*NAMES, "paper"],
            "starts": COUNTS,
            "random_state": SEEDS,
        },
    ),
    "MODLDiscretizer": (
        _discretizer,
        {"encode": [*NAMES, "onehot", "mean_rank"], "starts": COUNTS, "random_state": SEEDS},
    ),
    **{
        engine.__name__: (
            engine,
            {
                option: [*NUMBERS, *COUNTS, (0, 1), (0, 0), (99,), [1.5]]
                for option in inspect.signature(engine).parameters
                if option != "order"
            },
        )
        for engine in pmo.ENGINES.values()
        if inspect.signature(engine).parameters
    },
}
ALSO_NAMED = {  # what an error may name instead of the option
    "gp_model": ("covariance", "columns", "start", "noise_fraction", "Precomputed", "evidence"),
    "fit": ("unlabelled",),
    "compare": ("y_true", "Xnew", "X"),
    "select_features": ("attribute",),
    "LinearARD": ("LinearARD", "covariance"),
    "Precomputed": ("Precomputed", "covariance"),
}
