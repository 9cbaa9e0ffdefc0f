"""What leave-one-out scores hold fixed, and a warning where scores of two kinds meet."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pmordinal.errors import warn

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit

FIXED, INTEGRATED = "fixed", "integrated"


def hyper_of_fit(fit: "OrdinalFit") -> str:
    """Return whether the scores of a fit hold the hyperparameters fixed, or integrate over them."""
    return FIXED if fit.integral is None else INTEGRATED


def warn_of_two_kinds(hyper: Mapping[str, str]) -> None:
    """Warn if scores, by name, are some of them at fixed hyperparameters and others not."""
    fixed = [name for name, kind in hyper.items() if kind == FIXED]
    if 0 < len(fixed) < len(hyper):
        others = [name for name in hyper if name not in fixed]
        warn(
            f"elpd_loo is of two kinds: {', '.join(fixed)} at fixed hyperparameters, which have seen the label that is "
            f"left out; {', '.join(others)} with hyperparameters integrated over. Compare and mix those of one kind: "
            "the first are too high beside the others"
        )
