"""The page on troubleshooting knows every warning and status text of the package."""

import ast
from pathlib import Path

import pytest

import pmordinal

PACKAGE = Path(pmordinal.__file__).parent
PAGE = " ".join((PACKAGE.parent / "docs" / "troubleshooting.md").read_text().split())

WITH_STATUS = ("engines", "inference")  # rooms whose messages users read


def texts(path):
    """Return the text of every warning and status of a module, as the constant parts of each."""
    for node in ast.walk(ast.parse(path.read_text())):
        value = None
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name == "warn" or (name == "Status" and len(node.args) > 2):
                value = node.args[0 if name == "warn" else 2]
        elif isinstance(node, ast.Assign) and path.relative_to(PACKAGE).parts[0] in WITH_STATUS:
            value = node.value if ast.unparse(node.targets[0]) in ("message", "remedy") else None
        if isinstance(value, ast.JoinedStr | ast.Constant) and ast.unparse(value) != "''":
            values = value.values if isinstance(value, ast.JoinedStr) else [value]
            yield [str(v.value) for v in values if isinstance(v, ast.Constant)]


CASES = {
    f"{path.relative_to(PACKAGE)}: {''.join(parts)[:40]}": parts
    for path in sorted(PACKAGE.rglob("*.py"))
    for parts in texts(path)
    if any(len(part) > 6 for part in parts)  # others hand on what is explained elsewhere
}


def test_there_are_texts():
    assert len(CASES) > 15


@pytest.mark.parametrize("case", CASES)
def test_every_text_is_explained(case):
    """Its first words stand on the page: the first constant part that says something, to its punctuation."""
    part = next(part.strip(" :;,(") for part in CASES[case] if len(part) > 6)
    start = next((part[:k] for k, c in enumerate(part) if c in ":;(" and k > 8), part)
    assert start.strip() in PAGE, f"docs/troubleshooting.md lacks {start!r}"
