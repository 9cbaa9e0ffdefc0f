"""`Conformal`: prediction sets of a fit, calibrated on labels that it has not seen."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr

from pmordinal import checks
from pmordinal.data.labels import encode
from pmordinal.data.rows import check_paired
from pmordinal.errors import warn
from pmordinal.results.nested_sets import SCORES, between, cut, fewest

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit


@dataclass(frozen=True, eq=False)
class Conformal:
    """A fit with the scores of labels that it has not seen; `pmordinal.conformal` makes it.

    Attributes
    ----------
    fit : OrdinalFit
    score : {"window", "rps"}
    by_class : bool
        Whether each class has its own cut.
    scores : ndarray, shape (n,)
        Scores of the calibration labels.
    codes : ndarray of int, shape (n,)
        Their class codes.
    source : {"held out", "given", "leave-one-out"}
        Where the calibration rows are from. Coverage is approximate for the last.
    rows : ndarray, shape (n,)
        Names of the calibration rows, if they are rows of the model.
    """

    fit: "OrdinalFit"
    score: str
    by_class: bool
    scores: np.ndarray = field(repr=False)
    codes: np.ndarray = field(repr=False)
    source: str
    rows: np.ndarray | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        fit: "OrdinalFit",
        probs: np.ndarray,
        codes: np.ndarray,
        source: str,
        *,
        score: str = "window",
        by_class: bool = False,
        rows: np.ndarray | None = None,
    ) -> Self:
        """Return a fit with the scores of given rows.

        Parameters
        ----------
        fit : OrdinalFit
        probs : ndarray, shape (n, r)
            Class probabilities of the rows, made without their labels.
        codes : ndarray of int, shape (n,)
        source, score, by_class, rows
            See the attributes.
        """
        checks.one_of("score", score, SCORES)
        if not isinstance(by_class, bool | np.bool_):
            raise TypeError(f"by_class must be True or False, got {checks.got(by_class)}")
        scores = SCORES[score](probs)[np.arange(codes.size), codes]
        return cls(fit, score, bool(by_class), scores, codes, source, rows)

    @classmethod
    def given(cls, fit: "OrdinalFit", calibration: Any, **options: Any) -> Self:
        """Return a fit calibrated on rows of the user's: a tuple of X and y."""
        if not isinstance(calibration, tuple) or len(calibration) != 2:
            raise TypeError(
                f"calibration must be a tuple of rows and labels, got {checks.got(calibration)}"
            )
        X, y = calibration
        probs = fit.predict(X).to_numpy()
        codes = encode(y, fit.labels.categories, "calibration labels").codes
        if codes.size != len(probs):
            raise ValueError(
                f"calibration has {len(probs)} rows and {codes.size} labels: they must match"
            )
        check_paired(X, y, "calibration[0]", "calibration[1]")
        seen = codes >= 0
        return cls.of(fit, probs[seen], codes[seen], "given", **options)

    @classmethod
    def left_out(cls, fit: "OrdinalFit", **options: Any) -> Self:
        """Return a fit calibrated on its own labels, each of them left out."""
        if fit.by_row.weights is not None:
            raise ValueError(
                "the fit has weights, and rows that stand for several are not exchangeable: pass calibration=(X, y) "
                "of rows that count once"
            )
        q = fit.posterior
        options = {"rows": fit.index, **options}
        return cls.of(fit, q.left_out_probabilities(), q.y, "leave-one-out", **options)

    def cuts(self, coverage: float) -> np.ndarray:
        """Return the largest score of each class in a set, shape (r,); infinite where rows are too few.

        Parameters
        ----------
        coverage : float
            Between 0 and 1.
        """
        if not checks.positive("coverage", coverage) < 1.0:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage}: 0.9, say")
        r = self.fit.labels.n_classes
        if not self.by_class:
            return np.full(r, cut(self.scores, coverage))
        return np.array([cut(self.scores[self.codes == k], coverage) for k in range(r)])

    def predict(self, Xnew: Any, kind: str = "set", *, coverage: float = 0.9, rule: Any = "mode"):
        """Return prediction sets of new rows, or another kind of prediction.

        Parameters
        ----------
        Xnew : DataFrame or array_like, shape (m, d)
        kind : str
            ``"set"``, or a kind of `OrdinalFit.predict`.
        coverage : float
            Probability that a set holds the true label, at least. With `by_class` it is that for each true class.
        rule : {"mode", "median"} or array_like, shape (r, r)
            For ``kind="class"``.

        Returns
        -------
        Dataset
            ``lower`` and ``upper``, the ends of the set, of the kind of your labels; ``size``, how many classes;
            ``included``, which ones, with the dimensions ``obs`` and ``class``. Attributes say how it was calibrated.
        """
        if kind != "set":
            return self.fit.predict(Xnew, kind, rule=rule)
        cuts = self.cuts(coverage)
        probs = self.fit.predict(Xnew)
        if np.isinf(cuts).any():
            self._warn_of_few(coverage, cuts)
        included = between(SCORES[self.score](probs.to_numpy()) <= cuts)
        lower = included.argmax(1)
        size = included.sum(1)
        decode = self.fit.labels.decode
        return xr.Dataset(
            {
                "lower": ("obs", np.asarray(decode(lower))),
                "upper": ("obs", np.asarray(decode(lower + size - 1))),
                "size": ("obs", size),
                "included": (("obs", "class"), included),
            },
            coords=probs.coords,
            attrs={
                "coverage": coverage,
                "score": self.score,
                "by_class": int(self.by_class),  # files have no bools
                "calibration": self.source,
                "n_calibration": self.scores.size,
            },
        )

    def _warn_of_few(self, coverage: float, cuts: np.ndarray) -> None:
        needed = fewest(coverage)
        if self.by_class:
            counts = np.bincount(self.codes, minlength=cuts.size)
            names = self.fit.labels.class_names
            few = ", ".join(f"{counts[k]} of {names[k]!r}" for k in np.flatnonzero(np.isinf(cuts)))
            warn(
                f"calibration rows are too few, so that these classes are in every set: there are {few}, and coverage "
                f"{coverage:g} needs {needed} of each class"
            )
        else:
            warn(
                f"calibration rows are too few, so that every set has all classes: there are {self.scores.size}, and "
                f"coverage {coverage:g} needs {needed}"
            )

    def __repr__(self) -> str:
        """Return how the sets are made."""
        each = ", a cut for each class" if self.by_class else ""
        return (
            f"Conformal({self.scores.size} calibration rows, {self.source}; score {self.score!r}{each}; "
            f"{self.fit.engine} fit of {self.fit.posterior.y.size} rows)"
        )


def predict_set(fit: "OrdinalFit", Xnew: Any, coverage: float, calibration: Any) -> xr.Dataset:
    """Return prediction sets of new rows; see `OrdinalFit.predict`."""
    if calibration is None:
        return Conformal.left_out(fit).predict(Xnew, coverage=coverage)
    return Conformal.given(fit, calibration).predict(Xnew, coverage=coverage)
