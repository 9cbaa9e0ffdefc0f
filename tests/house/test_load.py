"""Load: memory of a large fit, of many fits and of many predictions, each measured in a process of its own."""

import json
import subprocess
import sys
import textwrap

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

HEAD = """
    import gc, json, resource, sys, threading, time, warnings
    import numpy as np
    import pmordinal as pmo

    warnings.simplefilter("ignore")

    def now():  # resident bytes
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    class Peak:
        \"\"\"The largest resident size while a block runs, above that at its beginning.\"\"\"

        def __enter__(self):
            gc.collect()
            self.first, self.most, self.running = now(), 0, True
            self.thread = threading.Thread(target=self.watch)
            self.thread.start()
            return self

        def watch(self):
            while self.running:
                self.most = max(self.most, now() - self.first)
                time.sleep(0.002)

        def __exit__(self, *_):
            self.running = False
            self.thread.join()

    def problem(n, **options):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 2))
        y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=n), [-0.5, 0.5])
        return X, pmo.gp_model(X, y, **{"cov_func": "expquad", **options})
"""


def measured(code, *arguments):
    """Run code in a process of its own and return what it prints as JSON."""
    script = textwrap.dedent(HEAD) + textwrap.dedent(code)
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


FIT = """
    name, n, cov_func = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    chosen = {"engine": name, "cov_func": cov_func}
    pmo.fit(problem(60, **chosen)[1], progressbar=False, max_evaluations=2)  # compiles and loads
    X, model = problem(n, **chosen)
    with Peak() as peak:
        fit = pmo.fit(model, progressbar=False, max_evaluations=2)
    print(json.dumps({"matrices": peak.most / (8 * n * n), "log_evidence": fit.log_evidence}))
"""


@pytest.mark.parametrize("engine", ["laplace", "ep"])
@pytest.mark.parametrize(("cov_func", "most"), [("expquad", 8.0), ("recommended", 12.0)])
def test_a_fit_of_4000_rows_holds_few_matrices(engine, cov_func, most):
    found = measured(FIT, engine, 4000, cov_func)
    assert found["matrices"] < most, found
    assert -4000 < found["log_evidence"] < 0


LEAK = """
    again = sys.argv[2] == "the same model"
    X, model = problem(25, engine="laplace")
    sizes = []
    for count in range(int(sys.argv[1])):
        if not again:
            model = problem(25, engine="laplace")[1]
        fit = pmo.fit(model, progressbar=False, max_evaluations=3)
        fit.predict(X)
        if count % 10 == 9:
            gc.collect()
            sizes.append(now() / 2**20)
    print(json.dumps(sizes))
"""


@pytest.mark.parametrize(("models", "kilobytes"), [("the same model", 40), ("new models", 60)])
def test_no_leak_over_100_fits(models, kilobytes):
    """What the last 60 of 100 fits add to the process, for each.

    A model leaves something behind for ever, a fit does not: PyTensor keeps every Op that it has met.
    """
    sizes = measured(LEAK, 100, models)
    assert (sizes[-1] - sizes[3]) * 1024 / 60 < kilobytes, sizes


LARGE = """
    import ctypes, tempfile
    import pymc as pm
    from pmordinal.model.compile import OFTEN
    from pmordinal.sklearn import OrdinalGPClassifier

    quiet = {"progressbar": False}
    few = {"draws": 2, "tune": 2, "chains": 1, "cores": 1, "quiet": True, "nuts_sampler": "pymc", **quiet}

    def fit(X, y):
        fitted = pmo.fit(pmo.gp_model(X, y, engine="laplace"), max_evaluations=2, **quiet)
        fitted.predict(X)
        fitted.to_datatree(draws=2)

    def file(X, y):
        fitted = pmo.fit(pmo.gp_model(X, y, engine="laplace"), max_evaluations=2, **quiet)
        with tempfile.TemporaryDirectory() as folder:
            fitted.save(folder + "/fit.nc")
            pmo.load(folder + "/fit.nc").predict(X)

    def sample(X, y):
        model = pmo.gp_model(X, y, engine="laplace")
        tree = pm.sample(model=model, compute_convergence_checks=False, **few)
        pmo.sample_posterior(model, tree, X[:2], **quiet)

    def density(model):
        model.compile_logp(mode=OFTEN)(model.initial_point())

    def latent(X, y):
        density(pmo.latent_model(X, y))

    def hsgp(X, y):
        density(pmo.latent_model(X.reshape(-1, 1), np.repeat(y, X.shape[1]), approx="hsgp", m=3, c=1.5))

    def linear(X, y):
        density(pmo.linear_model(X, y))

    def estimator(X, y):
        OrdinalGPClassifier(engine="laplace").fit(X, y).predict(X)

    def large():  # arrays of a megabyte that somebody holds
        gc.collect()
        held = (r for o in gc.get_objects() for r in gc.get_referents(o))
        return len({id(r) for r in held if type(r) is np.ndarray and r.nbytes > 1_000_000})

    run, rng, sizes, arrays = globals()[sys.argv[1]], np.random.default_rng(0), [], []
    for count in range(10):
        X = rng.normal(size=(60, 5000))
        run(X, np.digitize(X[:, 0], [-0.5, 0.5]))
        del X
        arrays.append(large())
        ctypes.CDLL(None).malloc_trim(0)  # gives back what is free
        sizes.append(now() / 2**20)
    print(json.dumps({"arrays": arrays, "sizes": sizes}))
"""


@pytest.mark.parametrize("use", ["fit", "file", "sample", "latent", "hsgp", "linear", "estimator"])
def test_models_of_large_tables_leave_none_behind(use):
    """Ten models, each with a table of 2.4 MB: what they leave is no table, and at most an arena of Python's, 1 MB."""
    found = measured(LARGE, use)
    assert found["arrays"][-1] == found["arrays"][0], found
    assert (min(found["sizes"][7:]) - min(found["sizes"][2:5])) / 5 < 1.2, found


PREDICT = """
    X, model = problem(200, engine="laplace", lengthscale=1.0, noise=0.5, thresholds=[-0.5, 0.5])
    fit = pmo.fit(model, progressbar=False)
    fit.predict(X)
    out = {}
    for m in (100_000, 1_000_000):
        rows = np.random.default_rng(1).normal(size=(m, 2))
        with Peak() as peak:
            probs = fit.predict(rows)
        assert probs.shape == (m, 3)
        out[str(m)] = peak.most / 2**20
        few = np.r_[0:5, m - 5 : m]
        np.testing.assert_allclose(probs.values[few], fit.predict(rows[few]), atol=1e-12)
        del probs, rows
    print(json.dumps(out))
"""


def test_a_million_predictions_at_bounded_memory():
    """Beyond its blocks a prediction holds the result, the table and their copies: 5 numbers a row each."""
    found = measured(PREDICT)
    assert found["1000000"] < 600.0, found
    growth = (found["1000000"] - found["100000"]) * 2**20 / 900_000  # bytes a further row
    assert growth < 8 * 40, found
