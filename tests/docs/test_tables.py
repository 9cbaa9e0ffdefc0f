"""The tables behind the documentation's numbers say how they were made, and its pages say what they say."""

import re
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import ttest_rel

from pmordinal.bench.published import T_STATISTICS, errors
from pmordinal.diagnostics.scoring import rank_methods

DOCS = Path(__file__).parents[2] / "docs"
TABLES = sorted((DOCS / "tables").glob("*.csv"))
MADE = re.compile(
    r"# \d{4}-\d\d-\d\d; Python [\d.]+, pmordinal [\d.]+, pymc [\d.]+, numpy .+, scipy .+"
)
COMMAND = re.compile(r"# (pmordinal bench|python benchmarks/\w+\.py) .+")


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_tables_say_how_they_were_made(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    heads = [line for line in lines if line.startswith("#")]
    assert lines[:2] == heads[:2] and len(heads) % 2 == 0
    for made, command in zip(heads[::2], heads[1::2], strict=True):
        assert MADE.fullmatch(made), made
        assert COMMAND.fullmatch(command), command
    assert len(pd.read_csv(path, comment="#")) > 0


def rows_of(page, first):
    """Return the table of a page whose first line begins with a text, as lists of its cells."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(first))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().replace("−", "-") for cell in line.strip("|").split("|")])
    return rows


def paired(table, name, method, error):
    """Return the means without and with unlabelled rows, and the paired t, as the page writes them."""
    lines = table[table["set"] == f"{name}-5%"]
    wide = lines.pivot(index="partition", columns="method", values=error)
    before, after = wide[f"{method}-supervised"], wide[method]
    scale = 100.0 if error == "zero_one" else 1.0
    t = ttest_rel(before, after).statistic
    assert len(wide) == 10
    return f"{before.mean() / scale:.3f} → {after.mean() / scale:.3f}", f"{t:.1f}"


def test_inductive_numbers_are_those_of_the_table():
    table = pd.read_csv(DOCS / "tables" / "inductive_partitions.csv", comment="#")
    published = pd.DataFrame(T_STATISTICS, index=["zero_one", "absolute"])
    shown = rows_of("papers.md", "| set | zero-one error | t (theirs) |")
    assert [row[0] for row in shown] == list(published)
    for name, *cells in shown:
        for error, means, t in zip(published.index, cells[::2], cells[1::2], strict=True):
            found, statistic = paired(table, name, "ssgpor", error)
            assert [means, t] == [found, f"{statistic} ({published.loc[error, name]:.1f})"]


def test_variants_are_those_of_the_table():
    table = pd.read_csv(DOCS / "tables" / "inductive_partitions.csv", comment="#")
    shown = rows_of("papers.md", "| | boston | stocks | abalone | bank | california | census |")
    methods = ("ssgpor", "ssgpor-gamma", "ssgpor-flat", "ssgpor-flat-bound")
    for method, (_, *cells) in zip(methods, shown, strict=True):
        for name, cell in zip(T_STATISTICS, cells, strict=True):
            assert cell == "{} ({})".format(*paired(table, name, method, "absolute"))


def test_true_proportions_are_those_of_the_table():
    table = pd.read_csv(DOCS / "tables" / "stocks.csv", comment="#")
    page = (DOCS / "papers.md").read_text(encoding="utf-8")
    for name in ("stocks", "boston"):
        for error, theirs in zip(("zero_one", "absolute"), T_STATISTICS[name], strict=True):
            means, t = paired(table, name, "ssgpor-flat-bound-gamma", error)
            assert f"| {means} | {t} ({theirs:.1f}) |" in page
    part = table[table["set"] == "stocks-50"]
    means = part.pivot(index="partition", columns="method", values="absolute").mean()
    assert part["partition"].nunique() == 10
    for method, start in {
        "flat-bound": "as published, the",
        "flat-bound-gamma": "and with",
    }.items():
        before, after = means[f"ssgpor-{method}-supervised"], means[f"ssgpor-{method}"]
        assert re.search(rf"{start}[\w ]* {before:.3f} → {after:.3f}", page)


def test_support_vectors_are_those_of_the_table():
    table = pd.read_csv(DOCS / "tables" / "svm.csv", comment="#").set_index(["bins", "set"])
    rows = rows_of("papers.md", "| bins | set | partitions | zero-one error, % | absolute error |")
    assert len(rows) == len(table)
    bins = 0
    for head, name, count, zero_one, absolute in rows:
        bins = int(head or bins)
        ours, theirs = table.loc[bins, name], errors("SVM", bins)[name]
        assert count == str(ours["partitions"])
        assert zero_one == f"{ours['zero_one']:.1f} ({theirs.zero_one:.1f})"
        assert absolute == f"{ours['absolute']:.3f} ({theirs.absolute:.3f})"


def test_california_is_that_of_the_table():
    table = pd.read_csv(DOCS / "tables" / "priors.csv", comment="#")
    table["width"] = table["b4"] - table["b1"]
    by = table.groupby("without")
    names = ["none", "lengthscale", "noise", "thresholds", "lengthscale+thresholds"]
    names += ["lengthscale+noise+thresholds", "recommended", "linear"]
    *rows, published = rows_of("results.md", "| prior left out |")
    assert published[1:3] == ["52.5", "0.700"]
    for name, (_, *cells) in zip(names, rows, strict=True):
        mean, middle = by.mean().loc[name], by.median().loc[name]
        assert by.size()[name] == 20
        assert cells[0] == f"{mean['zero_one']:.1f}" and cells[1] == f"{mean['absolute']:.3f}"
        assert cells[2] == f"{mean['nlp']:.3f}" and cells[3] == f"{mean['log_evidence']:.1f}"
        if name not in ("recommended", "linear"):
            assert cells[4:] == [f"{middle['lengthscale']:.1f}", f"{middle['width']:.2f}"]


@pytest.mark.parametrize(
    ("head", "sets", "names"),
    [
        ("**Table 5.** Average ranks", 9, ["laplace", "ep", "plsor"]),
        ("**Table 2** of the paper", 8, ["laplace", "ep", "ep:loo", "sparse"]),
    ],
)
def test_ranks_are_those_of_the_table(head, sets, names):
    table = pd.read_csv(DOCS / "tables" / "errors.csv", comment="#")
    table = table[table["method"].isin(names)]
    if sets == 8:
        table = table[table["set"] != "pyrimidines"]
    page = (DOCS / "papers.md").read_text(encoding="utf-8")
    lines = [line for line in page[page.index(head) :].splitlines() if line.startswith("|")]
    rows = [line.strip("|").split("|") for line in lines[2 : 3 + len(names)]]
    for j, (bins, error) in enumerate(product((5, 10), ("zero_one", "absolute"))):
        part = table[table["bins"] == bins]
        wide = part.pivot(index="set", columns="method", values=error)
        assert wide.shape == (sets, len(names))
        ranked = rank_methods(wide)
        expected = [*ranked.loc[names, "rank"], ranked.attrs["friedman_F"]]
        shown = [float(row[1 + j].split()[0]) for row in rows]
        assert shown == pytest.approx(expected, abs=0.0051)


def test_levels_of_adult_are_those_of_the_table():
    table = pd.read_csv(DOCS / "tables" / "levels.csv", comment="#")
    table = table[table["method"].str.startswith("level of ")].set_index("method")
    rows = rows_of("papers.md", "| attribute | level (theirs) | size (theirs) |")
    assert len(rows) == 10
    for name, level, size in rows:
        ours = table.loc[f"level of {name.replace('-', '_')}"]
        assert level.split(" (")[0] == f"{ours['level']:.4f}"
        assert size.split(" (")[0] == ours["chosen"]


def test_rank_regression_is_that_of_the_table():
    table = pd.read_csv(DOCS / "tables" / "modl.csv", comment="#").set_index(["set", "method"])
    sets = {"Adult": ("adult-imputed", 5), "Housing": ("boston", 25)}
    rows = rows_of(
        "papers.md", "| | as in the paper | by default | one target partition | theirs |"
    )
    assert len(rows) == 8
    for head, *cells in rows:
        name, kind = head.split(", ")
        for suffix, cell in zip(("-paper", "", "-common"), cells, strict=False):
            at = (sets[name][0], f"modl-{kind.lower()}{suffix}")
            assert (at in table.index) == bool(cell)
            if cell:
                ours = table.loc[at]
                assert ours["partitions"] == sets[name][1]
                assert cell == f"{ours['nlrpd']:.3f} ± {ours['nlrpd_sd']:.3f}"


def test_several_starts_are_those_of_the_table():
    table = pd.read_csv(DOCS / "tables" / "starts.csv", comment="#")
    table = table[table["method"] == "sparse-starts4"]
    page = (DOCS / "papers.md").read_text(encoding="utf-8")
    for part in (table[table["set"] == "stocks"], table[table["set"] != "stocks"]):
        mean = part[["zero_one", "absolute"]].mean()
        assert f"to {mean['zero_one']:.1f} / {mean['absolute']:.3f} on" in page


def test_sizes_of_the_basis_are_those_of_the_table():
    table = pd.read_csv(DOCS / "tables" / "basis.csv", comment="#")
    means = table.groupby("method")[["zero_one", "absolute", "nlp"]].mean()
    names = ["sparse-basis10", "sparse", *(f"sparse-basis{k}" for k in (30, 40, 60, 80))]
    *first, last = (f"{means.loc[name, 'nlp']:.2f}" for name in names)
    page = (DOCS / "papers.md").read_text(encoding="utf-8")
    assert f"NLP {', '.join(first)} and {last} at 10, 20, 30, 40, 60 and 80 %" in page
    assert set(table["partitions"]) == {4} and table["set"].nunique() == 5
    assert list(means[["zero_one", "absolute"]].idxmin()) == ["sparse", "sparse"]


def test_all_training_rows_are_those_of_the_table():
    table = pd.read_csv(DOCS / "tables" / "inductive_full.csv", comment="#")
    names = {"2000": "bank", "3000": "california", "4000": "census"}
    rows = rows_of("papers.md", "| set | method | zero-one error | t | absolute error | t |")
    methods = ["ssgpor", "ssgpor-gamma", "ssgpor-flat-bound"]
    assert len(rows) == 3 * len(methods)
    for (size, name), some in zip(names.items(), zip(*[iter(rows)] * 3, strict=True), strict=True):
        for method, row in zip(methods, some, strict=True):
            assert row[1] == f"`{method}`"
            for error, cells in {"zero_one": row[2:4], "absolute": row[4:6]}.items():
                assert cells == list(paired(table, f"{name}-{size}", method, error))


def test_transductive_is_that_of_the_table():
    table = pd.read_csv(DOCS / "tables" / "ssgpor.csv", comment="#")
    rows = rows_of("results.md", "| set | labels | absolute error | p | the paper's |")
    assert len(rows) == 12
    for name, labels, absolute, p, _, zero_one, nlp in rows:
        part = table[table["set"] == f"{name}-{labels}"]
        wide = part.pivot(index="partition", columns="method")
        assert len(wide) == 20
        cells = {}
        for error in ("absolute", "zero_one", "nlp"):
            cells[error] = [wide[error][m] for m in ("ssgpor-supervised", "ssgpor")]
        found = ttest_rel(*cells["absolute"], alternative="greater").pvalue
        assert p == ("< .001" if found < 0.0005 else f"{found:.3f}"[1:])
        for shown, error, scale, digits in (
            (absolute, "absolute", 1.0, 3),
            (zero_one, "zero_one", 100.0, 3),
            (nlp, "nlp", 1.0, 2),
        ):
            before, after = (f"{c.mean() / scale:.{digits}f}" for c in cells[error])
            assert shown == f"{before} → {after}"


def test_detections_in_noise_are_those_of_the_table():
    table = pd.read_csv(DOCS / "tables" / "noise.csv", comment="#")
    every = table[table["repeat"] == "all"]
    assert list(every["n"]) == [4, 8] and not every["found"].any()
    by = table[table["repeat"] != "all"].groupby("n")["found"]
    share, count = 100.0 * by.mean(), 5000 * by.size()
    assert count[32] == 100_000 and set(count.drop(32)) == {5000}
    page = (DOCS / "papers.md").read_text(encoding="utf-8")
    assert f"found in {share[32]:.2f} % of them" in page
    assert f"it is {share[128]:.2f} % at 128 and {share[1024]:.2f} % at 1024" in page


def test_errors_are_those_of_the_table():
    table = pd.read_csv(DOCS / "tables" / "errors.csv", comment="#")
    table = table.set_index(["bins", "set", "method"])
    methods = {"laplace": "MAP-GPOR", "ep": "EP-GPOR", "ep:loo": "LOO-GPOR", "plsor": "PLSOR"}
    methods |= {"sparse": "sparse GPOR"}
    rows = rows_of("results.md", "| bins | set | `laplace` (MAP-GPOR) |")
    assert len(rows) == 18
    bins = 0
    for head, title, *cells in rows:
        bins, name = int(head or bins), title.split()[0]
        for (method, column), cell in zip(methods.items(), cells, strict=True):
            ours, theirs = table.loc[bins, name, method], errors(column, bins)
            count = int(ours["partitions"])
            assert title == (name if count == 20 else f"{name} [{count}]")
            shown = f"{ours['zero_one']:.1f} / {ours['absolute']:.2f}"
            if name in theirs:
                other = theirs[name]
                shown += f" ({other.zero_one:.1f} / {other.absolute:.2f})"
            assert cell == shown
