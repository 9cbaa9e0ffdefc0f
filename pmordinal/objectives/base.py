"""Objectives: functions of a Posterior that give a value and its gradient, by name."""

from collections.abc import Callable

from pmordinal.posterior import Gradient, Posterior
from pmordinal.registry import Registry

Objective = Callable[[Posterior], tuple[float, Gradient]]

OBJECTIVES: Registry[Objective] = Registry("objective")
