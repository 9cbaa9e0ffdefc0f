"""The site: its reference is complete, its gallery has every notebook, its citations have an entry; it builds."""

import importlib.util
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import ClassVar

import pytest

import pmordinal as pmo

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [p for p in DOCS.rglob("*.md") if not {"_build", "generated", "gallery"} & {*p.parts}]


def listed():
    """Return the names in the tables of the reference."""
    blocks = re.findall(
        r"autosummary::\n(?:   :.*\n)+\n((?:   [\w.]+\n)+)", (DOCS / "reference.md").read_text()
    )
    return " ".join(blocks).split()


def test_the_reference_has_every_public_name():
    modules = {name: getattr(pmo, name) for name in ("modl", "plots", "sklearn")}
    names = {name for name in dir(pmo) if name not in {*modules, "datasets", "__version__"}}
    for module, found in modules.items():
        names |= {f"{module}.{name}" for name in found.__all__}
    names |= {"datasets.wine", "gram.Levels", "gram.Anova"}
    assert len(listed()) == len(set(listed()))
    assert set(listed()) == names


def test_the_gallery_has_every_notebook():
    page = (DOCS / "notebooks.md").read_text()
    there = {path.stem for path in (ROOT / "notebooks").glob("*.py")}
    assert set(re.findall(r"\{thumbnail\} gallery/(\w+)", page)) == there
    assert set(re.findall(r"^gallery/(\w+)$", page, re.M)) == there
    readme = (ROOT / "notebooks" / "README.md").read_text()
    assert set(re.findall(r"\]\((\w+)\.py\)", readme)) == there


def test_every_citation_has_an_entry():
    keys = set(re.findall(r"^@\w+\{(\w+),", (DOCS / "references.bib").read_text(), re.M))
    texts = [path.read_text() for path in [*PAGES, *(ROOT / "pmordinal").rglob("*.py")]]
    cited = set(re.findall(r"\[([A-Z][A-Za-z]+(?:19|20)\d\d)[\],]", " ".join(texts)))
    assert cited
    assert cited <= keys


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_notebooks_are_written_without_the_names_of_what_they_draw(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("jupytext")
    tool = load(ROOT / "tools" / "notebooks.py")
    assert tool.quiet("x = 1\nplot_it(x)\n") == "x = 1\nplot_it(x);"
    assert tool.quiet("table.head()") == "table.head()"
    paths = tool.write(tmp_path)
    assert {path.stem for path in paths} == {p.stem for p in (ROOT / "notebooks").glob("*.py")}
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        assert not any(cell.get("outputs") for cell in notebook.cells)


def test_notebooks_to_download_have_outputs_of_the_cache(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    caching = pytest.importorskip("jupyter_cache.cache.main")
    gallery = load(DOCS / "_ext" / "gallery.py")
    cell = nbformat.v4.new_code_cell("1 + 1", id="one")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    file = tmp_path / "gallery" / "sum.ipynb"
    file.parent.mkdir()
    nbformat.write(notebook, file)
    cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "2"})]
    bundle = caching.CacheBundleIn(notebook, "sum.ipynb")
    cache = caching.JupyterCacheBase(tmp_path / "cache")
    cache.cache_notebook_bundle(bundle, check_validity=False)
    cache.db.dispose()
    config = SimpleNamespace(
        nb_execution_mode="cache", nb_execution_cache_path=str(tmp_path / "cache")
    )
    env = SimpleNamespace(mystnb_config=SimpleNamespace(output_folder=str(tmp_path)))
    gallery.add_outputs(SimpleNamespace(config=config), env)
    assert nbformat.read(file, as_version=4).cells[0].outputs == cell.outputs


class Sites(BaseHTTPRequestHandler):
    """One site has an inventory, one a login page in its place, the others none."""

    answers: ClassVar[dict[str, bytes]] = {
        "/good/": b"# Sphinx inventory version 2",
        "/login/": b"<html>",
    }

    def do_GET(self):
        content = self.answers.get(self.path.removesuffix("objects.inv"))
        self.send_response(404 if content is None else 200)
        self.end_headers()
        self.wfile.write(content or b"# Sphinx inventory? Not found")

    def log_message(self, *_):
        pass


def test_sites_that_cannot_be_reached_are_not_linked(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sphinx")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    inventories = load(DOCS / "_ext" / "inventories.py")
    with HTTPServer(("127.0.0.1", 0), Sites) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        pages = {name: f"{base}/{name}/" for name in ("good", "login", "missing")}
        pages["away"] = "http://127.0.0.1:9/"
        found = inventories.mapping(pages, tmp_path)
        assert found == {"good": (pages["good"], str(tmp_path / "good.inv"))}
        assert "login, missing, away" in capsys.readouterr().out
        server.shutdown()
    assert inventories.mapping({"good": pages["good"]}, tmp_path) == found  # kept for today


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_site_builds_without_its_notebooks(tmp_path):
    pytest.importorskip("myst_nb")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html"]
    command += ["-D", "nb_execution_mode=off", str(DOCS), str(tmp_path / "html")]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "html" / "checking.html").read_text()
    assert 'href="bibliography.html#cite-lz2018"' in page
    assert "generated/pmordinal.surrogate_residuals.html" in page
