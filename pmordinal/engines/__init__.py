"""Inference engines: each approximates the posterior of the latent function; `ENGINES` has them by name."""

from pmordinal.engines.base import COMFORTABLE, ENGINES, Engine, engine_for, get_engine
from pmordinal.engines.ep import EP
from pmordinal.engines.exact import Exact
from pmordinal.engines.inducing import Inducing
from pmordinal.engines.laplace import Laplace
from pmordinal.engines.plsor import PLSOR
from pmordinal.engines.sparse import SparseADF

__all__ = [
    "COMFORTABLE",
    "ENGINES",
    "EP",
    "PLSOR",
    "Engine",
    "Exact",
    "Inducing",
    "Laplace",
    "SparseADF",
    "engine_for",
    "get_engine",
]
