"""BLAS threads: one for small matrices, where handing work around costs more than the work."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController

SMALL = 400  # rows below which one thread is the fastest


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def blas_threads(n: int) -> AbstractContextManager:
    """Return a context in which matrices of order `n` are handled by the right number of threads."""
    if n >= SMALL or all(lib.num_threads == 1 for lib in _blas().lib_controllers):
        return nullcontext()  # to ask costs a tenth of setting and restoring
    return _blas().limit(limits=1)
