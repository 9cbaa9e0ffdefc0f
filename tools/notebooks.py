"""Write the notebooks as .ipynb files: `python tools/notebooks.py FOLDER`, by default beside their scripts.

What draws a picture ends with a semicolon there, so that the picture is shown and the name of its object is not.
"""

import ast
import sys
from pathlib import Path

import jupytext

SCRIPTS = Path(__file__).parents[1] / "notebooks"
# Calls by whose result nobody is helped, as their names begin.
DRAWING = (
    "plot",
    "set",
    "legend",
    "show",
    "scatter",
    "hist",
    "imshow",
    "colorbar",
    "bar",
    "axvline",
    "axhline",
    "fill_between",
)


def quiet(source: str) -> str:
    """Return the code of a cell, with a semicolon if it ends by drawing."""
    last = ast.parse(source).body[-1:]
    if last and isinstance(last[0], ast.Expr) and isinstance(last[0].value, ast.Call):
        name = ast.unparse(last[0].value.func).split(".")[-1]
        if name.startswith(DRAWING):
            return source.rstrip() + ";"
    return source


def write(folder: Path) -> list[Path]:
    """Write every notebook into a folder, where it is not there already, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for script in sorted(SCRIPTS.glob("*.py")):
        notebook = jupytext.read(script, fmt="py:percent")
        notebook.metadata = {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
        }
        for number, cell in enumerate(notebook.cells):
            cell["id"] = f"{script.stem}-{number}"  # the same at every build
            if cell.cell_type == "code":
                cell.source = quiet(cell.source)
        path = folder / f"{script.stem}.ipynb"
        text = jupytext.writes(notebook, fmt="ipynb")
        if not path.exists() or path.read_text() != text:  # Sphinx reads what is newer
            path.write_text(text)
        written.append(path)
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1]) if len(sys.argv) > 1 else SCRIPTS):
        print(path)
