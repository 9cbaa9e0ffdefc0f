"""`RankRegressor`: predictive distributions of the target's rank from one or many predictors."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from pmordinal import checks
from pmordinal.data.ranked_probability_score import ranked_probability_score
from pmordinal.modl.encode import as_series, to_floats
from pmordinal.modl.partition.grid import Grid
from pmordinal.modl.regression.density import RankDensity, Segments
from pmordinal.modl.regression.estimator import TableEstimator
from pmordinal.modl.regression.kinds import KINDS
from pmordinal.modl.regression.projection import ValueDistribution, ValueScale
from pmordinal.modl.regression.subsets import Candidate, Selection, select
from pmordinal.words import guessing

if TYPE_CHECKING:
    import xarray as xr


class RankRegressor(RegressorMixin, TableEstimator):
    """Rank regression by optimal grids, alone or combined under the naive Bayes assumption.

    Parameters
    ----------
    kind : {"univariate", "nb", "snb", "averaged"}, default "snb"
        The best predictor; naive Bayes; naive Bayes on the subset of largest posterior probability;
        naive Bayes with compression weights averaged over the subsets visited.
    quantile : float, default 0.5
        Quantile of a numeric target that `predict` returns; 0.5 is the median.
    smoothing : float or "paper", default 1.0
        Added to each cell count; 1 is the predictive of the model's own prior, "paper" is 1/N.
    selection : {"joint", "paper"}, default "joint"
        How "snb" and "averaged" score a subset, see `pmordinal.modl.regression.subsets`: with the prior of the
        partitions and each instance left out of its own tables, or as the paper does.
    target : {"own", "common"}, default "own"
        Whether every predictor cuts the target as suits it best, as in the paper, or all in the same way.
    starts : int, default 10
        Starts of each search, see `fit_grid`.
    random_state : int or None, default 0
        Seed of the searches.
    n_jobs : int or None, default None
        Parallel tasks over predictors, as in joblib.
    progressbar : bool, default False
        Whether to show progress.

    Attributes
    ----------
    grids_ : dict of str to Grid
        The grid of every predictor.
    weights_ : dict of str to float
        Exponent of every predictor in use.
    selection_ : Selection or None
        Result of the search over subsets.
    y_labels_ : list or None
        Labels of an ordered categorical target.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(300, 3))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=300)
    >>> model = RankRegressor(kind="snb").fit(X, y)
    >>> list(model.weights_), bool(model.nlrpd(X, y) < -0.8)
    (['x0'], True)
    """

    @guessing
    def __init__(
        self,
        kind: Literal["univariate", "nb", "snb", "averaged"] = "snb",
        *,
        quantile: float = 0.5,
        smoothing: float | Literal["paper"] = 1.0,
        selection: Literal["joint", "paper"] = "joint",
        target: Literal["own", "common"] = "own",
        starts: int = 10,
        random_state: int | None = 0,
        n_jobs: int | None = None,
        progressbar: bool = False,
    ) -> None:
        self.kind = kind
        self.quantile = quantile
        self.smoothing = smoothing
        self.selection = selection
        self.target = target
        self.starts = starts
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progressbar = progressbar

    def fit(self, X: Any, y: Any) -> "RankRegressor":
        """Fit a grid to every predictor and combine them.

        Parameters
        ----------
        X : data frame or array-like, shape (n, d)
            Predictors of mixed types.
        y : array-like, shape (n,)
            Target: numbers or an ordered ``pd.Categorical``; missing ones are left out with a warning.

        Returns
        -------
        RankRegressor
            Itself.
        """
        weigh = KINDS[self.kind]
        if not 0.0 < checks.positive("quantile", self.quantile) < 1.0:
            raise ValueError(f"quantile must be between 0 and 1, got {self.quantile}")
        if self.selection not in ("joint", "paper"):
            raise ValueError(
                f"unknown selection {self.selection!r}: choose one of 'joint', 'paper'"
            )
        if self.smoothing != "paper" and not (
            isinstance(self.smoothing, int | float) and self.smoothing > 0
        ):
            raise ValueError(
                f"smoothing must be positive or 'paper', got {self.smoothing!r}: with 0, empty cells make "
                "log scores infinite"
            )
        checks.one_of("target", self.target, ("own", "common"))
        target, labels, seen = self._fit_grids(X, y, common_target=self.target == "common")
        n = len(target.code)
        self.y_labels_ = labels
        self.scale_ = ValueScale(target.values, np.bincount(target.code))
        self.y_train_ = target.values[target.code]
        a = 1.0 / n if self.smoothing == "paper" else float(self.smoothing)
        ordered = sorted(self.grids_.items(), key=lambda item: -item[1].level)
        useful = {k: g for k, g in ordered if not g.is_null}
        parts, _ = self._parts(X)
        self.parts_train_ = {k: parts[k][seen] for k in useful}
        self.selection_ = None
        if self.kind in ("snb", "averaged"):
            self.selection_ = self._select(useful, a)
        self.weights_ = weigh(useful, self.selection_)
        self.density_ = RankDensity({k: useful[k] for k in self.weights_}, self.weights_, a)
        return self

    def _select(self, useful: dict[str, Grid], smoothing: float) -> Selection:
        segments = Segments.of(list(useful.values()))
        boundaries = self.scale_.boundaries_at(segments.edges[1:-1])
        segment = np.searchsorted(boundaries, self.y_train_, side="right")
        joint = self.selection == "joint"
        candidates = [
            Candidate.of(g, self.parts_train_[k], segments, segment, smoothing, joint)
            for k, g in useful.items()
        ]
        return select(
            candidates,
            segment,
            segments.widths,
            n_predictors=len(self.grids_),
            rng=checks.generator("random_state", self.random_state),
            progressbar=self.progressbar,
        )

    def _rank_density(self, X: Any) -> np.ndarray:
        """Return rank densities on the segments, shape (n, S)."""
        check_is_fitted(self)
        parts, n = self._parts(X, list(self.weights_))
        return np.exp(self.density_.log_density(parts, n))

    def _distribution(self, X: Any) -> ValueDistribution:
        return ValueDistribution(self.scale_, self.rank_edges_, self._rank_density(X))

    def _targets(self, y: Any, n: int) -> np.ndarray:
        """Return scoring targets as floats; labels of an ordered target become their codes."""
        series = as_series(y, "y")
        if self.y_labels_ is not None:
            code = {label: float(k) for k, label in enumerate(self.y_labels_)}
            unknown = sorted({str(v) for v in series if v not in code})
            if unknown:
                raise ValueError(f"y holds labels unseen in fit: {', '.join(unknown[:5])}")
            values = np.array([code[v] for v in series])
        else:
            values = to_floats(series, "y")
        if len(values) != n:
            raise ValueError(f"X has {n} rows and y has {len(values)}: pass as many of both")
        if np.isnan(values).any():
            raise ValueError("y holds missing values: drop those rows before scoring")
        return values

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each predictor in what is known of the target: its level times its weight, in the order of `X`."""
        check_is_fitted(self)
        told = [self.grids_[k].level * self.weights_.get(k, 0.0) for k in self.names_]
        return np.array(told) / (sum(told) or 1.0)

    @property
    def rank_edges_(self) -> np.ndarray:
        """Edges in [0, 1] between which the rank density is constant."""
        return self.density_.segments.edges

    def rank_cdf(self, X: Any, ranks: Any = None) -> np.ndarray:
        """Return P(normalised target rank ≤ r | x).

        Parameters
        ----------
        X : data frame or array-like, shape (n, d)
        ranks : array-like, shape (k,), optional
            Where to evaluate; by default at `rank_edges_`, between which the cdf is linear.

        Returns
        -------
        ndarray, shape (n, k)
        """
        cdf = self._distribution(X).cdf_at_edges
        if ranks is None:
            return cdf
        at = np.asarray(ranks, dtype=float)
        return np.array([np.interp(at, self.rank_edges_, row) for row in cdf]).reshape(-1, at.size)

    def predict_rank(self, X: Any) -> np.ndarray:
        """Return the expected normalised rank of the target, shape (n,)."""
        middle = 0.5 * (self.rank_edges_[:-1] + self.rank_edges_[1:])
        return self._rank_density(X) @ (middle * self.density_.segments.widths)

    def predict_quantile(
        self, X: Any, q: Any, scale: Literal["value", "rank"] = "value"
    ) -> np.ndarray:
        """Return conditional quantiles of the target.

        Parameters
        ----------
        X : data frame or array-like, shape (n, d)
        q : float or array-like, shape (k,)
            Probabilities in [0, 1].
        scale : {"value", "rank"}, default "value"
            Target values (with exponential tails beyond the training range) or normalised ranks.

        Returns
        -------
        ndarray, shape (n,) or (n, k)
        """
        levels = np.atleast_1d(np.asarray(q, dtype=float))
        if not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError(f"q must lie in [0, 1], got {q!r}")
        if scale not in ("value", "rank"):
            raise ValueError(f"unknown scale {scale!r}: choose one of 'value', 'rank'")
        if scale == "value":
            out = self._distribution(X).quantile(levels)
        else:
            out = np.array([np.interp(levels, row, self.rank_edges_) for row in self.rank_cdf(X)])
            out = out.reshape(-1, levels.size)
        return out[:, 0] if np.ndim(q) == 0 else out

    def predict(self, X: Any) -> np.ndarray:
        """Return the quantile of the target given each row; for labels, the median label.

        Parameters
        ----------
        X : data frame or array-like, shape (n, d)

        Returns
        -------
        ndarray, shape (n,)
        """
        check_is_fitted(self)
        if self.y_labels_ is None:
            return self.predict_quantile(X, self.quantile)
        median = self.predict_quantile(X, 0.5, scale="rank")
        code = self.scale_.values[np.searchsorted(self.scale_.ranks[1:-1], median, side="right")]
        return np.asarray(self.y_labels_, dtype=object)[code.astype(int)]

    def predict_proba(self, X: Any, cuts: Any = None) -> np.ndarray:
        """Return probabilities of ordered classes of the target.

        Parameters
        ----------
        X : data frame or array-like, shape (n, d)
        cuts : array-like, shape (J − 1,), optional
            Class boundaries in values: class j holds cuts[j−1] ≤ y < cuts[j]. By default every
            distinct training value is a class (every declared label of an ordered categorical target).

        Returns
        -------
        ndarray, shape (n, J)
        """
        check_is_fitted(self)
        if cuts is None and self.y_labels_ is not None:
            cuts = np.arange(1, len(self.y_labels_)) - 0.5
        if cuts is None:
            ranks = self.scale_.ranks
        else:
            cuts = np.asarray(cuts, dtype=float)
            if cuts.ndim != 1 or (np.diff(cuts) <= 0).any():
                raise ValueError(f"cuts must be one increasing sequence, got {cuts!r}")
            inner = self.scale_.ranks[np.searchsorted(self.scale_.values, cuts, side="left")]
            ranks = np.concatenate(([0.0], inner, [1.0]))
        return np.diff(self.rank_cdf(X, ranks), axis=1)

    def log_score(self, X: Any, y: Any) -> np.ndarray:
        """Return the log rank predictive density of every row; 0 without information.

        Parameters
        ----------
        X : data frame or array-like, shape (n, d)
        y : array-like, shape (n,)

        Returns
        -------
        ndarray, shape (n,)
            log (N P(rank of y in its elementary interval | x)), minus the score of
            [HB2007, eq. 9]; at most log N.
        """
        check_is_fitted(self)
        parts, n = self._parts(X, list(self.weights_))
        boundaries = self.scale_.boundaries_at(self.rank_edges_[1:-1])
        segment = np.searchsorted(boundaries, self._targets(y, n), side="right")
        return self.density_.log_density(parts, n)[np.arange(n), segment]

    def nlrpd(self, X: Any, y: Any) -> float:
        """Return the mean negative log rank predictive density [HB2007, eq. 9]."""
        return float(-self.log_score(X, y).mean())

    def nlpd(self, X: Any, y: Any) -> float:
        """Return the mean negative log predictive density of the values [HB2007, eq. 6]."""
        distribution = self._distribution(X)
        y = self._targets(y, len(distribution.density))
        return float(-distribution.log_density(y).mean())

    def crps(self, X: Any, y: Any) -> float:
        """Return the mean continuous ranked probability score of the values."""
        distribution = self._distribution(X)
        return float(distribution.crps(self._targets(y, len(distribution.density))).mean())

    def rps(self, X: Any, y: Any, cuts: Any = None) -> float:
        """Return the mean ranked probability score over the classes of `predict_proba`.

        It is divided by their number minus one, see `ranked_probability_score`.
        """
        probabilities = self.predict_proba(X, cuts)
        y = self._targets(y, len(probabilities))
        if cuts is not None:
            codes = np.searchsorted(np.asarray(cuts, dtype=float), y, side="right")
        elif self.y_labels_ is not None:
            codes = y.astype(int)
        else:
            codes = np.searchsorted(self.scale_.knots[1:-1], y, side="right")
        return float(ranked_probability_score(probabilities, codes).mean())

    def to_datatree(
        self,
        X: Any = None,
        y: Any = None,
        *,
        draws: int = 250,
        chains: int = 4,
        seed: int | None = 0,
        random_seed: int | None = None,
    ) -> "xr.DataTree":
        """Return draws of the cell probabilities, predictions and pointwise log scores.

        Parameters
        ----------
        X, y : optional
            Rows to score; the training rows by default, for which ``az.loo`` and ``az.compare``
            apply.
        draws, chains : int, default 250 and 4
            Number of draws; they are independent. Memory and time grow as draws × rows: for large
            data pass a sample of the rows.
        seed, random_seed : int or None, default 0
            Seed of the draws.

        Returns
        -------
        xarray.DataTree
            See `pmordinal.modl.regression.regressor_tree.regressor_tree`.
        """
        seed = checks.one_seed(seed, random_seed)
        from pmordinal.modl.regression.regressor_tree import regressor_tree

        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("pass both X and y, or neither for the training rows")
        if X is None:
            parts, values = self.parts_train_, self.y_train_
        else:
            parts, n = self._parts(X, list(self.weights_))
            values = self._targets(y, n)
        return regressor_tree(
            self.density_, self.scale_, parts, values, draws=draws, chains=chains, seed=seed,
            labels=self.y_labels_, attrs={"kind": self.kind},
        )  # fmt: skip
