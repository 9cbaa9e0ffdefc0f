"""Sphinx configuration: MyST pages, figures drawn when the pages are built, formulas as MathML."""

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.math import get_node_equation_number

project = "pmordinal"
author = "The pmordinal developers"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "matplotlib.sphinxext.plot_directive",
]
myst_enable_extensions = ["dollarmath"]
html_theme = "furo"
html_title = "pmordinal"
exclude_patterns = ["_build"]
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("svg", 100)]
plot_rcparams = {"savefig.bbox": "tight"}  # nothing that a figure shows is cut off
plot_apply_rcparams = True
napoleon_use_rtype = False
autodoc_typehints = "none"
html_math_renderer = "mathml"  # browsers draw it by themselves: no script, no network


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
