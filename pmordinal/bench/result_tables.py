"""Tables of the benchmark's results: ours beside the papers', ranks, further scores, and an ablation."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
from scipy.stats import ttest_rel

from pmordinal.bench import published
from pmordinal.bench.means import as_csv, by_partition, history, means
from pmordinal.bench.methods import ABLATION, SEMISUPERVISED
from pmordinal.data import files
from pmordinal.diagnostics.scoring import rank_methods
from pmordinal.report import page

ERRORS = {"zero_one": "zero-one error, %", "absolute": "absolute error"}
# For each error, the column with the decision rule that minimises it.
RULES = {"zero_one": "zero_one", "absolute": "absolute_median"}
# methods that are scored by the decision rule that suits the error
OWN_RULE = ABLATION[-3:]


@dataclass(frozen=True)
class Table:
    """A table of the report with its title and a note."""

    title: str
    note: str
    frame: pd.DataFrame


def tables_of(suite: str, results: pd.DataFrame) -> list[Table]:
    """Return the tables of a suite's results."""
    good = results[results["error"] == ""]
    if good.empty:
        return []
    if suite == "modl":
        return [*_modl(good), *_failed(results)]
    if suite in ("ssgpor", "inductive"):
        return [*_semisupervised(good), _scores(good), *_failed(results)]
    found = [table for bins in sorted(good["bins"].unique()) for table in _errors(good, bins)]
    steps = paired(good[good["method"].isin(ABLATION)])
    both = paired(good)
    if both.empty:
        nothing = "No partition has been run by every method."
        return [
            *found,
            Table("Over all sets", nothing, pd.DataFrame()),
            *_ablation(steps),
            *_failed(results),
        ]
    return [
        *found,
        _overall(both),
        *_ranks(both),
        _scores(both),
        *_ablation(steps),
        *_failed(results),
    ]


def paired(results: pd.DataFrame) -> pd.DataFrame:
    """Return the results on those partitions that all methods have run on."""
    methods = results.groupby("bins")["method"].transform("nunique")
    there = results.groupby(["bins", "set", "partition"])["method"].transform("nunique")
    return results[there == methods]


def error_of(results: pd.DataFrame, error: str) -> pd.Series:
    """Return an error by the decision rule that a method is used with: `best` uses the median for absolute error."""
    own = results["method"].isin(OWN_RULE)
    return results[error].where(~own, results[RULES[error]])


def _means(results: pd.DataFrame, values: pd.Series) -> pd.DataFrame:
    """Return means over partitions by set and method, in the order in which they were run."""
    frame = results.assign(value=values)
    return frame.pivot_table(index="set", columns="method", values="value", sort=False)


def _errors(results: pd.DataFrame, bins: int) -> list[Table]:
    """Return our errors beside the papers', one table for each error."""
    part = results[results["bins"] == bins]
    found = []
    for error, title in ERRORS.items():
        digits = 2 if error == "zero_one" else 3
        grouped = part.assign(value=error_of(part, error)).groupby(["method", "set"], sort=False)
        stats = grouped["value"].agg(["mean", "std", "count"])
        frame = pd.DataFrame(index=pd.Index(part["set"].unique(), name="set"))
        counts = part.groupby(["set", "method"])["partition"].nunique().groupby("set")
        least, most = counts.min().astype(str), counts.max().astype(str)
        frame["partitions"] = least.where(least == most, least + "–" + most)
        for method in part["method"].unique():
            column = published.column(method)
            theirs = published.errors(column, bins) if column else {}
            head = f"{method} ({column})" if column else method
            for name, (mean, sd, n) in stats.loc[method].iterrows():
                cell = spread(mean, sd, digits)
                if name in theirs:
                    other, other_sd = (
                        getattr(theirs[name], error),
                        getattr(theirs[name], f"{error}_sd"),
                    )
                    gap = in_standard_errors(mean, sd, n, other, other_sd)
                    cell += f" ({spread(other, other_sd, digits)}; {gap:+.1f})"
                frame.loc[name, head] = cell
        note = (
            "Mean ± standard deviation over partitions; in brackets the paper's, and the difference in standard "
            "errors, as between independent means (positive: ours is larger)."
        )
        found.append(Table(f"{bins} bins: {title}", note, frame.fillna("")))
    return found


def spread(mean: float, sd: float, digits: int) -> str:
    """Return a mean as text, with its standard deviation if there is one.

    Examples
    --------
    >>> spread(1.234, 0.05, 2), spread(1.234, float("nan"), 2)
    ('1.23 ± 0.05', '1.23')
    """
    return f"{mean:.{digits}f}" + (f" ± {sd:.{digits}f}" if np.isfinite(sd) else "")


def in_standard_errors(mean: float, sd: float, n: int, other: float, other_sd: float) -> float:
    """Return ours minus the published mean in units of its standard error; theirs is over 20 partitions."""
    squared = (sd**2 if n > 1 else other_sd**2) / n + other_sd**2 / published.PARTITIONS
    return (mean - other) / np.sqrt(squared) if squared > 0 else np.nan


def _overall(results: pd.DataFrame) -> Table:
    """Return means over sets, beside the published columns on the same sets."""
    columns: dict[str, dict[str, float]] = {}
    sets = {}
    for bins in sorted(results["bins"].unique()):
        part = results[results["bins"] == bins]
        for error, title in ERRORS.items():
            wide = _means(part, error_of(part, error))
            head = f"{bins} bins, {title}"
            columns[head] = {str(k): float(v) for k, v in wide.mean().items()}
            plain = _means(part, part[error]).mean()
            columns[head] |= {f"{k}, most probable class": plain[k] for k in OWN_RULE if k in plain}
            sets[bins] = list(wide.index)
            for name in published.columns():
                theirs = published.errors(name, bins)
                if all(s in theirs for s in wide.index):
                    mean = np.mean([getattr(theirs[s], error) for s in wide.index])
                    columns[head][f"published: {name}"] = float(mean)
    frame = pd.DataFrame(columns).rename_axis("method")
    used = "; ".join(f"{bins} bins: {', '.join(names)}" for bins, names in sets.items())
    note = (
        f"Means over the partitions that every method has, then over sets ({used}). {', '.join(OWN_RULE)} take the "
        "most probable class for the zero-one error and the median class for the absolute one, unless said otherwise; "
        "the others the former for both."
    )
    return Table("Over all sets", note, _rounded(frame, 3))


def _ranks(results: pd.DataFrame) -> list[Table]:
    """Return average ranks and the Friedman F: those of a paper's methods beside its own, then of all methods."""
    found = []
    for suite, theirs in published.RANKS.items():
        ours: dict[str, str] = {}  # by column
        for method in map(str, results["method"].unique()):
            ours.setdefault(published.column(method) or method, method)
        if not set(theirs) - {"F"} <= set(ours):
            continue
        methods = [ours[column] for column in theirs if column != "F"]
        part = results[results["method"].isin(methods)]
        found += _rank_table(f"Ranks, the methods of the suite {suite}", part, theirs)
    if not found or results["method"].nunique() > max(map(len, published.RANKS.values())):
        found += _rank_table("Ranks, all methods", results, {})
    return found


def _rank_table(
    title: str, results: pd.DataFrame, theirs: dict[str, tuple[float, float, float, float]]
) -> list[Table]:
    shown: dict[str, dict[str, float]] = {}
    for bins in sorted(results["bins"].unique()):
        part = results[results["bins"] == bins]
        sets = [published.errors(name, bins) for name in theirs if name != "F"]
        if sets:  # on the sets of the paper
            part = part[part["set"].isin(set.intersection(*map(set, sets)))]
        for j, error in enumerate(ERRORS):
            wide = _means(part, error_of(part, error))
            if wide.shape[0] < 2 or wide.shape[1] < 2:
                continue
            ranked = rank_methods(wide.round(9))  # equal means are a tie
            head = f"{bins} bins, {ERRORS[error]}"
            shown[head] = {**ranked["rank"], "Friedman F": ranked.attrs["friedman_F"]}
            shown[head]["p"] = ranked.attrs["p"]
            for name, values in theirs.items():
                shown[head][f"published: {name}"] = values[2 * (bins == 10) + j]
    if not shown:
        return []
    note = "Average rank of these means over sets, the best is 1; F of Iman and Davenport tests whether all are alike."
    return [Table(title, note, _rounded(pd.DataFrame(shown).rename_axis("method"), 3))]


def _scores(results: pd.DataFrame) -> Table:
    """Return scores that the papers do not report, as means over sets."""
    names = ("nlp", "rps", "calibration", "seconds", "cpu_seconds", "evaluations", "converged")
    by_set = results.groupby(["bins", "method", "set"], sort=False)[list(names)].mean()
    frame = by_set.groupby(level=["bins", "method"], sort=False).mean()
    frame.index = pd.Index(
        [f"{bins}: {method}" for bins, method in frame.index], name="bins: method"
    )
    note = (
        "Means over partitions, then over sets. nlp: minus the log probability of the truth; rps: ranked probability "
        "score; calibration: mean gap between predicted and observed frequency of y ≤ k, ten bins of equal width, all "
        "k together. Infinite: a class that happened had been given probability zero."
    )
    return Table("Further scores", note, _rounded(frame.astype(float), 3))


def _ablation(results: pd.DataFrame) -> list[Table]:
    """Return both errors by both decision rules, for the methods that `best` is made of."""
    if "best" not in set(results["method"]):
        return []
    names = ["zero_one", "zero_one_median", "absolute", "absolute_median", "nlp", "rps"]
    by_set = results.groupby(["bins", "method", "set"], sort=False)[names].mean()
    frame = by_set.groupby(level=["bins", "method"]).mean()
    order = [(bins, m) for bins in sorted(results["bins"].unique()) for m in ABLATION]
    frame = frame.loc[[key for key in order if key in frame.index]]
    frame.index = pd.Index([f"{bins}: {m}" for bins, m in frame.index], name="bins: method")
    note = (
        "Means over partitions that have all steps, then over sets: one covariance; the candidate with the best "
        "leave-one-out score on the training rows; the plain mean of the candidates; and the mixture with weights from "
        "leave-one-out. Errors of the most probable class, and of the median class."
    )
    return [Table("Steps to the recommended default", note, _rounded(frame, 3))]


def _semisupervised(results: pd.DataFrame) -> list[Table]:
    """Return supervised and semi-supervised errors with a paired t-test, beside the paper's."""
    found = []
    for k, (error, title) in enumerate(ERRORS.items()):
        scale = 100.0 if error == "zero_one" else 1.0
        lines = {}
        for name in results["set"].unique():
            part = results[results["set"] == name]
            wide = part.pivot_table(index="partition", columns="method", values=error) / scale
            for method in (m for m in SEMISUPERVISED if m in wide):
                names = {f"{method}-supervised": "supervised", method: "semi-supervised"}
                if f"{method}-labels" in wide:
                    names[f"{method}-labels"] = "final labels"
                ours = wide[list(names)].dropna().rename(columns=names)
                line = {"partitions": len(ours), **ours.mean()}
                before, after = ours["supervised"], ours["semi-supervised"]
                if len(ours) > 1 and (before - after).std() > 1e-12:
                    test = ttest_rel(before, after, alternative="greater")
                    line |= {"t": test.statistic, "p": test.pvalue}
                for column, values in published.SEMISUPERVISED.get(name, {}).items():
                    line[f"published {column}"] = values[k]
                base, *labels = name.split("-")
                if labels[-1:] in (["50"], ["5%"]) and base in published.T_STATISTICS:
                    line["published t"] = published.T_STATISTICS[base][k]
                lines[f"{name}: {method}"] = line
        frame = pd.DataFrame(lines).T.rename_axis("set: method")
        note = (
            "Errors as fractions of the new rows: the model without and with them in training, and the labels that the "
            "latter ends with; t and p of the one-sided paired test of the first two. The published t is that of the "
            "inductive setting at its smallest fraction of labels."
        )
        if len(frame):
            counts = [str(int(n)) for n in frame["partitions"]]
            frame = _rounded(frame, 4).assign(partitions=counts)
            found.append(Table(f"Unlabelled rows: {title.removesuffix(', %')}", note, frame))
    return found


def _modl(results: pd.DataFrame) -> list[Table]:
    """Return the NLRPD of every estimator, and the attributes' levels, beside the paper's."""
    scored = results.dropna(subset="nlrpd")
    lines = {}
    for key, part in scored.groupby(["set", "method"], sort=False):
        name, method = map(str, cast(tuple, key))
        kind = method.split("-")[1]
        theirs = published.NLRPD.get(name, {}).get(kind)
        mean, sd = part["nlrpd"].mean(), part["nlrpd"].std()
        lines[f"{name}: {method}"] = {
            "folds": str(len(part)),
            "NLRPD": spread(mean, sd, 3),
            "published": spread(*theirs, 3) if theirs else "",
            "seconds": f"{part['seconds'].mean():.2f}",
        }
    found = [
        Table(
            "MODL: NLRPD",
            "Mean ± sd over folds; `-paper`: its smoothing and selection; `-common`: one target partition.",
            pd.DataFrame(lines).T,
        )
    ]
    levels = results[results["method"].str.startswith("level of ")]
    for name in map(str, levels["set"].unique()):
        part = levels[levels["set"] == name]
        one = part[part["partition"] == part["partition"].min()].set_index("method")
        first = one["level"]
        means = part.groupby("method")["level"].mean().sort_values(ascending=False)
        frame = pd.DataFrame({"first fold": first, "mean": means}).loc[means.index]
        frame.index = pd.Index([k.removeprefix("level of ") for k in frame.index], name="attribute")
        frame["published, first fold"] = pd.Series(published.LEVELS.get(name, {}), dtype=float)
        sizes = pd.Series(published.SIZES.get(name, {}), dtype=str)
        frame = _rounded(frame, 5)
        frame["size"] = one.set_axis(one.index.str.removeprefix("level of "))["chosen"]
        frame["published size"] = sizes.reindex(frame.index).fillna("")
        note = (
            "Share of the code length that an attribute saves, and parts I of the attribute × J of the target on the "
            "first fold; the paper's folds are not ours."
        )
        found.append(Table(f"MODL: levels of {name}", note, frame))
    return found


def _failed(results: pd.DataFrame) -> list[Table]:
    bad = results[results["error"] != ""]
    if bad.empty:
        return []
    frame = bad[["bins", "partition", "method", "error"]].astype(str)
    frame.index = pd.Index(bad["set"], name="set")
    return [Table("Failed tasks", "They are missing above.", frame)]


def _rounded(frame: pd.DataFrame, digits: int) -> pd.DataFrame:
    """Return numbers as text; missing ones are left empty."""
    return frame.map(lambda v: "" if pd.isna(v) else f"{v:.{digits}f}")


def markdown(frame: pd.DataFrame) -> str:
    """Return a table as Markdown, its index as the first column.

    Examples
    --------
    >>> print(markdown(pd.DataFrame({"a": ["1"]}, index=pd.Index(["x"], name="row"))))
    | row | a |
    |---|---|
    | x | 1 |
    """
    head = [str(frame.index.name or ""), *map(str, frame.columns)]
    rows = [
        [str(key), *map(str, row)] for key, row in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    lines = [head, ["---"] * len(head), *rows]
    text = [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]
    text[1] = text[1].replace(" ", "")
    return "\n".join(text)


def write(suite: str, results: pd.DataFrame, folder: Path, command: str) -> Sequence[Path]:
    """Write the report, the means and the scores of each partition, and return the paths.

    They are ``SUITE.md`` and ``SUITE.html``, ``SUITE_means.csv`` and ``SUITE_partitions.csv``.
    """
    found = tables_of(suite, results)
    names = ("pmordinal", "pymc", "numpy", "scipy")
    versions = ", ".join(
        [f"Python {platform.python_version()}", *(f"{n} {version(n)}" for n in names)]
    )
    made = f"{date.today()}; {versions}"
    title = f"Bench: {suite}"
    text = [f"# {title}", f"{made}.", f"```\n{command}\n```"]
    for table in found:
        text += [f"## {table.title}", table.note, markdown(table.frame)]
    sections = [
        page.Section(f"t{i}", t.title, (page.text(t.note, "soft"), page.table(t.frame)))
        for i, t in enumerate(found)
    ]
    sections.append(page.Section("command", "Command", (page.code(command),)))
    counts = {"sets": str(results["set"].nunique()), "lines": str(len(results))}
    runs = history(folder / f"{suite}_means.csv", made, command)
    contents = {
        ".md": "\n\n".join(text) + "\n",
        ".html": page.whole_page(title, made, counts, sections),
        "_means.csv": as_csv(means(results), runs),
        "_partitions.csv": as_csv(by_partition(results), runs),
    }
    paths = []
    for suffix, content in contents.items():
        path = folder / f"{suite}{suffix}"
        with files.whole(path) as temporary:
            temporary.write_text(content, encoding="utf-8", errors="backslashreplace")
        paths.append(path)
    return paths
