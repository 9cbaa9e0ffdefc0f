"""The report: one file that needs nothing else, with the numbers of the fit in it."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

import pmordinal as pmo
from pmordinal.cli import main
from pmordinal.modl import fit_grid
from pmordinal.report import page, training_table
from pmordinal.report.left_out import left_out_section
from pmordinal.report.terms import terms_section
from pmordinal.results.summary import grid_table, number, parameters, status

VOID = {"meta", "img", "br", "link", "input", "hr"}


@pytest.fixture(autouse=True)
def no_figures_of_others():
    """Close what tests of other files have left open."""
    plt.close("all")


class Reader(HTMLParser):
    """Checks that tags are closed in order, and keeps attributes, cells and text."""

    def __init__(self, html):
        super().__init__()
        self.open, self.seen, self.ids, self.sources, self.text = [], [], [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href"):
                self.sources.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip() and "style" not in self.open:
            self.text.append(data.strip())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    n = 50
    table = pd.DataFrame(
        {"dose <mg>": rng.uniform(0, 10, n).round(1), "clinic": ["A & B", "C"] * 25}
    )
    score = table["dose <mg>"] / 4 + (table["clinic"] == "C") + 0.3 * rng.normal(size=n)
    y = pd.Series(np.array(["low", "mid", "high"])[np.digitize(score, [1.0, 2.2])], name="pain")
    y[::10] = None
    return table, y


@pytest.fixture(scope="module")
def fits(data):
    options = {"categories": ["low", "mid", "high"], "ard": True}
    engines = ("ep", "laplace")
    return {
        e: pmo.fit(pmo.gp_model(*data, "expquad", engine=e, **options), progressbar=False)
        for e in engines
    }


@pytest.fixture(scope="module")
def report(fits, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    source = path.with_name("data.csv")
    source.write_text("a\n1\n")
    pmo.write_report(
        fits["ep"],
        path,
        target="pain",
        others={"laplace": fits["laplace"]},
        failures={"magic": "no <wand>"},
        source=source,
        command="pmordinal fit data.csv --target 'pain'",
    )
    assert sorted(p.name for p in path.parent.iterdir()) == ["data.csv", "report.html"]
    return path.read_text(encoding="utf-8")


def test_page_is_well_formed_and_self_contained(report):
    reader = Reader(report)
    assert reader.ids == "data parameters curves calibration loo engines modl reproduce".split()
    assert all(
        s.startswith("data:image/svg+xml;base64,") or s[1:] in reader.ids for s in reader.sources
    )
    assert not {"script", "link", "iframe", "object"} & set(reader.seen)
    assert "url(" not in report and "@import" not in report
    images = [s for s in reader.sources if s.startswith("data:")]
    assert len(images) in (8, 9)  # relevance, two for each attribute, calibration, engines, grids
    for image in images:
        root = ElementTree.fromstring(base64.b64decode(image.partition(",")[2]))
        assert root.tag.endswith("svg")
        assert sum(1 for e in root.iter() if e.tag.endswith("path")) > 10  # something was drawn
    assert "no <wand>" in " ".join(reader.text)  # and so it was escaped


def test_numbers_are_those_of_the_fit(report, fits):
    fit = fits["ep"]
    text = Reader(report).text
    score = pmo.loo(fit)
    assert "45" in text and f"{fit.log_evidence:.2f}" in text
    assert f"{score.elpd:.1f} ± {score.se:.1f}" in text
    for name, value in parameters(fit).items():
        place = text.index(name.removeprefix("threshold "))
        assert text[place + 1] == number(value)
    P = fit.posterior.left_out_probabilities()
    y = fit.posterior.y
    place = text.index("wrong class")
    assert text[place + 1] == number(round(float(np.mean(P.argmax(1) != y)), 3))
    shares = np.bincount(y) / y.size
    assert text[place + 2] == number(round(1 - shares.max(), 3))  # the baseline beside it
    worst = int(np.argmin(score.elpd_i.values))
    assert number(round(float(P[worst, y[worst]]), 3)) in text
    table = pmo.compare(fits, reference="ep")
    assert f"{100 * table.loc['laplace', 'tv_max']:.1f} %" in text
    assert "color-mix" in report  # the confusion matrix is shaded
    assert "pmo.write_report(fit, 'report.html', target='pain')" in " ".join(text)
    assert "pmordinal fit data.csv --target 'pain'" in text
    assert hashlib.sha256(b"a\n1\n").hexdigest() in text


def test_modl_ranks_the_labels(report, fits, data):
    X, y = data
    seen = y.notna()
    codes = y[seen].map({"low": 0, "mid": 1, "high": 2})
    ranking = pmo.modl.rank_predictors(X[seen], codes, progressbar=False)
    text = Reader(report).text
    start = len(text) - text[::-1].index("MODL ranking")
    place = text.index("dose <mg>", start)
    assert text[place + 1] == number(ranking.loc["dose <mg>", "level"])


def test_training_table_is_the_users(fits, data):
    X, y = data
    table = training_table(fits["ep"])
    expected = X[y.notna()]
    np.testing.assert_allclose(table["dose <mg>"], expected["dose <mg>"], atol=1e-12)
    assert table["clinic"].astype(str).tolist() == expected["clinic"].tolist()
    assert table.index.tolist() == expected.index.tolist()


def test_report_is_repeatable(report, fits, tmp_path):
    pmo.write_report(fits["ep"], tmp_path / "again.html", target="pain")
    again = (tmp_path / "again.html").read_text(encoding="utf-8")
    first, second = (re.findall('src="data:[^"]*"', html) for html in (report, again))
    assert len(first) == len(second) + 1 and set(second) < set(first)  # one is of the other engines
    assert "Only ep was fitted" in again


def test_a_failed_report_leaves_nothing(fits, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        pmo.write_report(fits["ep"], tmp_path / "no" / "report.html")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        pmo.write_report(fits["ep"], tmp_path / "report.html", source=tmp_path / "nowhere.csv")
    assert list(tmp_path.iterdir()) == []


def test_status_says_what_to_do(fits):
    from dataclasses import replace

    fit = fits["ep"]
    assert status(fit) == "converged"
    stopped = replace(fit, status=replace(fit.status, converged=False, message="LIMIT"))
    assert status(stopped).startswith("the optimiser stopped early (LIMIT): try more starts")
    stuck = replace(
        fit.posterior, status=replace(fit.posterior.status, converged=False, message="damp it")
    )
    assert status(replace(fit, posterior=stuck)) == "the engine did not converge: damp it"


def awkward(n, index=None):
    """Return a table with mark-up in its names, a constant and an only level."""
    names = {"a <i>$x$": np.arange(n) / 2, "constant": 4.0, "$g": ["<b>&", "$"] * n}
    table = pd.DataFrame({k: v[:n] if isinstance(v, list) else v for k, v in names.items()}, index)
    return table.assign(only="o")


@pytest.mark.slow
@pytest.mark.parametrize(
    "n", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)]
)
def test_report_of_awkward_data(n, tmp_path):
    index = pd.MultiIndex.from_arrays([np.arange(n) // 2, (["<i>", "b"] * n)[:n]])
    y = pd.Categorical.from_codes(
        np.arange(n) * 3 // n, ["$5 <u>", "", "$\\x$", "never"], ordered=True
    )
    fit = pmo.fit(pmo.gp_model(awkward(n, index), y, "expquad"), progressbar=False)
    path = tmp_path / "report.html"
    pmo.write_report(fit, path, target="predicted", others={"ep": fit})
    reader = Reader(path.read_text(encoding="utf-8"))  # tags that are not escaped would stay open
    said = " ".join(reader.text)
    assert "nan" not in said.lower()
    assert "0, <i>" in said and "a <i>$x$" in said and "$5 <u>" in said
    assert "ep, this fit" in said
    place = reader.text.index("The least expected labels")
    heads = reader.text[place + 1 : place + 6]
    assert heads == ["row", "predicted", "its probability", "predicted", "with probability"]


def test_reports_leave_no_figures_open(fits, tmp_path, monkeypatch):
    mine = plt.figure()
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        monkeypatch.setattr("pmordinal.report.plot_latent", lambda *args, **kwargs: 1 / 0)
        pmo.write_report(fits["ep"], tmp_path / "report.html")
    assert plt.get_fignums() == [mine.number]
    plt.close(mine)


def test_only_fits_have_reports(fits, tmp_path):
    with pytest.raises(TypeError, match="OrdinalFit, got DataTree"):
        pmo.write_report(fits["ep"].to_datatree(draws=2), tmp_path / "report.html")


@pytest.mark.slow
def test_report_of_many_classes(tmp_path):
    x = np.linspace(0.0, 1.0, 84)
    y = pd.Categorical.from_codes(
        np.arange(84) // 2, [f"class {k}" for k in range(42)], ordered=True
    )
    fit = pmo.fit(pmo.gp_model(pd.DataFrame({"x": x}), y, "expquad"), progressbar=False)
    pmo.write_report(fit, tmp_path / "report.html")
    said = " ".join(Reader((tmp_path / "report.html").read_text(encoding="utf-8")).text)
    assert "class 0" in said and "class 41" in said
    assert plt.get_fignums() == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", sorted(pmo.ENGINES))
def test_every_engine_has_a_report(engine, tmp_path):
    pmo.datasets.wine().drop(columns="bottle").to_parquet(tmp_path / "wine.parquet")
    out = tmp_path / "report.html"
    command = ["fit", str(tmp_path / "wine.parquet"), "--target", "rating", "--engine", engine]
    assert main([*command, "--report", str(out), "--engines", "laplace"]) == 0
    text = Reader(out.read_text(encoding="utf-8")).text
    assert f"engine {engine}" in " ".join(text)


def test_numbers_in_tables():
    assert [number(v) for v in (1.0, 0.123456, np.nan, None, True, np.float64(-2.5e-7), 3, "x")] == [
        "1", "0.1235", "", "", "yes", "-2.5e-07", "3", "x",
    ]  # fmt: skip
    frame = pd.DataFrame({"level": [2.0, 1.0], "<b>": ["x", "y"]}, index=["&", "b"])
    html = page.table(frame, bars="level")
    Reader(html)
    widths = [float(w) for w in re.findall(r"width:([\d.]+)rem", html)]
    assert widths[0] == 2 * widths[1] > 0
    assert "&lt;b&gt;" in html and "&amp;" in html


def test_grid_names_span_the_labels():
    x = np.arange(90)
    grid = fit_grid(x, np.repeat([0, 1, 3], 30))
    assert grid_table(grid, ["a", "b", "c", "d"]).columns.tolist() == ["a", "b", "c to d"]
    assert grid_table(grid).shape == (grid.I, grid.J)


def test_a_formula_has_a_section_of_its_terms():
    wine = pmo.datasets.wine()
    model = pmo.formula_model("rating ~ temperature + contact + (1 | judge)", wine)
    fit = pmo.fit(model, optimize=False, progressbar=False)
    section = terms_section(fit)
    reader = Reader("".join(section.parts))
    assert section.key == "terms" and "Effects of temperature" in reader.text
    effects = fit.coefficients()
    rounded = effects.round(3)
    shown = [*effects["level"], *rounded["mean"].map(number), *rounded["upper"].map(number)]
    shown += [number(share) for share in fit.variance_shares()]
    assert set(shown) <= set(reader.text)
    smooth = pmo.formula_model("rating ~ gp(bottle)", wine.astype({"bottle": float}))
    fit = pmo.fit(smooth, optimize=False, progressbar=False)
    assert "Effects" not in "".join(terms_section(fit).parts)


def test_effects_of_many_levels_and_of_slopes_by_group_are_all_there(tmp_path):
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"rater": [f"r{k}" for k in range(30)] * 4, "dose": rng.normal(size=120)})
    table["y"] = np.digitize(table["dose"] + rng.normal(size=120), [-0.5, 0.5])
    model = pmo.formula_model("y ~ dose + (1 | rater) + (dose | rater)", table)
    fit = pmo.fit(model, optimize=False, progressbar=False)
    section = terms_section(fit)
    text = Reader("".join(section.parts)).text
    for title in ("Effects of numbers", "Effects of 1|rater", "Effects of dose|rater"):
        assert title in text
    slopes = fit.coefficients().query("term == 'dose|rater'").set_index("level")["mean"]
    largest = slopes.abs().idxmax()
    start = text.index("Effects of dose|rater")
    assert "The 12 largest of 30." in text[start:]
    assert text[text.index(largest, start) + 1] == number(round(slopes[largest], 3))


def test_effects_of_columns_in_large_units_have_digits():
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"rater": [f"r{k}" for k in range(5)] * 24, "pay": rng.normal(size=120)})
    table["y"] = np.digitize(table["pay"] + rng.normal(size=120), [-0.5, 0.5])
    table["pay"] = 20_000 + 10_000 * table["pay"]
    model = pmo.formula_model("y ~ pay + (pay | rater)", table)
    fit = pmo.fit(model, optimize=False, progressbar=False)
    text = Reader("".join(terms_section(fit).parts)).text
    place = text.index("1,000 of pay")
    effect = fit.coefficients().set_index("term").loc["pay", "mean"] * 1000
    assert text[place + 1] == number(round(effect, 3)) and effect > 0.05
    assert any(one.startswith("Effects of pay|rater, for 1,000") for one in text)


def test_long_names_of_classes_number_the_columns_of_the_confusion_matrix():
    names = ["not at all content", "content", "very much content"]
    y = pd.Categorical.from_codes([0, 0, 1, 1, 2, 2], names, ordered=True)
    fit = pmo.fit(pmo.gp_model(np.arange(6.0), y, "expquad"), optimize=False, progressbar=False)
    text = Reader("".join(left_out_section(fit, pmo.loo(fit), "answer").parts)).text
    place = text.index("answer ↓ predicted →")
    assert text[place + 1 : place + 5] == ["1", "2", "3", "1 · not at all content"]
    assert not plt.get_fignums()


@pytest.mark.slow
def test_a_report_of_a_formula_says_its_units(tmp_path):
    model = pmo.formula_model("rating ~ temperature + (1 | judge)", pmo.datasets.wine())
    fit = pmo.fit(model, optimize=False, progressbar=False)
    pmo.write_report(fit, tmp_path / "report.html", target="rating")
    reader = Reader((tmp_path / "report.html").read_text("utf-8"))
    assert "terms" in reader.ids
    assert any("in units of the noise" in said for said in reader.text)
