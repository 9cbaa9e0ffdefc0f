"""What hyperparameters are chosen by; `OBJECTIVES` is the table of names."""

from pmordinal.objectives.base import OBJECTIVES, Objective
from pmordinal.objectives.bound import bound
from pmordinal.objectives.evidence import evidence
from pmordinal.objectives.loo import loo
from pmordinal.objectives.validation import validation

__all__ = ["OBJECTIVES", "Objective", "bound", "evidence", "loo", "validation"]
