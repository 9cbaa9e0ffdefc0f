"""Support vector ordinal regression, the comparator of [CG2005, section 6], by scikit-learn's binary SVC.

One function and r − 1 thresholds, where every row has a margin to every threshold. Each row becomes r − 1 binary ones,
"is y above k?", whose kernel is that of the rows plus a constant for the same k [LL2006]: the thresholds, hardly
penalised. Kernel parameter and penalty are chosen by 5-fold cross-validation on the paper's grids.
"""

import warnings
from collections.abc import Sequence

import numpy as np
from scipy.spatial.distance import cdist

from pmordinal.bench.base import Clock, Prediction, Split
from pmordinal.data import features as feature_table

FOLDS = 5
COARSE = np.arange(-3.0, 4.0)  # log10 of C and of κ: 7 × 7
FINE = 0.2 * np.arange(-4, 5)  # around the best of them: 9 × 9
FREE = 100.0  # prior variance of a threshold, beside that of the function, which is one
MOST = 100_000  # steps of the solver


def support_vectors(split: Split) -> list[Prediction]:
    """Return predictions of an all-threshold support vector machine with a Gaussian kernel; labels only."""
    clock = Clock()
    with clock.running(), warnings.catch_warnings(action="ignore"):  # of the solver's steps
        table, X = feature_table.learn(split.X, standardize=True)
        Xnew = table.transform(split.Xnew)
        D, Dnew = cdist(X, X, "sqeuclidean"), cdist(Xnew, X, "sqeuclidean")
        fold = np.random.default_rng(split.seed).permutation(len(X)) % FOLDS
        errors: dict[tuple[float, float], float] = {}

        def search(centre: tuple[float, float], steps: np.ndarray) -> tuple[float, float]:
            for log_kappa in np.round(centre[1] + steps, 3).tolist():
                K = np.exp(-0.5 * 10**log_kappa * D)  # [CG2005, eq. 1]
                nodes = [(log_C, log_kappa) for log_C in np.round(centre[0] + steps, 3).tolist()]
                new = [node for node in nodes if node not in errors]
                penalties = [10**log_C for log_C, _ in new]
                shares = _cross_validated(K, split.y, split.n_classes, penalties, fold)
                errors.update(zip(new, shares, strict=True))
            return min(errors, key=lambda node: errors[node])

        log_C, log_kappa = search(search((0.0, 0.0), COARSE), FINE)
        K, Knew = (np.exp(-0.5 * 10**log_kappa * d) for d in (D, Dnew))
        (codes,) = _predicted(K, split.y, Knew, split.n_classes, [10**log_C])
    probs = np.eye(split.n_classes)[codes]
    chosen = f"log10 C {log_C:g}, log10 kappa {log_kappa:g}"
    return [Prediction("svm", probs, clock, len(errors), chosen=chosen, is_hard=True)]


def _cross_validated(
    K: np.ndarray, y: np.ndarray, r: int, penalties: Sequence[float], fold: np.ndarray
) -> np.ndarray:
    """Return, for each penalty, the share of wrong labels of rows that were left out."""
    wrong = np.zeros(len(penalties))
    for k in range(FOLDS):
        mine, others = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        codes = _predicted(K[np.ix_(mine, mine)], y[mine], K[np.ix_(others, mine)], r, penalties)
        wrong += [np.sum(c != y[others]) for c in codes]
    return wrong / y.size


def _predicted(
    K: np.ndarray, y: np.ndarray, Knew: np.ndarray, r: int, penalties: Sequence[float]
) -> list[np.ndarray]:
    """Return, for each penalty, the classes of new rows: the numbers of thresholds below their function values."""
    from sklearn.svm import SVC

    above = (y[:, None] > np.arange(r - 1)).ravel()
    if above.all() or not above.any():
        return [np.full(len(Knew), y[0])] * len(penalties)
    extended, crossed = _with_thresholds(K, r), _with_thresholds(Knew, r)
    found = []
    for C in penalties:
        model = SVC(C=C, kernel="precomputed", max_iter=MOST).fit(extended, above)
        found.append(model.predict(crossed).reshape(-1, r - 1).sum(axis=1))
    return found


def _with_thresholds(K: np.ndarray, r: int) -> np.ndarray:
    """Return the kernel between the binary rows of each row and column."""
    n, m = K.shape
    extended = np.tile(K[:, None, :, None], (1, r - 1, 1, r - 1))
    for k in range(r - 1):
        extended[:, k, :, k] += FREE
    return extended.reshape(n * (r - 1), m * (r - 1))
