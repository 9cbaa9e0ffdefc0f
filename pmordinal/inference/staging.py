"""Fits to many rows in stages: hyperparameters on a few of them first, then on more, a few evaluations on all."""

import time
from dataclasses import replace

import numpy as np

from pmordinal.inference.landscape import Landscape
from pmordinal.inference.optimise import Report, Run, climb

FEW = 8  # evaluations of a stage that starts where an earlier one has ended
NEARLY = 1e-5  # gain for each row below which such a stage ends


def climb_stages(landscape: Landscape, x: np.ndarray, max_evaluations: int, report: Report) -> Run:
    """Maximise on as many rows as the engine says, one after the other, and then on all; see `climb`.

    The rows are random, and those of a stage are among those of the next. After Ctrl-C the best hyperparameters so far
    are kept, whatever the stage.
    """
    problem = landscape.problem
    n = problem.n_rows
    sizes = problem.engine.stages(n)
    if not sizes:
        return climb(landscape, x, max_evaluations, report)
    stages: list[str] = []
    evaluations = iterations = 0
    run: Run | None = None
    for number, size in enumerate((*sizes, n), start=1):
        place = landscape if size == n else landscape.of_rows(problem.stage(size))
        say = _Speaker(report, f"stage {number} of {len(sizes) + 1}, {size} rows", size)
        left = max_evaluations - evaluations
        try:
            if run is None:
                new = climb(place, x, left, say)
            else:
                new = climb(place, run.x, min(FEW, left), say, rounds=1, ftol=NEARLY)
        except KeyboardInterrupt:
            if run is None:
                raise
            return _kept(run, evaluations, iterations, stages, size)
        evaluations, iterations = evaluations + new.evaluations, iterations + new.iterations
        # as many evaluations as it was given are enough for a stage that starts near its end
        was_cut = not new.converged and not new.interrupted
        done = new.converged or (run is not None and was_cut and new.evaluations >= min(FEW, left))
        stages.append(f"{size} rows: {new.evaluations} evaluations, {say.seconds:.1f} s")
        message = new.message
        if done and was_cut:
            message = f"ended after {new.evaluations} evaluations on {size} rows, as planned: near an optimum"
        run = replace(new, converged=done, message=message)
        if new.interrupted:
            return _kept(run, evaluations, iterations, stages, size, is_last=size == n)
        if evaluations >= max_evaluations and size < n:
            message = f"no evaluations left after the stage of {size} rows"
            return _kept(run, evaluations, iterations, stages, size, message=message)
    assert run is not None
    return replace(run, evaluations=evaluations, iterations=iterations, stages=tuple(stages))


def _kept(
    run: Run, evaluations, iterations, stages, size, *, is_last: bool = False, message: str = ""
) -> Run:
    """Return the best so far; what the engine chose among some of the rows is not for all."""
    return replace(
        run,
        converged=False,
        interrupted=not message,
        evaluations=evaluations,
        iterations=iterations,
        stages=tuple(stages),
        engine=run.engine if is_last else None,
        message=message or f"interrupted in the stage of {size} rows: the best so far is kept",
    )


class _Speaker:
    """Reports with the stage before the text, and with rows a second after it."""

    def __init__(self, report: Report, head: str, rows: int):
        self.report, self.head, self.rows = report, head, rows
        self.began, self.count = time.perf_counter(), 0

    @property
    def seconds(self) -> float:
        """Since the stage began."""
        return time.perf_counter() - self.began

    def __call__(self, text: str) -> None:
        """Report a line of text."""
        speed = ""
        if "evaluations" in text:
            self.count += 1
            speed = f", {self.count * self.rows / max(self.seconds, 1e-9):.3g} rows/s"
        self.report(f"{self.head}: {text}{speed}")
