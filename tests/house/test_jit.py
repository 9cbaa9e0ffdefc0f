"""Compiled functions work, whether or not their machine code can be kept on disk."""

import ast
import logging
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numba
import pytest

import pmordinal
from pmordinal import jit

PACKAGE = Path(pmordinal.__file__).parent
MODULE = """
from pmordinal.jit import njit

@njit(cache=True, nogil=True)
def double(x):
    return 2 * x
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Return a function that loads a new module with a compiled function, as each session does."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(jit, "_said", set())
    path = tmp_path / "compiled.py"
    path.write_text(MODULE)

    def load():
        spec = spec_from_file_location("compiled", path)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.double

    return load


def no_place(folder, monkeypatch):
    """Put files where Numba would make its folders, which stops the superuser too."""
    (folder / "__pycache__").write_text("")
    home = folder / "home"
    home.write_text("")
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "APPDATA"):
        monkeypatch.setenv(name, str(home))


def test_code_is_kept_for_the_next_session(load):
    assert load()(2) == 4
    again = load()
    assert again(2) == 4 and sum(again.stats.cache_hits.values()) == 1


def test_without_a_place_code_stays_in_memory(load, tmp_path, monkeypatch, caplog):
    no_place(tmp_path, monkeypatch)
    with caplog.at_level(logging.WARNING):
        assert load()(2) == 4
        assert load()(3) == 6
    (said,) = caplog.messages  # once
    assert "NUMBA_CACHE_DIR" in said and "compiled.py" in said


def test_a_folder_that_fails_later(load, tmp_path, caplog):
    double = load()
    shutil.rmtree(tmp_path / "__pycache__")
    (tmp_path / "__pycache__").write_text("")
    with caplog.at_level(logging.WARNING):
        assert double(2) == 4 and double(2.5) == 5.0
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("kept", [0, 12])
def test_files_cut_short_are_written_again(load, tmp_path, kind, kept):
    load()(2)
    (file,) = (tmp_path / "__pycache__").glob(f"*.{kind}")
    file.write_bytes(file.read_bytes()[:kept])
    assert load()(2) == 4
    again = load()
    assert again(2) == 4 and sum(again.stats.cache_hits.values()) == 1


def test_one_module_decides():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = {a.name for a in node.names} if isinstance(node, ast.ImportFrom) else set()
            assert not {"njit", "jit"} & names or node.module != "numba", path


def test_a_read_only_package(tmp_path, monkeypatch):
    """It loads, works, and says once that it compiles anew; PyTensor's own folder is not needed."""
    copy = tmp_path / "pmordinal"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    folders = [copy, *(path for path in copy.rglob("*") if path.is_dir())]
    for folder in folders:
        (folder / "__pycache__").write_text("")
        folder.chmod(0o555)
    no_place(tmp_path, monkeypatch)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code = (
        "import numpy as np, pmordinal.links, pmordinal.modl.partition.chain, pmordinal.linalg as linalg\n"
        "print(linalg.__file__, linalg.fill_upper(np.tri(2)).sum())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    for folder in folders:
        folder.chmod(0o755)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [str(copy / "linalg" / "__init__.py"), "4.0"]
    assert run.stderr.count("NUMBA_CACHE_DIR") == 1


def test_the_first_compilation_is_announced_once(load):
    said = []
    with jit.announced(said.append):
        assert load()(2) == 4
    assert said == [jit.COMPILING]
    with jit.announced(said.append):
        assert load()(2.0) == 4.0  # another signature, compiled too
    assert len(said) == 1


@pytest.mark.slow
def test_a_fit_does_without_what_takes_long_to_import():
    code = (
        "import sys, pmordinal as pmo; fit = pmo.fit(pmo.gp_model([[0.0], [1.0], [2.0]], [1, 2, 3]), progressbar=False)"
        "; print(*{'arviz', 'arviz_stats', 'formulae', 'matplotlib.pyplot', 'scipy.stats'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
