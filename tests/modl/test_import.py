"""MODL stands alone: importing it loads none of the heavy neighbours."""

import subprocess
import sys

import pmordinal.modl

HEAVY = ("pymc", "pytensor", "arviz", "xarray", "matplotlib", "sklearn")


def test_import_is_light():
    code = f"import sys, pmordinal.modl; print([m for m in {HEAVY} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_public_names_resolve():
    for name in pmordinal.modl.__all__:
        assert getattr(pmordinal.modl, name) is not None
    assert set(pmordinal.modl.__all__) == set(dir(pmordinal.modl))
