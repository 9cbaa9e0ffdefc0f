"""MODL stands alone: importing it loads none of the heavy neighbours."""

import ast
import subprocess
import sys
from pathlib import Path

import pmordinal.modl

HEAVY = ("pymc", "pytensor", "arviz", "xarray", "matplotlib", "sklearn")
ALLOWED = {"registry", "errors", "checks", "labels", "features", "columns", "foreign"}


def test_import_is_light():
    code = f"import sys, pmordinal.modl; print([m for m in {HEAVY} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_only_the_lowest_layer_is_imported():
    for path in Path(pmordinal.modl.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
                if node.module == "pmordinal":
                    names = [f"pmordinal.{a.name}" for a in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level > 1:
                names = [f"pmordinal.{node.module}"]
            elif isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            for name in names:
                top, *rest = name.split(".")
                assert top not in ("pymc", "pytensor"), path
                assert top != "pmordinal" or rest[0] in ALLOWED, path


def test_public_names_resolve():
    for name in pmordinal.modl.__all__:
        assert getattr(pmordinal.modl, name) is not None
    assert set(pmordinal.modl.__all__) == set(dir(pmordinal.modl))
