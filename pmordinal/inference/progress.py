"""The progress bar of fits and samplers."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec

from rich import get_console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pmordinal.jit import announced


@contextmanager
def progress_bar(show: bool, counted: bool = False) -> Iterator[Progress]:
    """Show a bar for tasks with a field `info`; `counted` shows how many steps are done.

    The first time on a machine a line above it says that code is compiled. Notebooks need ipywidgets for it.
    """
    if get_console().is_jupyter and find_spec("ipywidgets") is None:
        show = False  # rich would warn in place of a bar
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        *([MofNCompleteColumn()] if counted else []),
        TextColumn("{task.fields[info]}"),
        TimeElapsedColumn(),
        transient=True,
        disable=not show,
    )
    with progress, announced(progress.console.print) if show else nullcontext():
        yield progress
