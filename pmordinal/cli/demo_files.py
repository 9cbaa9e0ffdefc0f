"""The demo: a fit to the wine ratings, shown as a table and written as a picture and a DataTree."""

from pathlib import Path

import matplotlib
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pmordinal.data import files, tables
from pmordinal.datasets import wine
from pmordinal.inference.fit import fit as fit_model
from pmordinal.model.factories import gp_model
from pmordinal.results import stores
from pmordinal.results.fit import OrdinalFit
from pmordinal.results.summary import outcome, parameters

ATTRIBUTES = ["temperature", "contact", "judge"]


def run(folder: Path, engine: str) -> None:
    """Fit the wine ratings, print a table, and write ``demo.png``, ``demo.nc`` and ``wine.csv`` to `folder`."""
    console = Console()
    data = wine()
    console.print(
        f"[bold]Bitterness of wine[/bold], {len(data)} ratings from 1 to 5 (Randall 1989): "
        f"a Gaussian process on {', '.join(ATTRIBUTES)}"
    )
    files.make_folder(folder)
    fit = fit_model(gp_model(data[ATTRIBUTES], data["rating"], engine=engine), seed=0)
    console.print(summary_table(fit))
    picture(fit, folder / "demo.png")
    stores.write(fit.to_datatree(seed=0), folder / "demo.nc")
    tables.write([data], folder / "wine.csv")
    names = ("demo.png", "demo.nc", "wine.csv")
    png, nc, csv = (escape(files.printable(folder / name)) for name in names)
    console.print(f"Wrote {png}, {nc} (read it with az.from_netcdf) and the ratings, {csv}")


def summary_table(fit: OrdinalFit) -> Table:
    """Return hyperparameters, thresholds by name, evidence and leave-one-out score."""
    table = Table(
        "quantity", "value", title=f"{fit.engine}, {fit.posterior.likelihood.link.name} link"
    )
    table.columns[1].justify = "right"
    for name, value in parameters(fit).items():
        table.add_row(escape(name), f"{value:.3f}")
    table.add_section()
    for name, text in outcome(fit).items():
        table.add_row(name, escape(text))
    return table


def picture(fit: OrdinalFit, path: Path) -> None:
    """Write the category probabilities and the latent function with its thresholds."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from pmordinal.plots import plot_categories, plot_latent

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    by = ["temperature", "contact"]
    plot_categories(fit, by, ax=left).set_title("How bitter?")
    plot_latent(fit, by, ax=right).set_title("Latent bitterness and the thresholds")
    with files.whole(path) as temporary:
        figure.savefig(temporary, dpi=150)
    plt.close(figure)
