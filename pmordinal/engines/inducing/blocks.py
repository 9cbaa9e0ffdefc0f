"""Blocks of rows, and sums over them: the one place that knows where the rows are and who works on them.

A pass is a function of a block and of what all rows share. It returns sums over the rows of the block, by name. Blocks
and the order in which their sums are added do not depend on the number of workers, and so neither does the total.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from pmordinal.likelihood import Rows
from pmordinal.linalg.threads import blas_threads

ROWS = 20_000  # rows of a block, the unit of work that is sent to a worker

type Sums = dict[str, np.ndarray]
type Pass = Callable[["Block", Any], Sums]


@dataclass(frozen=True, eq=False)
class Block:
    """Some of the rows: what a pass knows of the data.

    Attributes
    ----------
    X : ndarray, shape (b, d)
        In the units of the kernel.
    y : ndarray of int, shape (b,)
        Class codes.
    rows : Rows
        Groups and weights of these rows.
    """

    X: np.ndarray
    y: np.ndarray
    rows: Rows

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.X)

    def pieces(self, size: int) -> Iterator["Block"]:
        """Yield the rows in pieces of at most `size`."""
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            yield Block(self.X[part], self.y[part], self.rows.take(part))


def blocks_of(X: np.ndarray, y: np.ndarray, rows: Rows) -> list[Block]:
    """Return rows in memory as blocks, which are views."""
    return list(Block(X, y, rows).pieces(ROWS))


def over_blocks(function: Pass, blocks: Sequence[Block], shared: Any) -> Sums:
    """Return the sums of a pass over all blocks.

    Blocks run one after the other in this process, or on the workers that ``joblib.parallel_config`` asks for.
    """
    total: Sums = {}
    for part in each_block(function, blocks, shared):
        add(total, part)
    return total


def each_block(
    function: Callable[[Block, Any], Any], blocks: Sequence[Block], shared: Any
) -> Iterator[Any]:
    """Yield what a function returns for each block, in their order."""
    if len(blocks) == 1 or joblib.effective_n_jobs(None) == 1:
        yield from (function(block, shared) for block in blocks)
        return
    # Several BLAS threads in each of several workers fight for the same cores.
    with blas_threads(0):
        pool = joblib.Parallel(prefer="threads", return_as="generator")
        yield from pool(joblib.delayed(_alone)(function, block, shared) for block in blocks)


def _alone(function: Callable[[Block, Any], Any], block: Block, shared: Any) -> Any:
    """Run on a worker, with one BLAS thread."""
    with blas_threads(0):
        return function(block, shared)


def add(total: Sums, part: Mapping[str, np.ndarray]) -> None:
    """Add sums to a total, in place; it may be empty at first."""
    for name, value in part.items():
        if name in total:
            total[name] += value
        else:
            total[name] = np.array(value, dtype=float, order="F")
