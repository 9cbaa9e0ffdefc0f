"""Blocks of rows that are spread over Dask: a pass is one task for each block, and a tree of tasks that add up."""

import warnings
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np

from pmordinal.engines.inducing.blocks import FAN, Block, Pass, Sums, total_of
from pmordinal.errors import located
from pmordinal.likelihood.rows import ALIKE
from pmordinal.linalg.threads import blas_threads


class SpreadBlocks:
    """Blocks on the workers of the active Dask client, or of Dask's default scheduler.

    What all rows share travels as one task of the graph, so that it is there again after a worker was lost. Workers
    keep nothing between passes but the rows.

    Parameters
    ----------
    parts : sequence of Delayed
        Pairs of rows in the units of the kernel and class codes.
    lengths : sequence of int
        Their numbers of rows.
    y : ndarray of int
        Class codes of the sample that is in memory.
    """

    def __init__(self, parts: Sequence[Any], lengths: Sequence[int], y: np.ndarray) -> None:
        self.parts = [part for part, length in zip(parts, lengths, strict=True) if length]
        self.lengths = [length for length in lengths if length]
        self.y = y

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(self.lengths)

    def check_labels(self, y: np.ndarray) -> None:
        """Raise unless these are the labels of the sample: others cannot reach the rows."""
        if not np.array_equal(y, self.y):
            raise ValueError(
                "the rows of this model are spread over Dask, with the labels that they were read with: build another "
                "model for other labels"
            )

    def sums(self, function: Pass, shared: Any) -> Sums:
        """Return the sums of a pass over all blocks, added up as `add_up` does."""
        import dask

        box = dask.delayed(shared, name=f"shared-{uuid4().hex}", traverse=False)
        run, fold = dask.delayed(run_pass, pure=False), dask.delayed(total_of, pure=False)
        parts, start = [], 0
        for part, length in zip(self.parts, self.lengths, strict=True):
            parts.append(run(function, part, box, start))
            start += length
        while True:
            parts = [fold(parts[k : k + FAN]) for k in range(0, len(parts), FAN)]
            if len(parts) == 1:
                return _computed(parts[0])


def run_pass(function: Pass, part: tuple[np.ndarray, np.ndarray], shared: Any, start: int) -> Sums:
    """Return the sums of one block; runs on a worker, with one BLAS thread."""
    with located(f"rows {start} to {start + len(part[0]) - 1}"), blas_threads(0):
        return function(Block(*part, ALIKE), shared)


def _computed(total: Any) -> Sums:
    with warnings.catch_warnings():
        # Dask advises to scatter what rows share; that would be lost with a worker
        warnings.filterwarnings("ignore", message="Sending large graph")
        try:
            return total.compute()
        except Exception as error:
            if type(error).__name__ != "KilledWorker":
                raise
            raise RuntimeError(
                f"workers were lost, again and again, in one block of rows, perhaps for lack of memory: {error}"
            ) from error
