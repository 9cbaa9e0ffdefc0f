"""Links that nobody writes: code such as `pmo.fit(model)` to its reference, [KEY, eq. 1] to the bibliography."""

import re
from pathlib import Path

from docutils import nodes
from pybtex.plugin import register_plugin
from pybtex.style.formatting.alpha import Style as AlphaStyle
from pybtex.style.labels import BaseLabelStyle
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

from pmordinal import SemiSupervisedFit

SHORT = {
    "pmo": "pmordinal",
    "pmordinal": "pmordinal",
    "fit": "pmordinal.OrdinalFit",
    "pm": "pymc",
    "az": "arviz",
    "xr": "xarray",
    "pd": "pandas",
    "np": "numpy",
}
# What a `fit` has only if it is semi-supervised.
UNLABELED = {*vars(SemiSupervisedFit), *SemiSupervisedFit.__annotations__}
CODE = re.compile(rf"({'|'.join(SHORT)})\.([A-Za-z_][\w.]*)")
BIB = Path(__file__).parents[1] / "references.bib"
KEYS = re.findall(r"^@\w+\{(\w+),", BIB.read_text(), re.MULTILINE)
CITATION = re.compile(rf"\[({'|'.join(KEYS)})((?:, [^\]]*)?)\]")


class CodeLinks(SphinxTransform):
    """Link names in code to their page, if there is one."""

    default_priority = 500

    def apply(self):
        """Wrap each literal whose first word has a name of a module; a letter in ``shape (n, d)`` is no name."""
        for link in list(self.document.findall(pending_xref)):
            if len(link.get("reftarget", "")) == 1:
                link.replace_self(link.children)
        for literal in list(self.document.findall(nodes.literal)):
            found = CODE.match(literal.astext())
            if not found or isinstance(
                literal.parent, nodes.reference | pending_xref | nodes.title
            ):
                continue
            owner = SHORT[found[1]]
            if found[1] == "fit" and found[2].split(".")[0] in UNLABELED:
                owner = "pmordinal.SemiSupervisedFit"
            link = pending_xref(
                "",
                refdomain="py",
                reftype="obj",
                reftarget=f"{owner}.{found[2]}",
                refexplicit=True,
                refwarn=False,
                refdoc=self.env.docname,
            )
            literal.replace_self(link)
            link += literal


class Citations(SphinxPostTransform):
    """Link citations to the bibliography."""

    default_priority = 500

    def run(self, **kwargs):
        """Cut text at citations."""
        docname = self.env.current_document.docname
        page = self.env.app.builder.get_relative_uri(docname, "bibliography")
        for text in list(self.document.findall(nodes.Text)):
            if isinstance(text.parent, nodes.literal | nodes.FixedTextElement | nodes.reference):
                continue
            pieces = CITATION.split(text.astext())
            if len(pieces) == 1:
                continue
            new = [nodes.Text(pieces[0])]
            for key, place, after in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
                link = nodes.reference("", key, refuri=f"{page}#cite-{key.lower()}", internal=True)
                new += [nodes.Text("["), link, nodes.Text(f"{place}]{after}")]
            text.parent.replace(text, new)


class KeyLabels(BaseLabelStyle):
    """Entries of the bibliography are labelled by their keys, as they are cited."""

    def format_labels(self, sorted_entries):
        """Yield the labels."""
        return (entry.key for entry in sorted_entries)


class KeyStyle(AlphaStyle):
    """Sorted by author, labelled by key."""

    default_label_style = KeyLabels


register_plugin("pybtex.style.formatting", "keys", KeyStyle)


def setup(app):
    """Add both."""
    app.add_transform(CodeLinks)
    app.add_post_transform(Citations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
