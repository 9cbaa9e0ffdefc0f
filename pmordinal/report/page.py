"""One self-contained HTML page: sections, tables and figures, no script, nothing to download."""

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from pmordinal.results.summary import number

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2430; --soft: #5b6575; --line: #dfe3ea; --wash: #f5f7fa;
  --accent: #1f5fa8; --warn: #a33b00; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181f; --ink: #e4e8ee; --soft: #9aa5b5; --line: #323a46; --wash: #1c222b; --accent: #7db4f0;
    --warn: #ffab70; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main, header, nav { max-width: 62rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 2.75rem 0 .5rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.02rem; margin: 1.5rem 0 .4rem; }
p { margin: .5rem 0 .9rem; max-width: 46rem; }
.soft, caption, figcaption { color: var(--soft); font-size: .9rem; }
nav { margin-top: 1.2rem; font-size: .92rem; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
nav a { color: var(--accent); text-decoration: none; }
nav a:hover { text-decoration: underline; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; margin-top: 1.4rem; }
.tile { background: var(--wash); border: 1px solid var(--line); border-radius: .5rem; padding: .65rem .7rem; }
.tile b { display: block; font-size: 1.02rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.tile span { color: var(--soft); font-size: .84rem; }
.warn { color: var(--warn); font-weight: 600; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 0 2rem;
  align-items: start; }
.columns.wide { grid-template-columns: repeat(auto-fit, minmax(min(25rem, 100%), 1fr)); }
.columns > * { min-width: 0; }
.scroll { overflow-x: auto; margin: .4rem 0 1rem; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .35rem; }
th, td { padding: .28rem 1.2rem .28rem 0; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th:last-child, td:last-child { padding-right: 0; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
tbody th, thead th:first-child { text-align: left; font-weight: 500; }
th.text, td.text { text-align: left; }
tbody th, td.text { white-space: normal; }
td.text { overflow-wrap: break-word; }
tbody tr:hover { background: var(--wash); }
.bar { display: inline-block; height: .7rem; border-radius: .15rem; background: var(--accent); }
td.bars { min-width: 8rem; text-align: left; }
figure { margin: .9rem 0 1.3rem; }
figure img { max-width: 100%; height: auto; background: #fff; border: 1px solid var(--line); border-radius: .5rem;
  padding: .5rem; display: block; }
pre { background: var(--wash); border: 1px solid var(--line); border-radius: .5rem; padding: .8rem 1rem;
  overflow-x: auto; font: .88rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
footer { max-width: 62rem; margin: 3rem auto 2rem; padding: 0 1.25rem; }
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --wash: #fff;
    --accent: #1f5fa8; }
  body { font-size: 10.5pt; } nav { display: none; } h2, h3 { break-after: avoid; }
  figure, tr, .tile { break-inside: avoid; } .scroll { overflow: visible; } pre { white-space: pre-wrap; }
  th, td { white-space: normal; } .bar, td { print-color-adjust: exact; }
  .columns.wide { grid-template-columns: 1fr 1fr; }
}
"""
MOST_ROWS = 40  # of a table in the report


@dataclass(frozen=True)
class Section:
    """A section of a page: its title and its blocks of HTML."""

    key: str
    title: str
    parts: tuple[str, ...]


def whole_page(
    title: str, subtitle: str, tiles: Mapping[str, str], sections: Sequence[Section]
) -> str:
    """Return a whole page.

    Examples
    --------
    >>> whole_page("A & B", "", {}, [Section("one", "One", (text("Hello"),))]).count("A &amp; B")
    2
    """
    links = "".join(f'<a href="#{s.key}">{escape(s.title)}</a>' for s in sections)
    boxes = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for name, value in tiles.items()
    )
    body = "\n".join(
        f'<section id="{s.key}"><h2>{escape(s.title)}</h2>\n{chr(10).join(s.parts)}\n</section>'
        for s in sections
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header><h1>{escape(title)}</h1><p class="soft">{escape(subtitle)}</p>
<div class="tiles">{boxes}</div></header>
<nav>{links}</nav>
<main>
{body}
</main>
<footer class="soft">Made by pmordinal.</footer>
</body>
</html>
"""


def text(content: str, kind: str | None = None) -> str:
    """Return a paragraph; `kind` is ``"soft"`` or ``"warn"``."""
    return f'<p class="{kind}">{escape(content)}</p>' if kind else f"<p>{escape(content)}</p>"


def heading(content: str) -> str:
    """Return a heading within a section."""
    return f"<h3>{escape(content)}</h3>"


def code(content: str) -> str:
    """Return preformatted text."""
    return f"<pre>{escape(content)}</pre>"


def columns(*blocks: Iterable[str], wide: bool = False) -> str:
    """Return blocks side by side where the page is wide enough; at most two if they are wide."""
    inner = "".join(f"<div>{''.join(block)}</div>" for block in blocks)
    return f'<div class="columns{" wide" if wide else ""}">{inner}</div>'


def table(
    frame: pd.DataFrame, caption: str = "", bars: str | None = None, shades: bool = False
) -> str:
    """Return a data frame as an HTML table; the column `bars` gets bars beside its numbers.

    With `shades`, the cells of each row are shaded by their share of the row.

    Examples
    --------
    >>> "<td>0.25</td>" in table(pd.DataFrame({"a": [0.25]}, index=["x"]))
    True
    """
    words = [all(isinstance(v, str) for v in values) for _, values in frame.items()]
    styles = [' class="text"' if word else "" for word in words]
    cell = "text-align:center; padding:.28rem .5rem"
    largest = 1.0 if bars is None else float(frame[bars].max()) or 1.0
    head = [f'<th scope="col">{escape(str(frame.index.name or ""))}</th>']
    for name, style in zip(frame.columns, styles, strict=True):
        style = f' style="{cell}"' if shades else style
        head.append(f'<th scope="col"{style}>{escape(str(name))}</th>')
        if name == bars:
            head.append("<th></th>")
    rows = []
    for key, row in zip(frame.index, frame.itertuples(index=False), strict=True):
        cells = [f'<th scope="row">{escape(str(key))}</th>']
        whole = sum(row) if shades else 0.0
        for name, style, value in zip(frame.columns, styles, row, strict=True):
            if whole:
                share = 100.0 * value / whole
                mixed = f"color-mix(in srgb, var(--accent) {0.6 * share:.0f}%, transparent)"
                style = f' style="background:{mixed}; {cell}"'
            cells.append(f"<td{style}>{escape(number(value))}</td>")
            if name == bars:
                width = 7.5 * float(value) / largest
                bar = f'<span class="bar" style="width:{width:.2f}rem"></span>'
                cells.append(f'<td class="bars">{bar}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll"><table>{title}<thead><tr>{"".join(head)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def top_rows(frame: pd.DataFrame, what: str, bars: str | None = None) -> str:
    """Return the first rows of a table as HTML, with a note on how many there are in all."""
    if len(frame) <= MOST_ROWS:
        return table(frame, bars=bars)
    caption = f"The first {MOST_ROWS} of {len(frame)} {what}."
    return table(frame.head(MOST_ROWS), caption, bars)


def figure(drawn: Figure, caption: str) -> str:
    """Return a matplotlib figure as an image within the page, and close it."""
    buffer = io.BytesIO()
    # no date and fixed ids: the same fit gives the same bytes
    try:
        with plt.rc_context({"svg.hashsalt": "pmordinal"}):
            drawn.savefig(buffer, format="svg", metadata={"Date": None})
    finally:
        plt.close(drawn)
    data = base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<figure><img alt="{escape(caption)}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
