"""The code of the pages runs, in order, as a reader would; pages that begin in the middle are given their data."""

import re
from functools import partial
from pathlib import Path

import arviz as az
import joblib
import matplotlib
import numpy as np
import pandas as pd
import pymc as pm
import pytest
from matplotlib import pyplot as plt
from pytensor.compile.mode import Mode

import pmordinal as pmo

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(?:python|\{code-cell\} python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MADE = {"_build", "generated", "gallery"}  # by `make docs`
# What would take minutes or a cluster is made smaller.
SHORTER = {
    'backend="dask"': 'backend="threading"',
    "draws=1000)": "draws=10, tune=10, chains=1, progressbar=False)",
}
FAST = ("README.md", "docs/index.md", "docs/engines.md")


def pages():
    """Return every page that has code."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [p for p in found if not MADE & {*p.parts} and BLOCK.search(p.read_text())]
    names = [str(p.relative_to(ROOT)) for p in found]
    return [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in names]


def given(page):
    """Return what a page takes for granted."""
    rng = np.random.default_rng(0)
    names = {"pmo": pmo, "pm": pm, "az": az, "np": np, "pd": pd, "joblib": joblib}
    wine = pmo.datasets.wine()
    names |= {"X": wine[["temperature", "contact"]], "y": wine["rating"], "Xnew": wine.head(2)}
    if page in ("docs/exact.md", "docs/sklearn.md"):
        x = rng.normal(size=(30, 1))
        noisy = x[:, 0] + 0.5 * rng.normal(size=30)
        labels = np.array(["low", "medium", "high"])[np.digitize(noisy, [-0.5, 0.5])]
        y = pd.Categorical(labels, ["low", "medium", "high"], ordered=True)
        names |= {"X": x, "y": y if page == "docs/exact.md" else labels, "rows": x[:3]}
    if page == "docs/modl.md":
        X = rng.normal(size=(200, 3))
        y = X[:, 0] + 0.5 * rng.normal(size=200)
        names |= {"X": X, "y": y, "x": X[:, 0], "cuts": [-1.0, 0.0, 1.0]}
        names |= {"x_new": X[:5, 0], "y_new": y[:5]}
    return names


@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")  # so few draws
@pytest.mark.filterwarnings("ignore:QuadPotentialFullAdapt is an experimental")  # PyMC's own word
@pytest.mark.parametrize("page", pages())
def test_code_runs(page, monkeypatch, tmp_path):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    options = {"draws": 30, "tune": 10, "chains": 1, "cores": 1, "random_seed": 1}
    options |= {"progressbar": False, "compute_convergence_checks": False}
    options |= {"compile_kwargs": {"mode": Mode(linker="py", optimizer="merge")}}
    sample = pm.sample

    def shorter(*_, **own):  # PyMC writes into the options of NUTS
        return sample(**options | {"nuts": {"max_treedepth": 3}} | own)

    monkeypatch.setattr(pm, "sample", shorter)
    for name in ("fit", "sample_posterior"):
        monkeypatch.setattr(pmo, name, partial(getattr(pmo, name), progressbar=False))
    text = (ROOT / page).read_text()
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    namespace = given(page)
    for block in BLOCK.findall(text):
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, page, "exec"), namespace)
        plt.close("all")
