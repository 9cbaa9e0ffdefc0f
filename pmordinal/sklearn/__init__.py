"""scikit-learn estimators: an ordinal Gaussian process as a classifier, and those of MODL.

scikit-learn is an optional dependency: ``pip install pmordinal[sklearn]``.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import _safe_indexing, check_random_state
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import (
        _check_sample_weight,
        check_consistent_length,
        check_is_fitted,
        validate_data,
    )
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "pmordinal.sklearn needs scikit-learn: pip install scikit-learn", name=error.name
    ) from error

from pmordinal import checks, modl
from pmordinal.data.foreign import as_pandas
from pmordinal.data.labels import encode
from pmordinal.engines import Engine, engine_for
from pmordinal.inference.fit import fit as fit_model
from pmordinal.links import Link
from pmordinal.model.factories import gp_model
from pmordinal.modl.regression.discretizer import MODLDiscretizer
from pmordinal.results.decisions import decide
from pmordinal.results.fit import OrdinalFit
from pmordinal.results.semisupervised import SemiSupervisedFit
from pmordinal.sklearn.target import labelled_rows, read_target
from pmordinal.words import guessing

__all__ = ["MODLDiscretizer", "OrdinalGPClassifier", "RankRegressor"]


class OrdinalGPClassifier(ClassifierMixin, BaseEstimator):
    """Gaussian-process classifier of ordered classes.

    Parameters
    ----------
    engine : str or Engine, optional
        How the latent function is integrated out; default is ``"ep"``, and ``"inducing"`` beyond 3000 rows.
    cov_func : str, pm.gp.cov covariance, or a class of them, optional
        Covariance of the latent function, by name such as ``"recommended"``, ``"matern52"`` or
        ``"expquad"``, the papers'; see `gp_model`, whose default it has.
    ard : bool, default False
        One length-scale for each attribute.
    link : {"probit", "logit", "cloglog"}, default "probit"
        Distribution of the noise.
    objective : str, optional
        The objective to maximise; default is the engine's own.
    categories : sequence, optional
        All labels from lowest to highest, the unobserved ones included. Default is the order of an
        ordered categorical, else the sorted labels, as everywhere in scikit-learn: text is then in
        alphabetical order, with a `LabelOrderWarning`. Pass it under meta-estimators that encode
        labels: their codes are read back by it.
    rule : {"mode", "median"} or array-like, shape (r, r), default "mode"
        How `predict` picks a class, see `OrdinalFit.predict`.
    starts : int, default 1
        Starting points of the optimisation.
    priors : bool, default True
        Whether the priors of the hyperparameters take part.
    standardize : bool, optional
        Centre and scale the attributes; default is to do so unless `cov_func` is a covariance of
        your own.
    max_evaluations : int, default 500
        Evaluations of the objective, for each start.
    semisupervised : bool, default False
        Learn from the rows without a label too, which are −1 in `y`, as in ``sklearn.semi_supervised``, or missing:
        `fit` with ``semisupervised=True``. −1 is a label where it is among the `categories`.
    proportions : array-like, shape (r,), dict or Series, optional
        Class proportions of the unlabelled rows, from the lowest class to the highest or by label; default is those of
        the labels.
    random_state : int, RandomState or None, default None
        Seed of the scattered starts.
    progressbar : bool, default False
        Whether to show progress.

    Attributes
    ----------
    categories_ : ndarray, shape (r,)
        The labels from lowest to highest.
    classes_ : ndarray, shape (r,)
        The same labels sorted, as scikit-learn's metrics and meta-estimators take for granted: the
        columns of `predict_proba`.
    fit_ : OrdinalFit
        Hyperparameters, thresholds, leave-one-out, `to_datatree` and the rest.
    transduction_ : ndarray, shape (n,)
        With `semisupervised`: the labels of all rows, those of the unlabelled ones as the fit ends with.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn; a categorical column of a table counts as one.

    Notes
    -----
    Tables may have categorical and text columns, whose levels get a column each. Labels may be missing only with
    `semisupervised`. scikit-learn's metrics take the columns of `predict_proba` to be sorted, and so they are; from
    lowest to highest they are in ``fit_.predict(X)``, which is what `pmordinal.scores` takes.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> wine = pmo.datasets.wine()
    >>> X, y = wine[["temperature", "contact"]], wine["rating"]
    >>> model = OrdinalGPClassifier().fit(X, y)
    >>> model.predict(X.iloc[[0, -1]])
    array([2, 4])
    """

    fit_: OrdinalFit
    classes_: np.ndarray
    categories_: np.ndarray
    transduction_: np.ndarray
    _positions: np.ndarray
    _is_copy = False

    @guessing
    def __init__(
        self,
        engine: str | Engine | None = None,
        *,
        cov_func: Any = None,
        ard: bool = False,
        link: str | Link = "probit",
        objective: str | None = None,
        categories: Sequence[Any] | None = None,
        rule: Any = "mode",
        starts: int = 1,
        priors: bool = True,
        standardize: bool | None = None,
        max_evaluations: int = 500,
        semisupervised: bool = False,
        proportions: Any = None,
        random_state: int | np.random.RandomState | None = None,
        progressbar: bool = False,
    ) -> None:
        self.engine = engine
        self.cov_func = cov_func
        self.ard = ard
        self.link = link
        self.objective = objective
        self.categories = categories
        self.rule = rule
        self.starts = starts
        self.priors = priors
        self.standardize = standardize
        self.max_evaluations = max_evaluations
        self.semisupervised = semisupervised
        self.proportions = proportions
        self.random_state = random_state
        self.progressbar = progressbar

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the hyperparameters and the latent function.

        Parameters
        ----------
        X : data frame or array-like, shape (n, d)
        y : array-like, shape (n,)
            With `semisupervised`, −1 or missing where a row has no label.
        sample_weight : array-like, shape (n,), optional
            How many rows each row stands for: whole numbers are repeated rows, others powers of the
            likelihood, and rows of weight zero are left out. The engines ``"exact"`` and ``"sparse"`` take
            whole numbers only, and do repeat the rows.

        Returns
        -------
        OrdinalGPClassifier
            Itself.
        """
        if y is None:
            raise ValueError(
                "OrdinalGPClassifier requires y to be passed, but the target y is None."
            )
        X = self._table(X, reset=True)
        unlabelled = None
        if self.semisupervised:
            X, y, unlabelled, labelled = self._divided(X, y, sample_weight)
        target = read_target(y, self.categories, may_be_codes=self._is_copy)
        labels, r = target.labels, target.labels.n_classes
        check_consistent_length(X, labels.codes)
        decide(np.full((1, r), 1.0 / r), self.rule)  # so that a wrong rule fails now
        X, codes, weights = self._counted(X, labels.codes, sample_weight)
        model = gp_model(
            X,
            labels.decode(codes),
            self.cov_func,
            ard=self.ard,
            engine=self.engine,
            link=self.link,
            objective=self.objective,
            categories=list(labels.categories),
            weights=weights,
            unlabeled=unlabelled,
            standardize=self.standardize,
        )
        self.fit_ = fit_model(
            model,
            starts=self.starts,
            progressbar=self.progressbar,
            priors=self.priors,
            seed=self._seed(),
            max_evaluations=self.max_evaluations,
            semisupervised=bool(self.semisupervised),
            proportions=self.proportions,
        )
        self.classes_ = target.classes
        self.categories_ = target.levels
        self._positions = target.positions
        if isinstance(self.fit_, SemiSupervisedFit):
            codes = np.empty(labelled.size, dtype=np.int64)
            codes[labelled], codes[~labelled] = labels.codes, self.fit_.unlabeled_codes
            self.transduction_ = self.classes_[np.argsort(self._positions)[codes]]
        self.n_iter_ = self.fit_.status.iterations
        return self

    def _divided(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, np.ndarray]:
        """Return the labelled rows and their labels, the unlabelled rows or None, and the mask of the former."""
        if sample_weight is not None:
            raise ValueError("semisupervised=True takes no sample_weight: repeat the rows instead")
        labelled = labelled_rows(y, self.categories)
        check_consistent_length(X, labelled)
        if labelled.all():
            return X, y, None, labelled
        if not labelled.any():
            raise ValueError("y has no label: all rows are −1 or missing")
        known = _safe_indexing(as_pandas(y, "y"), labelled)
        known = np.asarray(known.tolist()) if _is_object(known) else known
        return _safe_indexing(X, labelled), known, _safe_indexing(X, ~labelled), labelled

    def _counted(
        self, X: Any, codes: np.ndarray, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return the rows that count, their class codes and their weights."""
        if sample_weight is None:
            return X, codes, None
        column = np.zeros((len(codes), 1))  # X may have columns of text
        weights = _check_sample_weight(
            sample_weight, column, dtype=np.float64, ensure_non_negative=True
        )
        kept = weights > 0.0
        if not kept.any():
            raise ValueError("sample_weight: all weights are zero, so that no row counts")
        rows, weights = np.flatnonzero(kept), weights[kept]
        is_whole = np.all(weights == np.round(weights))
        if is_whole and not engine_for(self.engine, rows.size).has_weights:
            rows, weights = np.repeat(rows, weights.astype(int)), np.ones(1)
        if not np.array_equal(rows, np.arange(len(codes))):
            X = _safe_indexing(X, rows)
        return X, codes[rows], None if np.all(weights == 1.0) else weights

    def _seed(self) -> int:
        """Return the integer seed that `random_state` gives, by scikit-learn's rules."""
        try:
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        except (TypeError, ValueError) as error:
            raise ValueError(
                "random_state must be an integer from 0 to 2**32 - 1, a RandomState or None, got "
                f"{checks.got(self.random_state)}"
            ) from error

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row, chosen by `rule`.

        Parameters
        ----------
        X : data frame or array-like, shape (m, d)

        Returns
        -------
        ndarray, shape (m,)
        """
        chosen = decide(self._probabilities(X), self.rule)
        return self.classes_[np.argsort(self._positions)[chosen]]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities; columns are in the order of `classes_`, which is sorted.

        ``fit_.predict(X)`` has them from lowest to highest, with the names of the labels.

        Parameters
        ----------
        X : data frame or array-like, shape (m, d)

        Returns
        -------
        ndarray, shape (m, r)
        """
        return self._probabilities(X)[:, self._positions]

    def predict_set(
        self, X: Any, coverage: float = 0.9, calibration: tuple[Any, Any] | None = None
    ) -> np.ndarray:
        """Return which classes are in the prediction set of each row; columns as in `predict_proba`.

        The sets are contiguous in the order of `categories_`. ``fit_.predict(X, kind="set")`` has
        their ends, with the names of the labels.

        Parameters
        ----------
        X : data frame or array-like, shape (m, d)
        coverage : float, default 0.9
            How often a set is to hold the true label, at least.
        calibration : tuple of (X, y), optional
            Rows that the estimator was not fitted to, with their labels. Without them the coverage is
            approximate, see `OrdinalFit.predict`.

        Returns
        -------
        ndarray of bool, shape (m, r)
        """
        check_is_fitted(self)
        table = self._table(X, reset=False)
        if isinstance(calibration, tuple) and len(calibration) == 2:
            rows, y = calibration
            calibration = self._table(rows, reset=False), self._labels_of(y)
        sets = self.fit_.predict(table, kind="set", coverage=coverage, calibration=calibration)
        return sets["included"].to_numpy()[:, self._positions]

    def _labels_of(self, y: Any) -> Any:
        """Return labels as the fit knows them for those of `classes_`, which may be codes."""
        given = encode(y, self.classes_.tolist(), "calibration labels")
        if not given.observed.all():
            raise ValueError("calibration labels contain NaN: drop the rows without a label")
        return self.fit_.labels.decode(self._positions[given.codes])

    def _probabilities(self, X: Any) -> np.ndarray:
        """Return class probabilities from the lowest class to the highest."""
        check_is_fitted(self)
        table = self._table(X, reset=False)
        return self.fit_.predict(table).to_numpy()

    def _table(self, X: Any, *, reset: bool) -> Any:
        """Return X after scikit-learn's checks; a table keeps its columns and their types."""
        X = as_pandas(X, "X")
        if hasattr(X, "columns") and len(X) > 0 and len(X.columns) > 0:
            validate_data(self, X, skip_check_array=True, reset=reset)
            return X
        return validate_data(self, X, dtype="numeric", reset=reset)

    def __sklearn_clone__(self) -> Any:
        """Return an unfitted copy, which may be given the codes of a label encoder as y.

        Meta-estimators that encode y fit copies; an estimator that you fit yourself gets your y.
        """
        copy = super().__sklearn_clone__()
        copy._is_copy = True
        return copy

    def __sklearn_tags__(self) -> Any:
        """Declare that tables may have categorical columns."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


def _is_object(y: Any) -> bool:
    return np.dtype(object) == getattr(y, "dtype", None)


def _has_labels(model: "RankRegressor") -> bool:
    if getattr(model, "y_labels_", None) is None:
        raise AttributeError(
            "predict_proba needs a target of ordered labels; for a numeric one use rank_cdf, "
            "predict_quantile, or pmordinal.modl.RankRegressor.predict_proba with cuts"
        )
    return True


class RankRegressor(modl.RankRegressor):
    """`pmordinal.modl.RankRegressor`, with `predict_proba` only for targets that are ordered labels.

    scikit-learn asks that of a regressor. Everything else is the same.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 200)[:, None]
    >>> model = RankRegressor().fit(x, x[:, 0] ** 2)
    >>> bool(model.score(x, x[:, 0] ** 2) > 0.9)
    True
    """

    predict_proba = available_if(_has_labels)(modl.RankRegressor.predict_proba)
