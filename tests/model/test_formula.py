"""Formulas are taken apart into terms; what cannot be meant is refused in plain words."""

import numpy as np
import pytest

from pmordinal.data import expressions
from pmordinal.model.formula import read


def names(formula):
    return [term.name for term in read(formula).terms]


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ("x + f", ["x", "f"]),
        ("x * f", ["x", "f", "x:f"]),
        ("(x + z)**2", ["x", "z", "x:z"]),
        ("0 + x", ["x"]),
        ("x - 1", ["x"]),
        ("(1 | g)", ["1|g"]),
        ("(x | g)", ["1|g", "x|g"]),
        ("(0 + x | g)", ["x|g"]),
        ("(1 | g/h)", ["1|g", "1|g:h"]),
        ("gp(x, z, cov='matern52')", ["gp(x, z, cov='matern52')"]),
        ("gp(x, by=f)", ["gp(x, by=f)"]),
        ("(gp(x) | g)", ["1|g", "gp(x)|g"]),
        ("np.log(x) + C(k) + I(x**2)", ["np.log(x)", "C(k)", "I(x ** 2)"]),
        ("scale(x) + center(np.log(z))", ["scale(x)", "center(np.log(z))"]),
        ("anova(x, z, order=1)", ["anova(x, z, order=1)"]),
        ("`a b` + (1 | `c d`)", ["a b", "1|c d"]),
    ],
)
def test_what_users_of_bambi_type(right, expected):
    assert names(f"y ~ {right}") == expected


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ 1", "has no terms"),
        ("y ~ x +", "cannot be read"),
        ("x", "has no outcome"),
        ("log(y) ~ x", "outcome must be a column"),
        ("y['a'] ~ x", "outcome must be a column"),
        ("y ~ x:gp(z)", r"gp\(x, by=f\)"),
        ("y ~ gp()", "has no columns"),
        ("y ~ gp(x, x)", "a column twice"),
        ("y ~ gp(gp(x))", "inside of another"),
        ("y ~ gp(x, ls=1)", "'cov', 'by'"),
        ("y ~ gp(x, cov=z)", "must be a text or a number"),
        ("y ~ scale(x, 2)", "scale takes one column"),
        ("y ~ center(x, na=1)", "center takes one column"),
        ("y ~ bs(x)", "make a column of it"),
        ("y ~ os.system(x)", "make a column of it"),
        ("y ~ (anova(x, z) | g)", "left of a"),
        ("y ~ `np.log(x)`", "rename it"),
        ("y ~ offset(x)", "has no terms"),
        ("y ~ x + offset(x, z)", "one offset is of one column"),
        ("y ~ x + x:offset(z)", "cannot be part of an interaction"),
        ("y ~ x + (offset(z) | g)", "left of a"),
        ("y ~ x + offset(z, by=g)", "argument of offset"),
        ("y ~ gp(offset(x))", "inside of another"),
        ("y ~ a + x|g", "groups need parentheses"),
    ],
)
def test_what_cannot_be_read(formula, message):
    with pytest.raises(ValueError, match=message):
        read(formula)


@pytest.mark.parametrize("mean", [3e4, -2e-7])
def test_scales_are_those_of_the_rows_that_were_fitted(mean):
    rng = np.random.default_rng(1)
    x, counts = mean * (1 + rng.normal(size=20)), rng.integers(1, 4, size=20)
    repeated = {"x": np.repeat(x, counts)}
    for text, spread in (("scale(x)", repeated["x"].std()), ("1 + 2 * center(x)", 1.0)):
        tree = text if text.endswith("scale(x)") else f"I({text})"
        settled = expressions.settled(tree, {"x": x}, counts)
        assert settled == expressions.settled(settled, {"x": x[:3]})  # nothing is learned anew
        new = expressions.evaluate(settled, {"x": x[:3]})
        expected = (x[:3] - repeated["x"].mean()) / spread
        np.testing.assert_allclose(
            new, expected if text == "scale(x)" else 1 + 2 * expected, rtol=1e-12, atol=1e-15
        )


def test_a_formula_is_a_text():
    with pytest.raises(TypeError, match="formula must be a text"):
        read(["y", "x"])


@pytest.mark.parametrize("formula", ["y ~ 1 + x", "y ~ x + 1", "y~1+(x|g)"])
def test_an_intercept_is_mentioned(formula):
    with pytest.warns(UserWarning, match="thresholds are it"):
        assert read(formula).terms


@pytest.mark.parametrize("formula", ["y ~ x + (1 | g)", "y ~ 0 + x", "y ~ x11", "y ~ I(x + 1)"])
def test_nothing_is_said_where_none_is_asked_for(formula):
    assert read(formula).terms  # warnings are errors


@pytest.mark.parametrize(
    "text", ["np.log((a + 1) * b)", "I(a - (b - 1))", "I(-a)", "np.sqrt(a / b) ", "I(a ** 2 / b)"]
)
def test_an_expression_survives_its_text(text):
    columns = {"a": np.array([2.0, 3.0]), "b": np.array([4.0, 5.0])}
    tree = expressions.parse(text.strip())
    again = expressions.text_of(tree)
    expected = eval(text, {"np": np, "I": lambda x: x, **columns})
    np.testing.assert_array_equal(expressions.evaluate(again, columns), expected)
