"""Sphinx configuration: MyST pages, figures drawn when the pages are built."""

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
napoleon_use_rtype = False
autodoc_typehints = "none"
