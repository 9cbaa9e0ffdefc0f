"""Blocks of rows, and sums over them: the one place that knows where the rows are and who works on them.

A pass is a function of a block and of what all rows share. It returns sums over the rows of the block, by name. Blocks
and the order in which their sums are added do not depend on the number of workers, nor on whether the rows are in
memory or spread over a cluster, and so neither does the total.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import joblib
import numpy as np

from pmordinal.likelihood import Rows
from pmordinal.linalg.threads import blas_threads

ROWS = 20_000  # rows of a block, the unit of work that is sent to a worker
FAN = 16  # so many sums are added up at a time, and so many totals again

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


class Elsewhere(Protocol):
    """Blocks that are not in this process."""

    @property
    def n(self) -> int:
        """Number of rows."""

    def check_labels(self, y: np.ndarray) -> None:
        """Raise unless these are the labels of the rows."""

    def sums(self, function: Pass, shared: Any) -> Sums:
        """Return the sums of a pass over all blocks, added up as `over_blocks` does."""


type Blocks = Sequence[Block] | Elsewhere


def rows_in(blocks: Blocks) -> int:
    """Return the number of rows."""
    return sum(map(len, blocks)) if isinstance(blocks, Sequence) else blocks.n


def blocks_of(X: np.ndarray, y: np.ndarray, rows: Rows) -> list[Block]:
    """Return rows in memory as blocks, which are views."""
    return list(Block(X, y, rows).pieces(ROWS))


def over_blocks(function: Pass, blocks: Blocks, shared: Any) -> Sums:
    """Return the sums of a pass over all blocks.

    Blocks in memory run one after the other in this process, or on the workers of ``joblib.parallel_config``.
    """
    if not isinstance(blocks, Sequence):
        return blocks.sums(function, shared)
    return add_up(each_block(function, blocks, shared))


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


def add_up(parts: Iterable[Sums]) -> Sums:
    """Return the total of sums, added up `FAN` at a time, their totals alike, and so on: a tree of a fixed shape."""
    floors: list[list[Sums]] = [[]]  # what waits on each floor of the tree
    for part in parts:
        floors[0].append(part)
        for k, floor in enumerate(floors):
            if len(floor) < FAN:
                break
            if k + 1 == len(floors):
                floors.append([])
            floors[k + 1].append(total_of(floor))
            floor.clear()
    for below, above in pairwise(floors):
        if below:
            above.append(total_of(below))
    return total_of(floors[-1])


def total_of(parts: Iterable[Sums]) -> Sums:
    """Return the total of a few sums, added one after the other."""
    total: Sums = {}
    for part in parts:
        add(total, part)
    return total


def add(total: Sums, part: Mapping[str, np.ndarray]) -> None:
    """Add sums to a total, in place; it may be empty at first."""
    for name, value in part.items():
        if name in total:
            total[name] += value
        else:
            total[name] = np.array(value, dtype=float, order="F")
