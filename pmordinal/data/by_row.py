"""What the likelihood of a row depends on besides the latent function: whose thresholds, whose noise, its weight."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from pmordinal import checks
from pmordinal.data.features import Column
from pmordinal.data.groups import Groups, check_name, column, without
from pmordinal.data.rows import check_paired

CODES = ("threshold_codes", "noise_codes")  # names of the groups of rows in files and trees


@dataclass(frozen=True, eq=False)
class ByRow:
    """Groups and weights of the rows of a table; None is one for all.

    Attributes
    ----------
    thresholds, noise : Groups, optional
        Whose thresholds cut a row, and whose noise is on it.
    weights : ndarray, shape (n,), optional
        How many rows each stands for.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"dose": [1.0, 2.0], "rater": ["b", "a"], "count": [3, 1]})
    >>> rest, by_row = read(table, thresholds_by="rater", weights="count")
    >>> list(rest.columns), by_row.thresholds.codes.tolist(), by_row.weights.tolist()
    (['dose'], [1, 0], [3.0, 1.0])
    """

    thresholds: Groups | None = None
    noise: Groups | None = None
    weights: np.ndarray | None = None

    @property
    def is_plain(self) -> bool:
        """Whether all rows are alike."""
        return not self.has_groups and self.weights is None

    @property
    def has_groups(self) -> bool:
        """Whether thresholds or noise differ between rows."""
        return self.thresholds is not None or self.noise is not None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that new rows need besides the attributes."""
        groups = (g.column for g in (self.thresholds, self.noise) if g is not None)
        return tuple({column.name: column for column in groups}.values())

    @property
    def coords(self) -> dict[str, list[Any]]:
        """The groups of each dimension."""
        return {g.name: list(g.levels) for g in (self.thresholds, self.noise) if g is not None}

    def take(self, index: np.ndarray) -> Self:
        """Return what is known of some of the rows."""
        return type(self)(
            None if self.thresholds is None else self.thresholds.take(index),
            None if self.noise is None else self.noise.take(index),
            None if self.weights is None else self.weights[index],
        )

    def codes(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the groups of the rows for thresholds and for noise."""
        thresholds, noise = self.thresholds, self.noise
        return (
            None if thresholds is None else thresholds.codes,
            None if noise is None else noise.codes,
        )

    def codes_at(self, Xnew: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the groups of new rows for thresholds and for noise."""
        thresholds, noise = self.thresholds, self.noise
        return (
            None if thresholds is None else thresholds.at(Xnew, "thresholds_by"),
            None if noise is None else noise.at(Xnew, "noise_by"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return what a file keeps besides codes and weights."""
        return {
            "thresholds": self.thresholds and self.thresholds.to_json(),
            "noise": self.noise and self.noise.to_json(),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Return codes and weights by the names that they have in a file."""
        thresholds, noise = self.codes()
        found = zip((*CODES, "weights"), (thresholds, noise, self.weights), strict=True)
        return {name: values for name, values in found if values is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Return what `to_json` and `arrays` described."""
        thresholds, noise = data["thresholds"], data["noise"]
        return cls(
            thresholds and Groups.from_json(thresholds, arrays["threshold_codes"]),
            noise and Groups.from_json(noise, arrays["noise_codes"]),
            arrays.get("weights"),
        )


def read(
    X: Any, thresholds_by: str | None = None, noise_by: str | None = None, weights: Any = None
) -> tuple[Any, ByRow]:
    """Return a table without the columns that the likelihood takes, and what these say of each row.

    Parameters
    ----------
    X : DataFrame or array_like
        A table with names where one of the others is a name.
    thresholds_by, noise_by : str, optional
        Columns, which may be the same.
    weights : str or array_like, shape (n,), optional
        A column, or numbers.
    """
    taken: set[str] = set()
    groups: list[Groups | None] = []
    for argument, by in (("thresholds_by", thresholds_by), ("noise_by", noise_by)):
        if by is None:
            groups.append(None)
            continue
        values = column(X, check_name(by, argument), "X", argument)
        groups.append(Groups.of(by, values))
        taken.add(by)
    if isinstance(weights, str):
        if weights in taken:
            raise ValueError(f"weights: {weights!r} is the column of the groups: name another one")
        taken.add(weights)
        weights = column(X, weights, "X", "weights")
    if weights is not None:
        check_paired(X, weights, other="weights")
        weights = checked_weights(weights)
    thresholds, noise = groups
    return without(X, taken) if taken else X, ByRow(thresholds, noise, weights)


def checked_weights(weights: Any) -> np.ndarray:
    """Return weights as numbers; they must be positive."""
    array = checks.finite_array("weights", weights, ndim=1)
    if np.any(array <= 0.0):
        row = int(np.argmax(array <= 0.0))
        raise ValueError(
            f"weights must be positive, got {array[row]:g} in row {row}: leave out rows that do not count, or make "
            "their labels missing"
        )
    return array
