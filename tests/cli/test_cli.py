"""The command line: what it writes, what it prints, and that every error is one line."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import pmordinal as pmo
from pmordinal.cli import COMMANDS, main
from pmordinal.data import tables
from pmordinal.data.coding import Column


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table of pain, a few rows of it unlabelled, and its fit."""
    path = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(3)
    n = 60
    age, clinic = rng.uniform(20, 80, n).round(), rng.choice(["east", "None"], n)
    score = age / 20 + (clinic == "east") + 0.3 * rng.normal(size=n)
    pain = np.array(["None", "mild", "severe"], object)[np.digitize(score, [2.0, 3.5])]
    pain[::12] = ""
    table = pd.DataFrame({"id": [f"p{i}" for i in range(n)], "age": age, "pain": pain})
    table["clinic"] = np.where(clinic == "east", "east", "west")
    table.to_csv(path / "pain.csv", index=False)
    order = ["--order", "None,mild,severe", "--drop", "id", "--quiet"]
    data = [str(path / "pain.csv"), "--target", "pain"]
    assert main(["fit", *data, *order, "--out", str(path / "fit.nc")]) == 0
    return path


@pytest.fixture(scope="module")
def fitted(folder):
    return pmo.load(folder / "fit.nc")


def labelled(folder):
    table = pd.read_csv(folder / "pain.csv", keep_default_na=False)
    return table, table["pain"].replace("", None)


def fails(capsys, *arguments, code=1):
    """Run a command that must fail, and return its one line."""
    try:
        got = main([str(a) for a in arguments])
    except SystemExit as stop:
        got = stop.code
    captured = capsys.readouterr()
    assert got == code
    assert captured.err.count("\n") == 1 and captured.err.startswith("pmordinal")
    return captured.err


def test_fit_is_the_fit_of_the_package(folder, fitted):
    table, y = labelled(folder)
    X = table[["age", "clinic"]]
    model = pmo.gp_model(X, y, categories=["None", "mild", "severe"])  # the default, a sum of terms
    direct = pmo.fit(model, progressbar=False)
    assert set(fitted.point) == set(direct.point)
    assert fitted.labels.class_names == ["None", "mild", "severe"]
    assert len(fitted.unlabeled) == 5  # an empty label is unlabelled, "None" is a level
    np.testing.assert_allclose(fitted.thresholds, direct.thresholds, rtol=1e-10)
    np.testing.assert_allclose(fitted.predict(X), direct.predict(X), rtol=1e-8)


def test_fit_prints_a_summary(folder, capsys):
    data = [str(folder / "pain.csv"), "--target", "pain", "--features", "age"]
    options = ["--order", "None,mild,severe", "--engine", "laplace", "--kernel", "ExpQuad", "--ard"]
    assert main(["fit", *data, *options]) == 0
    printed = capsys.readouterr().out
    for piece in ("threshold None|mild", "noise", "lengthscale[age]", "log evidence", "55 labelled, 5 unlabelled",
                  "leave-one-out", "converged"):  # fmt: skip
        assert piece in printed
    # Nothing else was written.
    assert sorted(p.name for p in folder.iterdir()) == ["fit.nc", "pain.csv"]


def test_words_taken_for_missing_are_told(folder, capsys):
    data = [str(folder / "pain.csv"), "--target", "pain", "--features", "age"]
    assert main(["fit", *data, "--order", "mild,severe", "--engine", "laplace"]) == 0
    table = labelled(folder)[0]
    count = int((table["pain"] == "None").sum())
    assert f"warning: {count} label(s) 'None' of 'pain' count as missing" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "parquet"])
@pytest.mark.parametrize("rule", ["mode", "median"])
def test_predict_adds_columns_block_by_block(folder, fitted, tmp_path, suffix, rule):
    table, _ = labelled(folder)
    new, out = tmp_path / f"new.{suffix}", tmp_path / f"out.{suffix}"
    tables.write([table], new)
    command = ["predict", str(folder / "fit.nc"), str(new), "--out", str(out)]
    assert main([*command, "--block", "7", "--rule", rule]) == 0
    got = tables.read(out, labels=["None"])
    assert list(got.columns) == [*table.columns, "P(None)", "P(mild)", "P(severe)", "predicted"]
    expected = fitted.predict(table)
    np.testing.assert_allclose(got[[f"P({k})" for k in ("None", "mild", "severe")]], expected)
    predicted = fitted.predict(table, kind="class", rule=rule)
    assert got["predicted"].astype(str).tolist() == [str(k) for k in predicted]
    np.testing.assert_array_equal(got["age"], table["age"])
    assert {p.name for p in tmp_path.iterdir()} == {new.name, out.name}


def test_predict_prints_the_entries_as_they_were(folder, tmp_path, capsys):
    (tmp_path / "new.csv").write_text(
        'code,clinic,age,note\n007,east,40.50,"a, b"\n008,west,1e1,NA\n'
    )
    assert main(["predict", str(folder / "fit.nc"), str(tmp_path / "new.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith('007,east,40.50,"a, b",')
    assert lines[2].startswith("008,west,1e1,NA,")


def test_failed_predictions_leave_no_file(folder, tmp_path, capsys):
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("age,clinic\n40,east\n50,west\n,east\n")
    line = fails(capsys, "predict", folder / "fit.nc", new, "--out", out, "--block", 1)
    assert "rows from 2 on: column 'age' has 1 missing value" in line
    assert [p.name for p in tmp_path.iterdir()] == ["new.csv"]


def test_compare_sets_engines_side_by_side(folder, tmp_path, capsys):
    data = [str(folder / "pain.csv"), "--target", "pain", "--order", "None,mild,severe"]
    out = tmp_path / "table.csv"
    options = [
        "--features",
        "age",
        "--engines",
        "laplace,ep",
        "--reference",
        "ep",
        "--out",
        str(out),
    ]
    assert main(["compare", *data, *options]) == 0
    printed = capsys.readouterr().out
    assert "compared with ep" in printed and "verdict" in printed and "elpd_loo" not in printed
    table = pd.read_csv(out).set_index("result")
    assert table.index.tolist() == ["laplace", "ep"]
    assert table.loc["ep", "tv_max"] == 0.0 < table.loc["laplace", "tv_max"]


def test_modl_ranks_and_shows_grids(tmp_path, capsys):
    x = np.arange(200)
    table = pd.DataFrame({"noise": x % 3, "useful": x, "grade": np.array(["C", "B", "A"])[x // 67]})
    table.to_csv(tmp_path / "grades.csv", index=False)
    out = tmp_path / "ranking.csv"
    command = ["modl", str(tmp_path / "grades.csv"), "--target", "grade", "--order", "C,B,A"]
    assert main([*command, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    ranking = pd.read_csv(out).set_index("predictor")
    expected = pmo.modl.rank_predictors(table[["noise", "useful"]], x // 67, progressbar=False)
    assert ranking.index.tolist() == ["useful", "noise"]
    np.testing.assert_allclose(ranking["level"], expected["level"])
    assert "(-inf, 66.5)" in printed
    assert [word for word in ("C", "B", "A") if f" {word} " in printed] == ["C", "B", "A"]
    assert "noise: level" not in printed  # it says nothing, so there is no grid to show
    # Numbers need no order.
    page = tmp_path / "page.html"
    command = ["modl", str(tmp_path / "grades.csv"), "--target", "useful"]
    assert main([*command, "--report", str(page)]) == 0
    html = page.read_text("utf-8")
    assert "What says anything about useful?" in html and html.count("<img") == 1
    assert main([*command, "--report", str(tmp_path / "page.pdf")]) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "nowhere.csv", "--target", "a"], 1, "there is no file nowhere.csv"),
        (["fit", "DATA", "--target", "pian"], 1, "has no column 'pian', it has 'id', 'age', 'pain'"),
        (["fit", "DATA", "--target", "pain"], 1, "pass --order LOW,...,HIGH from lowest to highest"),
        (["fit", "DATA", "--target", "id", "--order", "1,2"], 1, "labels that are not in categories"),
        (["fit", "DATA", "--target", "age", "--order", "old,young"], 1, "which holds numbers"),
        (["modl", "DATA", "--target", "age", "--features", "ages"], 1, "no column 'ages'"),
        (["modl", "DATA", "--target", "age", "--features", "age"], 1, "is among the features"),
        (["fit", "DATA", "--target", "pain", "--out", "fit.txt"], 1, "must end in .nc or .zarr"),
        (["fit", "DATA", "--target", "pain", "--report", "no/r.html"], 1, "there is no folder no"),
        (["fit", "DATA", "--target", "pain", "--engine", "magic"], 1, "unknown engine 'magic'"),
        (["fit", "DATA"], 2, "required: --target (see pmordinal fit --help)"),
        (["fit", "DATA", "--target", "pain", "--kernel", "magic"], 2, "choose from"),
        (["predict", "nowhere.nc", "DATA"], 1, "there is no file nowhere.nc"),
        (["predict", "FIT", "OTHER"], 1, "lacks the column(s) 'age', 'clinic' that the fit needs"),
        (["predict", "FIT", "DATA", "--out", "x.docx"], 1, "its name must end in .csv"),
        (["predict", "FIT", "DATA", "--block", "0"], 1, "--block must be an integer of at least 1"),
        (["predict", "FIT", "WORDS"], 1, "column 'age' must hold numbers, got 'old'"),
        (["predict", "FIT", "TWICE"], 1, "has a column 'predicted' already"),
        (["compare", "DATA", "--target", "pain", "--reference", "nuts"], 1, "--reference must be"),
        (["modl", "DATA", "--target", "pain"], 1, "pass --order LOW,...,HIGH"),
        (["modl", "EMPTY", "--target", "pain"], 1, "cannot be read as a table"),
        (["modl", "HEAD", "--target", "pain"], 1, "has no rows"),
        (["fit", "DATA", "--target", "pain", "--order", "None\nmild"], 2, "a list must be one line"),
        (["fit", "DATA", "--target", "pain", "--out", "s3://b/fit.zarr"], 2, "s3://b/fit.zarr is an address"),
        (["fit", "DATA", "--target", "pain", "--out", "DIR.nc"], 1, "DIR.nc: it is a folder"),
        (["fit", "LABELS", "--target", "pain"], 1, "more than one column 'pain'"),
        (["fit", "GZIP.csv.gz", "--target", "pain"], 1, "GZIP.csv.gz cannot be read as a table: Not a gzipped file"),
        (["predict", "FIT", "COMMAS"], 1, "line 2 has 3 entries, the header has 2"),
        (["predict", "FIT", "HEAD2"], 1, "has no rows"),
        (["predict", "FIT", "DATA", "--out", "no/x.csv"], 1, "there is no folder no"),
        (["modl", "DATA", "--target", "age", "--out", "no/x.csv"], 1, "there is no folder no"),
        (["compare", "DATA", "--target", "pain", "--out", "no/x.csv"], 1, "there is no folder no"),
        (["demo", "--out", "COMMAS"], 1, "cannot make the folder"),
        (["frobnicate"], 2, "invalid choice: 'frobnicate'"),
        ([], 2, "required: COMMAND"),
    ],
)  # fmt: skip
def test_every_error_is_one_line(folder, tmp_path, capsys, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    files = {"DATA": folder / "pain.csv", "FIT": folder / "fit.nc"}
    for name, text in {
        "OTHER": "a,b\n1,2\n",
        "WORDS": "age,clinic\nold,east\n",
        "TWICE": "age,clinic,predicted\n1,east,mild\n",
        "EMPTY": "",
        "HEAD": "age,pain\n",
        "HEAD2": "age,clinic\n",
        "COMMAS": "age,clinic\n40,east,\n50,west,\n",
        "LABELS": "age,pain,pain\n40,1,1\n50,2,2\n",
    }.items():
        files[name] = tmp_path / f"{name}.csv"
        files[name].write_text(text)
    (tmp_path / "DIR.nc").mkdir()
    (tmp_path / "GZIP.csv.gz").write_text("age,pain\n1,2\n")
    assert message in fails(capsys, *(files.get(a, a) for a in arguments), code=code)


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_outputs_are_checked_before_the_fit(folder, tmp_path, capsys, monkeypatch, option):
    def never(*_, **__):
        raise AssertionError("the fit has begun")

    monkeypatch.setattr("pmordinal.cli.fit.fit_engine", never)
    command = ["fit", folder / "pain.csv", "--target", "pain", "--order", "None,mild,severe"]
    locked = tmp_path / ("fit.nc" if option == "--out" else "report.html")
    locked.write_text("precious")
    locked.chmod(0o444)
    assert "it is read-only" in fails(capsys, *command, option, locked)
    assert locked.read_text() == "precious"
    if option == "--out":
        monkeypatch.setitem(sys.modules, "zarr", None)
        monkeypatch.setitem(sys.modules, "zarr.storage", None)
        line = fails(capsys, *command, option, tmp_path / "fit.zarr")
        assert "needs zarr 3: pip install 'pmordinal[zarr]', or use .nc" in line


def test_predictions_that_begin_like_formulas(folder, tmp_path):
    """They are marked, and our own output can be read again."""
    new = tmp_path / "new.csv"
    new.write_text("age,clinic,=note\n40,east,=1+1\n50,west,-3\n")
    out, again = tmp_path / "out.csv", tmp_path / "again.csv"
    assert main(["predict", str(folder / "fit.nc"), str(new), "--out", str(out)]) == 0
    lines = out.read_text().splitlines()
    assert lines[0].startswith("age,clinic,'=note,P(None)")
    assert lines[1].startswith("40,east,'=1+1,") and lines[2].startswith("50,west,-3,")
    table = tables.read(out, labels=["None"])
    assert table["=note"].tolist() == ["=1+1", "-3"]
    tables.write([table[["age", "clinic", "=note"]]], again)
    out.unlink()
    assert main(["predict", str(folder / "fit.nc"), str(again), "--out", str(out)]) == 0
    assert out.read_text().splitlines() == lines


def test_predictions_keep_the_index_of_a_parquet_file(folder, fitted, tmp_path):
    rows = pd.DataFrame({"age": [40.0, 50.0], "clinic": ["east", "west"]})
    rows.index = pd.Index(["p1", "p2"], name="patient")
    rows.to_parquet(tmp_path / "new.parquet")
    out = tmp_path / "out.csv"
    command = ["predict", str(folder / "fit.nc"), str(tmp_path / "new.parquet"), "--out", str(out)]
    assert main(command) == 0
    assert pd.read_csv(out)["patient"].tolist() == ["p1", "p2"]


def test_names_of_files_in_another_encoding(folder, tmp_path, capsys):
    out = tmp_path / "caf\udce9.csv"
    command = ["predict", str(folder / "fit.nc"), str(folder / "pain.csv"), "--out", str(out)]
    assert main(command) == 0
    assert "caf\\udce9.csv, 60 rows" in capsys.readouterr().out
    assert out.exists()


@pytest.mark.slow
def test_terminals_without_the_letters(folder, tmp_path):
    (tmp_path / "new.csv").write_text("age,clinic,note\n40,east,größer\n", encoding="utf-8")
    script = "import sys; from pmordinal.cli import main; sys.exit(main(sys.argv[1:]))"
    run = subprocess.run(
        [sys.executable, "-c", script, "predict", folder / "fit.nc", tmp_path / "new.csv"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert run.returncode == 1
    assert run.stderr.startswith(
        "pmordinal: the terminal's encoding ascii has no '\\xf6\\xdf': set "
    )


def test_identifiers_are_pointed_out(folder, capsys):
    data = [str(folder / "pain.csv"), "--target", "pain", "--order", "None,mild,severe"]
    assert main(["modl", *data]) == 0
    assert "column 'id' holds 60 different texts in 60 rows" in capsys.readouterr().err


def test_ordered_parquet_needs_no_order(tmp_path, capsys):
    pmo.datasets.wine().to_parquet(tmp_path / "wine.parquet")
    command = ["fit", str(tmp_path / "wine.parquet"), "--target", "rating", "--engine", "laplace"]
    assert main([*command, "--features", "temperature"]) == 0
    assert "threshold 4|5" in capsys.readouterr().out


def test_parquet_without_pyarrow(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    line = fails(capsys, "modl", tmp_path / "x.parquet", "--target", "y")
    assert "Parquet needs pyarrow: pip install pyarrow, or use CSV" in line


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples(name, capsys):
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert all(example in printed for example in COMMANDS[name].examples)


def test_from_the_shell():
    """A process of its own: the entry point, its exit code, and a light import."""
    script = (
        "import sys; from pmordinal.cli import main; code = main(['modl', 'nowhere.csv', '--target', 'y']); "
        "assert 'pymc' not in sys.modules; sys.exit(code)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert (run.returncode, run.stderr) == (1, "pmordinal: there is no file nowhere.csv\n")


def test_typed_blocks_keep_declared_levels():
    block = pd.DataFrame({"a": ["1", "True"], "b": ["None", "01"], "c": ["x", "y"]})
    columns = [Column("a"), Column("b", ("None", "01"))]
    out = tables.typed(block, columns, "file")
    assert out["a"].tolist() == [1, 1]
    assert out["b"].tolist() == ["None", "01"]


def test_split_and_order():
    assert tables.split("low,medium") == ["low", "medium"]
    y = pd.Series([1.0, 2.5], name="y")
    assert tables.ordered(y, ["1", "2.5"])[1] == [1, 2.5]
    y = pd.Series(pd.Categorical([3, 1]), name="y")
    assert tables.ordered(y, ["1", "3"])[1] == [1, 3]
    y = pd.Series([True, False], name="y")
    assert tables.ordered(y, ["False", "True"])[0].tolist() == ["True", "False"]


# formulas


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    """Return a folder with ratings whose judges are numbers, and a fit of a formula to them."""
    path = tmp_path_factory.mktemp("formula")
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"age": rng.uniform(20, 80, 50).round(), "judge": rng.integers(1, 5, 50)})
    score = table["age"] / 15 + 0.5 * table["judge"] + rng.normal(size=50)
    table["rating"] = np.array(["low", "middle", "high"])[np.digitize(score, [3.5, 5.5])]
    table.to_csv(path / "ratings.csv", index=False)
    table.assign(age=table["age"].mask(table.index < 3)).to_csv(path / "gaps.csv", index=False)
    return path


FORMULA = "rating ~ age + (1 | judge)"
ORDER = ["--order", "low,middle,high", "--quiet"]


def test_fit_reads_a_formula(rated, capsys):
    data, out = rated / "ratings.csv", rated / "fit.nc"
    command = ["fit", data, FORMULA, *ORDER, "--out", out]
    assert main([str(word) for word in command]) == 0
    printed = capsys.readouterr().out
    for piece in ("1|judge_sd", "effects", "variance shares", "lower", "noise"):
        assert piece in printed
    table = pd.read_csv(data)
    model = pmo.formula_model(FORMULA, table, categories=["low", "middle", "high"])
    direct, fit = pmo.fit(model, progressbar=False), pmo.load(out)
    pd.testing.assert_frame_equal(fit.coefficients(), direct.coefficients())

    table.assign(judge=9).to_csv(rated / "new.csv", index=False)  # a judge that nobody knows
    assert main(["predict", str(out), str(rated / "new.csv"), "--out", str(rated / "p.csv")]) == 0
    got = pd.read_csv(rated / "p.csv")[["P(low)", "P(middle)", "P(high)"]]
    np.testing.assert_allclose(got, fit.predict(table.assign(judge=9)))


@pytest.mark.slow
def test_a_formula_may_have_a_report(rated):
    page = rated / "report.html"
    command = ["fit", rated / "ratings.csv", FORMULA, *ORDER, "--report", page]
    assert main([str(word) for word in [*command, "--engines", "laplace"]]) == 0
    assert 'id="terms"' in page.read_text("utf-8")


def test_a_formula_may_stand_after_options(rated, capsys):
    data = str(rated / "ratings.csv")
    command = ["fit", data, *ORDER, "--engine", "laplace", "rating ~ age", "--target", "rating"]
    assert main(command) == 0
    assert "age" in capsys.readouterr().out
    gaps = ["fit", str(rated / "gaps.csv"), "rating ~ age", *ORDER, "--engine", "laplace"]
    assert main([*gaps, "--na", "drop"]) == 0
    captured = capsys.readouterr()
    assert "3 of 50 rows are left out" in captured.err and "47 labelled" in captured.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["rating ~ agee"], 1, "has no column 'agee'"),
        (["rated ~ age"], 1, "has no column 'rated'"),
        (["rating + age"], 1, "has no outcome"),
        (["rating ~ age", "--target", "age"], 1, "not what the formula predicts, 'rating'"),
        (["rating ~ age", "--features", "age"], 1, "--features has no place beside a formula"),
        (["rating ~ age", "--drop", "judge"], 1, "--drop has no place beside a formula"),
        (["rating ~ age", "--ard"], 1, "--ard and --kernel have no place beside a formula"),
        (["rating ~ age", "another"], 2, "unrecognized arguments: another"),
        ([], 2, "without a formula the following arguments are required: --target"),
    ],
)
def test_errors_of_formulas(rated, capsys, arguments, code, message):
    said = fails(capsys, "fit", rated / "ratings.csv", *arguments, *ORDER, code=code)
    assert message in said
    gaps = fails(capsys, "fit", rated / "gaps.csv", "rating ~ age", *ORDER)
    assert "'age' (3), in 3 of 50 rows" in gaps


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["ft"], "'fit'"),
        (["fit", "x.csv", "--taget", "y"], "'--target'"),
        (["fit", "x.csv", "--y", "rating"], "'--target'"),
        (["fit", "x.csv", "--target", "y", "--kernel", "rbf"], "'expquad'"),
        (["modl", "x.csv", "--traget=y"], "'--target'"),
        (["bench", "--suite", "gpro"], "'gpor'"),
    ],
)
def test_errors_guess_what_was_meant(capsys, arguments, meant):
    assert f"Did you mean {meant}?" in fails(capsys, *arguments, code=2)


def test_unlabelled_rows_on_the_command_line(folder, tmp_path, capsys):
    data = [
        "fit",
        str(folder / "pain.csv"),
        "--target",
        "pain",
        "--order",
        "None,mild,severe",
        "--drop",
        "id",
    ]
    told = [
        "--semisupervised",
        "--proportions",
        "0.2,0.4,0.4",
        "--weights",
        "0.1,1",
        "--max-rounds",
        "9",
    ]
    out = tmp_path / "semi.nc"
    assert main([*data, *told, "--quiet", "--engine", "laplace", "--out", str(out)]) == 0
    fit = pmo.load(out)
    assert fit.path["weight"].tolist() == [0.1, 1.0]
    np.testing.assert_allclose(fit.proportions, [0.2, 0.4, 0.4])
    capsys.readouterr()
    assert "not numbers" in fails(capsys, *data, "--semisupervised", "--weights", "a,b", "--quiet")
    assert "semisupervised=True" in fails(capsys, *data, "--weights", "0.1", "--quiet")
