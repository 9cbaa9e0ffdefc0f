"""One version everywhere; the workflow and the guide speak of targets that exist."""

import re
import tomllib
from pathlib import Path

import pmordinal

ROOT = Path(__file__).parents[2]


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.M)[1]
    assert pmordinal.__version__ == project["version"] == cited
    assert f"## {cited}" in (ROOT / "CHANGELOG.md").read_text()


def test_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for file in (".github/workflows/test.yml", "CONTRIBUTING.md", "docs/install.md"):
        named = set(re.findall(r"(?:run: |`|^)make ([a-z-]+)", (ROOT / file).read_text(), re.M))
        assert named and named <= targets, file
