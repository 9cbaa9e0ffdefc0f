"""Sphinx configuration: MyST pages, notebooks and figures run when the pages are built, formulas as MathML."""

import logging
import sys
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.math import get_node_equation_number

sys.path.append(str(Path(__file__).parent / "_ext"))
from inventories import mapping

for name in ("arviz", "pymc", "pytensor", "traitlets"):
    logging.getLogger(name).setLevel(logging.WARNING)  # what they tell while the figures are drawn
project = "pmordinal"
author = copyright = "The pmordinal developers"
extensions = [
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinxcontrib.bibtex",
    "matplotlib.sphinxext.plot_directive",
    "gallery",
    "links",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
html_theme = "furo"
html_title = "pmordinal"
html_static_path = ["_static"]
html_css_files = ["pmordinal.css"]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
bibtex_bibfiles = ["references.bib"]
bibtex_cite_id = "cite-{key}"
copybutton_exclude = ".linenos, .gp, .go"

# A notebook is run again when its code changes; `make clean` forgets all outputs.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "_build" / ".jupyter_cache")
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_output_stderr = "remove-warn"  # what is written there is news: the build stops at it
nb_merge_streams = True
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("svg", 100)]
plot_rcparams = {"savefig.bbox": "tight"}  # nothing that a figure shows is cut off
plot_apply_rcparams = True
napoleon_use_rtype = False
autodoc_typehints = "none"
default_role = "py:obj"  # a name in single backticks is a link, as numpydoc has it
autosummary_generate = True
autosummary_ignore_module_all = False
html_math_renderer = "mathml"  # browsers draw it by themselves: no script, no network

PAGES = {
    "python": "https://docs.python.org/3/",
    "pymc": "https://www.pymc.io/projects/docs/en/stable/",
    "arviz": "https://python.arviz.org/en/stable/",
    "xarray": "https://docs.xarray.dev/en/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
    "sklearn": "https://scikit-learn.org/stable/",
    "numpy": "https://numpy.org/doc/stable/",
}
intersphinx_mapping = mapping(PAGES, Path(__file__).parent / "_build" / "inventories")


def _inline(writer, node):
    writer.body.append(tex2mathml(node.astext()))
    raise SkipNode


def _block(writer, node):
    writer.body.append(writer.starttag(node, "div", CLASS="math", style="overflow-y: hidden"))
    if node["number"]:
        writer.body.append(f'<span class="eqno">({get_node_equation_number(writer, node)})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append(tex2mathml(node.astext(), as_block=True) + "</div>")
    raise SkipNode


def setup(app):
    """Make MathML of formulas, with docutils' own translator."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
