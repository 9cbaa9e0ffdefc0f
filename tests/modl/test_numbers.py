"""The reference numbers that need data or minutes; skipped where the data folder is missing."""

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pmordinal.modl import RankRegressor, fit_grid, rank_predictors

from .oracles import heteroscedastic

DATA = Path(os.environ.get("PMORDINAL_DATA", Path(__file__).parents[3] / "shared" / "data"))
pytestmark = pytest.mark.slow


def read(path, **options):
    if not (DATA / path).exists():
        pytest.skip(f"{path} not found under {DATA}")
    return pd.read_csv(DATA / path, **options)


@pytest.fixture(scope="module")
def boston():
    frame = read("chu/boston.csv")
    return frame.drop(columns="y"), frame["y"].to_numpy()


def folds(n, seeds):
    for seed in seeds:
        fold = np.random.default_rng(seed).permutation(n) % 5
        for k in range(5):
            yield fold != k, fold == k


def test_boston_levels(boston):
    """Means over 404-row folds measured by an independent prototype; ± is its fold deviation."""
    X, y = boston
    names = {"LSTAT": 0.0914, "RM": 0.0648, "PTRATIO": 0.0383, "TAX": 0.0324}
    levels = [
        rank_predictors(X.loc[train, list(names)], y[train], progressbar=False)["level"]
        for train, _ in folds(506, range(2))
    ]
    for name, reference in names.items():
        found = np.mean([row[name] for row in levels])
        assert found == pytest.approx(reference, abs=0.002)


def test_boston_gap_to_the_best_of_200_starts(boston):
    X, y = boston
    gaps = []
    for name in X:
        few, many = fit_grid(X[name], y).cost, fit_grid(X[name], y, starts=200, seed=1).cost
        gaps.append(few - min(few, many))
    assert np.mean(gaps) <= 0.5


def test_boston_scores(boston):
    """Khiops: −0.612 ± 0.154 on the same kind of folds.

    25 folds other than those on which the default selection rule was chosen (seeds 0 to 4).
    """
    X, y = boston
    scores = {"univariate": [], "snb": [], "averaged": []}
    for train, test in folds(506, range(100, 105)):
        for kind, found in scores.items():
            found.append(RankRegressor(kind).fit(X[train], y[train]).nlrpd(X[test], y[test]))
    mean = {kind: np.mean(found) for kind, found in scores.items()}
    assert mean["snb"] <= -0.61
    assert mean["averaged"] <= mean["snb"]
    assert mean["univariate"] == pytest.approx(-0.48, abs=0.05)


def test_adult_levels_and_time():
    """Levels of a training fold: measured before, and (looser) the paper's table 4."""
    frame = read("modl/adult.csv.gz", keep_default_na=False).drop(columns="part")
    y = frame.pop("y").to_numpy()
    train = next(folds(len(y), [0]))[0]
    start = time.process_time()
    levels = rank_predictors(frame[train], y[train], n_jobs=1, progressbar=False)["level"]
    assert time.process_time() - start <= 10.0
    for name, reference in {
        "marital_status": 0.0246, "relationship": 0.0199, "hours_per_week": 0.0097, "education": 0.0092
    }.items():  # fmt: skip
        assert levels[name] == pytest.approx(reference, rel=0.04)


@pytest.mark.parametrize(
    ("n", "seconds"), [(10**3, 0.05), (10**4, 0.2), (10**5, 1.0), (10**6, 6.0)]
)
def test_speed_of_one_pair(n, seconds):
    """The targets hold on a quiet core; a busy one gets twice the time."""
    x, y = heteroscedastic(n, np.random.default_rng(1))
    fit_grid(x[:300], y[:300])
    best = np.inf
    for _ in range(5 if n < 10**6 else 1):
        start = time.process_time()
        fit_grid(x, y)
        best = min(best, time.process_time() - start)
    assert best <= 2 * seconds
