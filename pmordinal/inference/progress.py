"""The progress bar of fits and samplers."""

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def progress_bar(show: bool, counted: bool = False) -> Progress:
    """Return a bar for tasks with a field `info`; `counted` shows how many steps are done."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        *([MofNCompleteColumn()] if counted else []),
        TextColumn("{task.fields[info]}"),
        TimeElapsedColumn(),
        transient=True,
        disable=not show,
    )
