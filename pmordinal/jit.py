"""Numba's ``njit`` with a cache on disk that never makes a function fail.

Numba keeps machine code in ``NUMBA_CACHE_DIR``, beside the package or in the user's cache folder. It raises if it can
write to none of them, or if the disk is full. Here the code is then compiled in memory, anew in each session.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pickle import UnpicklingError
from typing import Any

import numba
from numba.core.caching import FunctionCache

logger = logging.getLogger(__name__)
_said: set[str] = set()
_listeners: list[Callable[[str], None]] = []
COMPILING = "compiling numerical code, once on this machine: some seconds"


@contextmanager
def announced(say: Callable[[str], None]) -> Iterator[None]:
    """Call `say` with one line, once in a session, if code has to be compiled that is not on disk yet."""
    _listeners.append(say)
    try:
        yield
    finally:
        _listeners.remove(say)


class DiskCache(FunctionCache):
    """Cache of one function on disk; if its files cannot be used, it is off for the session."""

    def load_overload(self, sig, target_context):
        """Return the cached code for a signature; None if there is none or if it cannot be read."""
        try:
            found = super().load_overload(sig, target_context)
            if found is None and _listeners and COMPILING not in _said:
                _said.add(COMPILING)
                _listeners[-1](COMPILING)
            return found
        except (EOFError, UnpicklingError):  # a file is cut short: start afresh
            self._write(self.flush)
        except OSError as error:
            self._give_up(error)
        return None

    def save_overload(self, sig, data):
        """Write the code for a signature to the cache, if possible."""
        self._write(super().save_overload, sig, data)

    def _write(self, write: Callable, *args: Any) -> None:
        try:
            write(*args)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.disable()
        _say(str(error))


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable], Any]:
    """Return a decorator that compiles a function, as ``numba.njit`` does.

    Parameters
    ----------
    cache : bool
        Keep the machine code on disk for the next session, where a folder can be written.
    **options
        For ``numba.njit``.

    Examples
    --------
    >>> @njit(nogil=True)
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """

    def compiled(function: Callable) -> Any:
        # nothing calls it from C: an entry for that would take a tenth of the time to compile
        without_entry: dict[str, Any] = {"no_cfunc_wrapper": True, **options}
        dispatcher = numba.njit(**without_entry)(function)
        if cache and dispatcher is not function:  # the same with NUMBA_DISABLE_JIT
            try:
                dispatcher._cache = DiskCache(function)
            except (RuntimeError, OSError) as error:  # there is no folder to write to
                _say(str(error))
        return dispatcher

    return compiled


def _say(why: str) -> None:
    """Say once in a session that code is compiled anew each time."""
    if not _said - {COMPILING}:
        logger.warning(
            "Machine code cannot be kept on disk, so each session compiles it anew, which takes some seconds (%s). "
            "Set NUMBA_CACHE_DIR to a folder that can be written.",
            why,
        )
        _said.add(why)
