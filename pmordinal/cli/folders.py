"""Folders of Parquet files on the command line: read and written by Dask, on a cluster if there is one."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pmordinal.data import tables
from pmordinal.data.levels import show

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit


def is_folder(path: Path) -> bool:
    """Tell whether a path stands for many files: a pattern such as ``folder/*.parquet``, or a folder."""
    return "*" in path.name or path.is_dir()


def scheduler_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option for a cluster."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="Dask cluster to work on, e.g. tcp://host:8786, for a folder of Parquet files",
    )


@contextmanager
def cluster(options: argparse.Namespace) -> Iterator[None]:
    """Work on the cluster of ``--scheduler``, if it is given."""
    if options.scheduler is None:
        yield
        return
    if not is_folder(options.data):
        raise ValueError(
            f"--scheduler is for a folder of Parquet files, such as 'folder/*.parquet', got {options.data}"
        )
    _dask()
    from distributed import Client

    try:
        client = Client(options.scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise OSError(f"there is no Dask scheduler at {options.scheduler}: {error}") from error
    with client:
        yield


def read_frame(path: Path) -> Any:
    """Return the files as one Dask DataFrame."""
    found = sorted(path.parent.glob(path.name)) if "*" in path.name else sorted(path.iterdir())
    files = [str(file) for file in found if file.suffix in tables.PARQUET]
    if not files:
        raise FileNotFoundError(f"there is no Parquet file {path}")
    return _dask().read_parquet(files)


def fit_data(options: argparse.Namespace) -> tuple[Any, Any, list | None]:
    """Return attributes, labels, and the levels if their order was given."""
    if getattr(options, "formula", None) is not None:
        raise ValueError(
            "a formula is for a table in memory: name --target and --features for a folder of Parquet files"
        )
    if options.engine != "inducing":
        raise ValueError(
            f"a folder of Parquet files needs --engine inducing, got {options.engine!r}"
        )
    for name in ("report", "semisupervised"):
        if getattr(options, name):
            raise ValueError(
                f"--{name} is for a table in memory: leave it out for a folder of files"
            )
    frame = read_frame(options.data)
    chosen = options.features or [name for name in frame.columns if name != options.target]
    for name in (options.target, *chosen, *options.drop):
        if name not in frame.columns:
            raise ValueError(
                f"{options.data} has no column {name!r}, it has {show(frame.columns, 12)}"
            )
    chosen = [name for name in chosen if name not in options.drop]
    if not chosen or options.target in chosen:
        raise ValueError(
            "--features and --drop must leave columns to predict from, without the target"
        )
    levels = options.order
    if levels is not None and pd.api.types.is_numeric_dtype(frame[options.target].dtype):
        levels = [float(level) for level in levels]
        levels = [int(level) if level.is_integer() else level for level in levels]
    return frame[chosen], frame[options.target], levels


def predict_files(fit: "OrdinalFit", options: argparse.Namespace) -> None:
    """Write the table with class probabilities and the predicted class as a folder of Parquet files."""
    if options.out is None or options.out.suffix:
        raise ValueError(
            "predictions for a folder of Parquet files go to a folder: name one with --out"
        )
    if options.out.exists():
        raise FileExistsError(f"{options.out} exists already: name another folder with --out")
    frame = read_frame(options.data)
    twice = [name for name in new_columns(fit) if name in frame.columns]
    if twice:
        raise ValueError(f"{options.data} has a column {twice[0]!r} already: rename it")
    found = frame.map_partitions(with_predictions, fit, options.rule, enforce_metadata=False)
    found.to_parquet(str(options.out), write_index=False)


def new_columns(fit: "OrdinalFit") -> list[str]:
    """Return the names of the columns that predictions add."""
    return [*(f"P({name})" for name in fit.labels.class_names), "predicted"]


def with_predictions(table: pd.DataFrame, fit: "OrdinalFit", rule: str) -> pd.DataFrame:
    """Return a partition with its predictions; runs on a worker."""
    import numpy as np

    from pmordinal.results.decisions import decide

    r = fit.labels.n_classes
    probs = fit.predict(table).values if len(table) else np.empty((0, r))
    labels = fit.labels.decode(decide(probs, rule))
    *names, predicted = new_columns(fit)
    extra = {name: probs[:, k] for k, name in enumerate(names)} | {predicted: labels}
    return table.assign(**extra)


def _dask() -> Any:
    try:
        import dask.dataframe
    except ImportError as error:
        raise ModuleNotFoundError(
            "a folder of Parquet files needs Dask: pip install 'pmordinal[dask]'", name="dask"
        ) from error
    return dask.dataframe
