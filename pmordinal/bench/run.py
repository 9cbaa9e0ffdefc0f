"""Runs tasks of the benchmark in parallel; results are saved one by one, and none is computed twice."""

import csv
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import joblib
import pandas as pd

from pmordinal.bench.base import FIELDS, KEY, Task, failure
from pmordinal.bench.methods import lines, missing_package
from pmordinal.bench.suites import SUITES, Suite
from pmordinal.inference.progress import progress_bar

Line = dict[str, Any]
TEXT = ["suite", "set", "method", "chosen", "error"]


def run(
    suite: Suite,
    folder: Path,
    out: Path,
    tasks: Sequence[Task],
    jobs: int = 1,
    *,
    retry: bool = False,
    progressbar: bool = True,
    say: Callable[[str], None] = print,
) -> pd.DataFrame:
    """Run the tasks whose results are not yet in `out`; return all results.

    Parameters
    ----------
    suite : Suite
    folder : Path
        Of the data.
    out : Path
        A CSV file, to which the lines of each task are appended when it is done. Under
        ``joblib.parallel_config(backend=…)`` tasks run where that backend runs them, on a cluster too.
    tasks : sequence of Task
    jobs : int
        Processes.
    retry : bool
        Run again what failed before.
    progressbar : bool
    say : callable
        Told what was skipped and what failed.

    Returns
    -------
    DataFrame
        See `read`.
    """
    done = _repair(out)
    finished = {_key(line) for line in done if not (retry and line["error"])}
    todo = [task for task in _wanted(tasks, say) if task.key not in finished]
    if len(todo) < len(tasks) and finished:
        say(f"{out} holds {len(finished)} lines already: {len(todo)} tasks are left")
    estimate = _Estimate(done, todo, jobs)
    calls = (joblib.delayed(attempt)(suite.name, task, folder) for task in todo)
    count, failed = 0, 0
    with (
        out.open("a", newline="", encoding="utf-8", errors="backslashreplace") as file,
        progress_bar(progressbar, counted=True) as progress,
    ):
        writer = csv.DictWriter(file, FIELDS, restval="")
        if not file.tell():
            writer.writeheader()
            file.flush()
        bar = progress.add_task("bench", total=len(todo), info="")
        try:
            for task, results in joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(
                calls
            ):
                writer.writerows(line for line in results if _key(line) not in finished)
                file.flush()
                finished.update(_key(line) for line in results)
                count += 1
                if results[-1]["error"]:
                    failed += 1
                    say(f"failed: {task}: {results[-1]['error']}")
                progress.update(bar, advance=1, info=estimate.after(task, results[-1]))
        except KeyboardInterrupt:
            say(f"{count} of {len(todo)} tasks are in {out}: the same command goes on from there")
            raise
    if failed:
        say(f"{failed} of {count} tasks failed; --retry runs them again")
    return read(out)


def attempt(suite: str, task: Task, folder: Path) -> tuple[Task, list[Line]]:
    """Run one task; if it fails, return a line of results with the error."""
    try:
        return task, SUITES[suite].run(task, folder)
    except Exception as error:  # of any kind: the other tasks go on
        return task, [failure(task, error)]


def read(path: Path) -> pd.DataFrame:
    """Return the results in a file; if a task was run twice, those of its last run."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    table["converged"] = table["converged"].replace({"True": "1", "False": "0"})
    for name in table.columns.difference(TEXT):
        table[name] = pd.to_numeric(table[name])  # an empty entry becomes NaN
    return table.drop_duplicates(list(KEY), keep="last", ignore_index=True)


def _key(line: Line) -> tuple[str, ...]:
    return tuple(str(line[name]) for name in KEY)


def _wanted(tasks: Sequence[Task], say: Callable[[str], None]) -> list[Task]:
    """Return the tasks whose package is installed and whose results no other task gives as well."""
    methods = list(dict.fromkeys(task.method for task in tasks))
    out = set()
    for name in methods:
        if package := missing_package(name):
            say(f"{name}: skipped, {package} is not installed (pip install {package})")
            out.add(name)
        elif others := [m for m in methods if m != name and name in lines(m)]:
            say(f"{name}: comes with {others[0]}")
            out.add(name)
    return [task for task in tasks if task.method not in out]


def _repair(path: Path) -> list[Line]:
    """Return the lines of a file; a half-written last line, left by a crash, is cut off."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        os.truncate(path, len(whole))  # in place: another process may be appending to it
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        found = list(reader)
    if whole and tuple(reader.fieldnames or ()) != FIELDS:
        raise ValueError(
            f"{path} is not a file of results with these columns: choose another --out"
        )
    return found


class _Estimate:
    """Estimates the time left from what tasks of the same set and method took."""

    def __init__(self, past: Sequence[Line], todo: Sequence[Task], jobs: int) -> None:
        self.left = {task.key: task for task in todo}
        self.jobs = joblib.effective_n_jobs(jobs)
        self.taken: dict[tuple[str, ...], list[float]] = {}
        for line in past:
            self._add(line)

    def _add(self, line: Line) -> None:
        if line["seconds"] != "":
            self.taken.setdefault(_kind(_key(line)), []).append(float(line["seconds"]))

    def after(self, task: Task, line: Line) -> str:
        """Count a task as done and return the time left as text."""
        self._add(line)
        del self.left[task.key]
        mean = {kind: sum(v) / len(v) for kind, v in self.taken.items()}
        usual = sum(mean.values()) / max(len(mean), 1)
        seconds = sum(mean.get(_kind(key), usual) for key in self.left) / self.jobs
        return f"{task.set} {task.method}, about {duration(seconds)} left"


def _kind(key: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields that identify a task, without its partition."""
    return tuple(value for name, value in zip(KEY, key, strict=True) if name != "partition")


def duration(seconds: float) -> str:
    """Return a number of seconds as readable text.

    Examples
    --------
    >>> duration(7.0), duration(200.0), duration(9000.0)
    ('7 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def warn(message: str) -> None:
    """Print a message to stderr, apart from the results."""
    print(f"pmordinal: {message}", file=sys.stderr, flush=True)
