"""Memory for large matrices, reused from one evaluation to the next.

The operating system provides new memory page by page: for a few matrices of order 1000 that takes as long as
factorising one of them. An optimiser or sampler keeps only a few numbers of each evaluation, so the next evaluation
can use the same matrices again. Very large ones are not kept: memory is scarce there, and time goes elsewhere.
"""

from contextvars import ContextVar, Token

import numpy as np
from numpy.typing import DTypeLike

MOST = 8  # largest number of matrices kept of each size
LEAST_ENTRIES, MOST_ENTRIES = 2**14, 2**22  # smaller and larger matrices are not kept


class Workspace:
    """Matrices that can be used again each time the workspace is entered.

    A matrix that `empty` returned inside the ``with`` block must not be used after it.

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
        """Make all matrices available again, unless the workspace is entered already."""
        if not self._before:
            self._used.clear()
        self._before.append(_CURRENT.set(self))

    def __exit__(self, *_: object) -> None:
        """Make the previous workspace, or none, the current one again."""
        _CURRENT.reset(self._before.pop())

    def next(self, shape: tuple[int, int], dtype: DTypeLike) -> np.ndarray:
        """Return a matrix that is not in use since the workspace was entered."""
        key = shape, np.dtype(dtype)
        kept, used = self._kept.setdefault(key, []), self._used.get(key, 0)
        self._used[key] = used + 1
        if used < len(kept):
            return kept[used].view()  # a view: callers may make it read-only
        new = np.empty(shape, dtype, order="F")
        if used < MOST:
            kept.append(new)
        return new.view()

    def __reduce__(self) -> tuple:
        """Pickle and copy as an empty workspace."""
        return Workspace, ()


_CURRENT: ContextVar[Workspace | None] = ContextVar("workspace", default=None)


def empty(shape: tuple[int, int], dtype: DTypeLike = np.float64) -> np.ndarray:
    """Return an uninitialised Fortran-ordered matrix, from the current workspace if there is one."""
    is_kept = LEAST_ENTRIES <= shape[0] * shape[1] <= MOST_ENTRIES
    workspace = _CURRENT.get() if is_kept else None
    return np.empty(shape, dtype, order="F") if workspace is None else workspace.next(shape, dtype)
