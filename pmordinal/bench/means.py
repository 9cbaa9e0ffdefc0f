"""Means over partitions as a small table, which says by itself how and when it was made."""

import io

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
    scores = [name for name in SCORES if good[name].notna().any()]
    table = groups[scores].mean()
    table.insert(0, "partitions", groups["partition"].nunique())
    for name in ("zero_one", "absolute", "nlrpd"):
        if name in scores:
            table[f"{name}_sd"] = groups[name].std()
    table["cpu_seconds"] = groups["cpu_seconds"].mean()
    table["chosen"] = groups["chosen"].agg(lambda c: c.iloc[0] if c.nunique() == 1 else "")
    return table.reset_index()


def as_csv(results: pd.DataFrame, made: str, command: str) -> str:
    """Return the means as CSV, after comments with the date, the versions and the command.

    ``pd.read_csv(path, comment="#")`` reads it.
    """
    text = io.StringIO()
    text.write(f"# {made}\n# {' '.join(command.split())}\n")
    means(results).to_csv(text, index=False, float_format="%.5g", lineterminator="\n")
    return text.getvalue()
