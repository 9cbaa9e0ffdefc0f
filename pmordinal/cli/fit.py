"""``pmordinal fit``: fit a table; print a summary, save the fit, write an HTML report."""

import argparse
from typing import TYPE_CHECKING

from pmordinal.cli.base import (
    DENSE,
    Command,
    check_output,
    data_arguments,
    fit_engine,
    local_path,
    model_arguments,
    name_list,
    print_table,
    read_data,
    say_written,
)
from pmordinal.cli.folders import cluster, fit_data, is_folder, scheduler_argument

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit

MOST_ROWS = 40  # of a printed table
MODERATE = 1000  # up to so many rows, the report compares engines by default
_SEMISUPERVISED = {
    "proportions": "with --semisupervised: class proportions of the unlabelled rows, e.g. 0.2,0.5,0.3",
    "weights": "with --semisupervised: weights of the unlabelled rows, step by step (default 0.001 to 1)",
}


def _arguments(parser: argparse.ArgumentParser) -> None:
    data_arguments(parser, formula=True)
    model_arguments(parser)
    parser.add_argument(
        "--engine", help="inference engine (default ep, and inducing beyond 3000 rows)"
    )
    scheduler_argument(parser)
    parser.add_argument("--objective", help="what to maximise; default: the engine's own")
    parser.add_argument(
        "--semisupervised", action="store_true", help="learn from the unlabelled rows too"
    )
    for name, what in _SEMISUPERVISED.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=name_list, help=what)
    parser.add_argument(
        "--max-rounds", type=int, help="with --semisupervised: rounds at one weight (default 50)"
    )
    parser.add_argument("--out", type=local_path, help="file for the fit: .nc or .zarr")
    parser.add_argument("--report", type=local_path, help="file for an HTML report")
    parser.add_argument(
        "--engines",
        type=name_list,
        help=f"engines to compare in the report; default: {','.join(DENSE)} up to {MODERATE} rows",
    )


def _run(options: argparse.Namespace) -> None:
    from rich.console import Console

    from pmordinal.cli.demo_files import summary_table
    from pmordinal.engines import get_engine

    check_output(options.out, ".nc", ".zarr")
    check_output(options.report, ".html")
    if options.engine is not None:
        get_engine(options.engine)  # so that an unknown name fails early
    with cluster(options):
        data = fit_data(options) if is_folder(options.data) else read_data(options)
        result = fit_engine(
            options.engine,
            data,
            options,
            objective=options.objective,
            semisupervised=options.semisupervised,
            max_rounds=options.max_rounds,
            **{name: _numbers(options, name) for name in _SEMISUPERVISED},
        )
    Console().print(summary_table(result))
    _print_terms(result)
    if options.out is not None:
        result.save(options.out)
        say_written(options.out)
    if options.report is not None:
        from pmordinal.report import write_report

        rivals, failures = _rivals(result, data, options)
        write_report(
            result,
            options.report,
            target=options.target,
            others=rivals,
            failures=failures,
            source=options.data,
            command=options.typed,
            saved=options.out,
        )
        say_written(options.report)


def _numbers(options: argparse.Namespace, name: str) -> list[float] | None:
    """Return an option of several numbers, or None where it was not given."""
    words = getattr(options, name)
    try:
        return None if words is None else [float(word) for word in words]
    except ValueError:
        raise ValueError(f"--{name}: these are not numbers: {', '.join(words)}") from None


def _print_terms(result: "OrdinalFit") -> None:
    """Print the effects of a formula's terms, and the share of the variance of each."""
    from pmordinal.data.terms import WITH_COEFFICIENTS

    if any(term.kind in WITH_COEFFICIENTS for term in result.model_terms):
        effects = result.coefficients()
        more = f", the first {MOST_ROWS} of {len(effects)}" if len(effects) > MOST_ROWS else ""
        print_table(effects.head(MOST_ROWS).set_index("term"), f"effects{more}")
    if result.model_terms:
        shares = result.variance_shares().sort_values(ascending=False)
        print_table(shares.to_frame().rename_axis("term"), "variance shares")


def _rivals(result: "OrdinalFit", data: tuple, options: argparse.Namespace):
    """Return fits of other engines to compare with, and the errors of those that failed."""
    engines = options.engines
    if engines is None:
        engines = DENSE if result.posterior.y.size <= MODERATE else ()
    rivals, failures = {}, {}
    for engine in engines:
        of_another_model = options.kernel is None and not options.ard and engine == "plsor"
        if engine == result.engine or of_another_model:
            continue
        try:
            rivals[engine] = fit_engine(engine, data, options)
        except ValueError as error:
            failures[engine] = str(error)
    return rivals, failures


FIT = Command(
    name="fit",
    help="fit an ordinal Gaussian process to a table",
    arguments=_arguments,
    run=_run,
    examples=(
        "pmordinal fit data.csv --target rating --out fit.nc --report report.html",
        "pmordinal fit data.csv 'rating ~ temperature + gp(age) + (1 | judge)' --report report.html",
        "pmordinal fit data.parquet --target pain --order none,mild,severe --ard",
        "pmordinal fit 'folder/*.parquet' --target grade --engine inducing --scheduler tcp://host:8786",
        "pmordinal fit large.csv --target grade --engine sparse --drop id --out fit.nc",
        "pmordinal fit partly.csv --target grade --semisupervised --proportions 0.2,0.5,0.3",
    ),
)
