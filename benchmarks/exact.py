"""The exact engine on draws of its own model (d = 4, r = 5): evidence, its error, time, and how good the draws are.

    OPENBLAS_NUM_THREADS=1 python benchmarks/exact.py --sizes 200,400,800 --noises 0.3,0.5,1

CPU seconds of one thread: `order` chooses the order of the rows, `evidence` is the rest of a call of the engine until
the standard error is 0.02, `gradient` the gradient of 1000 proposals. `ESS` is the effective share of the weighted
draws, `accepted` the share that accept–reject keeps. `ep` is expectation propagation's log evidence less the exact one.
"""

import argparse
import time

import numpy as np
import pymc as pm

from pmordinal.engines import EP, Exact
from pmordinal.gram import Gram, lower
from pmordinal.likelihood import OrdinalLikelihood

# Five classes of equal probability at total variance one.
THRESHOLDS = np.array([-0.84, -0.25, 0.25, 0.84])


def problem(n: int, noise: float, seed: int = 0):
    """Return covariance, labels and likelihood: length-scale two, labels drawn from the model."""
    rng = np.random.default_rng(seed)
    gram = Gram(lower(pm.gp.cov.ExpQuad(4, ls=2.0)), rng.normal(size=(n, 4)), [2.0])
    likelihood = OrdinalLikelihood(THRESHOLDS * np.hypot(1.0, noise), noise)
    f = np.linalg.cholesky(gram.matrix + 1e-9 * np.eye(n)) @ rng.normal(size=n)
    return gram, likelihood.draw(f, rng), likelihood


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="200,400,800")
    parser.add_argument("--noises", default="0.3,0.5,1")
    args = parser.parse_args()
    Exact()(*problem(10, 1.0)).evidence_gradient()  # compile
    columns = ("n", "noise", "log evidence", "error", "order", "evidence", "gradient")
    print("{:>5} {:>6} {:>13} {:>7} {:>7} {:>9} {:>9}".format(*columns), end=" ")
    print("{:>10} {:>6} {:>9} {:>8}".format("proposals", "ESS", "accepted", "ep"))
    for n in map(int, args.sizes.split(",")):
        for noise in map(float, args.noises.split(",")):
            gram, y, likelihood = problem(n, noise)
            _ = gram.matrix
            times = [time.process_time()]
            engine = Exact().select(gram, y, likelihood)
            times.append(time.process_time())
            post = engine(gram, y, likelihood)
            times.append(time.process_time())
            post.evidence_gradient()
            times.append(time.process_time())
            order, evidence, gradient = np.diff(times)
            count = post.log_weights.size
            share = 1.0 / (1.0 + count * post.log_evidence_error**2)
            gap = EP()(gram, y, likelihood).log_evidence - post.log_evidence
            print(
                f"{n:5d} {noise:6.2f} {post.log_evidence:13.3f} {post.log_evidence_error:7.4f} {order:7.2f} "
                f"{evidence:9.2f} {gradient:9.2f} {count:10d} {share:6.2f} {post.acceptance:9.2g} {gap:8.3f}"
            )


if __name__ == "__main__":
    main()
