"""Terms of the latent function: each is a covariance with its hyperparameters.

Given these, a linear effect, a factor, the effects of raters and a smooth function are all Gaussian processes. Their
sum is one too, and an engine integrates it out in one go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pmordinal import checks
from pmordinal.data.features import Features
from pmordinal.data.term_columns import check_seen
from pmordinal.data.terms import Term, stored_name
from pmordinal.gram import Levels
from pmordinal.gram.centred import BASES
from pmordinal.model.anova_terms import Arguments, anova_terms
from pmordinal.model.covariances import COVARIANCES
from pmordinal.model.factories import variable
from pmordinal.model.formula import ANOVA, SMOOTH, Written
from pmordinal.model.ordinal import positive_tensor

WIDE = 5.0  # standard deviation of linear effects and factors, in those of the noise
TYPICAL = 1.5  # scale of the HalfNormal prior of other standard deviations, in those of the noise
PARAMETERS = {
    "effect": ("sd",),
    "smooth": ("sd", "lengthscale"),
    "anova": ("main", "pair", "lengthscale"),
}


@dataclass(frozen=True, eq=False)
class Built:
    """A term in a model.

    Attributes
    ----------
    terms : tuple of Term
        What it is called and reads; an ANOVA is several terms.
    cov : pm.gp.cov covariance
    variance : tensor
        Prior variance of the term at a typical row.
    start : dict
        Where an optimiser starts, by name of variable.
    """

    terms: tuple[Term, ...]
    cov: Any
    variance: Any
    start: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Builder:
    """Makes covariances of written terms, inside of a model.

    Attributes
    ----------
    features : Features
        The columns of the matrix.
    rows : ndarray, shape (n, d)
        The labelled rows.
    y : ndarray of int, shape (n,)
        Their class codes.
    weights : ndarray, shape (n,), optional
        How many rows each stands for.
    noise_sd : float
        Standard deviation of the link's noise.
    priors : mapping
        By name of term, what the user says of its hyperparameters.
    present : set of frozenset of str
        The columns of each product in the formula, of terms without groups.
    """

    features: Features
    rows: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    noise_sd: float
    priors: Mapping[str, Mapping[str, Any]]
    present: frozenset[frozenset[str]]

    @property
    def d(self) -> int:
        """Number of matrix columns."""
        return len(self.features.names)

    def build(self, written: Written) -> Built:
        """Return the term in the model on the stack."""
        if written.call == ANOVA:
            return self._anova(written)
        if written.call == SMOOTH:
            return self._smooth(written)
        return self._effect(written)

    def _prior(self, written: Written, kind: str) -> Mapping[str, Any]:
        given = self.priors.get(written.name, {})
        if not isinstance(given, Mapping):
            raise TypeError(
                f"priors[{written.name!r}] must map hyperparameters to numbers or distributions, got "
                f"{checks.got(given)}"
            )
        for key in given:
            checks.one_of(f"priors[{written.name!r}]", key, PARAMETERS[kind])
        return given

    def _sd(self, written: Written, prior: Mapping[str, Any], default: Any) -> tuple[Any, dict]:
        """Return the standard deviation of a term, and where it starts."""
        name = variable_name(written.name, "sd")
        value = _positive(name, prior.get("sd", default))
        if value.type.ndim:
            raise ValueError(
                f"priors[{written.name!r}]: sd must be one number, not {value.type.ndim} axes"
            )
        return value, {name: self.noise_sd}

    def _effect(self, written: Written) -> Built:
        prior = self._prior(written, "effect")
        wide = WIDE * self.noise_sd
        typical = pm.HalfNormal.dist(TYPICAL * self.noise_sd)
        sd, start = self._sd(written, prior, typical if written.groups else wide)
        factors = [self._column(name, written) for name in written.columns]
        factors += [self._levels(name, written) for name in written.groups]
        kind = "group" if written.groups else self._kind(written)
        return self._of(written, kind, sd**2, factors, start)

    def _smooth(self, written: Written) -> Built:
        prior = self._prior(written, "smooth")
        sd, start = self._sd(written, prior, pm.HalfNormal.dist(TYPICAL * self.noise_sd))
        columns = [self._index(name, written, numeric=True) for name in written.columns]
        cov_func = COVARIANCES[
            checks.one_of(
                f"{written.name}: cov", written.options.get("cov", "expquad"), COVARIANCES
            )
        ]
        k = len(columns)
        default = pm.LogNormal.dist(0.5 * np.log(k), 1.0, shape=k)
        scale, first = self._lengthscale(written, prior, default)
        factors = [cov_func(self.d, ls=scale, active_dims=columns)]
        by = written.options.get("by")
        if by is not None:
            is_number = self.features.columns[self._index(by, written)].levels is None
            factors.append(self._linear(by, written) if is_number else self._levels(by, written))
        factors += [self._levels(name, written) for name in written.groups]
        return self._of(written, "smooth", sd**2, factors, start | first)

    def _lengthscale(
        self, written: Written, prior: Mapping[str, Any], default: Any
    ) -> tuple[Any, dict]:
        """Return a length-scale for each column of a term, and where they start."""
        name, k = variable_name(written.name, "lengthscale"), len(written.columns)
        dim = variable_name(written.name, "column")
        pm.modelcontext(None).add_coord(dim, list(written.columns))
        value = _positive(name, prior.get("lengthscale", default), dim)
        return pt.broadcast_to(value, (k,)), {name: np.full(k, np.sqrt(k))}

    def _anova(self, written: Written) -> Built:
        prior = self._prior(written, "anova")
        places = [self._index(name, written) for name in written.columns]
        levels = [i for i, j in enumerate(places) if self.features.columns[j].levels is not None]
        for j in places:
            check_seen(self.features.columns[j], self.rows[:, j], written.name)
        order = checks.integer(f"{written.name}: order", written.options.get("order", 2), minimum=1)
        if order > 2:
            raise ValueError(f"formula: {written.name}: order must be 1 or 2")
        base = checks.one_of(f"{written.name}: cov", written.options.get("cov", "expquad"), BASES)
        if "lengthscale" in prior and len(levels) == len(places):
            raise ValueError(
                f"priors[{written.name!r}]: no column has a lengthscale, all have levels"
            )

        def called(what: str) -> str:
            return variable_name(written.name, what)

        def make(what: str, default: Any, dim: str) -> Any:
            return _positive(called(what), prior.get(what, default), dim)

        arguments = Arguments(
            self.rows, self.y, self.weights, places, written.columns, tuple(levels)
        )
        return Built(*anova_terms(arguments, self.noise_sd, called, make, order, base))

    def _of(self, written: Written, kind: str, variance, factors: Sequence, start: dict) -> Built:
        cov = factors[0]
        for factor in factors[1:]:
            cov = cov * factor
        columns = tuple(self.features.names[self._index(name, written)] for name in written.reads)
        return Built((Term(written.name, kind, columns),), variance * cov, variance, start)

    def _kind(self, written: Written) -> str:
        if len(written.columns) > 1:
            return "interaction"
        column = self.features.columns[self._index(written.columns[0], written)]
        return "linear" if column.levels is None else "factor"

    def _column(self, name: str, written: Written) -> Any:
        """Return the covariance of one column of a product, without its size."""
        if self.features.columns[self._index(name, written)].levels is None:
            return self._linear(name, written)
        # Effects of a factor sum to zero where the rest of the product is a term of its own: the mean is in that.
        rest = frozenset(written.columns) - {name}
        return self._levels(name, written, to_zero=not written.groups and rest in self.present)

    def _linear(self, name: str, written: Written) -> Any:
        j = self._index(name, written)
        check_seen(self.features.columns[j], self.rows[:, j], written.name)
        return pm.gp.cov.Linear(self.d, c=0.0, active_dims=[j])

    def _levels(self, name: str, written: Written, to_zero: bool = False) -> Any:
        j = self._index(name, written)
        check_seen(self.features.columns[j], self.rows[:, j], written.name)
        if not to_zero:
            return Levels(self.d, active_dims=[j])
        seen = tuple(np.unique(self.rows[:, j]).astype(int).tolist())
        return Levels(self.d, active_dims=[j], seen=seen, sum_to_zero=True)

    def _index(self, name: str, written: Written, numeric: bool = False) -> int:
        j = self.features.names.index(name)
        if numeric and self.features.columns[j].levels is not None:
            raise ValueError(
                f"formula: {written.name}: {name!r} has levels, and a smooth needs numbers: write gp(x, by={name}) for "
                f"one smooth a level, or {name} for a shift"
            )
        if numeric:
            check_seen(self.features.columns[j], self.rows[:, j], written.name)
        return j


def variable_name(term: str, what: str) -> str:
    """Return the name of a hyperparameter of a term.

    Examples
    --------
    >>> variable_name("1|judge", "sd")
    '1|judge_sd'
    """
    return f"{stored_name(term)}_{what}"


def _positive(name: str, value: Any, dim: str | None = None) -> Any:
    """Return a number as a constant, a distribution as a variable: of that dimension if it is a vector."""
    if not isinstance(value, pt.TensorVariable):
        return positive_tensor(name, checks.finite_array(name, value))
    return variable(name, value, dims=dim if value.type.ndim else None)
