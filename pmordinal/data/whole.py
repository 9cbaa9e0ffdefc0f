"""`Whole`: what is known of a table of which only a sample of rows is in memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Whole:
    """Numbers of rows of a table that is spread over a cluster.

    Attributes
    ----------
    rows : int
        Rows with a label.
    counts : tuple of int
        Rows of each class.
    unlabeled : int
        Rows without a label.
    """

    rows: int
    counts: tuple[int, ...]
    unlabeled: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as data that JSON can hold."""
        return {"rows": self.rows, "counts": list(self.counts), "unlabeled": self.unlabeled}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return what `to_json` described."""
        return cls(int(data["rows"]), tuple(map(int, data["counts"])), int(data["unlabeled"]))
