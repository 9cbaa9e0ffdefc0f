"""The first fit on a fresh machine calls no C compiler: PyTensor's would take longer than the fit."""

import os
import subprocess
import sys

CODE = """
import numpy as np, pmordinal as pmo
x = np.linspace(0.0, 3.0, 20)
pmo.fit(pmo.gp_model(x, (x > 1.5).astype(int), "expquad"), progressbar=False)
"""


def test_the_first_fit_calls_no_compiler(tmp_path):
    flags = f"base_compiledir={tmp_path},cxx=false"  # a compiler that fails
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "PYTENSOR_FLAGS": flags},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("*.cpp"))
