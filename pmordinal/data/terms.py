"""What the terms of a model are called, and which columns they read."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

KINDS = ("linear", "factor", "interaction", "group", "slopes", "smooth")
WITH_COEFFICIENTS = KINDS[:4]  # the effects of one term; slopes are those of many columns


def stored_name(name: str) -> str:
    """Return the name of a term as that of a variable in a tree: files have no use for a slash in it.

    Examples
    --------
    >>> stored_name("1|judge"), stored_name("I(x / 2)")
    ('1|judge', 'I(x ÷ 2)')
    """
    return name.replace("/", "÷")


@dataclass(frozen=True)
class Term:
    """One term of the latent function: a sum of terms is what a formula says.

    Attributes
    ----------
    name : str
        As the formula has it: ``"temperature"``, ``"gp(age)"``, ``"1|judge"``.
    kind : {"linear", "factor", "interaction", "group", "slopes", "smooth"}
        ``"slopes"`` is a linear function of many columns.
    columns : tuple of str
        The matrix columns that it reads.
    """

    name: str
    kind: str
    columns: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the term as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the term that `to_json` described."""
        return cls(data["name"], data["kind"], tuple(data["columns"]))
