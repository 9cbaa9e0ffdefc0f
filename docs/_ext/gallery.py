"""The notebooks as pages, and a picture of each for its card."""

import sys
from pathlib import Path

import nbformat
from docutils import nodes
from jupyter_cache import get_cache
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

sys.path.append(str(Path(__file__).parents[2] / "tools"))
from notebooks import write

logger = logging.getLogger(__name__)


class thumbnail(nodes.General, nodes.Element):
    """Stands for a picture of another page until all pages are read."""


class Thumbnail(SphinxDirective):
    """`{thumbnail} page number`: the picture of that number (0 is the first) of a page, with a link to it."""

    required_arguments = 2

    def run(self):
        """Note which picture of which page."""
        page, number = self.arguments
        self.env.note_dependency(self.env.doc2path(page))
        return [thumbnail(page=page, number=int(number))]


def fill(app, doctree, docname):
    """Put the pictures in their places."""
    for place in list(doctree.findall(thumbnail)):
        page = app.env.get_doctree(place["page"])
        pictures = list(page.findall(nodes.image))
        if len(pictures) <= place["number"]:
            if app.config.nb_execution_mode != "off":
                logger.warning("%s has %d pictures", place["page"], len(pictures), location=docname)
            place.parent.remove(place)
            continue
        uri = pictures[place["number"]]["uri"]
        link = nodes.reference(refuri=app.builder.get_relative_uri(docname, place["page"]))
        link += nodes.image(uri=uri, candidates={"*": uri}, alt="", classes=["thumbnail"])
        place.replace_self(nodes.paragraph("", "", link))


def add_outputs(app, env):
    """Give the files to download their outputs: MyST-NB leaves those out that come from its cache."""
    if app.config.nb_execution_mode != "cache":
        return
    cache = get_cache(app.config.nb_execution_cache_path)
    for path in (Path(env.mystnb_config.output_folder) / "gallery").glob("*.ipynb"):
        try:
            _, notebook = cache.merge_match_into_notebook(nbformat.read(path, as_version=4))
        except KeyError:
            continue
        path.write_text(nbformat.writes(notebook))
    cache.db.dispose()


def setup(app):
    """Write the notebooks before pages are looked for."""
    app.connect("config-inited", lambda app, config: write(Path(app.srcdir) / "gallery"))
    app.add_node(thumbnail)
    app.add_directive("thumbnail", Thumbnail)
    app.connect("env-updated", add_outputs)
    app.connect("doctree-resolved", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
