"""Every notebook, in percent format, runs from top to bottom and draws something."""

import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.py"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_format(path):
    """Cells begin with their marks, the first with a title; prose is all comments."""
    text = path.read_text()
    assert text.startswith("# %% [markdown]\n# # ")
    for mark, cell in re.findall(r"^# %%( \[markdown\])?\n(.*?)(?=^# %%|\Z)", text, re.M | re.S):
        assert not mark or all(line.startswith("#") for line in cell.split("\n") if line)


def test_every_notebook_is_found():
    assert len(NOTEBOOKS) >= 4


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, monkeypatch, tmp_path):
    from matplotlib import pyplot as plt

    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    plt.close("all")
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    assert plt.get_fignums()
    plt.close("all")
