"""Formulas: the text of a model, as `formulae` (the parser of bambi) reads it, taken apart into terms.

There is no intercept: the thresholds are it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from formulae import model_description
from formulae.terms.call import Call
from formulae.terms.call_resolver import LazyCall, LazyValue, LazyVariable
from formulae.terms.terms import GroupSpecificTerm, Intercept

from pmordinal import checks
from pmordinal.data import expressions
from pmordinal.errors import warn

SMOOTH, ANOVA, OFFSET = "gp", "anova", "offset"
OPTIONS = {SMOOTH: ("cov", "by"), ANOVA: ("order", "cov"), OFFSET: ()}


@dataclass(frozen=True)
class Written:
    """A term as it is written in a formula.

    Attributes
    ----------
    name : str
    columns : tuple of str
        Columns and expressions of columns that are multiplied, such as ``("x", "np.log(z)")``.
    groups : tuple of str
        Columns right of the ``|``.
    call : str
        ``"gp"``, ``"anova"`` or ``"offset"`` if it is one of these, else empty.
    options : dict
        Named arguments of the call.
    """

    name: str
    columns: tuple[str, ...]
    groups: tuple[str, ...] = ()
    call: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def reads(self) -> tuple[str, ...]:
        """All columns and expressions that the term reads."""
        by = self.options.get("by")
        return (*self.columns, *([by] if by is not None else []), *self.groups)


@dataclass(frozen=True)
class Formula:
    """A formula: the outcome, the terms and the known shifts.

    Examples
    --------
    >>> formula = read("rating ~ temperature + gp(age, income) + (1 | judge)")
    >>> formula.outcome, [term.name for term in formula.terms]
    ('rating', ['temperature', 'gp(age, income)', '1|judge'])
    """

    outcome: str
    terms: tuple[Written, ...]
    offsets: tuple[Written, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """All columns and expressions that the terms read, each once."""
        return tuple(dict.fromkeys(column for term in self.terms for column in term.reads))

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of the user's table that terms and offsets read, each once."""
        trees = map(expressions.parse, [*self.reads, *(o.columns[0] for o in self.offsets)])
        return tuple(dict.fromkeys(name for tree in trees for name in expressions.variables(tree)))

    def with_levels(self, is_number: Callable[[str], bool]) -> "Formula":
        """Return the formula with ``C(g)`` for each numeric column `g` of groups, and without `C` of a text column."""

        def levels(name: str) -> str:
            tree = expressions.parse(name)
            if isinstance(tree, LazyVariable) and is_number(tree.name):
                return expressions.text_of(LazyCall(expressions.LEVELS, [tree], {}))
            return name

        def plain(name: str) -> str:
            column = expressions.parse(name).args[0] if expressions.is_levels(name) else None
            if isinstance(column, LazyVariable) and not is_number(column.name):
                return column.name
            return name

        def read_plain(term: Written) -> Written:
            by = {"by": plain(term.options["by"])} if "by" in term.options else {}
            groups = tuple(levels(plain(group)) for group in term.groups)
            columns = tuple(map(plain, term.columns))
            return replace(term, columns=columns, groups=groups, options=term.options | by)

        terms = tuple(map(read_plain, self.terms))
        for one, other in combinations(terms, 2):
            if replace(one, name=other.name) == other:
                raise ValueError(f"formula: {one.name!r} and {other.name!r} are the same term")
        return replace(self, terms=terms)


def read(formula: str) -> Formula:
    """Return a formula taken apart; raise an error that says what cannot be read."""
    if not isinstance(formula, str):
        raise TypeError(
            f"formula must be a text such as 'rating ~ age + (1 | judge)', got {checks.got(formula)}"
        )
    try:
        description = model_description(formula)
    except Exception as error:  # formulae has no common class of errors
        hint = "" if "~" in formula else ". Write 'outcome ~ terms'"
        raise ValueError(
            f"formula {formula!r} cannot be read: {str(error).rstrip('.')}{hint}"
        ) from error
    if "|" in _outside_parentheses(formula):
        raise ValueError(f"formula {formula!r}: groups need parentheses: write (1 | g) or (x | g)")
    if description.response is None:
        raise ValueError(f"formula {formula!r} has no outcome: write 'outcome ~ terms'")
    outcome = description.response.term.components[0]
    if isinstance(outcome, Call) or outcome.reference is not None:
        raise ValueError(
            f"formula: the outcome must be a column of ordered labels, got {outcome.name!r}: make that column in the "
            "table first"
        )
    every = [_term(t) for t in description.terms if not isinstance(t, Intercept)]
    terms = [term for term in every if term.call != OFFSET]
    if not terms:
        raise ValueError(f"formula {formula!r} has no terms: name at least one column")
    right = formula.split("~", 1)[1]
    if re.search(r"(^|\+)\s*1\s*(\+|-|$)", _outside_parentheses(right)):
        warn("formula: there is no intercept, the thresholds are it; the 1 has no effect")
    names = [term.name for term in every]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"formula: the term {twice[0]!r} is there twice")
    offsets = tuple(term for term in every if term.call == OFFSET)
    return Formula(outcome.name, tuple(terms), offsets)


def _outside_parentheses(text: str) -> str:
    """Return a text without what is in parentheses or between backticks."""
    text = re.sub(r"`[^`]*`", "", text)
    while (shorter := re.sub(r"\([^()]*\)", "", text)) != text:
        text = shorter
    return text


def _term(term: Any) -> Written:
    if isinstance(term, GroupSpecificTerm):
        return _group(term)
    calls = [c.call for c in term.components if isinstance(c, Call) and c.call.callee in OPTIONS]
    if not calls:
        columns = tuple(map(_component, term.components))
        return Written(":".join(columns), columns)
    if len(term.components) > 1:
        name = expressions.text_of(calls[0])
        hint = ": a smooth for each level is gp(x, by=f)" if calls[0].callee == SMOOTH else ""
        raise ValueError(f"formula: {name} cannot be part of an interaction{hint}")
    return _call(calls[0])


def _group(term: GroupSpecificTerm) -> Written:
    groups = tuple(map(_component, term.factor.components))
    right = ":".join(groups)
    if isinstance(term.expr, Intercept):
        return Written(f"1|{right}", (), groups)
    inner = _term(term.expr)
    if inner.call not in ("", SMOOTH):
        raise ValueError(f"formula: {inner.name} cannot stand left of a '|'")
    name = f"{inner.name}|{right}"
    return Written(name, inner.columns, groups, inner.call, inner.options)


def _call(call: LazyCall) -> Written:
    name = expressions.text_of(call)
    columns = tuple(map(_expression, call.args))
    if not columns:
        raise ValueError(f"formula: {name} has no columns: name at least one")
    if len(set(columns)) < len(columns):
        raise ValueError(f"formula: {name} has a column twice")
    if call.callee == OFFSET and len(columns) > 1:
        raise ValueError(
            f"formula: {name}: one offset is of one column: write offset(x) + offset(z)"
        )
    options = {}
    for key, value in call.kwargs.items():
        checks.one_of(f"formula: argument of {call.callee}", key, OPTIONS[call.callee])
        if key == "by":
            options[key] = _expression(value)
        elif not isinstance(value, LazyValue):
            raise ValueError(f"formula: {name}: {key} must be a text or a number")
        else:
            options[key] = value.value.strip("'\"") if isinstance(value.value, str) else value.value
    return Written(name, columns, (), call.callee, options)


def _component(component: Any) -> str:
    if isinstance(component, Call):
        return _expression(component.call)
    return _name(component.name)


def _name(name: str) -> str:
    if expressions.is_expression(name):
        raise ValueError(f"formula: the column `{name}` reads like an expression: rename it")
    return name


def _expression(tree: Any) -> str:
    """Return the name of a column, or the text of an expression that can be computed."""
    if isinstance(tree, LazyVariable):
        return _name(tree.name)
    if isinstance(tree, LazyCall) and tree.callee in OPTIONS:
        raise ValueError(
            f"formula: {expressions.text_of(tree)} cannot stand inside of another term"
        )
    if not isinstance(tree, LazyCall):  # arithmetic, as in gp(x / 2)
        tree = LazyCall("I", [tree], {})
    expressions.check(tree)
    return expressions.text_of(tree)
