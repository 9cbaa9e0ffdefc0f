"""Arithmetic on columns, such as ``np.log(income)``, in a formula: read from text, and computed for any rows.

Only functions of the list below can be called. So a text from a file computes numbers and does nothing else, and a
fit that was saved can predict.
"""

import operator
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from formulae import model_description
from formulae.terms.call import Call
from formulae.terms.call_resolver import LazyCall, LazyOperator, LazyValue, LazyVariable

from pmordinal.data.levels import show
from pmordinal.data.moments import weighted_moments
from pmordinal.words import guess

FUNCTIONS = {
    name: getattr(np, name)
    for name in (
        "abs arctan cbrt ceil cos exp expm1 floor log log10 log1p log2 maximum minimum round sign sin sqrt square "
        "tan tanh where"
    ).split()
} | {"I": operator.pos}
LEVELS = "C"  # makes levels of numbers
STANDARDISED = ("scale", "standardize", "center")  # by the rows that are fitted


def is_expression(text: str) -> bool:
    """Tell an expression, which is a call, from the name of a column.

    Examples
    --------
    >>> is_expression("np.log(x)"), is_expression("weight (kg)")
    (True, False)
    """
    callee, opened, _ = text.partition("(")
    name = callee.removeprefix("np.").removeprefix("numpy.")
    known = name in FUNCTIONS or name in STANDARDISED or name == LEVELS
    return bool(opened) and text.endswith(")") and known


@cache
def parse(text: str) -> Any:
    """Return the syntax tree of an expression, as `formulae` builds it, or of the name of a column."""
    if not is_expression(text):
        return LazyVariable(text)
    (term,) = model_description(f"0 + {text}").terms
    (component,) = term.components
    return component.call if isinstance(component, Call) else LazyVariable(component.name)


def text_of(tree: Any) -> str:
    """Return a tree as a text that `parse` reads as the same tree.

    Examples
    --------
    >>> text_of(parse("np.log((income + 1) * size)"))
    'np.log((income + 1) * size)'
    """
    if isinstance(tree, LazyOperator):
        parts = [
            f"({text_of(child)})" if isinstance(child, LazyOperator) else text_of(child)
            for child in tree.args
        ]
        return f" {tree.symbol} ".join(parts) if len(parts) > 1 else tree.symbol + parts[0]
    if isinstance(tree, LazyVariable):
        return tree.name if tree.name.replace(".", "_").isidentifier() else f"`{tree.name}`"
    if isinstance(tree, LazyCall):
        named = [f"{key}={text_of(child)}" for key, child in tree.kwargs.items()]
        return f"{tree.callee}({', '.join([*map(text_of, tree.args), *named])})"
    if isinstance(tree.value, float):
        return np.format_float_positional(tree.value, trim="0")  # the parser knows no exponents
    return str(tree)


def variables(tree: Any) -> list[str]:
    """Return the names of the columns in a tree, each once.

    Examples
    --------
    >>> variables(parse("np.log(income / size)"))
    ['income', 'size']
    """
    if isinstance(tree, LazyVariable):
        return [tree.name]
    children = [*getattr(tree, "args", ()), *getattr(tree, "kwargs", {}).values()]
    return list(dict.fromkeys(name for child in children for name in variables(child)))


def is_levels(text: str) -> bool:
    """Tell whether an expression makes levels of numbers."""
    tree = parse(text)
    return isinstance(tree, LazyCall) and tree.callee == LEVELS


def settled(text: str, columns: Mapping[str, np.ndarray], weights: np.ndarray | None = None) -> str:
    """Return an expression in which numbers stand for what ``scale(x)`` and ``center(x)`` learn from these rows.

    So new rows are scaled by the rows that were fitted.

    Parameters
    ----------
    text : str
    columns : mapping of str to ndarray, shape (n,)
    weights : ndarray, shape (n,), optional
        How many rows each row stands for.

    Examples
    --------
    >>> settled("scale(x)", {"x": np.array([-1.0, 3.0])})
    'I((x - 1.0) / 2.0)'
    """
    if not is_expression(text):
        return text
    return text_of(_settled(parse(text), columns, weights))


def _settled(tree: Any, columns: Mapping[str, np.ndarray], weights: np.ndarray | None) -> Any:
    if not isinstance(tree, LazyOperator | LazyCall):
        return tree
    arguments = [_settled(child, columns, weights) for child in tree.args]
    if isinstance(tree, LazyOperator):
        return LazyOperator(tree.op, *arguments)
    if tree.callee not in STANDARDISED:
        return LazyCall(tree.callee, arguments, tree.kwargs)
    values = evaluate(text_of(LazyCall("I", arguments, {})), columns)
    if not np.isfinite(values).all():
        return LazyCall("I", arguments, {})  # is refused with the rows
    counts = np.ones(len(values)) if weights is None else weights
    (mean,), (spread,) = weighted_moments(values[:, None], counts)
    shifted = LazyOperator(
        operator.sub if mean >= 0 else operator.add, arguments[0], LazyValue(abs(mean), None)
    )
    if tree.callee == "center" or spread == 0:
        return LazyCall("I", [shifted], {})
    return LazyCall("I", [LazyOperator(operator.truediv, shifted, LazyValue(spread, None))], {})


def evaluate(text: str, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return an expression's values for the rows of numeric columns; for ``C(x)`` those of x.

    Examples
    --------
    >>> evaluate("I(np.log(income) + 1)", {"income": np.array([1.0, np.e])})
    array([1., 2.])
    """
    tree = parse(text)
    if isinstance(tree, LazyCall) and tree.callee == LEVELS:
        tree = tree.args[0]
    size = len(next(iter(columns.values())))
    with np.errstate(all="ignore"):  # what is not finite is refused with the column's name
        return np.broadcast_to(np.asarray(_value(tree, columns, text), dtype=float), (size,))


def _value(tree: Any, columns: Mapping[str, np.ndarray], text: str) -> Any:
    if isinstance(tree, LazyVariable):
        return columns[tree.name]
    if isinstance(tree, LazyValue):
        return tree.value
    arguments = [_value(child, columns, text) for child in tree.args]
    if isinstance(tree, LazyOperator):
        return tree.op(*arguments)
    return _function(tree, text)(*arguments)


def _function(call: LazyCall, text: str) -> Any:
    name = call.callee.removeprefix("np.").removeprefix("numpy.")
    if name in FUNCTIONS and not call.kwargs:
        return FUNCTIONS[name]
    known = [*FUNCTIONS, *STANDARDISED, "gp", "anova", LEVELS]
    raise ValueError(
        f"formula: {text}: {call.callee} is not a function that a formula can call, which are {show(known, 40)}: "
        f"make a column of it in the table first{guess(name, known)}"
    )


def check(tree: Any, text: str | None = None) -> None:
    """Raise if an expression calls what it cannot; `text` is that of the whole."""
    text = text_of(tree) if text is None else text
    if isinstance(tree, LazyCall) and tree.callee in (LEVELS, *STANDARDISED):
        if len(tree.args) != 1 or tree.kwargs:
            raise ValueError(
                f"formula: {text}: {tree.callee} takes one column or expression and nothing else"
            )
    elif isinstance(tree, LazyCall):
        _function(tree, text)
    for child in getattr(tree, "args", ()):
        check(child, text)
