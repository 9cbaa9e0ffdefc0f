"""`MODLDiscretizer`: a transformer that cuts or groups every predictor by its optimal grid."""

from typing import Any, Literal

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pmordinal.modl.regression.estimator import TableEstimator
from pmordinal.words import guessing


class MODLDiscretizer(TransformerMixin, TableEstimator):
    """Supervised discretisation and grouping of predictors for a numeric target.

    Parameters
    ----------
    encode : {"ordinal", "onehot", "mean_rank"}, default "ordinal"
        Part indices; one column a part; or the mean normalised target rank of the part. Rows without
        a part (an unseen label) get −1, zeros, or 0.5.
    starts : int, default 10
        Starts of each search, see `fit_grid`.
    random_state : int or None, default 0
        Seed of the random starts.
    n_jobs : int or None, default None
        Parallel tasks, as in joblib.
    progressbar : bool, default False
        Whether to show progress.

    Attributes
    ----------
    grids_ : dict of str to Grid
        The grid of every predictor.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(60.0)
    >>> X = np.column_stack([x, x % 2])
    >>> MODLDiscretizer().fit(X, x // 20).transform(X)[::20].tolist()
    [[0, 0], [1, 0], [2, 0]]
    """

    @guessing
    def __init__(
        self,
        *,
        encode: Literal["ordinal", "onehot", "mean_rank"] = "ordinal",
        starts: int = 10,
        random_state: int | None = 0,
        n_jobs: int | None = None,
        progressbar: bool = False,
    ) -> None:
        self.encode = encode
        self.starts = starts
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progressbar = progressbar

    def fit(self, X: Any, y: Any = None) -> "MODLDiscretizer":
        """Fit a grid to every predictor.

        Parameters
        ----------
        X : data frame or array-like, shape (n, d)
            Predictors of mixed types.
        y : array-like, shape (n,)
            Target.

        Returns
        -------
        MODLDiscretizer
            Itself.
        """
        if self.encode not in ("ordinal", "onehot", "mean_rank"):
            raise ValueError(
                f"unknown encode {self.encode!r}: choose one of 'ordinal', 'onehot', 'mean_rank'"
            )
        self._fit_grids(X, y)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the parts of the rows of X.

        Parameters
        ----------
        X : data frame or array-like, shape (n, d)

        Returns
        -------
        ndarray, shape (n, d) or (n, total number of parts)
        """
        parts, n = self._parts(X)
        if self.encode == "ordinal":
            return np.column_stack([parts[k] for k in self.names_])
        blocks = []
        for k in self.names_:
            grid = self.grids_[k]
            if self.encode == "onehot":
                blocks.append((parts[k][:, None] == np.arange(grid.I)).astype(float))
            else:
                edges = np.concatenate(([0.0], grid.y_ranks, [1.0]))
                mean = grid.probabilities() @ (0.5 * (edges[:-1] + edges[1:]))
                blocks.append(np.append(mean, 0.5)[parts[k]][:, None])
        return np.concatenate(blocks, axis=1).reshape(n, -1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that `transform` makes.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the predictors; those seen in `fit` by default.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = list(self.names_ if input_features is None else input_features)
        if len(names) != len(self.names_):
            raise ValueError(
                "input_features should have length equal to number of features "
                f"({len(self.names_)}), got {len(names)}"
            )
        fitted = getattr(self, "feature_names_in_", None)
        if input_features is not None and fitted is not None and list(fitted) != names:
            raise ValueError("input_features is not equal to feature_names_in_")
        if self.encode != "onehot":
            return np.asarray(names, dtype=object)
        pairs = zip(names, self.names_, strict=True)
        out = [f"{a}={p}" for a, b in pairs for p in self.grids_[b].part_names()]
        return np.asarray(out, dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Declare that the target is required and that the output keeps no input type."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags
