"""Lets Ctrl-C stop long compiled loops within a fraction of a second.

Compiled loops do not react to signals. So a compiled function that may run long does a bounded amount of work in one
call and keeps its state in arrays; Python calls it again until it is done. Between two calls Ctrl-C raises an error in
the main thread, and `check` ends the threads of a pool whose caller was interrupted.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

BUDGET = 10_000_000  # table look-ups in one compiled call: about a tenth of a second


class StoppedError(Exception):
    """The caller of a pool was interrupted, so this thread ends."""


class Stop:
    """A flag that the threads of a pool share; copies in other processes are never set."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask all threads that check this flag to end."""
        self._event.set()

    def is_set(self) -> bool:
        """Tell whether the threads should end."""
        return self._event.is_set()

    def __reduce__(self) -> tuple[type["Stop"], tuple[()]]:
        """Pickle as a new flag, since the pool ends its processes itself."""
        return Stop, ()


_thread = threading.local()


@contextmanager
def listening(stop: Stop) -> Iterator[None]:
    """Make `check` use the flag `stop` in this thread, inside the ``with`` block."""
    before = getattr(_thread, "stop", None)
    _thread.stop = stop
    try:
        yield
    finally:
        _thread.stop = before


def check() -> None:
    """Raise `StoppedError` if the flag of this thread is set.

    Examples
    --------
    >>> stop = Stop()
    >>> with listening(stop):
    ...     check()
    ...     stop.set()
    ...     check()
    Traceback (most recent call last):
    pmordinal.modl.interrupt.StoppedError: the pool was interrupted
    """
    stop = getattr(_thread, "stop", None)
    if stop is not None and stop.is_set():
        raise StoppedError("the pool was interrupted")
