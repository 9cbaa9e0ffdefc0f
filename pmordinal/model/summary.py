"""`model_summary`: the priors of a model as a table."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import pymc as pm
from pymc.printing import str_for_dist
from pytensor.graph.traversal import ancestors

from pmordinal.data.terms import Term
from pmordinal.gram.anova import AnovaKernel
from pmordinal.gram.combine import SumKernel
from pmordinal.model.laws import LawRV
from pmordinal.model.marginal import EvidenceLaw, check_model
from pmordinal.model.problem import Problem


def model_summary(model: pm.Model) -> pd.DataFrame:
    """Return the priors in use, one line a variable.

    Parameters
    ----------
    model : pm.Model
        From `gp_model`, `formula_model`, `latent_model`, or your own.

    Returns
    -------
    DataFrame
        By name of variable: ``prior``; ``dims``; and ``term``, the terms of the latent function that it
        belongs to, if these have names. The prior of variables made of others is ``"computed"``.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> model = pmo.gp_model([[0.0], [1.0], [2.0], [3.0]], [1, 1, 2, 3], "recommended")
    >>> print(pmo.model_summary(model)[["prior", "term"]].head(3))
                                  prior    term
    variable
    linear_amplitude   LogNormal(-0.5, 0.7)  linear
    amplitude          LogNormal(0.5, 0.7)  smooth
    rough_amplitude      LogNormal(1, 0.7)   rough
    """
    check_model(model)
    owners = _owners(model)
    lines = [
        {
            "variable": variable.name,
            "prior": _prior(variable, is_free=variable in model.free_RVs),
            "dims": ", ".join(map(str, model.named_vars_to_dims.get(variable.name, ()))),
            "term": ", ".join(name for name, own in owners.items() if variable in own),
        }
        for variable in (*model.free_RVs, *model.deterministics)
    ]
    columns = ["variable", "prior", "dims", "term"]
    return pd.DataFrame(lines, columns=columns).set_index("variable")


def _prior(variable: Any, is_free: bool) -> str:
    """Return the distribution of a variable as PyMC prints it, without the name."""
    if not is_free:
        return "computed"
    op = variable.owner.op
    if isinstance(op, LawRV):
        return op.law.name
    return str_for_dist(variable).partition(" ~ ")[2]


def _owners(model: pm.Model) -> dict[str, set]:
    """Return, for each term with a name, all variables that its covariance is made of."""
    found: dict[str, set] = {}
    for rv in model.observed_RVs:
        op = rv.owner.op
        if isinstance(op, LawRV) and isinstance(op.law, EvidenceLaw):
            problem = op.law.of.problem
            names = iter(problem.terms)
            for count, parameters in _parts(problem, rv.owner.inputs[1:]):
                own = set(ancestors(parameters))
                found |= {term.name: own for term in _next(names, count)}
    return found


def _next(names: Iterator[Term], count: int) -> Iterator[Term]:
    yield from (term for _, term in zip(range(count), names, strict=False))


def _parts(problem: Problem, inputs: Sequence[Any]) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield the number of terms of each kernel of a sum, and its parameters."""
    kernel = problem.kernel
    start = 0
    for part in kernel.kernels if isinstance(kernel, SumKernel) else (kernel,):
        stop = start + len(part.parameters)
        yield len(part.terms) if isinstance(part, AnovaKernel) else 1, inputs[start:stop]
        start = stop
