"""Where an optimisation of the hyperparameters starts."""

import numpy as np

from pmordinal import checks
from pmordinal.errors import warn
from pmordinal.inference.landscape import Landscape
from pmordinal.model.label_scales import gathered
from pmordinal.words import guess


def starting_points(
    landscape: Landscape, count: int, given: dict, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return the start that `fit` describes, moved to `given` values, and others scattered around it."""
    density, model, discrete = landscape.density, landscape.model, landscape.discrete
    usual = landscape.problem.start
    point = dict(density.initial)
    free = {rv.name: rv for rv in model.free_RVs}
    given = gathered(model, given, usual)
    unknown = [name for name in given if name not in free]
    if unknown:
        raise ValueError(
            f"start: no free variable {unknown[0]!r}; there are {', '.join(free)}{guess(unknown[0], free)}"
        )
    wanted = {name: v for name, v in usual.items() if name in free} | given
    # in this order: a transform may depend on variables before it
    for name, rv in free.items():
        if name not in wanted:
            continue
        value = wanted[name]
        if name in given:
            value = checks.finite_array(f"start: {name!r}", value)
        slot = model.rvs_to_values[rv].name
        shape = np.shape(point[slot])
        if np.shape(value) not in ((), shape):
            raise ValueError(
                f"start: {name!r} has shape {shape}, got a value of shape {np.shape(value)}"
            )
        moved = np.broadcast_to(np.asarray(value, dtype=float), shape)
        moved = density.unconstrained(rv, moved, point)
        if slot in discrete and np.any(moved != np.round(moved)):
            raise ValueError(f"start: {name!r} is discrete and cannot be {value}")
        if np.all(np.isfinite(moved)):
            point[slot] = moved.astype(point[slot].dtype)
        elif name in given:
            raise ValueError(
                f"start: {name!r} cannot be {value}: it is outside its prior's support"
            )
    first = density.ravel(point).data.astype(float)
    if discrete:
        held = ", ".join(f"{name!r} at {np.array2string(point[name])}" for name in discrete)
        warn(
            f"fit cannot optimise discrete variables and holds {held}: fit the model at each of their values "
            "with start= and compare, or use pm.sample",
        )
    sizes = [np.size(point[v.name]) for v in model.value_vars]
    moves = np.repeat([v.name not in discrete for v in model.value_vars], sizes)
    return [first, *(first + moves * rng.normal(size=moves.size) for _ in range(count - 1))]
