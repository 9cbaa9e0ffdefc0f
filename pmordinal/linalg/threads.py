"""Limits BLAS to one thread for small matrices, where several threads are slower."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController

SMALL = 400  # below so many rows one thread is fastest


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def blas_threads(n: int) -> AbstractContextManager:
    """Return a context that limits BLAS to one thread if matrices of order `n` are small."""
    if n >= SMALL or all(lib.num_threads == 1 for lib in _blas().lib_controllers):
        return nullcontext()  # asking costs a tenth of setting
    return _blas().limit(limits=1)
