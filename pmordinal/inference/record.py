"""Turns the result of an optimisation into the fit that the user gets."""

from dataclasses import replace

import numpy as np

from pmordinal.errors import ConvergenceWarning, warn
from pmordinal.inference.landscape import Landscape
from pmordinal.inference.optimise import Run
from pmordinal.results.fit import OrdinalFit
from pmordinal.results.status import FitStatus

DOUBTFUL = 30.0  # nats of estimated error of the evidence, above which to warn


def record(landscape: Landscape, run: Run, status: FitStatus) -> OrdinalFit:
    """Return the fit at the optimum of `run`."""
    problem, model = landscape.problem, landscape.model
    landscape.hold(run.engine)
    posterior = landscape.posterior(run.x)
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
    if posterior.advice:
        warn(posterior.advice)
    status = replace(status, notes=posterior.notes, advice=posterior.advice)
    return OrdinalFit(
        posterior=posterior,
        point=landscape.named_values(run.x),
        dims=dict(model.named_vars_to_dims),
        objective=problem.objective,
        objective_value=run.value,
        status=replace(status, log_evidence_correction=missed),
        engine=problem.engine.name,
        labels=problem.labels,
        features=problem.features,
        unlabeled=problem.unlabeled,
        index=np.asarray(model.coords.get("obs", np.arange(posterior.y.size))),
        model_terms=problem.terms,
        optimum=(landscape, run.x),
        by_row=problem.by_row,
        whole=problem.whole,
    )
