"""From the end of an optimisation to the fit that a user gets."""

from dataclasses import replace

import numpy as np

from pmordinal.errors import ConvergenceWarning, warn
from pmordinal.inference.optimise import Run, Target
from pmordinal.results.fit import FitStatus, OrdinalFit

DOUBTFUL = 30.0  # nats of estimated error, beyond which an evidence is not to be trusted


def record(target: Target, run: Run, status: FitStatus) -> OrdinalFit:
    """Return the fit at the optimum of `run`."""
    problem, model = target.problem, target.model
    target.hold(run)
    posterior = target.posterior(run.x)
    if not posterior.status.converged:
        warn(
            f"{problem.engine.name}: {posterior.status.message}",
            ConvergenceWarning,
        )
    missed = posterior.log_evidence_correction
    if missed is not None and abs(missed) > DOUBTFUL:
        warn(
            f"the evidence is doubtful at the hyperparameters found: {problem.engine.name} estimates its own "
            f"error at {missed:.0f} nats; compare with engine='ep', or give noise and length-scales tighter priors",
            ConvergenceWarning,
        )
    return OrdinalFit(
        posterior=posterior,
        point=target.named_values(run.x),
        dims=dict(model.named_vars_to_dims),
        objective=problem.objective,
        objective_value=run.value,
        status=replace(status, log_evidence_correction=missed),
        engine=problem.engine.name,
        labels=problem.labels,
        features=problem.features,
        unlabeled=problem.unlabeled,
        index=np.asarray(model.coords.get("obs", np.arange(posterior.y.size))),
        optimum=(target, run.x),
        by_row=problem.by_row,
    )
