"""Baselines: Gaussian-process regression on the class numbers, and models of other packages."""

import warnings

import numpy as np
from scipy.stats import norm

from pmordinal.bench.base import Clock, Prediction, Split
from pmordinal.data import features as feature_table


def _scaled(split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Return training and new rows, standardised by the training rows."""
    table, rows = feature_table.learn(split.X, standardize=True)
    return rows, table.transform(split.Xnew)


def regression(split: Split) -> list[Prediction]:
    """Return predictions of GP regression on the class numbers, cut midway between classes.

    The median class is the rounded mean.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    clock = Clock()
    with clock.running(), _quiet():
        X, Xnew = _scaled(split)
        kernel = ConstantKernel() * RBF(np.sqrt(X.shape[1])) + WhiteKernel()
        model = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, split.y)
        mean, sd = model.predict(Xnew, return_std=True)
        edges = np.concatenate([[-np.inf], np.arange(split.n_classes - 1) + 0.5, [np.inf]])
        probs = np.diff(norm.cdf((edges - mean[:, None]) / sd[:, None]), axis=1)
    return [Prediction("gpr", probs, clock)]


def classification(split: Split) -> list[Prediction]:
    """Return predictions of scikit-learn's one-versus-rest GP classifier, which ignores the order."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    clock = Clock()
    with clock.running(), _quiet():
        X, Xnew = _scaled(split)
        kernel = ConstantKernel() * RBF(np.sqrt(X.shape[1]))
        model = GaussianProcessClassifier(kernel).fit(X, split.y)
        probs = _all_classes(model.predict_proba(Xnew), model.classes_, split.n_classes)
    return [Prediction("sklearn-gpc", probs, clock)]


def mord(split: Split) -> list[Prediction]:
    """Return predictions of mord's all-threshold logistic model with its default ridge."""
    from mord import LogisticAT

    clock = Clock()
    with clock.running(), _quiet():
        X, Xnew = _scaled(split)
        seen, codes = np.unique(split.y, return_inverse=True)
        model = LogisticAT().fit(X, codes)
        probs = _all_classes(model.predict_proba(Xnew), seen, split.n_classes)
    return [Prediction("mord", probs, clock)]


def gpflow(split: Split) -> list[Prediction]:
    """Return predictions of GPflow's variational GP; its ordinal likelihood is cut midway between classes."""
    import gpflow as gpf

    clock = Clock()
    with clock.running(), _quiet():
        X, Xnew = _scaled(split)
        middle = (split.n_classes - 1) / 2.0
        edges = np.arange(split.n_classes - 1) + 0.5 - middle
        kernel = gpf.kernels.SquaredExponential(1.0, np.sqrt(X.shape[1]))
        likelihood = gpf.likelihoods.Ordinal(edges)
        data = (X, split.y[:, None].astype(float))
        model = gpf.models.VGP(data, kernel, likelihood, mean_function=gpf.functions.Constant())
        found = gpf.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)
        classes = [np.full((len(Xnew), 1), float(k)) for k in range(split.n_classes)]
        logs = [model.predict_log_density((Xnew, k)).numpy() for k in classes]
        probs = np.exp(np.stack(logs, axis=1))
    probs /= probs.sum(1, keepdims=True)
    return [Prediction("gpflow", probs, clock, int(found.nfev), bool(found.success))]


def _all_classes(probs: np.ndarray, seen: np.ndarray, n_classes: int) -> np.ndarray:
    """Return probabilities with columns of zeros for the classes that were not seen."""
    whole = np.zeros((len(probs), n_classes))
    whole[:, seen] = probs
    return whole


def _quiet() -> warnings.catch_warnings:
    """Return a context that hides the warnings of other packages."""
    return warnings.catch_warnings(action="ignore")
