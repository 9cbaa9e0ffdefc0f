"""Base class of `RankRegressor` and `MODLDiscretizer`: scikit-learn's input checks for mixed tables."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from pmordinal.data.foreign import as_pandas
from pmordinal.modl.encode import EncodedColumn, encode_predictor, encode_target, observed
from pmordinal.modl.frames import as_columns
from pmordinal.modl.partition.grid import Grid
from pmordinal.modl.regression.common_target import with_common_target
from pmordinal.modl.regression.ranking import fit_columns


class TableEstimator(BaseEstimator):
    """Base of the estimators: checks, encoding, and one grid for each predictor.

    Sub-classes have the parameters `starts`, `random_state`, `n_jobs` and `progressbar`.
    """

    grids_: dict[str, Grid]
    names_: list[str]
    _is_named: bool
    starts: int
    random_state: int | None
    n_jobs: int | None
    progressbar: bool

    def _columns(self, X: Any, *, reset: bool) -> dict[str, pd.Series]:
        """Return the columns of X after the checks of names and numbers of features."""
        if hasattr(X, "toarray"):
            raise TypeError(
                "Sparse data was passed, but dense data is required. Use '.toarray()' to convert."
            )
        if isinstance(X, Mapping) and not hasattr(X, "data_vars"):  # not a Dataset
            X = pd.DataFrame(dict(X))
        X = as_pandas(X, "X")
        if not hasattr(X, "columns"):
            X = np.asarray(X)
            if X.ndim == 2 and 0 in X.shape:
                what = "sample(s)" if X.shape[0] == 0 else "feature(s)"
                raise ValueError(
                    f"Found array with 0 {what} (shape={X.shape}) while a minimum of 1 is required."
                )
        columns = as_columns(X)
        validate_data(self, X, skip_check_array=True, reset=reset)
        is_table = hasattr(X, "columns")
        if reset:
            self._is_named = is_table
        elif is_table and self._is_named and list(columns) != self.names_:
            # scikit-learn checks names only if all are text
            raise ValueError(
                f"the columns of X must be those of fit, {self.names_[:5]}, in the same order, got "
                f"{list(columns)[:5]}: select them by name"
            )
        if len(next(iter(columns.values()))) == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        return columns

    def _fit_grids(
        self, X: Any, y: Any, *, common_target: bool = False
    ) -> tuple[EncodedColumn, list[Any] | None, np.ndarray]:
        """Fit a grid to every predictor; return the encoded target, its labels and the rows used."""
        if not isinstance(self.starts, int | np.integer) or self.starts < 1:
            raise ValueError(f"starts must be a positive integer, got {self.starts!r}")
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        columns = self._columns(X, reset=True)
        y = as_pandas(y, "y")
        if hasattr(y, "columns") and len(y.columns) == 1:
            column_or_1d(np.asarray(y), warn=True)  # gives scikit-learn's own warning
            y = y[y.columns[0]]  # keeps an ordered categorical
        if not hasattr(y, "dtype") or np.ndim(y) != 1:
            y = column_or_1d(np.asarray(y), warn=True)
        values, labels = encode_target(y)
        n = len(next(iter(columns.values())))
        if len(values) != n:
            raise ValueError(
                f"X has {n} rows and y has {len(values)}: inconsistent numbers of samples"
            )
        seen = observed(values)
        self.names_ = list(columns)
        encoded = {k: encode_predictor(c[seen], name=k) for k, c in columns.items()}
        target = encode_predictor(values[seen])
        self.grids_ = fit_columns(
            encoded,
            target,
            starts=self.starts,
            seed=self.random_state,
            seed_name="random_state",
            n_jobs=self.n_jobs,
            progressbar=self.progressbar,
        )
        if common_target:
            self.grids_ = with_common_target(self.grids_, encoded, target)
        return target, labels, seen

    def _parts(self, X: Any, names: list[str] | None = None) -> tuple[dict[str, np.ndarray], int]:
        """Return the part of every row for the predictors `names`, and the number of rows."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        pairs = zip(self.names_, columns.values(), strict=True)
        parts = {k: self.grids_[k].part_of(c) for k, c in pairs if names is None or k in names}
        return parts, len(next(iter(columns.values())))

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether `fit` has run."""
        return hasattr(self, "grids_")

    def __sklearn_tags__(self) -> Any:
        """Declare that missing values and categorical labels are allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
