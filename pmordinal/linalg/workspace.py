"""Memory of matrices that one evaluation after another uses.

The system hands out fresh memory page by page: for a few matrices of order 1000 that takes as long as factorising one
of them. What an optimiser or a sampler evaluates is forgotten but for a few numbers, so that the next evaluation can
work in the same matrices.
"""

from contextvars import ContextVar, Token

import numpy as np
from numpy.typing import DTypeLike

MOST = 8  # matrices of one size that are kept
LEAST_ENTRIES = 2**14  # of a matrix that is worth keeping


class Workspace:
    """Matrices that are handed out anew each time the workspace is entered.

    Whoever enters it may keep no matrix that `empty` gave him after he has left it.

    Examples
    --------
    >>> workspace = Workspace()
    >>> with workspace:
    ...     first = empty((200, 200))
    >>> with workspace:
    ...     again = empty((200, 200))
    >>> np.shares_memory(first, again)
    True
    """

    def __init__(self) -> None:
        self._kept: dict[tuple, list[np.ndarray]] = {}
        self._used: dict[tuple, int] = {}
        self._before: list[Token] = []

    def __enter__(self) -> None:
        """Hand out all matrices again, unless the workspace has been entered already."""
        if not self._before:
            self._used.clear()
        self._before.append(_CURRENT.set(self))

    def __exit__(self, *_: object) -> None:
        """Go back to where matrices came from before."""
        _CURRENT.reset(self._before.pop())

    def next(self, shape: tuple[int, int], dtype: DTypeLike) -> np.ndarray:
        """Return a matrix that has not been handed out since the workspace was entered."""
        key = shape, np.dtype(dtype)
        kept, used = self._kept.setdefault(key, []), self._used.get(key, 0)
        self._used[key] = used + 1
        if used < len(kept):
            return kept[used].view()  # which may be made read-only
        new = np.empty(shape, dtype, order="F")
        if used < MOST:
            kept.append(new)
        return new.view()

    def __reduce__(self) -> tuple:
        """Leave the memory behind when pickled or copied."""
        return Workspace, ()


_CURRENT: ContextVar[Workspace | None] = ContextVar("workspace", default=None)


def empty(shape: tuple[int, int], dtype: DTypeLike = np.float64) -> np.ndarray:
    """Return a Fortran-ordered matrix, of the workspace that is entered if there is one; anything may be in it."""
    workspace = _CURRENT.get() if shape[0] * shape[1] >= LEAST_ENTRIES else None
    return np.empty(shape, dtype, order="F") if workspace is None else workspace.next(shape, dtype)
