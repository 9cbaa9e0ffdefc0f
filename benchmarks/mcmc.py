"""MCMC over the hyperparameters, the latent function integrated out, beside plain PyMC on the latent function.

    python benchmarks/mcmc.py                      # all engines and plain PyMC, n = 100
    python benchmarks/mcmc.py --engines ep --no-plain
    python benchmarks/mcmc.py --floor              # what an evaluation with EP costs, n = 100, 200, 400, 800

Effective samples are those of the slowest hyperparameter, seconds include compilation and tuning; "drawing" is
their number per CPU second after these. CPU seconds are those of this process and its children, so that they compare
on a busy machine too; then one evaluation of the log density with its gradient in CPU milliseconds, and in Cholesky
factorisations of the same order.

The floor of an evaluation with EP counts what it cannot do without, in Cholesky factorisations of order n. Each sweep
factorises B = I + S K S and inverts the factor L; the gradient needs Xᵀ X, the inverse of B from X = L⁻¹. Each of the
three takes n³/3 multiplications, so that there are 2 · sweeps + 1 of them; sweeps are counted by the engine. The
kernel matrix and its derivative take only n² d multiplications and n²/2 exponentials, but these are slower: what they
take alone is added. The ratio is the time of an evaluation over that of its floor.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import ClassVar

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import arviz as az
import numpy as np
import pymc as pm
from engines import best, cholesky_seconds, make_data

import pmordinal as pmo
from pmordinal.engines import EP
from pmordinal.gram import Gram, lower
from pmordinal.linalg.workspace import Workspace

NAMES = ["lengthscale", "noise", "thresholds"]
FIRST = """
import sys, time
began = time.perf_counter()
sys.path.insert(0, {here!r})
import pymc as pm, pmordinal as pmo
from engines import make_data
X, y, _ = make_data({n})
def stop(trace, draw):
    print(time.perf_counter() - began, flush=True)
    sys.stdout.flush()
    import os
    os._exit(0)
with open({log!r}, "w") as log:
    pm.sample(model=pmo.gp_model(X, y, engine={engine!r}), chains=1, cores=1, progressbar=False, callback=stop)
"""


def cpu_seconds():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def plain_model(X, y):
    """Return the same model in PyMC's own words: latent function and labels."""
    d = X.shape[1]
    Z = (X - X.mean(0)) / X.std(0)
    r = int(y.max())
    start = np.linspace(-1, 1, r)
    with pm.Model() as model:
        ls = pm.LogNormal("lengthscale", 0.5 * np.log(d), 1.0)
        noise = pm.LogNormal("noise", -1.0, 1.5)
        f = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(d, ls=ls)).prior("f", X=Z)
        ordered = pm.distributions.transforms.ordered
        cuts = pm.Normal("thresholds", 0.0, 2.0, shape=r, transform=ordered, initval=start)
        pm.OrderedProbit("y", eta=f, cutpoints=cuts, sigma=noise, compute_p=False, observed=y)
    return model


def run(name, build, **options):
    """Sample and print one row; return effective samples per wall and per CPU second."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    drawing, last, points = 0.0, cpu, []

    def watch(trace, draw):
        nonlocal drawing, last
        now = cpu_seconds()
        if not draw.tuning:
            drawing += now - last
            points.append(draw.point)
        last = now

    model = build()
    tree = pm.sample(
        model=model, progressbar=False, random_seed=1, quiet=True, callback=watch, **options
    )
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    names = [v.name for v in model.free_RVs if v.name not in ("f", "f_rotated_", "f_rotated")]
    slowest = min(float(az.ess(tree, var_names=[v])[v].min()) for v in names)
    stats = tree["sample_stats"]
    steps, bad = float(stats["n_steps"].mean()), int(stats["diverging"].sum())
    print(
        f"{name:<12}{wall:8.1f}{cpu:8.1f}{slowest:9.0f}{slowest / wall:9.2f}{slowest / cpu:9.2f}"
        f"{slowest / drawing:9.1f}{steps:8.1f}{bad:6d}",
        end="",
        flush=True,
    )
    return model, points, slowest / wall, slowest / cpu


def evaluation_seconds(model, draws):
    """Return CPU seconds of one evaluation of value and gradient, next to draws, where no sampler has been."""
    function = model.logp_dlogp_function(ravel_inputs=True)._pytensor_function
    points = np.array([pm.blocking.DictToArrayBijection.map(draw).data for draw in draws])
    points += 0.3 * points.std(axis=0) * np.random.default_rng(0).normal(size=points.shape)
    blocks = []
    for block in np.array_split(points, 10):
        began = time.process_time()
        for point in block:
            function(point)
        blocks.append((time.process_time() - began) / len(block))
    return min(blocks[5:])  # the first ones learn where to start


class CountedEP(EP):
    """EP that keeps the number of sweeps of each call."""

    sweeps: ClassVar[list[int]] = []

    def __call__(self, *arguments):
        """Return the posterior."""
        posterior = super().__call__(*arguments)
        self.sweeps.append(posterior.status.factorizations)
        return posterior


def kernel_seconds(X, repeats):
    """Return CPU seconds of a kernel matrix and its derivative, alone."""
    kernel = lower(pm.gp.cov.ExpQuad(X.shape[1], ls=1.5))
    dK, workspace = np.asfortranarray(np.eye(len(X))), Workspace()

    def run():
        with workspace:
            gram = Gram(kernel, X, [1.5])
            gram.matrix  # noqa: B018 (computed on first use)
            gram.pullback(dK)

    return best(run, repeats)


def steady_evaluation(model, draws, repeats=5):
    """Return CPU seconds and sweeps of an evaluation next to draws, once enough are known to start from.

    Of each point the fastest of several evaluations counts, a tiny step apart so that none is remembered.
    """
    function = model.logp_dlogp_function(ravel_inputs=True)._pytensor_function
    points = np.array([pm.blocking.DictToArrayBijection.map(draw).data for draw in draws])
    spread, rng = points.std(axis=0), np.random.default_rng(0)
    for _ in range(max(1, 500 // len(points))):
        for point in points + 0.3 * spread * rng.normal(size=points.shape):
            function(point)
    points = (points + 0.3 * spread * rng.normal(size=points.shape))[:60]
    CountedEP.sweeps.clear()
    seconds = np.full(len(points), np.inf)
    for k in range(repeats):
        for i, point in enumerate(points + 1e-9 * k):
            began = time.process_time()
            function(point)
            seconds[i] = min(seconds[i], time.process_time() - began)
    return seconds.mean(), float(np.mean(CountedEP.sweeps))


def floors(sizes, draws, tune):
    """Print what an evaluation takes where a sampler has been, and the least that it could take."""
    print(f"{'n':>5}{'ms/eval':>9}{'ms/C':>8}{'C/eval':>8}{'sweeps':>8}{'floor':>8}{'ratio':>7}")
    for n in sizes:
        X, y, _ = make_data(n)
        model, points = pmo.gp_model(X, y, "expquad", engine=CountedEP()), []
        pm.sample(
            model=model,
            draws=draws,
            tune=tune,
            chains=1,
            cores=1,
            init="jitter+adapt_full",
            target_accept=0.65,
            random_seed=1,
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
            callback=lambda trace, draw, points=points: points.append(draw.point),
        )
        seconds, sweeps = steady_evaluation(model, points[tune:])
        repeats = max(5, 20_000 // n)
        C = cholesky_seconds(np.corrcoef(X @ X.T), repeats)
        floor = 2.0 * sweeps + 1.0 + kernel_seconds(X, repeats) / C
        print(
            f"{n:5d}{1e3 * seconds:9.2f}{1e3 * C:8.3f}{seconds / C:8.1f}{sweeps:8.2f}{floor:8.1f}"
            f"{seconds / C / floor:7.2f}",
            flush=True,
        )


def first_draw_seconds(engine, n):
    """Return seconds from the start of a process without any cache to its first draw."""
    with tempfile.TemporaryDirectory() as empty:
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": empty,
            "PYTENSOR_FLAGS": f"base_compiledir={empty}",
        }
        code = FIRST.format(
            here=str(Path(__file__).parent), n=n, engine=engine, log=os.path.join(empty, "log")
        )
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        return float(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--engines", nargs="*", default=["ep", "laplace", "plsor"])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--tune", type=int, default=500)
    parser.add_argument("--plain-draws", type=int, default=300)
    parser.add_argument("--no-plain", action="store_true")
    parser.add_argument("--no-cold", action="store_true")
    parser.add_argument("--floor", type=int, nargs="*", metavar="n", help="only this table")
    arguments = parser.parse_args()
    if arguments.floor is not None:
        return floors(arguments.floor or [100, 200, 400, 800], arguments.draws, arguments.tune)
    X, y, _ = make_data(arguments.n)
    C = cholesky_seconds(np.corrcoef(X @ X.T), 20)
    head = f"{'model':<12}{'wall s':>8}{'CPU s':>8}{'ESS':>9}{'ESS/s':>9}{'ESS/CPUs':>9}"
    print(
        f"{head}{'drawing':>9}{'steps':>8}{'div':>6}{'ms/eval':>9}{'C/eval':>8}{'first draw s':>14}"
    )
    rates = {}
    common = {"chains": 2, "cores": 1}
    for engine in arguments.engines:
        model, draws, *rates[engine] = run(
            engine,
            lambda engine=engine: pmo.gp_model(X, y, "expquad", engine=engine),
            draws=arguments.draws,
            tune=arguments.tune,
            init="jitter+adapt_full",
            target_accept=0.65,
            **common,
        )
        seconds = evaluation_seconds(model, draws)
        print(f"{1e3 * seconds:9.2f}{seconds / C:8.0f}", end="", flush=True)
        print(
            "" if arguments.no_cold else f"{first_draw_seconds(engine, arguments.n):14.1f}",
            flush=True,
        )
    if not arguments.no_plain:
        *_, wall, cpu = run(
            "plain PyMC",
            lambda: plain_model(X, y),
            draws=arguments.plain_draws,
            tune=arguments.plain_draws,
            target_accept=0.9,
            **common,
        )
        print()
        for engine, (by_wall, by_cpu) in rates.items():
            print(
                f"{engine}: {by_wall / wall:.0f} times plain PyMC (CPU: {by_cpu / cpu:.0f} times)"
            )


if __name__ == "__main__":
    main()
