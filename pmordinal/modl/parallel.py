"""Runs tasks in parallel: if one fails the others go on, and after Ctrl-C finished results are kept."""

from collections.abc import Callable, Mapping
from typing import Any

import joblib
from rich.progress import Progress

from pmordinal.checks import got
from pmordinal.errors import warn
from pmordinal.modl.interrupt import Stop, check, listening


def run_tasks(
    function: Callable[..., Any],
    tasks: Mapping[str, tuple],
    *,
    what: str,
    n_jobs: int | None,
    progressbar: bool,
    partial: bool,
) -> dict[str, Any]:
    """Return ``function(*arguments)`` for each task by name, run in parallel by joblib.

    Threads are preferred, since the compiled code releases the GIL; a backend chosen by
    ``joblib.parallel_config`` (``"loky"``, ``"dask"``, ``"ray"``) is used instead.

    Parameters
    ----------
    function : callable
    tasks : mapping of str to tuple
        Arguments by the name of the task.
    what : str
        What a task is, for messages.
    n_jobs : int or None
        As in joblib.
    progressbar : bool
    partial : bool
        Whether incomplete results are useful: then failed tasks are left out with a warning, and Ctrl-C
        keeps what is done. Otherwise both raise.

    Examples
    --------
    >>> options = {"n_jobs": 1, "progressbar": False, "partial": True}
    >>> run_tasks(abs, {"a": (-1,), "b": (2,)}, what="number", **options)
    {'a': 1, 'b': 2}
    """
    try:
        pool = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered")
        if n_jobs is not None and int(n_jobs) != n_jobs:
            raise TypeError("not a whole number")
        joblib.effective_n_jobs(n_jobs)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"n_jobs must be a whole number other than 0, or None, got {got(n_jobs)}: -1 uses all processors"
        ) from error
    found: dict[str, Any] = {}
    failed: dict[str, Exception] = {}
    stopped = False
    stop = Stop()
    with Progress(disable=not progressbar, transient=True) as progress:
        bar = progress.add_task(what, total=len(tasks))
        jobs = (
            joblib.delayed(_attempt)(function, name, task, stop) for name, task in tasks.items()
        )
        try:
            for name, result, fault in pool(jobs):
                if fault is None:
                    found[name] = result
                else:
                    failed[name] = fault
                progress.advance(bar)
        except KeyboardInterrupt:
            if not (partial and found):
                raise
            stopped = True
        finally:
            stop.set()  # ends threads that still work
    if failed and not (partial and found):
        name, fault = next(iter(failed.items()))
        more = f" ({len(failed)} of {len(tasks)} failed)" if len(tasks) > 1 else ""
        raise RuntimeError(f"{what} {name!r} failed: {fault!r}{more}") from fault
    for name, fault in failed.items():
        warn(f"{what} {name!r} failed and is left out: {fault!r}")
    if stopped:
        warn(f"interrupted: {len(found)} of {len(tasks)} are done and kept ({what})")
    return {name: found[name] for name in tasks if name in found}


def _attempt(
    function: Callable[..., Any], name: str, task: tuple, stop: Stop
) -> tuple[str, Any, Exception | None]:
    try:
        with listening(stop):
            check()
            return name, function(*task), None
    except Exception as error:  # reported with the task's name
        return name, None, error
