"""Means over partitions, and the scores of each, as small tables that say by themselves how and when they were made."""

import io
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from pmordinal.bench.base import SCORES

BY = ["set", "bins", "method"]


def means(results: pd.DataFrame) -> pd.DataFrame:
    """Return means over partitions and their number, one row for each set, number of bins and method.

    Parameters
    ----------
    results : DataFrame
        Lines of the benchmark; those with an error do not count.

    Returns
    -------
    DataFrame
        Columns set, bins, method, partitions, the scores that there are, the standard deviations of both errors,
        ``seconds`` of the CPU, and ``chosen`` where it is the same in all partitions or there is one.
    """
    good = results[results["error"] == ""]
    groups = good.groupby(BY, sort=False)
    scores = _scores(good)
    table = groups[scores].mean()
    table.insert(0, "partitions", groups["partition"].nunique())
    for name in ("zero_one", "absolute", "nlrpd"):
        if name in scores:
            table[f"{name}_sd"] = groups[name].std()
    table["cpu_seconds"] = groups["cpu_seconds"].mean()
    table["chosen"] = groups["chosen"].agg(lambda c: c.iloc[0] if c.nunique() == 1 else "")
    return table.reset_index()


def by_partition(results: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of each partition, sorted: what paired tests need."""
    good = results[results["error"] == ""]
    return good[[*BY, "partition", *_scores(good)]].sort_values([*BY, "partition"])


def _scores(good: pd.DataFrame) -> list[str]:
    """Return the names of the scores that there are."""
    return [name for name in SCORES if good[name].notna().any()]


def as_csv(table: pd.DataFrame, made: Sequence[str]) -> str:
    """Return a table as CSV after comments, which say how it was made; ``pd.read_csv(path, comment="#")`` reads it."""
    text = io.StringIO()
    text.writelines(f"# {' '.join(line.split())}\n" for line in made)
    table.to_csv(text, index=False, float_format="%.5g", lineterminator="\n")
    return text.getvalue()


def history(path: Path, made: str, command: str) -> list[str]:
    """Return dates with versions and commands in turn: those in a file of means, and the last one.

    A folder's results may come from several commands, and its tables hold them all.
    """
    past: list[str] = []
    if path.exists():
        text = path.read_text(encoding="utf-8", errors="replace")
        past = [line[2:] for line in text.splitlines() if line.startswith("# ")]
    runs = [*zip(past[::2], past[1::2], strict=False), (made, " ".join(command.split()))]
    return [line for one in dict.fromkeys(runs) for line in one]
